//! Joins of tables that several views compute: what such a join puts out is computed and kept once, as an index over the indexes of
//! its tables, and read by all views that are attached when there are enough of them.

use super::chosen::{is_selective, Spec};
use super::sources::Sources;
use crate::pg::catalog;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::index_cells::{IndexCell, MAX_KEY};
use engine::{DataflowId, Form, Index, Lookup, Read, TableJoin};
use plan::types::Type;
use plan::{Source, SourceId, ViewPlan};
use std::collections::{BTreeMap, BTreeSet};

/// One side of a join, whatever view computes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Side {
    table: RelationId,
    /// The table with all its partitions and children; none if it is an incremental view.
    members: BTreeSet<RelationId>,
    key: Vec<(i16, Type)>,
}

impl Side {
    fn of(sources: &Sources, (source, key): &Lookup) -> Side {
        let table = &sources.compiled.query.sources[source.0];
        let columns = table.columns();
        Side {
            table: table.table,
            members: sources.members[source.0].clone(),
            key: key.iter().map(|column| columns[*column]).collect(),
        }
    }
}

/// A join, whatever view computes it.
pub(super) type Sides = [Side; 2];

pub(super) fn sides(sources: &Sources, join: &TableJoin) -> Sides {
    [&join.left, &join.right].map(|side| Side::of(sources, side))
}

/// Whether no two rows of a table are equal in all columns that a join compares.
fn is_unique(sources: &Sources, side: &Lookup) -> bool {
    let Side { table, members, key } = Side::of(sources, side);
    let is_whole = members.len() == 1 || catalog::is_partitioned(table);
    let has = |column: &i16| key.iter().any(|(number, _)| number == column);
    is_whole && catalog::unique_keys(table.into()).iter().any(|unique| unique.iter().all(has))
}

/// The joins of a view that others may compute, too. What they put out has no more rows than one of their tables. Needs a transaction.
pub(super) fn joins_of(sources: &Sources) -> impl Iterator<Item = TableJoin> + '_ {
    let query = &sources.compiled.query;
    let joins = engine::table_joins(&query.plan).into_iter();
    // Who wants few of the pairs rather looks for these.
    let is_wide = |(join, filters): &(TableJoin, [Vec<_>; 2])| {
        join.left.1.len() <= MAX_KEY && !filters.iter().any(|filter| is_selective(filter))
    };
    let is_of_tables = |join: &TableJoin| {
        let is_clock = |(source, _): &Lookup| query.sources[source.0].is_clock();
        !is_clock(&join.left) && !is_clock(&join.right)
    };
    let is_small =
        |join: &TableJoin| [&join.left, &join.right].iter().any(|side| is_unique(sources, side));
    let joins = joins.filter(is_wide).map(|(join, _)| join);
    joins.filter(move |join| is_of_tables(join) && is_small(join))
}

/// The form of a dataflow of a plan that reads what a join puts out.
pub(super) fn form(join: &TableJoin, plan: &ViewPlan) -> Form {
    let (reader, source) = join.read_by(plan);
    Form::of(&reader).with(&reader.sources[source.0], &join.left.1)
}

/// Which joins the views compute.
#[derive(Debug)]
pub(super) struct Joins {
    /// With the form of dataflows that read what it puts out.
    by_view: BTreeMap<ViewId, Vec<(Sides, Form)>>,
    /// So many views that compute a join have it computed for them, for what it puts out takes memory of its own; 0 for never.
    enough: usize,
}

impl Joins {
    /// None yet.
    pub(super) fn new(enough: usize) -> Joins {
        Joins { by_view: BTreeMap::new(), enough }
    }

    /// A view is about to be begun.
    pub(super) fn note(&mut self, view: ViewId, of: &Sources) {
        if self.enough == 0 {
            return;
        }
        let plan = &of.compiled.query.plan;
        let note = |join: TableJoin| (sides(of, &join), form(&join, plan));
        self.by_view.insert(view, joins_of(of).map(note).collect());
    }

    /// The dataflow of a view is gone.
    pub(super) fn forget(&mut self, view: ViewId) {
        self.by_view.remove(&view);
    }

    /// Whether so many views compute a join, and would read it in that form, that it pays to compute it for all of them.
    pub(super) fn are_enough(&self, join: &Sides, form: Form) -> bool {
        let is_it = |(other, of): &(Sides, Form)| other == join && *of == form;
        let views = self.by_view.values().filter(|joins| joins.iter().any(is_it)).count();
        self.enough > 0 && views >= self.enough
    }
}

/// A join whose output is kept.
#[derive(Clone, Debug)]
pub(super) struct KeptJoin {
    pub(super) index: Index,
    sides: Sides,
    /// What is looked up on both sides.
    tables: [Spec; 2],
    pub(super) beneath: [DataflowId; 2],
}

impl KeptJoin {
    /// That of what two indexes of tables hold; `None` if its rows are too wide for their form.
    pub(super) fn new(
        sides: Sides,
        [(left, of_left), (right, of_right)]: [(DataflowId, Spec); 2],
    ) -> Option<KeptJoin> {
        let index = Index::of_join(&of_left.index, &of_right.index);
        let (tables, beneath) = ([of_left, of_right], [left, right]);
        index.fits().then_some(KeptJoin { index, sides, tables, beneath })
    }

    /// Whether it is one with these sides, and has the columns of a source.
    pub(super) fn answers(&self, sides: &Sides, wanted: &Source) -> bool {
        self.sides == *sides && self.index.answers(self.index.form, wanted, &[]).is_some()
    }

    /// That of the dataflows that read it.
    pub(super) fn form(&self) -> Form {
        self.index.form
    }

    /// What it reads.
    pub(super) fn reads(&self) -> [Read; 2] {
        [0, 1].map(|side| Read {
            source: SourceId(side),
            key: self.tables[side].index.key.clone(),
            index: self.beneath[side],
        })
    }

    /// What other processes are told of it.
    pub(super) fn cell(&self, database: u32) -> Option<IndexCell> {
        let [left, right] = &self.tables;
        let mut cell = left.cell(database)?;
        cell.joined = right.table;
        cell.joined_columns = right.columns.iter().map(|(number, _)| *number).collect();
        Some(cell)
    }
}

/// A join that is to be computed for the first time for several views.
#[derive(Clone, Debug)]
pub(super) struct NewJoin {
    pub(super) dataflow: DataflowId,
    pub(super) join: KeptJoin,
}
