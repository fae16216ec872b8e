//! Refuses, with positions, the functions, operators and casts that the planner has no native form
//! for. The planner would refuse them too, but it does not know positions.

use super::text_rules;
use super::unsupported::unsupported;
use crate::errors::Error;
use crate::pg::types;
use crate::pg::{catalog, guc};
use crate::rewrite::conversions;
use crate::rewrite::parts::{self, Call};
use crate::rewrite::tree::{self, Node, Place};
use pgrx::pg_sys::{self, CoercionForm, NodeTag, Oid};
use plan::aggregate::{COLLECTING, SUMMING};
use plan::func::{self, Quantifier};
use plan::types::{Scalar, Type};
use std::collections::BTreeSet;

/// Checks one expression node whose own type the planner knows.
pub fn check(place: Place<'_>, node: Node<'_>) -> Result<(), Error> {
    match node {
        Node::OpExpr(call) if tree::converted_operand(call).is_some() => {
            check_concatenation(place, call)
        }
        Node::OpExpr(call) | Node::DistinctExpr(call) if is_own_comparison(call) => Ok(()),
        Node::OpExpr(call) | Node::DistinctExpr(call) | Node::NullIfExpr(call) => {
            let types = argument_types(&call.arguments());
            let lookup = |name: &str| func::operator(name, types.as_ref()?).map(|_| ());
            check_operator(place, call.opno, &call.arguments(), lookup)
        }
        Node::ScalarArrayOpExpr(call) => {
            let quantifier = if call.useOr { Quantifier::Any } else { Quantifier::All };
            let types = argument_types(&call.arguments());
            let lookup = |name: &str| match types.as_deref() {
                Some([left, array]) => {
                    func::quantified(name, quantifier, *left, *array).map(|_| ())
                }
                _ => None,
            };
            check_operator(place, call.opno, &call.arguments(), lookup)
        }
        Node::FuncExpr(call) if is_cast(call) => {
            check_cast(place, call.arguments().first().copied())
        }
        Node::FuncExpr(call) => check_function(place, call),
        Node::CoerceViaIO(cast) => check_cast(place, parts::operand(cast)),
        Node::MinMaxExpr(call) => check_known(place, call.arguments().first().copied()),
        Node::Expr(NodeTag::T_Const) => check_known(place, Some(place)),
        Node::Expr(NodeTag::T_RelabelType | NodeTag::T_ArrayCoerceExpr) => {
            check_cast(place, place.children().first().copied())
        }
        Node::Expr(NodeTag::T_CollateExpr) => check_collate(place),
        Node::Expr(NodeTag::T_NullTest) if tree::tests_row(place) => {
            Err(unsupported("IS NULL of a row", place.location()))
        }
        Node::Expr(NodeTag::T_SubscriptingRef) => check_subscript(place),
        Node::Expr(NodeTag::T_ArrayExpr) if tree::is_nested_array(place) => {
            Err(unsupported("a multidimensional array", place.location()))
        }
        Node::Expr(NodeTag::T_CaseExpr) => check_simple_case(place),
        _ => Ok(()),
    }
}

/// Whether values of a type that only PostgreSQL knows are compared in the type's own order.
fn is_own_comparison(call: &pg_sys::OpExpr) -> bool {
    match *call.arguments().as_slice() {
        [left, right] => is_host_comparison(call.opno, [left, right]),
        _ => false,
    }
}

