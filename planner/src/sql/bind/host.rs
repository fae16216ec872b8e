//! Binds what canonical SQL marks: expressions of the host's, and values that are sorted as a collation says.

use super::super::refuse::invalid;
use super::bound_expr::BoundExpr;
use super::expr_binder::ExprBinder;
use super::syntax::{number, plain_arguments};
use super::temporal;
use crate::catalog::HostExpression;
use crate::error::PlanError;
use plan::expr::Expr;
use plan::host::{HostCall, HostWork};
use sqlparser::ast;

impl ExprBinder<'_, '_> {
    /// A call of [`super::syntax::stand_in`].
    pub(super) fn bind_stand_in(
        &mut self,
        name: &str,
        call: &ast::Function,
    ) -> Result<BoundExpr, PlanError> {
        if temporal::end(call).is_some() {
            return Err(temporal::misplaced());
        }
        let args = plain_arguments(call);
        let unknown = || invalid(format!("an unknown {name}"));
        let ([value, _], "collated") = (args.as_slice(), name) else {
            let (expression, args) = args.split_first().ok_or_else(unknown)?;
            let expression =
                number(expression).and_then(|n| self.binder.catalog.host_expression(n));
            let HostExpression { text, code, caller, is_builtin, ty, typmod, .. } =
                expression.ok_or_else(unknown)?;
            let args = self.bind_all(args.iter().copied())?;
            let tys = args.iter().map(|arg| arg.ty).collect();
            let work = HostWork::Expression { text, code, caller, is_builtin, args: tys };
            let args = args.into_iter().map(|arg| arg.expr).collect();
            let expr = Expr::Host { call: HostCall::new(work, ty), args };
            return Ok(BoundExpr { expr, ty, typmod, nullable: true });
        };
        self.bind(value)
    }
}
