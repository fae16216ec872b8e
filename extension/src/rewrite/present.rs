//! The present time in analysed queries, and conditions that it decides.

use crate::rewrite::nodes;
use crate::rewrite::tree::{Node, Place};
use pgrx::pg_sys::{self, Oid};

/// Whether a function is `now()` by one of its names.
pub fn is_now(function: Oid) -> bool {
    matches!(
        function.to_u32(),
        pg_sys::F_NOW | pg_sys::F_TRANSACTION_TIMESTAMP | pg_sys::F_STATEMENT_TIMESTAMP
    )
}

/// Whether an expression is the present time: `now()`, `current_date` and the like.
pub fn is_present(place: Place<'_>) -> bool {
    use pg_sys::SQLValueFunctionOp as Op;
    match place.node() {
        Node::FuncExpr(call) => is_now(call.funcid),
        Node::SQLValueFunction(function) => matches!(
            function.op,
            Op::SVFOP_CURRENT_DATE
                | Op::SVFOP_CURRENT_TIMESTAMP
                | Op::SVFOP_CURRENT_TIMESTAMP_N
                | Op::SVFOP_LOCALTIMESTAMP
                | Op::SVFOP_LOCALTIMESTAMP_N
        ),
        _ => false,
    }
}

/// The present time as it is in an expression, over the first parameter.
///
/// # Safety
/// An expression that is the present time.
pub(super) unsafe fn over_parameter(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: new nodes; the tag decides the type.
    unsafe {
        let now = nodes::parameter(1, pg_sys::TIMESTAMPTZOID, -1, Oid::INVALID);
        let cast = match pg_sys::exprType(node) {
            pg_sys::DATEOID => pg_sys::F_DATE_TIMESTAMPTZ,
            pg_sys::TIMESTAMPOID => pg_sys::F_TIMESTAMP_TIMESTAMPTZ,
            _ => return now.cast(),
        };
        let result = (pg_sys::exprType(node), Oid::INVALID);
        nodes::call_of_one(Oid::from(cast), now.cast(), result).cast()
    }
}
