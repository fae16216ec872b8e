//! How deep a query is, found out without recursion: transforms walk down relations and expressions by recursion, and
//! what is above a certain depth would overflow the stack.

use super::{Node, Predicate, Query, Rel};
use plan::expr::Expr;

/// Levels of relations, one within the other, with the levels of the expressions in them.
pub const MAX_DEPTH: usize = 2000;

impl Query {
    /// Whether something in it is more than [`MAX_DEPTH`] levels deep.
    pub fn is_too_deep(&self) -> bool {
        let mut pending = vec![(&self.root, 0)];
        while let Some((rel, above)) = pending.pop() {
            let own = rel.own_exprs().into_iter().map(depth_of).max().unwrap_or(0);
            let depth = above + 1 + own;
            if depth > MAX_DEPTH {
                return true;
            }
            pending.extend(rel.children().into_iter().map(|child| (child, depth)));
        }
        false
    }
}

impl Rel {
    /// The expressions of this operator as they stand in it.
    fn own_exprs(&self) -> Vec<&Expr> {
        match &self.node {
            Node::Map { outputs, .. } => outputs.iter().collect(),
            Node::TableFunction { table_function, .. } => table_function.args().collect(),
            Node::Filter { predicates, .. }
            | Node::Join { predicates, .. }
            | Node::OuterJoin { predicates, .. }
            | Node::AntiJoin { predicates, .. } => predicates.iter().flat_map(sides).collect(),
            Node::Temporal { bounds, .. } => bounds.iter().map(|bound| &bound.at).collect(),
            Node::Reduce { aggregates, .. } => {
                aggregates.iter().filter_map(|aggregate| aggregate.arg.as_ref()).collect()
            }
            Node::Apply(apply) => apply.bindings.iter().map(|binding| &binding.value).collect(),
            _ => vec![],
        }
    }
}

fn sides(predicate: &Predicate) -> Vec<&Expr> {
    match predicate {
        Predicate::Equal { left, right, .. } => vec![&left.expr, &right.expr],
        Predicate::Test(expr) => vec![expr],
    }
}

fn depth_of(expr: &Expr) -> usize {
    let mut deepest = 0;
    let mut pending = vec![(expr, 1)];
    while let Some((expr, depth)) = pending.pop() {
        deepest = deepest.max(depth);
        pending.extend(expr.children().into_iter().map(|child| (child, depth + 1)));
    }
    deepest
}
