//! Collations: the planner knows none, so PostgreSQL computes what shows them.
//!
//! For the planner equality means equal bytes (deterministic collations), the order of text is that of its
//! bytes wherever it can be seen (`<`, greatest), and upper and lower case are ASCII's.

use super::unsupported::unsupported;
use crate::errors::{Error, ErrorKind};
use crate::pg::catalog::{self, CollationClass};
use crate::pg::types;
use crate::rewrite::tree::{Node, Place};
use pgrx::pg_sys::Oid;
use plan::types::Type;

/// Checks one expression node.
pub fn check(place: Place<'_>, node: Node<'_>) -> Result<(), Error> {
    let at = place.location();
    let (input, need) = match node {
        Node::OpExpr(call) => (call.inputcollid, operator_need(call.opno)),
        Node::ScalarArrayOpExpr(call) => (call.inputcollid, operator_need(call.opno)),
        Node::DistinctExpr(call) | Node::NullIfExpr(call) => (call.inputcollid, Need::Equality),
        Node::MinMaxExpr(call) => (call.inputcollid, Need::Order("GREATEST or LEAST".into())),
        Node::WindowFunc(call) => match function_need(call.winfnoid) {
            need @ Need::Order(_) => (call.inputcollid, need),
            _ => return Ok(()),
        },
        Node::FuncExpr(call) => (call.inputcollid, function_need(call.funcid)),
        _ => return Ok(()),
    };
    // Values of a nondeterministic collation are of a type of their own, which knows their order.
    let is_known = || {
        let is_host = |operand: Place<'_>| operand.planner_type().is_some_and(Type::is_host);
        matches!(node, Node::OpExpr(_) | Node::DistinctExpr(_))
            && place.operands().into_iter().all(is_host)
    };
    let is_comparison = match node {
        Node::OpExpr(call) | Node::DistinctExpr(call) | Node::NullIfExpr(call) => {
            let name = catalog::operator(call.opno).0;
            matches!(name.as_str(), "=" | "<>" | "<" | "<=" | ">" | ">=")
        }
        _ => false,
    };
    let is_collatable = |operand: Place<'_>| types::is_collatable(operand.expr_type());
    if input == Oid::INVALID && is_comparison && place.operands().into_iter().any(is_collatable) {
        return Err(undetermined(at));
    }
    match need {
        Need::Equality | Need::Order(_) if is_known() => Ok(()),
        need => meet(need, input, at),
    }
}

/// The collation that the planner must be told of if an expression's order shows.
pub fn order_of(place: Place<'_>) -> Option<Oid> {
    order_under(place, place.collation())
}

/// The collation that the planner must be told of if an operator compares a value, and others, by their order.
pub fn order_of_comparison(operator: Oid, value: Place<'_>, input: Oid) -> Option<Oid> {
    let is_by_order = matches!(operator_need(operator), Need::Order(_));
    is_by_order.then(|| order_under(value, input)).flatten()
}

fn order_under(place: Place<'_>, collation: Oid) -> Option<Oid> {
    let is_told = |ty: Type| !ty.is_host();
    if collation == Oid::INVALID || !place.planner_type().is_some_and(is_told) {
        return None;
    }
    match catalog::collation_class(collation) {
        CollationClass::C | CollationClass::ByteOrdered => None,
        CollationClass::Deterministic | CollationClass::Nondeterministic => Some(collation),
    }
}

fn meet(need: Need, input: Oid, at: i32) -> Result<(), Error> {
    if input == Oid::INVALID {
        return Ok(());
    }
    let class = catalog::collation_class(input);
    match (need, class) {
        (_, CollationClass::Nondeterministic) => Err(nondeterministic(input, at)),
        (_, CollationClass::C)
        | (Need::Equality, _)
        | (Need::Order(_), CollationClass::ByteOrdered) => Ok(()),
        (Need::Order(what), _) => {
            Err(refuse(&what, input, at).hint("Add COLLATE \"C\" to compare by bytes."))
        }
        (Need::Case(what), _) => Err(refuse(&what, input, at)
            .hint("Add COLLATE \"C\" to the argument to change the case of ASCII letters only.")),
    }
}

/// What a function or operator takes from its collation.
enum Need {
    /// Whether texts are equal, or nothing.
    Equality,
    /// Their order.
    Order(String),
    /// Upper and lower case.
    Case(String),
}

fn operator_need(operator: Oid) -> Need {
    let (name, _) = catalog::operator(operator);
    match name.as_str() {
        "<" | "<=" | ">" | ">=" => Need::Order(format!("operator {name} on text")),
        // Case-insensitive and regular-expression matches.
        "~~*" | "!~~*" | "~" | "~*" | "!~" | "!~*" => Need::Case(format!("operator {name}")),
        _ => Need::Equality,
    }
}

fn function_need(function: Oid) -> Need {
    let (name, _) = catalog::function_name(function);
    match name.as_str() {
        "min" | "max" => Need::Order(format!("{name} of text")),
        "text_lt" | "text_le" | "text_gt" | "text_ge" | "text_larger" | "text_smaller"
        | "bpcharlt" | "bpcharle" | "bpchargt" | "bpcharge" | "bpchar_larger"
        | "bpchar_smaller" | "bttextcmp" | "bpcharcmp" => Need::Order(format!("function {name}")),
        "lower" | "upper" | "initcap" | "texticlike" | "texticnlike" => {
            Need::Case(format!("function {name}"))
        }
        _ => Need::Equality,
    }
}

/// In PostgreSQL's words.
fn undetermined(at: i32) -> Error {
    let message = "could not determine which collation to use for string comparison";
    Error::new(ErrorKind::IndeterminateCollation, message)
        .at(at)
        .hint("Use the COLLATE clause to set the collation explicitly.")
}

fn nondeterministic(collation: Oid, at: i32) -> Error {
    let name = catalog::collation_name(collation);
    unsupported(format!("nondeterministic collation \"{name}\""), at)
}

fn refuse(what: &str, collation: Oid, at: i32) -> Error {
    let name = catalog::collation_name(collation);
    unsupported(format!("{what} with collation \"{name}\""), at)
}
