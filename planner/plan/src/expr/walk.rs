//! Walks and rewrites of scalar expressions: which columns they read, and the same with other columns.

use crate::expr::{Expr, ParameterId};
use crate::func;
use crate::host::HostWork;
use crate::types::{Scalar, Type};
use std::collections::BTreeSet;

/// The expression with each direct subexpression replaced.
pub fn map_children(expr: &Expr, f: &mut dyn FnMut(&Expr) -> Expr) -> Expr {
    let mut all = |args: &[Expr]| -> Vec<Expr> { args.iter().map(&mut *f).collect() };
    match expr {
        Expr::Column(_) | Expr::Literal(..) | Expr::Parameter(..) => expr.clone(),
        Expr::Call { func, args } => Expr::Call { func: *func, args: all(args) },
        Expr::Host { call, args } => Expr::Host { call: call.clone(), args: all(args) },
        Expr::And(args) => Expr::And(all(args)),
        Expr::Or(args) => Expr::Or(all(args)),
        Expr::Coalesce(args) => Expr::Coalesce(all(args)),
        Expr::Array(args) => Expr::Array(all(args)),
        Expr::Not(arg) => Expr::Not(Box::new(f(arg))),
        Expr::IsNull(arg) => Expr::IsNull(Box::new(f(arg))),
        Expr::Case { branches, otherwise } => Expr::Case {
            branches: branches.iter().map(|(c, v)| (f(c), f(v))).collect(),
            otherwise: Box::new(f(otherwise)),
        },
    }
}

/// Adds the columns the expression reads.
pub fn collect_columns(expr: &Expr, columns: &mut BTreeSet<usize>) {
    expr.visit_columns(&mut |column| {
        columns.insert(column);
    });
}

/// The columns the expression reads.
pub fn columns_of(expr: &Expr) -> BTreeSet<usize> {
    let mut columns = BTreeSet::new();
    collect_columns(expr, &mut columns);
    columns
}

/// The expression with each column reference replaced by an expression.
pub fn substitute(expr: &Expr, f: &dyn Fn(usize) -> Expr) -> Expr {
    match expr {
        Expr::Column(column) => f(*column),
        other => map_children(other, &mut |child| substitute(child, f)),
    }
}

/// The expression reading other columns.
pub fn renumber(expr: &Expr, f: &dyn Fn(usize) -> usize) -> Expr {
    substitute(expr, &|column| Expr::Column(f(column)))
}

/// The expression with each parameter for which there is an expression replaced by it.
pub fn with_parameters(expr: &Expr, f: &dyn Fn(ParameterId) -> Option<Expr>) -> Expr {
    match expr {
        Expr::Parameter(id, _) => f(*id).unwrap_or_else(|| expr.clone()),
        other => map_children(other, &mut |child| with_parameters(child, f)),
    }
}

/// Adds the parameters the expression reads.
pub fn collect_parameters(expr: &Expr, parameters: &mut BTreeSet<ParameterId>) {
    if let Expr::Parameter(id, _) = expr {
        parameters.insert(*id);
    }
    expr.children().into_iter().for_each(|child| collect_parameters(child, parameters));
}

/// Whether some values may make the expression raise an error. True when in doubt.
pub fn may_fail(expr: &Expr) -> bool {
    has(expr, &|part| match part {
        Expr::Call { func, .. } => func.may_fail(),
        Expr::Host { call, .. } => matches!(call.work, HostWork::Expression { .. }),
        _ => false,
    })
}

/// Whether the host evaluates a part of the expression.
pub fn calls_host(expr: &Expr) -> bool {
    has(expr, &|part| matches!(part, Expr::Host { .. }))
}

/// Whether the host calls functions for a part of the expression that are not its own: they may tell what they were
/// called with.
pub fn calls_users_functions(expr: &Expr) -> bool {
    has(expr, &|part| match part {
        Expr::Host { call, .. } => {
            matches!(call.work, HostWork::Expression { is_builtin: false, .. })
        }
        _ => false,
    })
}

/// Whether literals alone decide its value: no column, no parameter, and not the host.
pub fn is_closed(expr: &Expr) -> bool {
    let is_open =
        |part: &Expr| matches!(part, Expr::Column(_) | Expr::Parameter(..) | Expr::Host { .. });
    !has(expr, &is_open)
}

/// Whether the expression, or one of its parts, is such.
fn has(expr: &Expr, is_such: &dyn Fn(&Expr) -> bool) -> bool {
    is_such(expr) || expr.children().into_iter().any(|child| has(child, is_such))
}

/// Number of nodes of the expression.
pub fn size(expr: &Expr) -> usize {
    1 + expr.children().into_iter().map(size).sum::<usize>()
}

/// A type to which both cast without loss or error, keeping equality.
pub fn key_type(left: Type, right: Type) -> Option<Type> {
    use Scalar::{Float4, Float8, Int2, Int4, Int8, Text, Varchar};
    if left == right {
        return Some(left);
    }
    let (Type::Scalar(l), Type::Scalar(r)) = (left, right) else { return None };
    let common = match (l, r) {
        (Int8, Int2 | Int4) | (Int2 | Int4, Int8) => Int8,
        (Int4, Int2) | (Int2, Int4) => Int4,
        (Float8, Float4) | (Float4, Float8) => Float8,
        (Text, Varchar) | (Varchar, Text) => Text,
        _ => return None,
    };
    Some(Type::Scalar(common))
}

/// The expression cast to another type, `None` if there is no such cast.
pub fn cast(expr: &Expr, from: Type, to: Type) -> Option<Expr> {
    let apply = |arg, func| Expr::Call { func, args: vec![arg] };
    Some(func::cast(from, to, -1, true)?.into_iter().fold(expr.clone(), apply))
}
