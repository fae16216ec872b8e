//! Reads the syntax tree: what is left without parentheses and marks, and what the marks say.
//!
//! Marks are what canonical SQL adds for the binder: `eddy.host_call(number, arguments)` for an expression of the
//! host's, `eddy.collated(value, collation)` where a value is sorted as a collation says, `eddy.valid_from(bound)`
//! and `eddy.valid_until(bound)` for conditions on the present time.

use sqlparser::ast::{self, BinaryOperator, FunctionArg, FunctionArgExpr, FunctionArguments};

/// The expression without parentheses around it.
pub(super) fn strip(mut expr: &ast::Expr) -> &ast::Expr {
    while let ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// The operands of a chain of one operator, which nests to the left and may be thousands long.
pub(super) fn chain<'e>(expr: &'e ast::Expr, wanted: &BinaryOperator) -> Vec<&'e ast::Expr> {
    let (mut found, mut pending) = (Vec::new(), vec![expr]);
    while let Some(next) = pending.pop() {
        match strip(next) {
            ast::Expr::BinaryOp { left, op, right } if op == wanted => {
                pending.push(right);
                pending.push(left);
            }
            other => found.push(other),
        }
    }
    found
}

pub(super) fn is_row(expr: &ast::Expr) -> bool {
    matches!(strip(expr), ast::Expr::Tuple(_))
}

pub(super) fn is_number(expr: &ast::Expr) -> bool {
    match strip(expr) {
        ast::Expr::Value(value) => matches!(value.value, ast::Value::Number(..)),
        _ => false,
    }
}

/// The stand-in that a function is, if it is one.
pub(super) fn stand_in(name: &ast::ObjectName) -> Option<&str> {
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

/// Of a stand-in or another function that takes nothing but expressions.
pub(super) fn plain_arguments(call: &ast::Function) -> Vec<&ast::Expr> {
    let FunctionArguments::List(list) = &call.args else { return Vec::new() };
    let mut args = Vec::new();
    for arg in &list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
            args.push(expr);
        }
    }
    args
}

pub(super) fn number<N: std::str::FromStr>(expr: &ast::Expr) -> Option<N> {
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
            (stand_in(&call.name), plain_arguments(call).as_slice())
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

/// Whether an expression is NULL itself, of no type: for PostgreSQL `p IS DISTINCT FROM NULL` is `p IS NOT NULL`, but that a row
/// whose fields are all NULL is there.
pub(super) fn is_null(expr: &ast::Expr) -> bool {
    matches!(strip(expr), ast::Expr::Value(value) if value.value == ast::Value::Null)
}
