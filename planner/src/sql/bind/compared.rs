//! Comparisons of values, or rows of them, with the rows of a subquery.

use super::super::refuse::unsupported;
use super::bound_expr::BoundExpr;
use super::resolve;
use super::sort::sortable;
use super::syntax::{collated, strip};
use crate::error::PlanError;
use crate::ir::{Binding, Predicate, Rel, Typed};
use plan::expr::Expr;
use sqlparser::ast;

/// A value that is compared, and the collation that decides if its type does not.
pub(super) struct Operand<'e> {
    pub(super) expr: &'e ast::Expr,
    pub(super) collation: Option<u32>,
}

impl<'e> Operand<'e> {
    pub(super) fn of(expr: &'e ast::Expr) -> Operand<'e> {
        let (expr, collation) = collated(expr);
        Operand { expr, collation }
    }
}

/// `x op ANY (…)` or `x op ALL (…)`, or the row of several x.
pub(super) struct Quantified<'e> {
    pub(super) operands: Vec<Operand<'e>>,
    pub(super) op: String,
    pub(super) any: bool,
    pub(super) query: &'e ast::Query,
}

impl<'e> Quantified<'e> {
    /// The comparison and whether it is negated.
    pub(super) fn of(expr: &'e ast::Expr) -> Option<(Quantified<'e>, bool)> {
        let (left, op, any, query, negated) = match expr {
            ast::Expr::InSubquery { expr, subquery, negated } => {
                (expr.as_ref(), "=".to_owned(), true, subquery.as_ref(), *negated)
            }
            ast::Expr::AnyOp { left, compare_op, right, .. } => {
                let ast::Expr::Subquery(query) = strip(right) else { return None };
                (left.as_ref(), compare_op.to_string(), true, query.as_ref(), false)
            }
            ast::Expr::AllOp { left, compare_op, right } => {
                let ast::Expr::Subquery(query) = strip(right) else { return None };
                (left.as_ref(), compare_op.to_string(), false, query.as_ref(), false)
            }
            _ => return None,
        };
        let operands = match strip(left) {
            ast::Expr::Tuple(operands) => operands.iter().map(Operand::of).collect(),
            single => vec![Operand::of(single)],
        };
        Some((Quantified { operands, op, any, query }, negated))
    }
}

/// A subquery bound for a comparison of its rows with values of the row around.
pub(super) struct Compared {
    pub(super) rel: Rel,
    pub(super) bindings: Vec<Binding>,
    /// The values, and the same as parameters.
    pub(super) values: Vec<BoundExpr>,
    pub(super) operands: Vec<BoundExpr>,
    /// Those of [`Operand`].
    pub(super) collations: Vec<Option<u32>>,
}

impl Compared {
    /// The comparisons of the operands with the columns.
    pub(super) fn tests(&self, op: &str) -> Result<Vec<Predicate>, PlanError> {
        (0..self.operands.len()).map(|column| self.test_column(column, op)).collect()
    }

    fn test_column(&self, number: usize, op: &str) -> Result<Predicate, PlanError> {
        let operand = &self.operands[number];
        let column = BoundExpr::of_column(number, &self.rel.columns[number]);
        if op != "=" {
            let test = comparison(op, [operand.clone(), column], self.collations[number])?;
            return Ok(Predicate::Test(test));
        }
        let func = resolve::equality(operand.ty, column.ty)?;
        let typed = |side: &BoundExpr| Typed { expr: side.expr.clone(), ty: side.ty };
        Ok(Predicate::Equal { left: typed(operand), right: typed(&column), func })
    }

    /// The comparison of the rows as a whole.
    pub(super) fn test(&self, op: &str) -> Result<Expr, PlanError> {
        compare_rows(op, self.operands.len(), |column, op| {
            Ok(self.test_column(column, op)?.to_expr())
        })
    }

    pub(super) fn is_never_null(&self) -> bool {
        !self.operands.iter().any(|operand| operand.nullable)
            && !self.rel.columns.iter().any(|column| column.nullable)
    }
}

/// The comparison of two values, in the order of a collation or else in that of their type.
pub(super) fn comparison(
    op: &str,
    sides: [BoundExpr; 2],
    collation: Option<u32>,
) -> Result<Expr, PlanError> {
    let is_ordered = collation.is_some() && matches!(op, "<" | "<=" | ">" | ">=");
    let side = |side| if is_ordered { sortable(&side, collation) } else { side };
    Ok(resolve::operator(op, sides.map(side).to_vec())?.expr)
}

/// `(a, b) op (x, y)` from comparisons of single columns: the first two that differ decide.
pub(super) fn compare_rows(
    op: &str,
    width: usize,
    test: impl Fn(usize, &str) -> Result<Expr, PlanError>,
) -> Result<Expr, PlanError> {
    let tests = |op| (0..width).map(|column| test(column, op)).collect::<Result<Vec<_>, _>>();
    match op {
        _ if width == 1 => test(0, op),
        "=" => Ok(Expr::And(tests(op)?)),
        "<>" => Ok(Expr::Or(tests(op)?)),
        "<" | "<=" | ">" | ">=" => {
            let strict = op.trim_end_matches('=');
            (0..width - 1).rev().try_fold(test(width - 1, op)?, |rest, column| {
                let goes_on = Expr::And(vec![test(column, "=")?, rest]);
                Ok(Expr::Or(vec![test(column, strict)?, goes_on]))
            })
        }
        _ => Err(unsupported(format!("the comparison of rows by {op} is"))),
    }
}
