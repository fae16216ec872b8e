//! Walks and rewrites of scalar expressions: which columns they read, and the same with other columns.

use crate::expr::Expr;
use std::collections::BTreeSet;

/// The expression with each direct subexpression replaced.
pub fn map_children(expr: &Expr, f: &mut dyn FnMut(&Expr) -> Expr) -> Expr {
    let mut all = |args: &[Expr]| -> Vec<Expr> { args.iter().map(&mut *f).collect() };
    match expr {
        Expr::Column(_) | Expr::Literal(..) => expr.clone(),
        Expr::Call { func, args } => Expr::Call { func: *func, args: all(args) },
        Expr::Host { sql, args, ty } => Expr::Host { sql: sql.clone(), args: all(args), ty: *ty },
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

/// Number of nodes of the expression.
pub fn size(expr: &Expr) -> usize {
    1 + expr.children().into_iter().map(size).sum::<usize>()
}
