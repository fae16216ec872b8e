//! Subqueries that set-returning functions, filters and projections make of the row without columns: made of
//! the outer rows instead, they need no join.

use crate::ir::{Apply, ApplyKind, Node, Rel};
use plan::expr::{self, Expr};
use plan::table_function::TableFunction;

/// The outer rows with the rows of the subquery, if it is of that form and its kind allows it.
pub(super) fn expand(apply: &Apply) -> Option<Rel> {
    match apply.kind {
        ApplyKind::Cross => graft(apply, &apply.inner),
        ApplyKind::Left => keep_all(apply),
        ApplyKind::Semi | ApplyKind::Anti | ApplyKind::Mark | ApplyKind::Scalar => None,
    }
}

/// The outer rows with the rows of a part of the subquery.
fn graft(apply: &Apply, rel: &Rel) -> Option<Rel> {
    let outer = &apply.outer;
    let columns = [outer.columns.clone(), rel.columns.clone()].concat();
    let place = |expr: &Expr| place(apply, expr);
    match &rel.node {
        Node::Constant { .. } if *rel == Rel::unit() => Some(outer.clone()),
        Node::Map { input, outputs } => {
            let own = (0..outer.arity()).map(Expr::Column);
            let outputs = own.chain(outputs.iter().map(place)).collect();
            Some(graft(apply, input)?.map(outputs, columns))
        }
        Node::Filter { input, predicates } => {
            let predicates = predicates.iter().map(|p| p.map_exprs(&place)).collect();
            Some(graft(apply, input)?.filter(predicates))
        }
        Node::TableFunction { input, table_function } => {
            let input = Box::new(graft(apply, input)?);
            let table_function = table_function.map_args(&place);
            Some(Rel { columns, node: Node::TableFunction { input, table_function } })
        }
        _ => None,
    }
}

/// The same where an outer row without rows of the subquery is kept, if nothing but the functions decides which
/// these are.
fn keep_all(apply: &Apply) -> Option<Rel> {
    let Apply { outer, inner, .. } = apply;
    let (outputs, below) = match &inner.node {
        Node::Map { input, outputs } => (outputs.clone(), input.as_ref()),
        _ => ((0..inner.arity()).map(Expr::Column).collect(), inner),
    };
    let below = match &below.node {
        Node::Filter { input, predicates }
            if predicates.iter().all(|p| p.to_expr() == Expr::true_literal()) =>
        {
            input
        }
        _ => below,
    };
    let Node::TableFunction { input, table_function } = &below.node else { return None };
    if **input != Rel::unit() {
        return None;
    }
    // Anything but columns of the functions would not be NULL where there is no row.
    let inner: Option<Vec<usize>> = outputs.iter().map(Expr::as_column).collect();
    let shifted = inner?.into_iter().map(|column| outer.arity() + column);
    let positions: Vec<usize> = (0..outer.arity()).chain(shifted).collect();
    let table_function = table_function.map_args(&|arg| place(apply, arg));
    let table_function = TableFunction { keeps_all: true, ..table_function };
    let names = below.columns.iter().map(|column| column.name.clone()).collect();
    Some(outer.clone().table_function(table_function, names).project(&positions))
}

/// An expression of the subquery over the columns of the outer row and those of the subquery.
fn place(apply: &Apply, expr: &Expr) -> Expr {
    let start = apply.outer.arity();
    let value = |id| apply.bindings.iter().find(|b| b.id == id).map(|b| b.value.clone());
    expr::with_parameters(&expr::renumber(expr, &|column| column + start), &value)
}
