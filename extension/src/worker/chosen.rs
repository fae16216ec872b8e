//! What a view reads from indexes, and what for itself.

use super::kept_plans::{Fed, NewPlan};
use super::sources::Sources;
use crate::pg::ids::RelationId;
use crate::pg::index_cells::IndexCell;
use engine::{DataflowId, Engine, Form, Index, Lookup, Read, Time};
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

impl Spec {
    /// Just what a view looks up whose dataflow has that form.
    pub(super) fn new(sources: &Sources, form: Form, (source, key): &Lookup) -> Spec {
        let query = &sources.compiled.query;
        let table = &query.sources[source.0];
        Spec {
            index: Index {
                source: query.plan.sources[source.0].clone(),
                key: key.clone(),
                form,
                made_by: None,
            },
            table: table.table,
            columns: table.columns(),
            members: sources.members[source.0].clone(),
        }
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

    /// Whether a view whose dataflow has that form finds what it looks up.
    pub(super) fn answers(&self, sources: &Sources, form: Form, (source, key): &Lookup) -> bool {
        let query = &sources.compiled.query;
        let table = &query.sources[source.0];
        let columns = table.columns();
        let are_there = |places: Vec<usize>| {
            columns.iter().zip(places).all(|(column, place)| self.columns[place] == *column)
        };
        self.table == table.table
            && self.members == sources.members[source.0]
            && self.index.answers(form, &query.plan.sources[source.0], key).is_some_and(are_there)
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
    pub(super) fn create(&self, engine: &mut Engine, sources: &Sources, as_of: Time) {
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
