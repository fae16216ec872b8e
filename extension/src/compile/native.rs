//! Refuses, with positions, the functions, operators and casts that the planner has no native form
//! for. The planner would refuse them too, but it does not know positions.

use super::refuse::unsupported;
use crate::errors::Error;
use crate::pg::catalogs;
use crate::pg::tree::{self, Node, Place};
use pgrx::pg_sys::{self, CoercionForm, Oid};
use planner::func::{self, Quantifier};
use planner::types::{Scalar, Type};

/// Checks one expression node whose own type the planner knows.
pub fn check(place: Place, node: Node<'_>) -> Result<(), Error> {
    match node {
        Node::OpExpr(call) if tree::converted_operand(call).is_some() => {
            check_concatenation(place, call)
        }
        Node::OpExpr(call) | Node::DistinctExpr(call) | Node::NullIfExpr(call) => {
            let types = argument_types(call.args);
            let lookup = |name: &str| func::operator(name, types.as_ref()?).map(|_| ());
            check_operator(place, call.opno, call.args, lookup)
        }
        Node::ScalarArrayOpExpr(call) => {
            let quantifier = if call.useOr { Quantifier::Any } else { Quantifier::All };
            let types = argument_types(call.args);
            let lookup = |name: &str| match types.as_deref() {
                Some([left, array]) => {
                    func::quantified(name, quantifier, *left, *array).map(|_| ())
                }
                _ => None,
            };
            check_operator(place, call.opno, call.args, lookup)
        }
        Node::FuncExpr(call) if is_cast(call) => {
            check_cast(place, tree::places(call.args).first().copied())
        }
        Node::FuncExpr(call) => check_function(place, call),
        Node::CoerceViaIO(cast) => check_cast(place, tree::place(cast.arg)),
        _ => Ok(()),
    }
}

/// Whether a function call is the function of a cast.
pub fn is_cast(call: &pg_sys::FuncExpr) -> bool {
    let form = call.funcformat;
    form == CoercionForm::COERCE_EXPLICIT_CAST || form == CoercionForm::COERCE_IMPLICIT_CAST
}

/// Types of arguments; `None` if the planner does not know one of them.
fn argument_types(args: *const pg_sys::List) -> Option<Vec<Type>> {
    tree::places(args).into_iter().map(|a| catalogs::planner_type(a.expr_type())).collect()
}

fn type_names(args: *const pg_sys::List) -> Vec<String> {
    tree::places(args).into_iter().map(|a| catalogs::type_name(a.expr_type())).collect()
}

fn check_operator(
    place: Place,
    operator: Oid,
    args: *const pg_sys::List,
    lookup: impl Fn(&str) -> Option<()>,
) -> Result<(), Error> {
    let (name, _) = catalogs::operator(operator);
    if catalogs::is_builtin(operator) && lookup(&name).is_some() {
        return Ok(());
    }
    let text = match type_names(args).as_slice() {
        [left, right] => format!("{left} {name} {right}"),
        types => format!("{name} {}", types.join(", ")),
    };
    Err(unsupported(format!("operator {text}"), place.location()))
}

/// `text || other`, computed as `text || other::text`.
fn check_concatenation(place: Place, call: &pg_sys::OpExpr) -> Result<(), Error> {
    let index = tree::converted_operand(call).unwrap_or(0);
    let Some(operand) = tree::places(call.args).get(index).copied() else { return Ok(()) };
    let from = operand.expr_type();
    let from_type = catalogs::planner_type(from);
    if from_type.and_then(|t| func::cast(t, Type::Scalar(Scalar::Text), -1, true)).is_some() {
        return Ok(());
    }
    let name = catalogs::type_name(from);
    Err(unsupported(format!("concatenation of text and {name}"), place.location()))
}

fn check_function(place: Place, call: &pg_sys::FuncExpr) -> Result<(), Error> {
    let (name, _) = catalogs::function_name(call.funcid);
    let is_known = argument_types(call.args).is_some_and(|types| match call.funcretset {
        true => func::table_function(&name, &types).is_some(),
        false => func::function(&name, &types).is_some(),
    });
    if catalogs::is_builtin(call.funcid) && !call.funcvariadic && is_known {
        return Ok(());
    }
    let signature = catalogs::function_signature(call.funcid);
    let kind = if call.funcretset { "set-returning function" } else { "function" };
    Err(unsupported(format!("{kind} {signature}"), place.location()))
}

fn check_cast(place: Place, arg: Option<Place>) -> Result<(), Error> {
    let Some(arg) = arg else { return Ok(()) };
    let (from, to) = (arg.expr_type(), place.expr_type());
    let types = catalogs::planner_type(from).zip(catalogs::planner_type(to));
    if types.and_then(|(from, to)| func::cast(from, to, -1, true)).is_some() {
        return Ok(());
    }
    let (from, to) = (catalogs::type_name(from), catalogs::type_name(to));
    Err(unsupported(format!("a cast from {from} to {to}"), place.location()))
}
