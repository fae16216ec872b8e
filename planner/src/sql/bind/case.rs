//! CASE, and what is compared several times.

use super::super::refuse::too_deep;
use super::bound_expr::{negation, same_typmod, BoundExpr, TEXT};
use super::expr_binder::ExprBinder;
use super::virtual_columns::Aggregates;
use crate::error::PlanError;
use plan::expr::{self, Expr};
use plan::func::Func;
use plan::value::Datum;
use sqlparser::ast;

/// Columns, literals and operators that an expression may consist of when what the text has once is there for each use.
const MAX_PARTS: usize = 1_000_000;

impl BoundExpr {
    /// Refuses to repeat the value so often that, done within one another, it would have no end.
    pub(super) fn check_copies(&self, copies: usize) -> Result<(), PlanError> {
        match expr::size(&self.expr).saturating_mul(copies) > MAX_PARTS {
            true => Err(too_deep("parts in one expression", MAX_PARTS)),
            false => Ok(()),
        }
    }
}

/// How much has been found that is computed apart from the expression it is in.
pub(super) struct Found {
    subqueries: usize,
    windows: usize,
    aggregates: Aggregates,
}

impl ExprBinder<'_, '_> {
    pub(super) fn found(&self) -> Found {
        Found {
            subqueries: self.subqueries.len(),
            windows: self.windows.as_ref().map_or(0, |windows| windows.len()),
            aggregates: self.grouping.as_ref().map_or(Aggregates::default(), |found| found.count()),
        }
    }

    /// Forgets what was found since then: it is nowhere computed. All together, because window functions and aggregates
    /// read results of subqueries.
    pub(super) fn forget(&mut self, since: Found) {
        self.subqueries.truncate(since.subqueries);
        if let Some(windows) = &mut self.windows {
            windows.truncate(since.windows);
        }
        if let Some(grouping) = &mut self.grouping {
            grouping.truncate(since.aggregates);
        }
    }

    /// Forgets values of which only the type matters, and whose, if they are in an aggregate, that is.
    fn drop_all<'b>(&mut self, values: impl IntoIterator<Item = &'b BoundExpr>, since: Found) {
        for value in values {
            self.subqueries.trace(&value.expr, &mut self.dropped);
        }
        self.forget(since);
    }

    /// A branch that is never reached gives its type, and nothing in it is computed.
    #[inline(never)]
    pub(super) fn bind_case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> Result<BoundExpr, PlanError> {
        let operand = operand.map(|operand| self.bind(operand)).transpose()?;
        operand.iter().try_for_each(|operand| operand.check_copies(conditions.len()))?;
        let mut branches = Vec::new();
        let mut results = Vec::new();
        let depth = self.guards.len();
        let mut is_decided = false;
        for when in conditions {
            let before = self.found();
            let condition = self.bind(&when.condition)?;
            let condition = match &operand {
                Some(operand) => self.binder.operator("=", vec![operand.clone(), condition])?,
                None => condition,
            };
            let truth = condition.expr.with_decided_conditions();
            if is_decided || truth.is_never_true() {
                // Only the type of the result matters.
                let result = self.bind(&when.result)?;
                self.drop_all([&condition, &result], before);
                results.push(result);
                continue;
            }
            is_decided = truth.is_always_true();
            let is_met = Expr::Call { func: Func::IsTrue, args: vec![condition.expr.clone()] };
            self.guards.push(is_met.clone());
            let result = self.bind(&when.result)?;
            self.guards.pop();
            self.guards.push(negation(is_met));
            branches.push((condition.expr, result.expr.clone()));
            results.push(result);
        }
        let before = self.found();
        let otherwise = otherwise.map(|otherwise| self.bind(otherwise)).transpose()?;
        if is_decided {
            self.drop_all(&otherwise, before);
        }
        self.guards.truncate(depth);
        let ty = results.first().map_or(TEXT, |result| result.ty);
        let otherwise = otherwise.unwrap_or_else(|| BoundExpr::literal(Datum::Null, ty, -1));
        results.push(otherwise.clone());
        let never = Expr::Literal(Datum::Null, ty);
        let otherwise = if is_decided { BoundExpr { expr: never, ..otherwise } } else { otherwise };
        let typmod = same_typmod(&results);
        let nullable = results.iter().any(|result| result.nullable);
        let expr = Expr::Case { branches, otherwise: Box::new(otherwise.expr) };
        Ok(BoundExpr { expr, ty, typmod, nullable })
    }
}
