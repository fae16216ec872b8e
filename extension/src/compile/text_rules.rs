//! Collations: the planner knows none, so only text whose collation cannot show is let through.
//!
//! Equality must mean equal bytes (deterministic collations). The order of text must be that of its
//! bytes wherever it can be seen (`<`, min, greatest). Upper and lower case must be ASCII's.

use super::refuse::unsupported;
use crate::errors::Error;
use crate::pg::catalogs::{self, CollationClass};
use crate::pg::tree::{Node, Place};
use pgrx::pg_sys::Oid;

/// Checks one expression node.
pub fn check(place: Place, node: Node<'_>) -> Result<(), Error> {
    let at = place.location();
    let result = place.collation();
    if result != Oid::INVALID
        && catalogs::collation_class(result) == CollationClass::Nondeterministic
    {
        return Err(nondeterministic(result, at));
    }
    let (input, need) = match node {
        Node::OpExpr(call) => (call.inputcollid, operator_need(call.opno)),
        Node::ScalarArrayOpExpr(call) => (call.inputcollid, operator_need(call.opno)),
        Node::DistinctExpr(call) | Node::NullIfExpr(call) => (call.inputcollid, Need::Equality),
        Node::MinMaxExpr(call) => (call.inputcollid, Need::Order("GREATEST or LEAST".into())),
        Node::Aggref(call) => (call.inputcollid, function_need(call.aggfnoid)),
        Node::WindowFunc(call) => (call.inputcollid, function_need(call.winfnoid)),
        Node::FuncExpr(call) => (call.inputcollid, function_need(call.funcid)),
        _ => return Ok(()),
    };
    meet(need, input, at)
}

/// Checks an expression whose order shows.
pub fn check_order(what: &str, place: Place) -> Result<(), Error> {
    meet(Need::Order(format!("{what} of text")), place.collation(), place.location())
}

fn meet(need: Need, input: Oid, at: i32) -> Result<(), Error> {
    if input == Oid::INVALID {
        return Ok(());
    }
    let class = catalogs::collation_class(input);
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
    let (name, _) = catalogs::operator(operator);
    match name.as_str() {
        "<" | "<=" | ">" | ">=" => Need::Order(format!("operator {name} on text")),
        // Case-insensitive and regular-expression matches.
        "~~*" | "!~~*" | "~" | "~*" | "!~" | "!~*" => Need::Case(format!("operator {name}")),
        _ => Need::Equality,
    }
}

fn function_need(function: Oid) -> Need {
    let (name, _) = catalogs::function_name(function);
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

fn nondeterministic(collation: Oid, at: i32) -> Error {
    let name = catalogs::collation_name(collation);
    unsupported(format!("nondeterministic collation \"{name}\""), at)
}

fn refuse(what: &str, collation: Oid, at: i32) -> Error {
    let name = catalogs::collation_name(collation);
    unsupported(format!("{what} with collation \"{name}\""), at)
}