fn is_host_comparison(operator: Oid, [left, right]: [Place<'_>; 2]) -> bool {
    let ty = left.planner_type();
    ty.is_some_and(Type::is_host)
        && ty == right.planner_type()
        && types::is_own_comparison(operator, types::base_type(left.expr_type()))
}

/// Whether the planner can compare two values by an operator.
pub fn compares(operator: Oid, sides: [Place<'_>; 2]) -> bool {
    let known: Option<Vec<Type>> = sides.into_iter().map(known_type).collect();
    let is_native = known.is_some_and(|types| {
        catalog::is_builtin(operator)
            && func::operator(&catalog::operator(operator).0, &types).is_some()
    });
    is_native || is_host_comparison(operator, sides)
}

/// Whether the planner knows the types of all expressions of a list.
pub fn knows_all(args: &[Place<'_>]) -> bool {
    args.iter().all(|arg| known_type(*arg).is_some())
}

/// The type of an expression, if the planner knows it.
fn known_type(place: Place<'_>) -> Option<Type> {
    place.planner_type().filter(|ty| !ty.is_host())
}

fn check_known(place: Place<'_>, arg: Option<Place<'_>>) -> Result<(), Error> {
    if arg.is_none_or(|arg| known_type(arg).is_some()) {
        return Ok(());
    }
    let name = types::type_name(place.expr_type());
    Err(unsupported(format!("type {name}"), place.location()))
}

/// COLLATE changes nothing for the planner, unless it changes what is equal.
fn check_collate(place: Place<'_>) -> Result<(), Error> {
    let arg = place.children().first().copied();
    if arg.is_some_and(|arg| arg.planner_type() == place.planner_type()) {
        return Ok(());
    }
    Err(unsupported("COLLATE", place.location()))
}

/// `a[i]`
fn check_subscript(place: Place<'_>) -> Result<(), Error> {
    let int4 = Type::Scalar(Scalar::Int4);
    match place.operands().as_slice() {
        [index, array]
            if tree::is_element(place)
                && known_type(*array).is_some_and(|ty| ty.element().is_some())
                && known_type(*index) == Some(int4) =>
        {
            Ok(())
        }
        _ => Err(unsupported("this subscript", place.location())),
    }
}

/// `CASE x WHEN …` keeps x where the conditions refer to it: it is computed as a whole.
fn check_simple_case(place: Place<'_>) -> Result<(), Error> {
    let mut next: Vec<Place<'_>> = tree::simple_case_conditions(place);
    if next.iter().any(|condition| casts_operand(*condition)) {
        return Err(unsupported("CASE that compares a value as different types", place.location()));
    }
    while let Some(condition) = next.pop() {
        if let Node::Query(_) = condition.node() {
            continue;
        }
        super::text_rules::check(condition, condition.node())?;
        if !matches!(condition.node(), Node::Container) {
            check(condition, condition.node())?;
        }
        next.extend(condition.children());
    }
    Ok(())
}

/// Whether a condition of `CASE x WHEN …` compares x not as it is.
fn casts_operand(condition: Place<'_>) -> bool {
    let is_operand =
        |place: &Place<'_>| matches!(place.node(), Node::Expr(NodeTag::T_CaseTestExpr));
    matches!(condition.node(), Node::OpExpr(_))
        && !condition.operands().first().is_some_and(is_operand)
}

/// Whether the planner has an aggregate for these arguments.
pub fn is_native_aggregate(aggregate: &pg_sys::Aggref) -> bool {
    let (name, is_builtin) = catalog::function_name(aggregate.aggfnoid);
    let args = aggregate.arguments();
    let is_array = |arg: &Place<'_>| types::is_array(arg.expr_type());
    is_builtin
        && match name.as_str() {
            "percentile_cont" | "percentile_disc" if !has_constant_fraction(aggregate) => false,
            "array_agg" | "count" | "mode" | "percentile_disc" => true,
            "min" | "max" => args.iter().all(|arg| !is_array(arg) || known_type(*arg).is_some()),
            name if SUMMING.contains(&name) || COLLECTING.contains(&name) => knows_all(&args),
            _ => false,
        }
}

/// Whether the direct argument of a percentile is one number, the same for all groups.
fn has_constant_fraction(aggregate: &pg_sys::Aggref) -> bool {
    let depends = |place: &Place<'_>| {
        matches!(place.node(), Node::Var(_) | Node::Param(_) | Node::SubLink(_) | Node::Aggref(_))
    };
    let mut next = parts::direct_arguments(aggregate);
    let mut all = Vec::new();
    while let Some(place) = next.pop() {
        next.extend(place.children());
        all.push(place);
    }
    !types::is_array(aggregate.aggtype) && !all.iter().any(depends)
}

/// Whether the planner has an aggregate for these arguments over the frames of windows.
pub fn is_native_window_aggregate(place: Place<'_>, call: &pg_sys::WindowFunc) -> bool {
    let (name, is_builtin) = catalog::function_name(call.winfnoid);
    is_builtin
        && match name.as_str() {
            "count" => true,
            "array_agg" => call.arguments().iter().all(|arg| !types::is_array(arg.expr_type())),
            name => SUMMING.contains(&name) && knows_all(&call.arguments()),
        }
        && text_rules::check(place, place.node()).is_ok()
}

/// Whether a function is stable only because the conversion of its arguments to text, or to JSON, may be anything, and
/// for these arguments depends on settings at most.
pub fn depends_on_output_only(function: Oid, args: &[Place<'_>]) -> bool {
    let form = Output::taken_by(function);
    form.is_some_and(|form| form.first_mutable(args).is_none())
}

/// Of a function that depends on how its arguments are converted, the first one that may be converted otherwise without a
/// change of settings.
pub fn mutable_output<'t>(function: Oid, args: &[Place<'t>]) -> Option<Place<'t>> {
    Output::taken_by(function)?.first_mutable(args)
}

