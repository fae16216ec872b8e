//! What joins look up in tables, and which indexes answer it.

use super::form::Form;
use plan::expr::{self, Expr};
use plan::types::Column;
use plan::{Mfp, Plan, Source, SourceId, ViewPlan};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The rows of a table, or what stands for one, arranged by some of its columns, for all dataflows that read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Index {
    /// The table, with the columns that rows have.
    pub source: Source,
    /// Positions of the columns in those of the source; all are different.
    pub key: Vec<usize>,
    /// That of the dataflows that read it.
    pub form: Form,
    /// The plan that makes its rows, none of which has a NULL in the key; it raises no errors. They are fed if there is none.
    pub made_by: Option<ViewPlan>,
}

impl Index {
    /// Whether rows of that width fit the form.
    pub fn fits(&self) -> bool {
        self.form.holds(&self.source, &self.key)
    }

    /// The plan of its dataflow.
    pub(super) fn plan(&self) -> ViewPlan {
        let fed = || ViewPlan {
            sources: vec![self.source.clone()],
            root: Plan::Source(SourceId(0)),
            columns: self.source.schema.clone(),
            key: None,
            locals: Vec::new(),
        };
        self.made_by.clone().unwrap_or_else(fed)
    }

    /// Where the columns of a source, of a plan whose dataflow has that form, are in those of the index, if it has them all and is arranged by that key; by
    /// whichever one, if none is given.
    pub fn answers(&self, form: Form, wanted: &Source, key: &[usize]) -> Option<Vec<usize>> {
        if self.source.table != wanted.table || self.form != form {
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
        let is_key = key.iter().map(|column| places[*column]).eq(self.key.iter().copied());
        (key.is_empty() || is_key).then_some(places)
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

    pub(super) fn filter(&self) -> &'p [Expr] {
        self.work.map_or(&[], |mfp| &mfp.filter)
    }
}

/// The look-ups of a plan's joins that indexes can answer, each with the conditions, over the columns of the source, that
/// those who look up put to all rows. None if somebody wants all of them. The dataflow is going to have that form.
pub fn lookups(plan: &ViewPlan, form: Form) -> BTreeMap<Lookup, Vec<Expr>> {
    let mut found = BTreeMap::new();
    visit_sides(&plan.root, &mut |side, keys| {
        for side in keys.iter().filter_map(|key| Side::of(side, key)) {
            let filter = own_columns(side.filter(), plan.sources[side.lookup.0 .0].columns.len());
            let common = found.entry(side.lookup).or_insert_with(|| filter.clone());
            common.retain(|conjunct| filter.contains(conjunct));
        }
    });
    found.retain(|(source, key), _| form.holds(&plan.sources[source.0], key));
    found
}

/// The conjuncts over columns of the input itself.
pub(super) fn own_columns(filter: &[Expr], arity: usize) -> Vec<Expr> {
    let is_over_input = |conjunct: &&Expr| {
        let mut is_own = true;
        conjunct.visit_columns(&mut |column| is_own &= column < arity);
        is_own
    };
    filter.iter().filter(is_over_input).cloned().collect()
}

/// Of sources all of whose rows are put to conditions first, which cannot fail, those that all of them have to meet: other rows
/// need not come in. Each passes a row through that meets them.
pub(crate) fn wanted_rows(plan: &ViewPlan) -> BTreeMap<SourceId, Mfp> {
    let mut found = BTreeMap::new();
    visit_uses(&plan.root, &mut |source, mfp| {
        let arity = plan.sources[source.0].columns.len();
        // What stands behind a condition that may fail is tested only of the rows that pass that one.
        let filter = mfp.map_or(Vec::new(), |mfp| {
            let is_safe = |expr: &Expr| !expr::may_fail(expr) && !expr::calls_host(expr);
            let are_maps_safe = mfp.maps.iter().all(is_safe);
            let reads_no_maps =
                |conjunct: &Expr| !own_columns(std::slice::from_ref(conjunct), arity).is_empty();
            let cannot_fail =
                |conjunct: &&Expr| is_safe(conjunct) && (are_maps_safe || reads_no_maps(conjunct));
            mfp.filter.iter().take_while(cannot_fail).cloned().collect()
        });
        let filter = own_columns(&filter, arity);
        let common = found.entry(source).or_insert_with(|| filter.clone());
        common.retain(|conjunct| filter.contains(conjunct));
    });
    found.retain(|_, filter: &mut Vec<Expr>| !filter.is_empty());
    let pass = |(source, filter): (SourceId, Vec<Expr>)| {
        let input_arity = plan.sources[source.0].columns.len();
        (source, Mfp { input_arity, filter, ..Mfp::default() })
    };
    found.into_iter().map(pass).collect()
}

/// Hands on each use of a source with what is done to its rows first, if something is.
fn visit_uses(plan: &Plan, visit: &mut impl FnMut(SourceId, Option<&Mfp>)) {
    match plan {
        Plan::Source(id) => visit(*id, None),
        Plan::Mfp { input, mfp } => match **input {
            Plan::Source(id) => visit(id, Some(mfp)),
            _ => visit_uses(input, visit),
        },
        _ => {
            if let Plan::Temporal { clock, .. } = plan {
                visit(*clock, None);
            }
            plan.children().into_iter().for_each(|child| visit_uses(child, visit));
        }
    }
}

/// The sources of which a plan needs the rows beside what indexes answer. A look-up by no column stands for all of a source.
pub fn sources_beside(plan: &ViewPlan, answered: &BTreeSet<Lookup>) -> BTreeSet<SourceId> {
    let mut by_index = BTreeMap::<SourceId, usize>::new();
    visit_sides(&plan.root, &mut |side, keys| {
        let lookup = |key: &&[Expr]| Some(Side::of(side, key)?.lookup);
        let lookups: Option<Vec<Lookup>> = keys.iter().map(lookup).collect();
        if let Some(lookups) = lookups.filter(|all| all.iter().all(|one| answered.contains(one))) {
            *by_index.entry(lookups[0].0).or_default() += 1;
        }
    });
    let sources = (0..plan.sources.len()).map(SourceId);
    let is_beside = |id: &SourceId| {
        !answered.contains(&(*id, Vec::new()))
            && count(&plan.root, *id) > by_index.get(id).copied().unwrap_or(0)
    };
    sources.filter(is_beside).collect()
}

/// Hands on the inputs of joins, each with the keys by which it is looked up.
fn visit_sides(plan: &Plan, visit: &mut impl FnMut(&Plan, &[&[Expr]])) {
    match plan {
        Plan::Join { left, right, left_key, right_key, .. } => {
            visit(left, &[left_key]);
            visit(right, &[right_key]);
        }
        Plan::DeltaJoin { inputs, tree, .. } => {
            inputs.iter().enumerate().for_each(|(number, input)| visit(input, &tree.keys(number)));
        }
        _ => {}
    }
    plan.children().into_iter().for_each(|child| visit_sides(child, visit));
}

/// How often a plan refers to a source, be it as its clock.
pub(super) fn count(plan: &Plan, id: SourceId) -> usize {
    let below: usize = plan.children().into_iter().map(|child| count(child, id)).sum();
    let is_clock = matches!(plan, Plan::Temporal { clock, .. } if *clock == id);
    below + usize::from(*plan == Plan::Source(id) || is_clock)
}
