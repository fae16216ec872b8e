//! Who computes an expression: the planner's native forms, or PostgreSQL, or nobody.

use super::unsupported::unsupported;
use super::volatility::{
    check_converted, check_function, check_io_cast, check_json, check_part, check_value_function,
    check_xml,
};
use super::{native, text_rules, zoned};
use crate::errors::Error;
use crate::pg::catalog;
use crate::pg::relation::TABLE_OID;
use crate::pg::types;
use crate::pg::versions::tree::is_json;
use crate::rewrite::conversions;
use crate::rewrite::parts::Call;
use crate::rewrite::tree::{self, Node, Place};
use pgrx::pg_sys::{self, NodeTag, Oid};
use plan::partition::WindowFunc;

/// Who computes an expression.
pub(super) enum Evaluator {
    Planner,
    Postgres,
    /// A call that returns a set.
    PostgresAsSet,
}

/// Who computes one expression node, without what is below it.
pub(super) fn judge(place: Place<'_>, node: Node<'_>) -> Result<Evaluator, Error> {
    check_node(place, node)?;
    match check_native(place, node) {
        Ok(()) => Ok(Evaluator::Planner),
        Err(_) if zoned::is_native(place, node) => Ok(Evaluator::Planner),
        Err(_) if is_separable(node) => Ok(Evaluator::Postgres),
        Err(_) if tree::is_set(node) => Ok(Evaluator::PostgresAsSet),
        Err(error) => Err(error),
    }
}

/// Whether a node, with what is below it, can be evaluated apart from its query.
fn is_separable(node: Node<'_>) -> bool {
    match node {
        Node::FuncExpr(call) => !call.funcretset,
        Node::OpExpr(_)
        | Node::DistinctExpr(_)
        | Node::NullIfExpr(_)
        | Node::ScalarArrayOpExpr(_)
        | Node::CoerceViaIO(_)
        | Node::MinMaxExpr(_) => true,
        Node::Expr(tag) if is_json(tag) => true,
        Node::Expr(tag) => matches!(
            tag,
            NodeTag::T_Const
                | NodeTag::T_RowExpr
                | NodeTag::T_RowCompareExpr
                | NodeTag::T_XmlExpr
                | NodeTag::T_FieldSelect
                | NodeTag::T_ConvertRowtypeExpr
                | NodeTag::T_CoerceToDomain
                | NodeTag::T_SubscriptingRef
                | NodeTag::T_RelabelType
                | NodeTag::T_CollateExpr
                | NodeTag::T_ArrayExpr
                | NodeTag::T_ArrayCoerceExpr
                | NodeTag::T_NullTest
                | NodeTag::T_CaseExpr
        ),
        _ => false,
    }
}

/// Whether the planner can compute one expression node, without what is below it.
pub(super) fn check_native(place: Place<'_>, node: Node<'_>) -> Result<(), Error> {
    if let Node::Expr(tag) = node {
        check_kind(tag, place.location())?;
    }
    text_rules::check(place, node)?;
    native::check(place, node)
}

/// What nobody may evaluate of one expression node, without what is below it.
pub(super) fn check_node(place: Place<'_>, node: Node<'_>) -> Result<(), Error> {
    let at = place.location();
    match node {
        Node::Var(var) if var.varattno == 0 => {
            return Err(unsupported("a whole-row reference to a side of an outer join", at)
                .hint("Name the columns."))
        }
        Node::Var(var) if var.varattno < 0 && var.varattno != TABLE_OID => {
            return Err(unsupported("a system column", at)
                .hint("It is of a row as it is stored. Use columns of the table."))
        }
        // The columns of a subquery that is compared with.
        Node::Param(param) if param.paramkind == pg_sys::ParamKind::PARAM_SUBLINK => return Ok(()),
        Node::Param(_) => return Err(unsupported("a parameter", at)),
        Node::Aggref(aggregate) => check_aggregate(aggregate)?,
        Node::WindowFunc(call) => check_window_function(call)?,
        Node::SQLValueFunction(function) => check_value_function(function)?,
        Node::FuncExpr(call) if makes_known_rows(call) => {}
        Node::FuncExpr(call) => check_function(call.funcid, &call.arguments(), at)?,
        // The operator is declared stable because the conversion to text may be; that is checked.
        Node::OpExpr(call) if tree::converted_operand(call).is_some() => {
            check_converted(call, at)?;
        }
        Node::OpExpr(call) | Node::DistinctExpr(call) | Node::NullIfExpr(call) => {
            check_function(catalog::operator(call.opno).1, &call.arguments(), at)?;
        }
        Node::ScalarArrayOpExpr(call) => {
            check_function(catalog::operator(call.opno).1, &call.arguments(), at)?;
        }
        Node::CoerceViaIO(cast) => check_io_cast(cast, at)?,
        Node::Expr(NodeTag::T_XmlExpr) => check_xml(place, at)?,
        Node::Expr(tag) if is_json(tag) => check_json(place, at)?,
        Node::Expr(NodeTag::T_NextValueExpr) => return Err(unsupported("nextval", at)),
        Node::Expr(NodeTag::T_CurrentOfExpr) => return Err(unsupported("CURRENT OF", at)),
        _ => {}
    }
    let ty = place.expr_type();
    if ty != Oid::INVALID && place.planner_type().is_none() && !matches!(node, Node::SubLink(_)) {
        return Err(unsupported(format!("type {}", types::type_name(ty)), at));
    }
    Ok(())
}

/// `json_populate_record` and the like, of a type whose columns are made of text in a known way.
fn makes_known_rows(call: &pg_sys::FuncExpr) -> bool {
    conversions::makes_rows(call.funcid)
        && call.funcresulttype != pg_sys::RECORDOID
        && types::is_input_known(types::base_type(call.funcresulttype))
}

/// Expressions without a variant of their own in [`Node`].
pub(super) fn check_kind(tag: NodeTag, at: i32) -> Result<(), Error> {
    let construct = match tag {
        NodeTag::T_RowExpr | NodeTag::T_RowCompareExpr => "a row constructor",
        NodeTag::T_XmlExpr => "an XML expression",
        NodeTag::T_FieldSelect | NodeTag::T_FieldStore => "a field of a composite value",
        NodeTag::T_ConvertRowtypeExpr => "a composite type",
        NodeTag::T_CoerceToDomain => "a cast to a domain",
        tag if is_json(tag) => "a JSON expression",
        _ => return Ok(()),
    };
    Err(unsupported(construct, at))
}

fn check_aggregate(aggregate: &pg_sys::Aggref) -> Result<(), Error> {
    let at = aggregate.location;
    if native::is_native_aggregate(aggregate) {
        return Ok(());
    }
    check_host_aggregate(aggregate.aggfnoid, &aggregate.arguments(), at)
}

/// What PostgreSQL is to call over an array of what it is given, of groups or of frames.
fn check_host_aggregate(function: Oid, args: &[Place<'_>], at: i32) -> Result<(), Error> {
    for part in catalog::aggregate_functions(function) {
        check_part(function, part, args, at)?;
    }
    Ok(())
}

fn check_window_function(call: &pg_sys::WindowFunc) -> Result<(), Error> {
    let (name, is_builtin) = catalog::function_name(call.winfnoid);
    if !call.winagg {
        return match is_builtin && WindowFunc::named(&name).is_some() {
            true => Ok(()),
            false => Err(unsupported(format!("window function \"{name}\""), call.location)),
        };
    }
    check_host_aggregate(call.winfnoid, &call.arguments(), call.location)
}
