//! Takes out of an OR what all its branches demand: `(a AND b) OR (a AND c)` is `a AND (b OR c)`, in three-valued
//! logic, too. An equality found that way can be a join's key. As in PostgreSQL, what was behind in a branch may
//! then be tested first. Idempotent.
//!
//! ```text
//! Filter [(x = y AND u) OR (x = y AND v)]   becomes   Filter [x = y] AND [u OR v]
//! ```

use crate::error::PlanError;
use crate::ir::{Node, Predicate, Query, Rel, Typed};
use plan::expr::Expr;
use plan::func::{Comparison, Func};
use plan::types::Type;

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    Ok(Query { root: walk(query.root), ..query })
}

fn walk(rel: Rel) -> Rel {
    let mut rel = rel.map_children(&mut walk);
    let types: Vec<Type> = match &rel.node {
        Node::AntiJoin { left, right, .. } => {
            left.columns.iter().chain(&right.columns).map(|column| column.ty).collect()
        }
        _ => rel.columns.iter().map(|column| column.ty).collect(),
    };
    match &mut rel.node {
        Node::Filter { predicates, .. }
        | Node::Join { predicates, .. }
        | Node::OuterJoin { predicates, .. }
        | Node::AntiJoin { predicates, .. } => {
            let all = std::mem::take(predicates).into_iter();
            *predicates = all.flat_map(|predicate| factored(predicate, &types)).collect();
        }
        _ => {}
    }
    rel
}

fn factored(predicate: Predicate, types: &[Type]) -> Vec<Predicate> {
    let Predicate::Test(Expr::Or(branches)) = &predicate else { return vec![predicate] };
    let mut branches: Vec<Vec<Expr>> = branches.iter().map(conjuncts).collect();
    let Some((first, others)) = branches.split_first() else { return vec![predicate] };
    let is_common = |conjunct: &&Expr| others.iter().all(|branch| branch.contains(*conjunct));
    let common: Vec<Expr> = first.iter().filter(is_common).cloned().collect();
    if common.is_empty() {
        return vec![predicate];
    }
    branches.iter_mut().for_each(|branch| branch.retain(|conjunct| !common.contains(conjunct)));
    let mut result: Vec<Predicate> =
        common.into_iter().map(|conjunct| as_predicate(conjunct, types)).collect();
    // A branch that demands nothing else is true whenever what is common is.
    if branches.iter().all(|branch| !branch.is_empty()) {
        let branch = |mut conjuncts: Vec<Expr>| match conjuncts.len() {
            1 => conjuncts.remove(0),
            _ => Expr::And(conjuncts),
        };
        result.push(Predicate::Test(Expr::Or(branches.into_iter().map(branch).collect())));
    }
    result
}

/// What has to be true for an expression to be true.
pub(super) fn conjuncts(expr: &Expr) -> Vec<Expr> {
    match expr {
        Expr::And(args) => args.iter().flat_map(conjuncts).collect(),
        other => vec![other.clone()],
    }
}

/// The condition as a predicate, which knows an equality.
pub(super) fn as_predicate(conjunct: Expr, types: &[Type]) -> Predicate {
    match &conjunct {
        Expr::Call { func: func @ Func::Compare(Comparison::Eq, _), args } => {
            let typed = |expr: &Expr| Typed { expr: expr.clone(), ty: expr.ty(types) };
            Predicate::Equal { left: typed(&args[0]), right: typed(&args[1]), func: *func }
        }
        _ => Predicate::Test(conjunct),
    }
}
