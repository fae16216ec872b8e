//! GROUP BY and aggregates: one `Reduce` below the select list.
//!
//! While the select list and HAVING are bound, an aggregate call becomes a reference to a column
//! behind those of the FROM clause. Afterwards expressions equal to a grouping key become references
//! to it, the virtual columns become references to the aggregates.

use super::super::refuse::invalid;
use super::scalar::Scalar;
use crate::error::PlanError;
use crate::expr::Expr;
use crate::exprs;
use crate::ir::{Node, Predicate, Rel, Typed};
use crate::plan::{Aggregate, AggregateFunc};
use crate::types::{Column, Type};
use std::collections::BTreeSet;

/// First of the virtual columns that stand for aggregates; no row is that wide.
const VIRTUAL: usize = 1 << 20;

/// The aggregates found so far.
#[derive(Default)]
pub(super) struct Grouping {
    calls: Vec<(AggregateFunc, Option<Scalar>)>,
    results: Vec<Column>,
}

impl Grouping {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// A reference to the aggregate; equal calls are computed once.
    pub(super) fn add(
        &mut self,
        name: &str,
        func: AggregateFunc,
        arg: Option<Scalar>,
        ty: Type,
    ) -> Scalar {
        let call = (func, arg);
        let found = self.calls.iter().position(|known| *known == call);
        let slot = found.unwrap_or_else(|| {
            let nullable = func != AggregateFunc::Count;
            self.results.push(Column { name: name.to_owned(), ty, typmod: -1, nullable });
            self.calls.push(call);
            self.calls.len() - 1
        });
        let nullable = self.results[slot].nullable;
        Scalar { expr: Expr::Column(VIRTUAL + slot), ty, typmod: -1, nullable }
    }

    /// The grouped relation filtered by HAVING, and the outputs as expressions over it.
    pub(super) fn finish(
        self,
        input: Rel,
        mut keys: Vec<Scalar>,
        having: Vec<Predicate>,
        outputs: Vec<Expr>,
    ) -> Result<(Rel, Vec<Expr>), PlanError> {
        // A column that depends functionally on the keys may be used without being one: as one more
        // key it changes no group.
        let mut used = BTreeSet::new();
        let having_exprs: Vec<Expr> = having.iter().map(Predicate::to_expr).collect();
        for expr in outputs.iter().chain(&having_exprs) {
            ungrouped(expr, &keys, &mut used);
        }
        for column in used.into_iter().filter(|column| *column < VIRTUAL) {
            keys.push(Scalar::of_column(column, &input.columns[column]));
        }
        let rewrite = |expr: &Expr| regroup(expr, &keys);
        let outputs: Vec<Expr> = outputs.iter().map(rewrite).collect();
        let having = having.iter().map(|predicate| regroup_predicate(predicate, &keys)).collect();
        Ok((self.reduce(input, &keys)?.filter(having), outputs))
    }

    fn reduce(self, input: Rel, keys: &[Scalar]) -> Result<Rel, PlanError> {
        if keys.len() + self.calls.len() >= VIRTUAL || input.arity() >= VIRTUAL {
            return Err(invalid("too many columns"));
        }
        let mut below: Vec<Expr> = Vec::new();
        let mut below_columns = Vec::new();
        let mut columns = Vec::new();
        for (i, key) in keys.iter().enumerate() {
            let name = name_of(&input, &key.expr, "key", i);
            columns.push(key.column(&name));
            below_columns.push(key.column(&name));
            below.push(key.expr.clone());
        }
        let mut aggregates = Vec::new();
        for (func, arg) in self.calls {
            let arg = arg.map(|arg| {
                let known = below.iter().position(|expr| *expr == arg.expr);
                Expr::Column(known.unwrap_or_else(|| {
                    below_columns.push(arg.column(&name_of(&input, &arg.expr, "arg", below.len())));
                    below.push(arg.expr);
                    below.len() - 1
                }))
            });
            aggregates.push(Aggregate { func, arg });
        }
        columns.extend(self.results);
        let input = Box::new(input.map(below, below_columns));
        let key = (0..keys.len()).collect();
        Ok(Rel { columns, node: Node::Reduce { input, key, aggregates } })
    }
}

/// The name of the column the expression is, else a made-up one.
fn name_of(input: &Rel, expr: &Expr, kind: &str, position: usize) -> String {
    match expr.as_column() {
        Some(column) => input.columns[column].name.clone(),
        None => format!("{kind}{}", position + 1),
    }
}

fn key_of(expr: &Expr, keys: &[Scalar]) -> Option<usize> {
    keys.iter().position(|key| key.expr == *expr)
}

/// Collects the columns used outside of grouping keys.
fn ungrouped(expr: &Expr, keys: &[Scalar], used: &mut BTreeSet<usize>) {
    if key_of(expr, keys).is_some() {
        return;
    }
    if let Expr::Column(column) = expr {
        used.insert(*column);
    }
    for child in expr.children() {
        ungrouped(child, keys, used);
    }
}

fn regroup(expr: &Expr, keys: &[Scalar]) -> Expr {
    if let Some(key) = key_of(expr, keys) {
        return Expr::Column(key);
    }
    match expr {
        Expr::Column(column) => Expr::Column(keys.len() + column.saturating_sub(VIRTUAL)),
        other => exprs::map_children(other, &mut |child| regroup(child, keys)),
    }
}

fn regroup_predicate(predicate: &Predicate, keys: &[Scalar]) -> Predicate {
    let side = |side: &Typed| Typed { expr: regroup(&side.expr, keys), ty: side.ty };
    match predicate {
        // The whole comparison may itself be a grouping key.
        Predicate::Equal { .. } if key_of(&predicate.to_expr(), keys).is_some() => {
            Predicate::Test(regroup(&predicate.to_expr(), keys))
        }
        Predicate::Equal { left, right, func } => {
            Predicate::Equal { left: side(left), right: side(right), func: *func }
        }
        Predicate::Test(expr) => Predicate::Test(regroup(expr, keys)),
    }
}
