//! Conditions of WHERE that compare a value with the present time: `ts > now() - interval '1 hour'`.
//!
//! As time passes such a condition changes once, because what is made of the present time never goes back. A row
//! begins, or ends, to be valid at that instant.

use super::unsupported::unsupported;
use crate::errors::Error;
use crate::pg::catalog;
use crate::rewrite::parts::Call;
use crate::rewrite::present;
use crate::rewrite::tree::{self, Node, Place};
use pgrx::pg_sys::{self, NodeTag};
use plan::clock::End;

/// Which end of a row's validity a condition is, and the side that does not read the present time; `None` if the
/// condition is not such.
pub fn end_of(condition: Place<'_>) -> Result<Option<(End, Place<'_>)>, Error> {
    let Node::OpExpr(call) = condition.node() else { return Ok(None) };
    if !catalog::is_builtin(call.opno) {
        return Ok(None);
    }
    let is_less = match catalog::operator(call.opno).0.as_str() {
        "<" | "<=" => true,
        ">" | ">=" => false,
        _ => return Ok(None),
    };
    let [left, right] = *call.arguments().as_slice() else { return Ok(None) };
    let (present, value, is_left) = match (reads_present(left), reads_present(right)) {
        (true, false) => (left, right, true),
        (false, true) => (right, left, false),
        _ => return Ok(None),
    };
    let end = if is_less == is_left { End::Until } else { End::From };
    // A month before 30 March is 28 February, and so is, at its beginning, a month before the 31st.
    if has_months(present) {
        let construct = "an interval with months before or after the present time";
        return Err(unsupported(construct, condition.location())
            .hint("Months differ in length. Count days instead, as in interval '30 days'."));
    }
    if !never_goes_back(present) {
        let construct = "a comparison with this expression of the present time";
        return Err(unsupported(construct, condition.location()).hint(
            "Leave now(), plus or minus a constant, on one side, and all else on the other.",
        ));
    }
    Ok(Some((end, value)))
}

fn has_months(place: Place<'_>) -> bool {
    let is_call = matches!(place.node(), Node::OpExpr(_) | Node::FuncExpr(_));
    tree::interval(place).is_some_and(|interval| interval.month != 0)
        || is_call && place.operands().into_iter().any(has_months)
}

/// Whether an expression reads the present time.
pub fn reads_present(place: Place<'_>) -> bool {
    match place.node() {
        Node::Query(_) => false,
        _ if present::is_present(place) => true,
        _ => place.children().into_iter().any(reads_present),
    }
}

/// Whether an expression of nothing but the present time and constants never becomes less.
fn never_goes_back(place: Place<'_>) -> bool {
    let is_constant = |place: &Place<'_>| matches!(place.node(), Node::Expr(NodeTag::T_Const));
    match place.node() {
        _ if present::is_present(place) => true,
        Node::OpExpr(call) if catalog::is_builtin(call.opno) => {
            let (name, _) = catalog::operator(call.opno);
            match (name.as_str(), call.arguments().as_slice()) {
                ("+" | "-", [left, right]) if is_constant(right) => never_goes_back(*left),
                ("+", [left, right]) if is_constant(left) => never_goes_back(*right),
                _ => false,
            }
        }
        Node::FuncExpr(call) if catalog::is_builtin(call.funcid) => {
            let args = call.arguments();
            match (call.funcid.to_u32(), args.as_slice()) {
                (
                    pg_sys::F_TIMESTAMP_TIMESTAMPTZ
                    | pg_sys::F_TIMESTAMPTZ_TIMESTAMP
                    | pg_sys::F_TIMESTAMPTZ_DATE
                    | pg_sys::F_TIMESTAMP_DATE
                    | pg_sys::F_DATE_TIMESTAMPTZ
                    | pg_sys::F_DATE_TIMESTAMP,
                    [value],
                ) => never_goes_back(*value),
                (
                    pg_sys::F_TIMESTAMP_TIMESTAMP_INT4 | pg_sys::F_TIMESTAMPTZ_TIMESTAMPTZ_INT4,
                    [value, precision],
                ) => is_constant(precision) && never_goes_back(*value),
                (
                    pg_sys::F_DATE_TRUNC_TEXT_TIMESTAMPTZ
                    | pg_sys::F_DATE_TRUNC_TEXT_TIMESTAMP
                    | pg_sys::F_TIMEZONE_TEXT_TIMESTAMPTZ,
                    [field, value],
                ) => is_constant(field) && never_goes_back(*value),
                (pg_sys::F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT, [field, value, zone]) => {
                    is_constant(field) && is_constant(zone) && never_goes_back(*value)
                }
                _ => false,
            }
        }
        _ => false,
    }
}
