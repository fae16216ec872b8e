//! `eddy.recursive('name')`: references to queries of WITH RECURSIVE that PostgreSQL sees as functions in FROM, and cannot run.

use crate::pg::catalog;
use crate::rewrite::returned;
use crate::rewrite::tree::{self, Node, Place, Tree};
use pgrx::pg_sys::{self, RTEKind};

/// The function, as SQL spells it.
pub const FUNCTION: &str = "eddy.recursive";

/// Whether an expression is a call of it.
pub fn is_reference(place: Place<'_>) -> bool {
    matches!(place.node(), Node::FuncExpr(call) if !catalog::is_builtin(call.funcid)
        && catalog::qualified_function(call.funcid) == FUNCTION)
}

/// Whether a tree has any.
pub fn are_in(tree: &Tree) -> bool {
    let entries = tree.queries().into_iter().flat_map(tree::range_table);
    let is_function = |entry: &&pg_sys::RangeTblEntry| entry.rtekind == RTEKind::RTE_FUNCTION;
    let mut functions = entries.filter(is_function).flat_map(returned::functions);
    functions.any(|(place, _)| is_reference(place))
}
