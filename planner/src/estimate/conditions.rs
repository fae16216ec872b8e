//! Which share of rows meets conditions.

use super::{of_expr, Estimate, Values};
use crate::ir::Predicate;
use plan::expr::Expr;
use plan::func::{Comparison, Func};
use plan::value::Datum;
use std::collections::BTreeMap;

/// Share of the rows that meet a comparison by order, as PostgreSQL has it.
const RANGE: f64 = 1.0 / 3.0;

/// Share of those that meet anything of which nothing is known.
const UNKNOWN: f64 = 1.0 / 3.0;

/// Share of the texts that are like a pattern.
const LIKE: f64 = 0.1;

/// The rows that meet all conditions, of all rows.
pub(super) fn share(predicates: &[Predicate], rows: &Estimate) -> f64 {
    let mut equalities = Equalities::default();
    let share = |predicate: &Predicate| match predicate {
        Predicate::Equal { left, right, .. } => {
            let sides = [&left.expr, &right.expr].map(|side| Side::of(side, rows));
            equalities.add(sides)
        }
        Predicate::Test(expr) => of_condition(expr, rows),
    };
    predicates.iter().map(share).product::<f64>()
}

/// How often equalities hold, one by one, if all are to: what follows from those before holds always.
pub(crate) fn matching<'s>(equalities: impl IntoIterator<Item = &'s [Side; 2]>) -> f64 {
    let mut known = Equalities::default();
    equalities.into_iter().map(|sides| known.add(*sides)).product::<f64>()
}

/// A side of an equality.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    /// The column, if it is nothing but one.
    column: Option<usize>,
    /// Whether it is the same for all rows.
    is_constant: bool,
    values: Values,
}

impl Side {
    pub(crate) fn of(expr: &Expr, rows: &Estimate) -> Side {
        let is_constant = plan::expr::columns_of(expr).is_empty();
        Side { column: expr.as_column(), is_constant, values: of_expr(expr, rows) }
    }
}

/// Columns that are equal, in classes.
#[derive(Default)]
struct Equalities {
    /// Of each column one of its class, or itself.
    parents: BTreeMap<usize, usize>,
    /// Of each class the values of the column that has fewest.
    fewest: BTreeMap<usize, Values>,
}

impl Equalities {
    fn add(&mut self, [left, right]: [Side; 2]) -> f64 {
        let not_null = (1.0 - left.values.nulls) * (1.0 - right.values.nulls);
        match (left, right) {
            (Side { is_constant: true, .. }, other) | (other, Side { is_constant: true, .. }) => {
                not_null * other.values.repeats
            }
            (Side { column: Some(l), .. }, Side { column: Some(r), .. }) => {
                let [l_root, r_root] = [l, r].map(|column| self.root(column));
                if l_root == r_root {
                    return 1.0;
                }
                let of = |root, side: Side| *self.fewest.get(&root).unwrap_or(&side.values);
                let (one, other) = (of(l_root, left), of(r_root, right));
                self.parents.insert(r_root, l_root);
                let fewer = if one.distinct <= other.distinct { one } else { other };
                self.fewest.insert(l_root, fewer);
                not_null * same(&one, &other)
            }
            _ => not_null * same(&left.values, &right.values),
        }
    }

    fn root(&self, column: usize) -> usize {
        let mut column = column;
        while let Some(parent) = self.parents.get(&column) {
            column = *parent;
        }
        column
    }
}

/// How probable it is that a value of one is one of the other. What comes from the same column of a table has its frequent
/// values on both sides.
fn same(one: &Values, other: &Values) -> f64 {
    let evenly = 1.0 / one.distinct.max(other.distinct);
    match one.origin.is_some() && one.origin == other.origin {
        true => evenly.max(one.repeats.min(other.repeats)),
        false => evenly,
    }
}

fn of_condition(expr: &Expr, rows: &Estimate) -> f64 {
    let share = match expr {
        Expr::And(args) => args.iter().map(|arg| of_condition(arg, rows)).product(),
        Expr::Or(args) => args.iter().map(|arg| of_condition(arg, rows)).sum(),
        Expr::Not(arg) => 1.0 - of_condition(arg, rows),
        Expr::IsNull(arg) => of_expr(arg, rows).nulls,
        Expr::Column(_) => 0.5,
        Expr::Literal(value, _) => f64::from(*value == Datum::Bool(true)),
        Expr::Call { func: Func::Compare(comparison, _), args } => match comparison {
            Comparison::Eq => equal(args, rows),
            Comparison::Ne => 1.0 - equal(args, rows),
            _ => RANGE,
        },
        Expr::Call { func: Func::Like(_), .. } => LIKE,
        _ => UNKNOWN,
    };
    share.clamp(0.0, 1.0)
}

fn equal(args: &[Expr], rows: &Estimate) -> f64 {
    match args {
        [left, right] => Equalities::default().add([left, right].map(|arg| Side::of(arg, rows))),
        _ => UNKNOWN,
    }
}
