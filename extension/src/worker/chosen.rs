//! What a view reads from indexes, and what for itself.

use super::kept_plans::{Fed, NewPlan};
use super::sources::Sources;
use crate::pg::ids::RelationId;
use crate::pg::index_cells::IndexCell;
use engine::{DataflowId, Engine, Form, Index, Lookup, Read, SubPlan, Time};
use plan::expr::{is_closed, Expr};
use plan::func::{Comparison, Func};
use plan::types::Type;
use plan::{Source, SourceId, ViewPlan};
use std::collections::BTreeSet;

/// What an index holds.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) index: Index,
    pub(super) table: RelationId,
    pub(super) columns: Vec<(i16, Type)>,
    /// The table with all its partitions and children; none if it is an incremental view.
    pub(super) members: BTreeSet<RelationId>,
}

/// What a dataflow looks up of a source of a view: that of the view itself, or of a part of its plan.
pub(super) struct Sought<'s> {
    /// The view's source.
    pub(super) of: SourceId,
    /// What is read of it.
    pub(super) source: &'s Source,
    pub(super) columns: Vec<(i16, Type)>,
    /// Positions of those by which rows are looked up.
    pub(super) key: &'s [usize],
    pub(super) form: Form,
}

impl<'s> Sought<'s> {
    /// By the view itself.
    pub(super) fn by_view(sources: &'s Sources, form: Form, (of, key): &'s Lookup) -> Sought<'s> {
        let query = &sources.compiled.query;
        let columns = query.sources[of.0].columns();
        Sought { of: *of, source: &query.plan.sources[of.0], columns, key, form }
    }

    /// By a part of its plan, which reads fewer columns.
    pub(super) fn by_part(
        sources: &Sources,
        part: &'s SubPlan,
        form: Form,
        (source, key): &'s Lookup,
    ) -> Sought<'s> {
        let (of, columns) = columns_of_part(sources, part, *source);
        Sought { of, source: &part.plan.sources[source.0], columns, key, form }
    }
}

/// The view's source that a source of a part of its plan is, and the columns that the part reads.
pub(super) fn columns_of_part(
    sources: &Sources,
    part: &SubPlan,
    source: SourceId,
) -> (SourceId, Vec<(i16, Type)>) {
    let (of, places) = &part.sources[source.0];
    let all = sources.compiled.query.sources[of.0].columns();
    (*of, places.iter().map(|place| all[*place]).collect())
}

impl Spec {
    /// What is sought, if there is room with the other columns that the view has of the table; `None` if even that is too wide
    /// for the form.
    pub(super) fn new(sources: &Sources, sought: &Sought) -> Option<Spec> {
        let (query, id) = (&sources.compiled.query, sought.of.0);
        let spec = |source: &Source, columns: Vec<(i16, Type)>, key: Vec<usize>| Spec {
            index: Index { source: source.clone(), key, form: sought.form, made_by: None },
            table: query.sources[id].table,
            columns,
            members: sources.members[id].clone(),
        };
        let least = spec(sought.source, sought.columns.clone(), sought.key.to_vec());
        let all = query.sources[id].columns();
        let place = |column| all.iter().position(|other| *other == column);
        let key = least.key().map(place).collect::<Option<_>>()?;
        let whole = spec(&query.plan.sources[id], all, key);
        least.index.fits().then(|| least.widened(&whole))
    }

    /// What other processes are told of it.
    pub(super) fn cell(&self, database: u32) -> Option<IndexCell> {
        let key: Vec<i16> = self.key().map(|(number, _)| number).collect();
        let columns = self.columns.iter().map(|(number, _)| *number);
        IndexCell::new((database, self.table), self.index.form.number(), &key, columns)
    }