/// What some functions of PostgreSQL convert their arguments to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Json,
    Text,
}

impl Output {
    /// Whether a function depends on how its arguments are converted.
    pub(super) fn is_taken_by(function: Oid) -> bool {
        Output::taken_by(function).is_some()
    }

    fn taken_by(function: Oid) -> Option<Output> {
        const JSON: [&str; 22] = [
            "to_json",
            "to_jsonb",
            "array_to_json",
            "row_to_json",
            "json_build_array",
            "json_build_object",
            "jsonb_build_array",
            "jsonb_build_object",
            "json_agg_transfn",
            "jsonb_agg_transfn",
            "json_object_agg_transfn",
            "jsonb_object_agg_transfn",
            "json_agg_strict_transfn",
            "jsonb_agg_strict_transfn",
            "json_object_agg_strict_transfn",
            "json_object_agg_unique_transfn",
            "json_object_agg_unique_strict_transfn",
            "jsonb_object_agg_strict_transfn",
            "jsonb_object_agg_unique_transfn",
            "jsonb_object_agg_unique_strict_transfn",
            "jsonb_agg_finalfn",
            "jsonb_object_agg_finalfn",
        ];
        const TEXT: [&str; 6] =
            ["concat", "concat_ws", "format", "array_to_string", "quote_literal", "quote_nullable"];
        match catalog::function_name(function) {
            (name, true) if JSON.contains(&name.as_str()) => Some(Output::Json),
            (name, true) if TEXT.contains(&name.as_str()) => Some(Output::Text),
            _ => None,
        }
    }

    fn first_mutable<'t>(self, args: &[Place<'t>]) -> Option<Place<'t>> {
        let as_json = self == Output::Json;
        args.iter().copied().find(|arg| !is_output_known(*arg, as_json))
    }
}

/// Whether the text of a value, or its JSON, depends on nothing but the settings of a view.
pub fn is_output_known(value: Place<'_>, as_json: bool) -> bool {
    match value.node() {
        Node::Expr(NodeTag::T_RowExpr) => {
            value.operands().into_iter().all(|field| is_output_known(field, as_json))
        }
        // The greatest row is one of those.
        Node::Aggref(call) if call.aggtype == pg_sys::RECORDOID => {
            is_extreme(call.aggfnoid, &call.arguments(), as_json)
        }
        Node::WindowFunc(call) if call.wintype == pg_sys::RECORDOID => {
            is_extreme(call.winfnoid, &call.arguments(), as_json)
        }
        // A row of an outer side, where there is one.
        Node::Expr(NodeTag::T_CaseExpr) if value.expr_type() == pg_sys::RECORDOID => {
            parts::results(value).into_iter().all(|result| is_output_known(result, as_json))
        }
        Node::Expr(NodeTag::T_Const) if parts::is_null(value) => true,
        _ => types::is_output_known(value.expr_type(), as_json),
    }
}

/// Whether an aggregate is the least or the greatest of rows whose text, or JSON, is known, and without names of objects.
fn is_extreme(aggregate: Oid, rows: &[Place<'_>], as_json: bool) -> bool {
    let (name, is_builtin) = catalog::function_name(aggregate);
    let is_known = |row: &Place<'_>| {
        let mut names = BTreeSet::new();
        types::collect_names(row.expr_type(), &mut names);
        names.is_empty() && is_output_known(*row, as_json)
    };
    is_builtin && ["min", "max"].contains(&name.as_str()) && rows.iter().all(is_known)
}

/// Whether a function in FROM is stable only because the conversion of text to the types of its columns may be anything,
/// and for these depends on settings at most.
pub fn depends_on_input_only(function: Oid, columns: &[Oid]) -> bool {
    let is_known = |ty: &Oid| types::is_input_known(types::base_type(*ty));
    conversions::makes_rows(function) && columns.iter().all(is_known)
}

