//! Refuses functions whose results change without a change of a table, and operators and casts that call such.

use super::by_settings;
use super::native;
use super::unsupported::unsupported;
use crate::errors::Error;
use crate::pg::bodies::{self, Calls};
use crate::pg::catalog::{self, Volatility};
use crate::pg::present_words::has_word;
use crate::pg::types;
use crate::rewrite::parts::{self, Call};
use crate::rewrite::present::is_now;
use crate::rewrite::tree::{self, Place};
use pgrx::pg_sys::{self, Oid};

const IMMUTABLE: &str =
    "Its result can change without a change of a table. Use immutable functions only.";
const SESSION: &str = "It is whoever asks. Use current_user, which is the owner of the view, or such a condition in the \
                       query that reads the view.";
const PRESENT: &str =
    "WHERE may compare a value of a row with it by <, <=, > or >=, plus or minus an interval \
                       without months.";

/// A function must be immutable, or depend on settings of the view at most, for arguments of these types.
pub fn check_function(function: Oid, args: &[Place<'_>], at: i32) -> Result<(), Error> {
    let signature = || catalog::function_signature(function);
    check_call(function, args, at, &|kind| format!("{kind} function {}", signature()))
}

/// The same of one of the functions that an aggregate is computed with.
pub fn check_part(aggregate: Oid, function: Oid, args: &[Place<'_>], at: i32) -> Result<(), Error> {
    let name = || catalog::function_signature(aggregate);
    check_call(function, args, at, &|kind| match catalog::is_builtin(aggregate) {
        true => format!("{kind} aggregate {}", name()),
        false => {
            format!(
                "aggregate {} with {kind} function {}",
                name(),
                catalog::function_signature(function)
            )
        }
    })
}

/// `construct` says what is refused that is stable or volatile.
fn check_call(
    function: Oid,
    args: &[Place<'_>],
    at: i32,
    construct: &dyn Fn(&str) -> String,
) -> Result<(), Error> {
    let kind = match catalog::volatility(function) {
        Volatility::Immutable => return Ok(()),
        Volatility::Stable
            if by_settings::decide(function) || native::depends_on_output_only(function, args) =>
        {
            return Ok(())
        }
        Volatility::Stable => "stable",
        Volatility::Volatile => "volatile",
    };
    let error = unsupported(construct(kind), at);
    if let Some(value) = native::mutable_output(function, args) {
        let ty = types::type_name(value.expr_type());
        return Err(error.detail(format!(
            "How a value of type {ty} is converted can change without a change of it."
        )));
    }
    Err(error.hint(hint(function)))
}

/// What can be done about a function that is not immutable.
fn hint(function: Oid) -> String {
    if is_now(function) {
        return PRESENT.to_owned();
    }
    if catalog::is_builtin(function) || catalog::schema_of_function(function) == "eddy" {
        return IMMUTABLE.to_owned();
    }
    let alter = || format!("ALTER FUNCTION {} IMMUTABLE", catalog::qualified_signature(function));
    match bodies::calls(function) {
        Calls::Others => IMMUTABLE.to_owned(),
        Calls::Immutable => format!("It calls immutable functions only. Run {}.", alter()),
        Calls::Unknown => {
            format!("If its result depends on nothing but its arguments, run {}.", alter())
        }
    }
}

/// `text || other`
pub fn check_converted(call: &pg_sys::OpExpr, at: i32) -> Result<(), Error> {
    let operand = tree::converted_operand(call).and_then(|i| call.arguments().get(i).copied());
    operand.map_or(Ok(()), |operand| check_output(operand, at))
}

pub fn check_io_cast(cast: &pg_sys::CoerceViaIO, at: i32) -> Result<(), Error> {
    parts::operand(cast).map_or(Ok(()), |value| check_output(value, at))?;
    let text = parts::operand(cast).and_then(parts::text_of_constant);
    if text.is_some_and(|text| types::has_time(cast.resulttype) && has_word(text.as_bytes())) {
        let construct = "a date or time made of a text such as 'now' or 'today'";
        return Err(unsupported(construct, at).hint(PRESENT));
    }
    match types::is_input_known(cast.resulttype) {
        true => Ok(()),
        false => check_function(types::io_functions(cast.resulttype).1, &[], at),
    }
}

/// What an XML expression makes the text of values into.
pub fn check_xml(expression: Place<'_>, at: i32) -> Result<(), Error> {
    expression.operands().into_iter().try_for_each(|value| {
        let ty = types::innermost(value.expr_type());
        match ty {
            // Always as XML Schema has them.
            pg_sys::DATEOID | pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID => Ok(()),
            _ => check_output(value, at),
        }
    })
}

/// An expression of SQL/JSON: what it converts values to JSON with, paths, and what it makes of the result.
pub fn check_json(expression: Place<'_>, at: i32) -> Result<(), Error> {
    let values = expression.operands().into_iter().map(Place::expr_type);
    let mut values = values.filter(|ty| *ty != Oid::INVALID && *ty != pg_sys::JSONPATHOID);
    values.try_for_each(|ty| check_json_of(ty, at))?;
    let ty = expression.expr_type();
    match types::is_input_known(types::base_type(ty)) {
        true => Ok(()),
        false => check_function(types::io_functions(ty).1, &[], at),
    }
}

fn check_json_of(ty: Oid, at: i32) -> Result<(), Error> {
    match types::is_output_known(ty, true) {
        true => Ok(()),
        false => check_function(types::io_functions(ty).0, &[], at),
    }
}

fn check_output(value: Place<'_>, at: i32) -> Result<(), Error> {
    match native::is_output_known(value, false) {
        true => Ok(()),
        false => check_function(types::io_functions(value.expr_type()).0, &[], at),
    }
}

pub fn check_value_function(function: &pg_sys::SQLValueFunction) -> Result<(), Error> {
    use pg_sys::SQLValueFunctionOp as Op;
    let name = match function.op {
        Op::SVFOP_CURRENT_DATE => "current_date",
        Op::SVFOP_CURRENT_TIME | Op::SVFOP_CURRENT_TIME_N => "current_time",
        Op::SVFOP_CURRENT_TIMESTAMP | Op::SVFOP_CURRENT_TIMESTAMP_N => "current_timestamp",
        Op::SVFOP_LOCALTIME | Op::SVFOP_LOCALTIME_N => "localtime",
        Op::SVFOP_LOCALTIMESTAMP | Op::SVFOP_LOCALTIMESTAMP_N => "localtimestamp",
        Op::SVFOP_CURRENT_CATALOG => "current_catalog",
        Op::SVFOP_CURRENT_SCHEMA => "current_schema",
        Op::SVFOP_SESSION_USER => "session_user",
        _ => "current_user",
    };
    let hint = match name {
        "session_user" => SESSION,
        "current_catalog" | "current_schema" | "current_user" => IMMUTABLE,
        _ => PRESENT,
    };
    Err(unsupported(format!("stable function {name}"), function.location).hint(hint))
}
