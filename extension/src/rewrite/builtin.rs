//! Expressions without code of users.

use crate::pg::{catalog, types, versions};
use crate::rewrite::parts::{self, Call};
use crate::rewrite::tree::{Node, Place};
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::ffi::c_void;

/// Whether an expression calls no functions but PostgreSQL's own.
pub(super) fn is_builtin(place: Place<'_>) -> bool {
    /// Unguarded: compares numbers.
    ///
    /// # Safety
    /// For PostgreSQL to call. It touches no memory.
    unsafe extern "C-unwind" fn is_foreign(function: Oid, _: *mut c_void) -> bool {
        !catalog::is_builtin(function)
    }
    // Types of users bring functions of users: checks of domains, casts to json.
    let is_of_users = |ty: Oid| ty == pg_sys::RECORDOID || !catalog::is_builtin(ty);
    let takes_users = |args: Vec<Place<'_>>| args.iter().any(|arg| is_of_users(arg.expr_type()));
    let may_check = match place.node() {
        Node::FuncExpr(call) => is_of_users(call.funcresulttype) || takes_users(call.arguments()),
        Node::Aggref(call) => is_of_users(call.aggtype) || takes_users(call.arguments()),
        Node::WindowFunc(call) => is_of_users(call.wintype) || takes_users(call.arguments()),
        Node::CoerceViaIO(cast) => {
            // Labels of enums are written and read by functions of PostgreSQL's own.
            let is_of_users = |ty: Oid| is_of_users(ty) && !types::is_enum(ty);
            let arg = parts::operand(cast).map(Place::expr_type);
            is_of_users(cast.resulttype) || arg.is_some_and(is_of_users)
        }
        Node::Expr(tag) if versions::tree::is_json(tag) => {
            let values = place.operands().into_iter().map(Place::expr_type);
            is_of_users(place.expr_type()) || values.into_iter().any(is_of_users)
        }
        node => matches!(node, Node::Expr(NodeTag::T_CoerceToDomain)),
    };
    // SAFETY: a complete node; the callback compares numbers.
    let is_foreign = may_check
        || unsafe {
            pg_sys::check_functions_in_node(place.0, Some(is_foreign), std::ptr::null_mut())
        };
    !is_foreign && place.children().into_iter().all(is_builtin)
}
