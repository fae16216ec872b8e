//! What is moved: predicates, and bounds that the present time has to keep.

use crate::ir::{Predicate, Rel, TimeBound};
use plan::expr::{self, Expr};
use std::collections::BTreeSet;

/// What a row has to meet.
#[derive(Clone)]
pub(super) enum Condition {
    /// It is tested.
    Test(Predicate),
    /// The present time decides.
    Time(TimeBound),
}

impl Condition {
    /// The columns it reads.
    pub(super) fn columns(&self) -> BTreeSet<usize> {
        match self {
            Condition::Test(predicate) => predicate.columns(),
            Condition::Time(bound) => expr::columns_of(&bound.at),
        }
    }

    /// How many parts it would have over what these columns are made from.
    pub(super) fn size_over(&self, columns: &[Expr]) -> usize {
        let expr = match self {
            Condition::Test(predicate) => predicate.to_expr(),
            Condition::Time(bound) => bound.at.clone(),
        };
        let mut size = expr::size(&expr);
        expr.visit_columns(&mut |column| size += expr::size(&columns[column]));
        size
    }

    /// The condition with each column reference replaced.
    pub(super) fn substitute(&self, f: &dyn Fn(usize) -> Expr) -> Condition {
        match self {
            Condition::Test(predicate) => Condition::Test(predicate.substitute(f)),
            Condition::Time(bound) => Condition::Time(bound.substitute(f)),
        }
    }

    /// The condition reading other columns.
    pub(super) fn renumber(&self, f: &dyn Fn(usize) -> usize) -> Condition {
        self.substitute(&|column| Expr::Column(f(column)))
    }

    pub(super) fn may_fail(&self) -> bool {
        match self {
            Condition::Test(predicate) => expr::may_fail(&predicate.to_expr()),
            Condition::Time(bound) => expr::may_fail(&bound.at),
        }
    }
}

/// Conditions in the order in which rows have to meet them.
#[derive(Default)]
pub(super) struct Sorted {
    /// What is tested before the time, so that fewer rows are kept for later; nothing of it may fail.
    pub(super) before: Vec<Predicate>,
    pub(super) bounds: Vec<TimeBound>,
    /// What is tested after the time: it fails for rows that are valid only.
    pub(super) after: Vec<Predicate>,
}

impl Sorted {
    pub(super) fn of(conditions: Vec<Condition>) -> Sorted {
        let mut sorted = Sorted::default();
        let has_bounds = conditions.iter().any(|c| matches!(c, Condition::Time(_)));
        for condition in conditions {
            let is_late = has_bounds && condition.may_fail();
            match condition {
                Condition::Time(bound) => sorted.bounds.push(bound),
                Condition::Test(predicate) if is_late => sorted.after.push(predicate),
                Condition::Test(predicate) => sorted.before.push(predicate),
            }
        }
        sorted
    }
}

/// The rows that meet conditions.
pub(super) fn meeting(rel: Rel, conditions: Vec<Condition>) -> Rel {
    let Sorted { before, bounds, after } = Sorted::of(conditions);
    rel.filter(before).temporal(bounds).filter(after)
}
