//! Conditions on the present time: `eddy.valid_from(bound)`, true from then on, and `eddy.valid_until(bound)`, true
//! before. Each is a condition of its own in a WHERE; the clock they refer to is a source of the plan.

use super::super::refuse::{invalid, unsupported_hint};
use super::binder::Binder;
use super::expr_binder::ExprBinder;
use super::syntax::{plain_arguments, stand_in};
use crate::error::PlanError;
use crate::ir::{Input, Node, Rel, TimeBound};
use plan::clock;
use plan::clock::End;
use sqlparser::ast;

/// The end of the time of validity that a call sets, if it is such a call.
pub(super) fn end(call: &ast::Function) -> Option<End> {
    match stand_in(&call.name)? {
        "valid_from" => Some(End::From),
        "valid_until" => Some(End::Until),
        _ => None,
    }
}

/// It is no condition of its own in a WHERE.
pub(super) fn misplaced() -> PlanError {
    let hint = "Put it as a condition of its own into WHERE.";
    unsupported_hint("a condition on the present time here is", hint)
}

/// Refuses conditions on the present time in recursive terms: they would be conditions on rows of a loop.
pub(super) fn refuse_in_steps(rel: &Rel) -> Result<(), PlanError> {
    if let Node::LetRec { step, .. } = &rel.node {
        if step.depends_on_time() {
            let what = "a condition on the present time in the recursive term of a query is";
            let hint = "Put it into another query in WITH, to which the recursive term refers.";
            return Err(unsupported_hint(what, hint));
        }
    }
    rel.children().into_iter().try_for_each(refuse_in_steps)
}

impl Binder<'_> {
    /// Makes the clock a source, unless it is one.
    fn use_clock(&mut self) {
        if !self.inputs.iter().any(|input| input.source.is_clock()) {
            self.inputs.push(Input { source: clock::source(), unique: vec![], statistics: None });
        }
    }
}

impl ExprBinder<'_, '_> {
    /// A conjunct of a WHERE as a bound, if it is a condition on the present time.
    pub(super) fn bind_temporal(
        &mut self,
        conjunct: &ast::Expr,
    ) -> Result<Option<TimeBound>, PlanError> {
        let ast::Expr::Function(call) = conjunct else { return Ok(None) };
        let Some(end) = end(call) else { return Ok(None) };
        let args = plain_arguments(call);
        let [at] = args.as_slice() else {
            return Err(invalid("a condition on the present time takes one bound"));
        };
        let at = self.bind(at)?;
        if at.ty != clock::TIME {
            return Err(invalid(format!("a bound of the present time is of type {}", at.ty)));
        }
        self.binder.use_clock();
        Ok(Some(TimeBound { end, at: at.expr }))
    }
}