/// Whether the planner's text of values is that of PostgreSQL under the settings in force, which are the view's.
fn prints_as_usual(value: Place<'_>) -> bool {
    match types::innermost(value.expr_type()) {
        pg_sys::FLOAT4OID | pg_sys::FLOAT8OID => {
            guc::get(c"extra_float_digits").parse().is_ok_and(|digits: i32| digits > 0)
        }
        pg_sys::BYTEAOID => guc::get(c"bytea_output") == "hex",
        _ => true,
    }
}

/// Whether a function call is the function of a cast.
pub fn is_cast(call: &pg_sys::FuncExpr) -> bool {
    let form = call.funcformat;
    form == CoercionForm::COERCE_EXPLICIT_CAST || form == CoercionForm::COERCE_IMPLICIT_CAST
}

/// Types of arguments; `None` if the planner does not know one of them.
fn argument_types(args: &[Place<'_>]) -> Option<Vec<Type>> {
    args.iter().copied().map(known_type).collect()
}

fn type_names(args: &[Place<'_>]) -> Vec<String> {
    args.iter().map(|arg| types::type_name(arg.expr_type())).collect()
}

fn check_operator(
    place: Place<'_>,
    operator: Oid,
    args: &[Place<'_>],
    lookup: impl Fn(&str) -> Option<()>,
) -> Result<(), Error> {
    let (name, _) = catalog::operator(operator);
    if catalog::is_builtin(operator) && lookup(&name).is_some() {
        return Ok(());
    }
    let text = match type_names(args).as_slice() {
        [left, right] => format!("{left} {name} {right}"),
        types => format!("{name} {}", types.join(", ")),
    };
    Err(unsupported(format!("operator {text}"), place.location()))
}

/// `text || other`, computed as `text || other::text`.
fn check_concatenation(place: Place<'_>, call: &pg_sys::OpExpr) -> Result<(), Error> {
    let index = tree::converted_operand(call).unwrap_or(0);
    let Some(operand) = call.arguments().get(index).copied() else { return Ok(()) };
    let from = operand.expr_type();
    let from_type = known_type(operand).filter(|_| prints_as_usual(operand));
    if from_type.and_then(|t| func::cast(t, Type::Scalar(Scalar::Text), -1, true)).is_some() {
        return Ok(());
    }
    let name = types::type_name(from);
    Err(unsupported(format!("concatenation of text and {name}"), place.location()))
}

fn check_function(place: Place<'_>, call: &pg_sys::FuncExpr) -> Result<(), Error> {
    let (name, _) = catalog::function_name(call.funcid);
    let is_known = match call.funcretset {
        true => {
            let types = call.arguments().into_iter().map(Place::planner_type);
            types
                .collect::<Option<Vec<_>>>()
                .is_some_and(|t| func::table_function(&name, &t).is_some())
        }
        false => {
            argument_types(&call.arguments()).is_some_and(|t| func::function(&name, &t).is_some())
        }
    };
    let prints = is_cast(call) || Output::taken_by(call.funcid).is_some();
    let is_usual = !prints || call.arguments().into_iter().all(prints_as_usual);
    if catalog::is_builtin(call.funcid) && !call.funcvariadic && is_known && is_usual {
        return Ok(());
    }
    let signature = catalog::function_signature(call.funcid);
    let kind = if call.funcretset { "set-returning function" } else { "function" };
    Err(unsupported(format!("{kind} {signature}"), place.location()))
}

fn check_cast(place: Place<'_>, arg: Option<Place<'_>>) -> Result<(), Error> {
    let Some(arg) = arg else { return Ok(()) };
    let (from, to) = (arg.expr_type(), place.expr_type());
    let has_length = types::is_array(to) && place.expr_typmod() >= 0;
    let prints = known_type(place).is_some_and(|ty| ty.base().is_string());
    let is_usual = !prints || prints_as_usual(arg);
    let types = known_type(arg).zip(known_type(place)).filter(|_| !has_length && is_usual);
    if types.and_then(|(from, to)| func::cast(from, to, -1, true)).is_some() {
        return Ok(());
    }
    let (from, to) = (types::type_name(from), types::type_name(to));
    Err(unsupported(format!("a cast from {from} to {to}"), place.location()))
}
