//! What depends on the time zone of a view, or on one that the query names: native where the rules of the zone are known.

use super::text_rules;
use crate::pg::{catalog, guc, zones};
use crate::rewrite::parts::{self, Call};
use crate::rewrite::tree::{self, Node, Place};
use pgrx::pg_sys;
use plan::func::{zoned, Func};
use plan::types::{Scalar, Type};
use plan::{Interval, Zone};

/// Whether the planner can compute one expression node in a time zone, without what is below it.
pub fn is_native(place: Place<'_>, node: Node<'_>) -> bool {
    let is_known = match node {
        Node::OpExpr(call) => shifted(node).is_some() || is_comparison(call),
        Node::FuncExpr(call) if call.funcretset || !catalog::is_builtin(call.funcid) => false,
        Node::FuncExpr(call) if super::native::is_cast(call) => is_cast(place, call),
        Node::FuncExpr(call) => function(call).is_some(),
        _ => false,
    };
    is_known && text_rules::check(place, node).is_ok()
}

/// Of a date or timestamp plus or minus an interval that the query says, the date or timestamp: the interval is none of the
/// planner's values.
pub fn shifted(node: Node<'_>) -> Option<Place<'_>> {
    let Node::OpExpr(call) = node else { return None };
    let operator = catalog::is_builtin(call.opno).then(|| catalog::operator(call.opno).0)?;
    let [left, right] = *call.arguments().as_slice() else { return None };
    let (at, interval) = match (operator.as_str(), interval(left), interval(right)) {
        ("+", Some(interval), None) => (right, interval),
        ("+" | "-", None, Some(interval)) => (left, interval),
        _ => return None,
    };
    zoned::plus(zones::of_settings(), at.planner_type()?, interval).map(|_| at)
}

/// An interval that the query says, without a type modifier, which would be a part of its text.
fn interval(place: Place<'_>) -> Option<Interval> {
    let pg_sys::Interval { month, day, time } =
        tree::interval(place).filter(|_| place.expr_typmod() < 0)?;
    Interval::new(month, day, time)
}

fn is_comparison(call: &pg_sys::OpExpr) -> bool {
    let types = types(&call.arguments());
    let compares = |types: Vec<Type>| {
        let name = catalog::operator(call.opno).0;
        zoned::operator(zones::of_settings()?, &name, &types)
    };
    catalog::is_builtin(call.opno) && types.and_then(compares).is_some()
}

fn is_cast(place: Place<'_>, call: &pg_sys::FuncExpr) -> bool {
    let types = match *call.arguments().as_slice() {
        [arg] => arg.planner_type().zip(place.planner_type()),
        _ => None,
    };
    let cast = |(from, to)| zoned::cast(zones::of_settings()?, from, to);
    types.and_then(cast).is_some()
}

/// The native function of a call that is no cast. Where the query says the field, so that none is an error.
fn function(call: &pg_sys::FuncExpr) -> Option<Func> {
    let name = catalog::function_name(call.funcid).0;
    let args = call.arguments();
    let types = types(&args)?;
    match (name.as_str(), args.as_slice()) {
        ("timezone", [zone, _]) => zoned::at_time_zone(zone_named(*zone)?, types[1]),
        ("extract" | "date_part" | "date_trunc", [field, _, rest @ ..]) => {
            let zone = match rest {
                [] => zones::of_settings()?,
                [zone, ..] => zone_named(*zone)?,
            };
            let is_known = zoned::has_field(&name, &parts::text_of_constant(*field)?);
            is_known.then(|| zoned::function(zone, &name, &types[..2]))?
        }
        ("date" | "timestamp" | "timestamptz", _) => {
            zoned::function(zones::of_settings()?, &name, &types)
        }
        _ => None,
    }
}

/// A time zone that the query names. A name that may be an abbreviation, which other settings explain, is left to PostgreSQL;
/// abbreviations are made of letters.
fn zone_named(place: Place<'_>) -> Option<Zone> {
    let name = parts::text_of_constant(place)?;
    let is_universal = ["UTC", "GMT"].iter().any(|utc| utc.eq_ignore_ascii_case(&name));
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_usual = guc::get(c"timezone_abbreviations") == "Default";
    (is_usual && (is_universal || !is_word)).then(|| zones::named(&name)).flatten()
}

/// The planner's names of types; `None` if one of them is only PostgreSQL's.
fn types(args: &[Place<'_>]) -> Option<Vec<Type>> {
    let known =
        |arg: &Place<'_>| arg.planner_type().filter(|ty| !matches!(ty.base(), Scalar::Host(_)));
    args.iter().map(known).collect()
}