    /// The columns by which rows are looked up.
    pub(super) fn key(&self) -> impl Iterator<Item = (i16, Type)> + '_ {
        self.index.key.iter().map(|column| self.columns[*column])
    }

    /// Whether that is found in it.
    pub(super) fn answers(&self, sources: &Sources, sought: &Sought) -> bool {
        let are_there = |places: Vec<usize>| {
            sought.columns.iter().zip(places).all(|(column, place)| self.columns[place] == *column)
        };
        self.table == sources.compiled.query.sources[sought.of.0].table
            && self.members == sources.members[sought.of.0]
            && self.index.answers(sought.form, sought.source, sought.key).is_some_and(are_there)
    }

    /// The same with the columns of another one besides, if that is of the same rows and by the same key, and there is room
    /// for them.
    pub(super) fn widened(self, other: &Spec) -> Spec {
        let are_alike = self.table == other.table
            && self.members == other.members
            && self.index.form == other.index.form
            && self.key().eq(other.key());
        if !are_alike {
            return self;
        }
        let mut wide = self.clone();
        let Source { columns, schema, .. } = &mut wide.index.source;
        for (place, column) in other.columns.iter().enumerate() {
            if !self.columns.contains(column) {
                wide.columns.push(*column);
                columns.push(other.index.source.columns[place]);
                schema.push(other.index.source.schema[place].clone());
            }
        }
        if wide.index.fits() {
            wide
        } else {
            self
        }
    }
}

/// Whether so few rows pass a filter that those who look them up rather keep them for themselves than have an index of
/// all rows made.
pub(super) fn is_selective(filter: &[Expr]) -> bool {
    filter.iter().any(|conjunct| match conjunct {
        Expr::Call { func: Func::Compare(Comparison::Eq, _), args } => args.iter().any(is_closed),
        Expr::Or(args) => args.iter().all(|arg| is_selective(std::slice::from_ref(arg))),
        _ => false,
    })
}

/// An index that is to be made.
#[derive(Clone, Debug)]
pub(super) struct New {
    pub(super) dataflow: DataflowId,
    /// The view's source whose table it holds.
    pub(super) source: SourceId,
    pub(super) spec: Spec,
}

/// What a view is going to read from indexes.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// The plan of its dataflow: the view's, or one that reads what parts of it put out from sources behind the others.
    pub(super) plan: ViewPlan,
    pub(super) form: Form,
    pub(super) reads: Vec<Read>,
    /// What the parts look up that it reads.
    pub(super) beneath: BTreeSet<DataflowId>,
    /// Of all these the indexes of tables that are new.
    pub(super) new: Vec<New>,
    /// The parts that are new.
    pub(super) plans: Vec<NewPlan>,
    /// The sources whose rows the view needs for itself.
    pub(super) own: BTreeSet<SourceId>,
}

impl Chosen {
    /// Nothing from indexes.
    pub(super) fn none(plan: ViewPlan) -> Chosen {
        Chosen {
            form: Form::of(&plan),
            own: (0..plan.sources.len()).map(SourceId).collect(),
            plan,
            reads: Vec::new(),
            beneath: BTreeSet::new(),
            new: Vec::new(),
            plans: Vec::new(),
        }
    }

    /// All indexes that it reads, or parts do that it reads.
    pub(super) fn all(&self) -> BTreeSet<DataflowId> {
        self.reads.iter().map(|read| read.index).chain(self.beneath.iter().copied()).collect()
    }

    /// What the new ones are fed.
    pub(super) fn fed(&self) -> impl Iterator<Item = Fed> + '_ {
        let of_tables = self.new.iter().map(|New { dataflow, source, spec }| Fed {
            input: (*dataflow, SourceId(0)),
            source: *source,
            columns: spec.columns.clone(),
        });
        of_tables.chain(self.plans.iter().flat_map(|plan| plan.fed.iter().cloned()))
    }

    /// Makes the new ones.
    pub(super) fn create(&self, engine: &mut dyn Engine, sources: &Sources, as_of: Time) {
        let owner = sources.compiled.owner.to_u32();
        for New { dataflow, spec, .. } in &self.new {
            engine.create_index(*dataflow, &spec.index, &[], as_of);
            engine.set_owner(*dataflow, owner);
        }
        for NewPlan { dataflow, plan, .. } in &self.plans {
            engine.create_index(*dataflow, &plan.index, &plan.reads, as_of);
            engine.set_owner(*dataflow, owner);
        }
    }
}
