//! Joins of two tables, which dataflows may have in common: one computes and keeps what such a join puts out, and the others read
//! that as if it were a table.

use super::lookup::{own_columns, Index, Lookup, Side};
use plan::expr::{Expr, MfpBuilder};
use plan::types::{Column, TableName};
use plan::{Mfp, Plan, Source, SourceId, ViewPlan};
use std::collections::BTreeMap;

/// The columns of the right table are numbered from here on. No table has so many.
const RIGHT: usize = 1 << 16;

/// A join of two of a plan's sources on columns of both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableJoin {
    /// One side: the source, and its columns that are compared.
    pub left: Lookup,
    /// The other one.
    pub right: Lookup,
}

/// The joins of two tables that a plan computes, each with the conditions that it puts to all rows of the one and of the other.
pub fn table_joins(plan: &ViewPlan) -> BTreeMap<TableJoin, [Vec<Expr>; 2]> {
    let mut found = BTreeMap::<TableJoin, [Vec<Expr>; 2]>::new();
    visit(&plan.root, &mut |node| {
        let Some((join, sides)) = TableJoin::of(node, plan) else { return };
        let filter = |side: &Side<'_>| {
            own_columns(side.filter(), plan.sources[side.lookup.0 .0].columns.len())
        };
        let filters = sides.map(|side| filter(&side));
        let common = found.entry(join).or_insert_with(|| filters.clone());
        for (common, filter) in common.iter_mut().zip(&filters) {
            common.retain(|conjunct| filter.contains(conjunct));
        }
    });
    found
}

impl TableJoin {
    fn of<'p>(node: &'p Plan, plan: &ViewPlan) -> Option<(TableJoin, [Side<'p>; 2])> {
        let Plan::Join { left, right, left_key, right_key, .. } = node else { return None };
        let (left, right) = (Side::of(left, left_key)?, Side::of(right, right_key)?);
        let join = TableJoin { left: left.lookup.clone(), right: right.lookup.clone() };
        let ty = |(source, _): &Lookup, column: &usize| plan.sources[source.0].schema[*column].ty;
        let mut compared = join.left.1.iter().zip(&join.right.1);
        let are_alike = compared.all(|(l, r)| ty(&join.left, l) == ty(&join.right, r));
        are_alike.then_some((join, [left, right]))
    }

    /// What it puts out, as a source: the columns of the left table, then those of the right one that are not compared.
    fn source(&self, sources: &[Source]) -> Source {
        let (left, right) = (&sources[self.left.0 .0], &sources[self.right.0 .0]);
        let name = |source: &Source, key: &[usize]| {
            let key: Vec<usize> = key.iter().map(|column| source.columns[*column]).collect();
            format!("{} {key:?}", source.table)
        };
        let name = format!("{} JOIN {}", name(left, &self.left.1), name(right, &self.right.1));
        let rest = self.rest(right.columns.len());
        let columns = rest.iter().map(|column| RIGHT + right.columns[*column]);
        let rest = rest.iter().map(|column| right.schema[*column].clone());
        // What is compared is not NULL.
        let compared = |place: &usize| self.left.1.contains(place);
        let left_schema = left.schema.iter().enumerate().map(|(place, column)| Column {
            nullable: column.nullable && !compared(&place),
            ..column.clone()
        });
        Source {
            table: TableName { schema: None, name, only: false },
            columns: left.columns.iter().copied().chain(columns).collect(),
            schema: left_schema.chain(rest).collect(),
        }
    }

    /// The columns of the right side that are not compared.
    fn rest(&self, arity: usize) -> Vec<usize> {
        (0..arity).filter(|column| !self.right.1.contains(column)).collect()
    }

    /// Where, in what it puts out, the columns of both sides are that have so many.
    fn places(&self, left: usize, right: usize) -> Vec<usize> {
        let rest = self.rest(right);
        let of_right = (0..right).filter_map(|column| {
            let compared = self.right.1.iter().position(|other| *other == column);
            let compared = compared.map(|place| self.left.1[place]);
            compared.or_else(|| Some(left + rest.iter().position(|other| *other == column)?))
        });
        (0..left).chain(of_right).collect()
    }

    /// The same plan, which reads what the join puts out, all of it, from a source behind the others.
    pub fn read_by(&self, plan: &ViewPlan) -> (ViewPlan, SourceId) {
        let source = SourceId(plan.sources.len());
        let mut reader = plan.clone();
        self.replace(&mut reader.root, plan, source);
        reader.sources.push(self.source(&plan.sources));
        (reader, source)
    }

    fn replace(&self, node: &mut Plan, plan: &ViewPlan, source: SourceId) {
        let work = TableJoin::of(node, plan)
            .filter(|(join, _)| join == self)
            .map(|(_, sides)| self.work(node, &sides, plan));
        match work {
            Some(mfp) => *node = Plan::Mfp { input: Box::new(Plan::Source(source)), mfp },
            None => {
                node.children_mut().into_iter().for_each(|child| self.replace(child, plan, source))
            }
        }
    }

    /// What a join does with the pairs of rows of both tables.
    fn work(&self, node: &Plan, [left, right]: &[Side<'_>; 2], plan: &ViewPlan) -> Mfp {
        let arity = |side: &Side<'_>| plan.sources[side.lookup.0 .0].columns.len();
        let all = |side: &Side<'_>| {
            side.work.cloned().unwrap_or_else(|| MfpBuilder::new(arity(side)).finish())
        };
        let places = self.places(arity(left), arity(right));
        let mut made = MfpBuilder::new(arity(left) + self.rest(arity(right)).len());
        made.map(&places.into_iter().map(Expr::Column).collect::<Vec<_>>());
        made.then(&all(left).beside(&all(right)));
        if let Plan::Join { closure, .. } = node {
            made.then(closure);
        }
        made.finish()
    }
}

impl Index {
    /// What a join of two tables puts out, by what it compares; the sides are looked up in these.
    pub fn of_join(left: &Index, right: &Index) -> Index {
        let sources = vec![left.source.clone(), right.source.clone()];
        let join = TableJoin {
            left: (SourceId(0), left.key.clone()),
            right: (SourceId(1), right.key.clone()),
        };
        let source = join.source(&sources);
        let arity = (left.source.columns.len(), right.source.columns.len());
        let places = join.places(arity.0, arity.1);
        // The first place of each of the columns that are put out.
        let project = (0..source.columns.len())
            .filter_map(|column| places.iter().position(|place| *place == column));
        let columns = |key: &[usize]| key.iter().copied().map(Expr::Column).collect();
        let root = Plan::Join {
            left: Box::new(Plan::Source(SourceId(0))),
            right: Box::new(Plan::Source(SourceId(1))),
            left_key: columns(&left.key),
            right_key: columns(&right.key),
            closure: Mfp {
                input_arity: arity.0 + arity.1,
                project: project.collect(),
                ..Mfp::default()
            },
        };
        let columns = source.schema.clone();
        let made_by = ViewPlan { sources, root, columns, key: None, locals: Vec::new() };
        Index { source, key: left.key.clone(), form: left.form, made_by: Some(made_by) }
    }
}

fn visit<'p>(plan: &'p Plan, visitor: &mut impl FnMut(&'p Plan)) {
    visitor(plan);
    plan.children().into_iter().for_each(|child| visit(child, visitor));
}
