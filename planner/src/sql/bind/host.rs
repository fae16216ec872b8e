//! What the host computes, as canonical SQL names it: `eddy.host_call(number, arguments)` for an expression,
//! `eddy.collated(value, collation)` where a value is sorted as a collation says; conditions on the present time
//! are named in the same way ([`super::temporal`]).

use super::super::refuse::invalid;
use super::scalar::{strip, Scalar, ScalarBinder};
use super::temporal;
use crate::catalog::HostExpression;
use crate::error::PlanError;
use plan::expr::Expr;
use plan::host::{HostCall, HostWork};
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments};

/// The marker that a function is, if it is one.
pub(super) fn marker(name: &ast::ObjectName) -> Option<&str> {
    let mut parts = name.0.iter().filter_map(|part| part.as_ident()).map(|i| i.value.as_str());
    match (parts.next(), parts.next(), parts.next()) {
        (
            Some("eddy"),
            Some(name @ ("host_call" | "collated" | "valid_from" | "valid_until")),
            None,
        ) => Some(name),
        _ => None,
    }
}

pub(super) fn arguments(call: &ast::Function) -> Vec<&ast::Expr> {
    let FunctionArguments::List(list) = &call.args else { return Vec::new() };
    let mut args = Vec::new();
    for arg in &list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
            args.push(expr);
        }
    }
    args
}

fn number<N: std::str::FromStr>(expr: &ast::Expr) -> Option<N> {
    match strip(expr) {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(text, _) | ast::Value::SingleQuotedString(text) => text.parse().ok(),
            _ => None,
        },
        ast::Expr::Cast { expr, .. } => number(expr),
        _ => None,
    }
}

/// The value and the collation it is sorted by.
pub(super) fn collated(expr: &ast::Expr) -> (&ast::Expr, Option<u32>) {
    if let ast::Expr::Function(call) = strip(expr) {
        if let (Some("collated"), [value, collation]) =
            (marker(&call.name), arguments(call).as_slice())
        {
            return (value, number(collation));
        }
    }
    (expr, None)
}

/// The expression without parentheses and without what is said of its collation.
pub(super) fn unmarked(expr: &ast::Expr) -> &ast::Expr {
    strip(collated(expr).0)
}

impl ScalarBinder<'_, '_> {
    /// A call of [`marker`].
    pub(super) fn bind_marker(
        &mut self,
        name: &str,
        call: &ast::Function,
    ) -> Result<Scalar, PlanError> {
        if temporal::end(call).is_some() {
            return Err(temporal::misplaced());
        }
        let args = arguments(call);
        let unknown = || invalid(format!("an unknown {name}"));
        let ([value, _], "collated") = (args.as_slice(), name) else {
            let (expression, args) = args.split_first().ok_or_else(unknown)?;
            let expression =
                number(expression).and_then(|n| self.binder.catalog.host_expression(n));
            let HostExpression { text, code, caller, is_builtin, ty, typmod } =
                expression.ok_or_else(unknown)?;
            let args = self.bind_all(args.iter().copied())?;
            let tys = args.iter().map(|arg| arg.ty).collect();
            let work = HostWork::Expression { text, code, caller, is_builtin, args: tys };
            let args = args.into_iter().map(|arg| arg.expr).collect();
            let expr = Expr::Host { call: HostCall::new(work, ty), args };
            return Ok(Scalar { expr, ty, typmod, nullable: true });
        };
        self.bind(value)
    }
}
