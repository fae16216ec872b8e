//! Rows without a type, such as those of a CYCLE clause's path: how they are written is known where it is known what all of
//! them are made of.
//!
//! ```sql
//! SELECT path::text FROM … CYCLE a, b SET is_cycle USING path      -- an array of ROW(a, b)
//! ```
//!
//! Columns of tables have types, so all such rows of a query are made by the query itself.

use super::native::{self, Output};
use crate::pg::catalog;
use crate::pg::types;
use crate::rewrite::parts::{self, Call};
use crate::rewrite::tree::{self, Node, Place, Tree};
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::collections::BTreeSet;

/// Whether it is known what all rows without a type are made of that a query has, and whether these are written in a known way.
pub(super) fn are_known(tree: &Tree) -> bool {
    let mut queries = tree.queries().into_iter();
    queries.all(|query| tree::expressions(query).into_iter().all(makes_known))
}

fn makes_known(place: Place<'_>) -> bool {
    let is_known = match place.node() {
        Node::Query(_) => return true,
        Node::Expr(NodeTag::T_RowExpr) => place.operands().into_iter().all(is_written_in_known_way),
        Node::FuncExpr(call) if is_untyped(call.funcresulttype) => {
            passes_on(call.funcid, &call.arguments())
        }
        Node::OpExpr(call) if is_untyped(call.opresulttype) => {
            passes_on(call.opno, &call.arguments())
        }
        Node::Aggref(call) if is_untyped(call.aggtype) => {
            passes_on(call.aggfnoid, &call.arguments())
        }
        Node::WindowFunc(call) if is_untyped(call.wintype) => {
            passes_on(call.winfnoid, &call.arguments())
        }
        Node::Expr(NodeTag::T_Const) if is_untyped(place.expr_type()) => parts::is_null(place),
        _ => true,
    };
    is_known && place.children().into_iter().all(makes_known)
}

/// Whether the rows that a function or an operator returns are such as it is given.
fn passes_on(function: Oid, args: &[Place<'_>]) -> bool {
    let is_row = |arg: &Place<'_>| {
        let ty = arg.expr_type();
        is_untyped(ty) || matches!(arg.node(), Node::Expr(NodeTag::T_RowExpr))
    };
    catalog::is_builtin(function) && args.iter().any(is_row)
}

/// Whether the text of a field, and its JSON, depends on nothing but the settings of a view, not even on names.
fn is_written_in_known_way(field: Place<'_>) -> bool {
    let ty = field.expr_type();
    let mut names = BTreeSet::new();
    if !is_untyped(ty) {
        types::collect_names(ty, &mut names);
    }
    is_untyped(ty)
        || names.is_empty()
            && native::is_output_known(field, false)
            && native::is_output_known(field, true)
}

/// Whether an expression makes text or JSON of rows without a type, or of arrays of them, and of nothing else.
pub(super) fn writes(place: Place<'_>) -> bool {
    let written = match place.node() {
        Node::CoerceViaIO(cast) if types::is_text(cast.resulttype) => {
            parts::operand(cast).into_iter().collect()
        }
        Node::OpExpr(call) => match tree::converted_operand(call) {
            Some(index) => vec![call.arguments()[index]],
            None => Vec::new(),
        },
        Node::FuncExpr(call) if Output::is_taken_by(call.funcid) => call.arguments(),
        _ => Vec::new(),
    };
    let is_known = |value: &Place<'_>| {
        is_untyped(value.expr_type())
            || native::is_output_known(*value, false) && native::is_output_known(*value, true)
    };
    written.iter().any(|value| is_untyped(value.expr_type())) && written.iter().all(is_known)
}

fn is_untyped(ty: Oid) -> bool {
    [pg_sys::RECORDOID, pg_sys::RECORDARRAYOID].contains(&ty)
}
