//! What joins look up in tables, and which indexes answer it.

use super::form::Form;
use plan::expr::Expr;
use plan::types::Column;
use plan::{Mfp, Plan, Source, SourceId, ViewPlan};
use std::collections::{BTreeMap, BTreeSet};

/// The rows of a table arranged by some of its columns, for all dataflows that join with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// The table, with the columns that rows have.
    pub source: Source,
    /// Positions of the columns in those of the source; all are different.
    pub key: Vec<usize>,
    /// That of the dataflows that read it.
    pub form: Form,
}

impl Index {
    /// Whether rows of that width fit the form.
    pub fn fits(&self) -> bool {
        self.form.holds(&self.source, &self.key)
    }

    /// Where the columns of a plan's source are in those of the index, if it has them all and is arranged by that key.
    pub fn answers(&self, plan: &ViewPlan, source: SourceId, key: &[usize]) -> Option<Vec<usize>> {
        let wanted = &plan.sources[source.0];
        if self.source.table != wanted.table || self.form != Form::of(plan) {
            return None;
        }
        let (has, schema) = (&self.source.columns, &self.source.schema);
        let place = |(column, described): (&usize, &Column)| {
            let is_it = |(other, schema): (&usize, &Column)| {
                other == column
                    && (schema.ty, schema.nullable) == (described.ty, described.nullable)
            };
            has.iter().zip(schema).position(is_it)
        };
        let places: Vec<usize> =
            wanted.columns.iter().zip(&wanted.schema).map(place).collect::<Option<_>>()?;
        key.iter().map(|column| places[*column]).eq(self.key.iter().copied()).then_some(places)
    }
}

/// A source, and positions of its columns by which rows are looked up.
pub type Lookup = (SourceId, Vec<usize>);

/// A side of a join that an index can answer: rows of a source, of which some are left out and others made, without fail.
pub(super) struct Side<'p> {
    pub(super) lookup: Lookup,
    pub(super) work: Option<&'p Mfp>,
}

impl<'p> Side<'p> {
    /// The side of a join with these keys.
    pub(super) fn of(plan: &'p Plan, key: &[Expr]) -> Option<Side<'p>> {
        let (source, work) = match plan {
            Plan::Source(id) => (*id, None),
            Plan::Mfp { input, mfp } if !mfp.may_fail() && !mfp.calls_host() => match **input {
                Plan::Source(id) => (id, Some(mfp)),
                _ => return None,
            },
            _ => return None,
        };
        let column = |expr: &Expr| match (expr.as_column()?, work) {
            (column, None) => Some(column),
            (column, Some(mfp)) => {
                Some(mfp.project[column]).filter(|column| *column < mfp.input_arity)
            }
        };
        let columns: Vec<usize> = key.iter().map(column).collect::<Option<_>>()?;
        let distinct = columns.iter().collect::<BTreeSet<_>>().len();
        (!columns.is_empty() && distinct == columns.len())
            .then_some(Side { lookup: (source, columns), work })
    }

    fn filter(&self) -> &'p [Expr] {
        self.work.map_or(&[], |mfp| &mfp.filter)
    }
}

/// The look-ups of a plan's joins that indexes can answer, each with the conditions, over the columns of the source, that
/// those who look up put to all rows. None if somebody wants all of them.
pub fn lookups(plan: &ViewPlan) -> BTreeMap<Lookup, Vec<Expr>> {
    let mut found = BTreeMap::new();
    visit_sides(&plan.root, &mut |side, key| {
        let Some(side) = Side::of(side, key) else { return };
        let filter = own_columns(side.filter(), plan.sources[side.lookup.0 .0].columns.len());
        let common = found.entry(side.lookup).or_insert_with(|| filter.clone());
        common.retain(|conjunct| filter.contains(conjunct));
    });
    let form = Form::of(plan);
    found.retain(|(source, key), _| form.holds(&plan.sources[source.0], key));
    found
}

/// The conjuncts over columns of the input itself.
fn own_columns(filter: &[Expr], arity: usize) -> Vec<Expr> {
    let is_over_input = |conjunct: &&Expr| {
        let mut is_own = true;
        conjunct.visit_columns(&mut |column| is_own &= column < arity);
        is_own
    };
    filter.iter().filter(is_over_input).cloned().collect()
}

/// The sources of which a plan needs the rows beside what indexes answer.
pub fn sources_beside(plan: &ViewPlan, answered: &BTreeSet<Lookup>) -> BTreeSet<SourceId> {
    let mut by_index = BTreeMap::<SourceId, usize>::new();
    visit_sides(&plan.root, &mut |side, key| {
        if let Some(side) = Side::of(side, key).filter(|side| answered.contains(&side.lookup)) {
            *by_index.entry(side.lookup.0).or_default() += 1;
        }
    });
    let sources = (0..plan.sources.len()).map(SourceId);
    let is_beside = |id: &SourceId| count(&plan.root, *id) > by_index.get(id).copied().unwrap_or(0);
    sources.filter(is_beside).collect()
}

fn visit_sides(plan: &Plan, visit: &mut impl FnMut(&Plan, &[Expr])) {
    if let Plan::Join { left, right, left_key, right_key, .. } = plan {
        visit(left, left_key);
        visit(right, right_key);
    }
    plan.children().into_iter().for_each(|child| visit_sides(child, visit));
}

/// How often a plan refers to a source, be it as its clock.
pub(super) fn count(plan: &Plan, id: SourceId) -> usize {
    let below: usize = plan.children().into_iter().map(|child| count(child, id)).sum();
    let is_clock = matches!(plan, Plan::Temporal { clock, .. } if *clock == id);
    below + usize::from(*plan == Plan::Source(id) || is_clock)
}
