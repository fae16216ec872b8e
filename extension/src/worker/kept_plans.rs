//! Parts of plans that several views compute: joins of two tables, and sub-plans. What such a part puts out is computed and kept
//! once, as an index that is not fed but made, and read by all views that are attached when there are enough of them.

use super::chosen::{is_selective, Spec};
use super::sources::Sources;
use crate::compile::CompiledQuery;
use crate::pg::catalog;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::index_cells::{IndexCell, MAX_KEY};
use crate::sub_plans::{fingerprint, is_table, kind_of, sub_plans_of};
use engine::{DataflowId, Form, Index, Lookup, Read, SubPlan, TableJoin};
use plan::types::Type;
use plan::{Source, SourceId, ViewPlan};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Parts that have raised errors and are remembered; of more the oldest are tried again.
const MOST_RAISED: usize = 1000;

/// Columns of a table, whatever view reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableColumns {
    table: RelationId,
    /// The table with all its partitions and children; none if it is an incremental view.
    members: BTreeSet<RelationId>,
    columns: Vec<(i16, Type)>,
}

impl TableColumns {
    fn of(sources: &Sources, (source, columns): &Lookup) -> TableColumns {
        let table = &sources.compiled.query.sources[source.0];
        let all = table.columns();
        TableColumns {
            table: table.table,
            members: sources.members[source.0].clone(),
            columns: columns.iter().map(|column| all[*column]).collect(),
        }
    }
}

/// Part of a plan, whatever view computes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// A join, by what it compares.
    Join([TableColumns; 2]),
    /// A sub-plan, and what its sources are.
    SubPlan(Box<ViewPlan>, Vec<TableColumns>),
}

/// Whether no two rows of a table are equal in all columns that a join compares.
fn is_unique(sources: &Sources, side: &Lookup) -> bool {
    let TableColumns { table, members, columns } = TableColumns::of(sources, side);
    let is_whole = members.len() == 1 || catalog::is_partitioned(table);
    let has = |column: &i16| columns.iter().any(|(number, _)| number == column);
    is_whole && catalog::unique_keys(table.into()).iter().any(|unique| unique.iter().all(has))
}

/// The joins of a plan of a view that others may compute, too. What they put out has no more rows than one of their tables. Needs
/// a transaction.
pub(super) fn joins_of(sources: &Sources, plan: &ViewPlan) -> Vec<TableJoin> {
    // Who wants few of the pairs rather looks for these.
    let is_wide = |(join, filters): &(TableJoin, [Vec<_>; 2])| {
        join.left.1.len() <= MAX_KEY && !filters.iter().any(|filter| is_selective(filter))
    };
    let is_of_tables = |join: &TableJoin| {
        let sides = [&join.left, &join.right];
        sides.iter().all(|(source, _)| is_table(&sources.compiled.query, *source))
    };
    let is_small =
        |join: &TableJoin| [&join.left, &join.right].iter().any(|side| is_unique(sources, side));
    let joins = engine::table_joins(plan).into_iter().filter(is_wide).map(|(join, _)| join);
    joins.filter(|join| is_of_tables(join) && is_small(join)).collect()
}

/// A part of a view's plan that others may compute, too.
pub(super) struct Wanted {
    pub(super) part: Part,
    /// The plan that reads what it puts out, and where.
    pub(super) plan: ViewPlan,
    pub(super) source: SourceId,
    /// The form of its dataflow.
    pub(super) form: Form,
}

impl Wanted {
    /// A join of a plan; its dataflow is of a form otherwise.
    pub(super) fn join(of: &Sources, join: &TableJoin, (plan, form): (&ViewPlan, Form)) -> Wanted {
        let (plan, source) = join.read_by(plan);
        let form = form.and(Form::of(&plan)).with(&plan.sources[source.0], &join.left.1);
        let sides = [&join.left, &join.right].map(|side| TableColumns::of(of, side));
        Wanted { part: Part::Join(sides), plan, source, form }
    }

    /// The same for a sub-plan; `None` if the plan does not have it.
    pub(super) fn sub_plan(
        of: &Sources,
        part: &SubPlan,
        (plan, form): (&ViewPlan, Form),
    ) -> Option<Wanted> {
        let (plan, source) = part.read_by(plan)?;
        let both = Form::of(&plan).and(Form::of(&part.plan));
        let form = Index::of_sub_plan(part, form.and(both)).form;
        let tables = part.sources.iter().map(|source| TableColumns::of(of, source)).collect();
        let part = Part::SubPlan(Box::new(part.plan.clone()), tables);
        Some(Wanted { part, plan, source, form })
    }
}

/// Which parts of their plans views have in common.
#[derive(Debug)]
pub(super) struct CommonParts {
    /// With the form of dataflows that read what they put out.
    by_view: BTreeMap<ViewId, Vec<(Part, Form)>>,
    /// Those that have raised an error: each view has to have that itself.
    raised: VecDeque<Part>,
    /// So many views that compute a part have it computed for them, for what it puts out takes memory of its own; 0 for never.
    enough: usize,
}

impl CommonParts {
    /// None yet.
    pub(super) fn new(enough: usize) -> CommonParts {
        CommonParts { by_view: BTreeMap::new(), raised: VecDeque::new(), enough }
    }

    /// Whether any may ever be computed for several views.
    pub(super) fn are_wanted(&self) -> bool {
        self.enough > 0
    }

    /// A view is about to be begun, which computes a plan.
    pub(super) fn note(&mut self, view: ViewId, of: &Sources, plan: &ViewPlan) {
        let plan = (plan, Form::of(plan));
        let joins = joins_of(of, plan.0);
        let sub_plans = sub_plans_of(&of.compiled.query, plan.0);
        let joins = joins.iter().map(|join| Wanted::join(of, join, plan));
        let sub_plans = sub_plans.iter().filter_map(|part| Wanted::sub_plan(of, part, plan));
        let parts = joins.chain(sub_plans).map(|wanted| (wanted.part, wanted.form));
        self.by_view.insert(view, parts.collect());
    }

    /// The dataflow of a view is gone.
    pub(super) fn forget(&mut self, view: ViewId) {
        self.by_view.remove(&view);
    }

    /// A part has raised an error.
    pub(super) fn note_raised(&mut self, part: &Part) {
        if !self.raised.contains(part) {
            self.raised.push_back(part.clone());
        }
        if self.raised.len() > MOST_RAISED {
            self.raised.pop_front();
        }
    }

    /// Whether so many views compute a part of a view, and would read it in the same form, that it pays to compute it for all of
    /// them.
    pub(super) fn are_enough(&self, view: ViewId, part: &Part) -> bool {
        let noted = self.by_view.get(&view).and_then(|parts| parts.iter().find(|it| it.0 == *part));
        let Some(noted) = noted else { return false };
        let views = self.by_view.values().filter(|parts| parts.contains(noted)).count();
        views >= self.enough && !self.raised.contains(part)
    }
}

/// A part of plans whose output is kept.
#[derive(Clone, Debug)]
pub(super) struct KeptPlan {
    pub(super) index: Index,
    part: Part,
    /// What it looks up in indexes of tables.
    pub(super) reads: Vec<Read>,
    /// What other processes are told of it.
    cell: Option<IndexCell>,
}

impl KeptPlan {
    /// A join of what two indexes of tables hold; `None` if its rows are too wide for their form.
    pub(super) fn of_join(
        part: Part,
        [(left, of_left), (right, of_right)]: [(DataflowId, Spec); 2],
        database: u32,
    ) -> Option<KeptPlan> {
        let index = Index::of_join(&of_left.index, &of_right.index);
        let read = |side: usize, spec: &Spec, index: DataflowId| Read {
            source: SourceId(side),
            key: spec.index.key.clone(),
            index,
        };
        let reads = vec![read(0, &of_left, left), read(1, &of_right, right)];
        let joined = of_right.columns.iter().map(|(number, _)| *number);
        let cell =
            of_left.cell(database).map(|cell| cell.joined_with(of_right.table, joined.collect()));
        index.fits().then_some(KeptPlan { index, part, reads, cell })
    }

    /// A sub-plan that looks up these.
    pub(super) fn of_sub_plan(
        query: &CompiledQuery,
        (part, sub_plan): (Part, &SubPlan),
        (index, reads): (Index, Vec<Read>),
        database: u32,
    ) -> KeptPlan {
        let tables = sub_plan.sources.iter().map(|(source, _)| query.sources[source.0].table);
        let (kind, form) = (kind_of(sub_plan), index.form.number());
        let cell =
            IndexCell::of_sub_plan((database, form), (kind, fingerprint(query, sub_plan)), tables);
        KeptPlan { index, part, reads, cell: Some(cell) }
    }

    /// Whether it is that part, and has the columns of a source.
    pub(super) fn answers(&self, part: &Part, wanted: &Source) -> bool {
        self.part == *part && self.index.answers(self.index.form, wanted, &[]).is_some()
    }

    pub(super) fn part(&self) -> &Part {
        &self.part
    }

    /// That of the dataflows that read it.
    pub(super) fn form(&self) -> Form {
        self.index.form
    }

    /// The indexes of tables that it reads.
    pub(super) fn beneath(&self) -> impl Iterator<Item = DataflowId> + '_ {
        self.reads.iter().map(|read| read.index)
    }

    pub(super) fn cell(&self) -> Option<IndexCell> {
        self.cell
    }
}

/// A part of plans that is to be computed for the first time for several views.
#[derive(Clone, Debug)]
pub(super) struct NewPlan {
    pub(super) dataflow: DataflowId,
    pub(super) plan: KeptPlan,
    /// What it is fed itself.
    pub(super) fed: Vec<Fed>,
}

/// What a new index is fed.
#[derive(Clone, Debug)]
pub(super) struct Fed {
    /// Into which of its sources.
    pub(super) input: (DataflowId, SourceId),
    /// The source of the view that it comes from, and its columns.
    pub(super) source: SourceId,
    pub(super) columns: Vec<(i16, Type)>,
}
