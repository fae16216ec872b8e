//! Kernels of numbers and dates.

use super::{Arithmetic, Bitwise, Number};
use crate::error::DataError;
use crate::numeric::Numeric;
use crate::sqlstate;
use crate::value::Datum;

type Result<T> = std::result::Result<T, DataError>;

fn division_by_zero() -> DataError {
    DataError::new(sqlstate::DIVISION_BY_ZERO, "division by zero")
}

fn integer_out_of_range(number: Number) -> DataError {
    DataError::new(
        sqlstate::NUMERIC_VALUE_OUT_OF_RANGE,
        &format!("{} out of range", number.scalar().name()),
    )
}

fn overflow() -> DataError {
    DataError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

fn underflow() -> DataError {
    DataError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

fn int(value: &Datum) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn float(value: &Datum) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn numeric(value: &Datum) -> &Numeric {
    const NAN: &Numeric = &Numeric::NAN;
    match value {
        Datum::Numeric(value) => value,
        _ => NAN,
    }
}

/// An integer as a value of its type, if it is in range.
fn integer(value: Option<i64>, number: Number) -> Result<Datum> {
    let narrowed = value.and_then(|value| match number {
        Number::Int2 => i16::try_from(value).ok().map(Datum::Int2),
        Number::Int4 => i32::try_from(value).ok().map(Datum::Int4),
        _ => Some(Datum::Int8(value)),
    });
    narrowed.ok_or_else(|| integer_out_of_range(number))
}

pub(super) fn arithmetic(op: Arithmetic, number: Number, a: &Datum, b: &Datum) -> Result<Datum> {
    match number {
        Number::Int2 | Number::Int4 | Number::Int8 => {
            integer_arithmetic(op, number, int(a), int(b))
        }
        Number::Float4 => float_arithmetic(op, float(a) as f32, float(b) as f32),
        Number::Float8 => float_arithmetic(op, float(a), float(b)),
        Number::Numeric => {
            let (a, b) = (numeric(a), numeric(b));
            let result = match op {
                Arithmetic::Add => a.add(b),
                Arithmetic::Subtract => a.subtract(b),
                Arithmetic::Multiply => a.multiply(b),
                Arithmetic::Divide => a.divide(b),
                Arithmetic::Modulo => a.modulo(b),
            };
            result.map(Datum::Numeric)
        }
    }
}

fn integer_arithmetic(op: Arithmetic, number: Number, a: i64, b: i64) -> Result<Datum> {
    let value = match op {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Subtract => a.checked_sub(b),
        Arithmetic::Multiply => a.checked_mul(b),
        Arithmetic::Divide | Arithmetic::Modulo if b == 0 => return Err(division_by_zero()),
        Arithmetic::Divide => a.checked_div(b),
        Arithmetic::Modulo => Some(a.wrapping_rem(b)),
    };
    integer(value, number)
}

/// What arithmetic needs of a float; its datum keeps the width.
trait FloatValue: num_traits::Float {
    fn datum(self) -> Datum;
}

impl FloatValue for f32 {
    fn datum(self) -> Datum {
        Datum::Float4(self)
    }
}

impl FloatValue for f64 {
    fn datum(self) -> Datum {
        Datum::Float8(self)
    }
}

/// Checks a float's result against its operands, as PostgreSQL does: an infinity that no operand had
/// is an overflow; a zero from nonzero factors an underflow.
fn float_arithmetic<F: FloatValue>(op: Arithmetic, a: F, b: F) -> Result<Datum> {
    let infinite = a.is_infinite() || b.is_infinite();
    let (value, overflows, underflows) = match op {
        Arithmetic::Add => (a + b, !infinite, false),
        Arithmetic::Subtract => (a - b, !infinite, false),
        Arithmetic::Multiply => (a * b, !infinite, !a.is_zero() && !b.is_zero()),
        Arithmetic::Divide | Arithmetic::Modulo => {
            if b.is_zero() && !a.is_nan() {
                return Err(division_by_zero());
            }
            (a / b, !a.is_infinite(), !a.is_zero() && !b.is_infinite())
        }
    };
    checked(value.is_infinite() && overflows, value.is_zero() && underflows)?;
    Ok(value.datum())
}

fn checked(overflows: bool, underflows: bool) -> Result<()> {
    if overflows {
        return Err(overflow());
    }
    if underflows {
        return Err(underflow());
    }
    Ok(())
}

pub(super) fn negate(number: Number, value: &Datum) -> Result<Datum> {
    match value {
        Datum::Float4(value) => Ok(Datum::Float4(-value)),
        Datum::Float8(value) => Ok(Datum::Float8(-value)),
        Datum::Numeric(value) => Ok(Datum::Numeric(value.negate())),
        _ => integer(int(value).checked_neg(), number),
    }
}

pub(super) fn abs(number: Number, value: &Datum) -> Result<Datum> {
    match value {
        Datum::Float4(value) => Ok(Datum::Float4(value.abs())),
        Datum::Float8(value) => Ok(Datum::Float8(value.abs())),
        Datum::Numeric(value) => Ok(Datum::Numeric(value.abs())),
        _ => integer(int(value).checked_abs(), number),
    }
}

pub(super) fn sign(value: &Datum) -> Datum {
    match value {
        Datum::Numeric(value) => Datum::Numeric(value.sign()),
        // Zeros and NaN give a positive zero.
        _ if float(value) > 0.0 => Datum::Float8(1.0),
        _ if float(value) < 0.0 => Datum::Float8(-1.0),
        _ => Datum::Float8(0.0),
    }
}

pub(super) fn ceil(value: &Datum) -> Result<Datum> {
    match value {
        Datum::Numeric(value) => value.ceil().map(Datum::Numeric),
        _ => Ok(Datum::Float8(float(value).ceil())),
    }
}

pub(super) fn floor(value: &Datum) -> Result<Datum> {
    match value {
        Datum::Numeric(value) => value.floor().map(Datum::Numeric),
        _ => Ok(Datum::Float8(float(value).floor())),
    }
}

/// Numerics round half away from zero, floats half to even.
pub(super) fn round(value: &Datum, scale: i32) -> Result<Datum> {
    match value {
        Datum::Numeric(value) => value.round(scale).map(Datum::Numeric),
        _ => Ok(Datum::Float8(float(value).round_ties_even())),
    }
}

pub(super) fn truncate(value: &Datum, scale: i32) -> Result<Datum> {
    match value {
        Datum::Numeric(value) => value.truncate(scale).map(Datum::Numeric),
        _ => Ok(Datum::Float8(float(value).trunc())),
    }
}

pub(super) fn sqrt(value: &Datum) -> Result<Datum> {
    let value = float(value);
    if value < 0.0 {
        let message = "cannot take square root of a negative number";
        return Err(DataError::new(sqlstate::INVALID_ARGUMENT_FOR_POWER_FUNCTION, message));
    }
    Ok(Datum::Float8(value.sqrt()))
}

pub(super) fn power(base: &Datum, exponent: &Datum) -> Result<Datum> {
    let (base, exponent) = (float(base), float(exponent));
    let invalid =
        |message| Err(DataError::new(sqlstate::INVALID_ARGUMENT_FOR_POWER_FUNCTION, message));
    if base == 0.0 && exponent < 0.0 {
        return invalid("zero raised to a negative power is undefined");
    }
    if base < 0.0 && exponent.is_finite() && exponent.floor() != exponent {
        return invalid("a negative number raised to a non-integer power yields a complex result");
    }
    let value = base.powf(exponent);
    let finite = base.is_finite() && exponent.is_finite();
    checked(value.is_infinite() && finite, value == 0.0 && base != 0.0 && finite)?;
    Ok(Datum::Float8(value))
}

pub(super) fn bitwise(op: Bitwise, number: Number, a: &Datum, b: &Datum) -> Datum {
    let (a, b) = (int(a), int(b));
    // Shifts beyond the width take the count modulo 32 (smallint is computed as integer) or 64.
    let count = if number == Number::Int8 { b as u32 & 63 } else { b as u32 & 31 };
    let value = match op {
        Bitwise::And => a & b,
        Bitwise::Or => a | b,
        Bitwise::Xor => a ^ b,
        Bitwise::ShiftLeft => a.wrapping_shl(count),
        Bitwise::ShiftRight => a >> count,
    };
    wrapped(value, number)
}

pub(super) fn bitwise_not(number: Number, value: &Datum) -> Datum {
    wrapped(!int(value), number)
}

fn wrapped(value: i64, number: Number) -> Datum {
    match number {
        Number::Int2 => Datum::Int2(value as i16),
        Number::Int4 => Datum::Int4(value as i32),
        _ => Datum::Int8(value),
    }
}

/// `date + integer` in either order, or with the integer negated.
pub(super) fn date_plus(a: &Datum, b: &Datum, sign: i64) -> Result<Datum> {
    let (date, days) = match (a, b) {
        (Datum::Date(date), days) | (days, Datum::Date(date)) => (*date, int(days)),
        _ => return Ok(Datum::Null),
    };
    crate::datetime::add_days(date, sign * days).map(Datum::Date)
}

pub(super) fn date_difference(a: &Datum, b: &Datum) -> Result<Datum> {
    match (a, b) {
        (Datum::Date(a), Datum::Date(b)) => crate::datetime::days_between(*a, *b).map(Datum::Int4),
        _ => Ok(Datum::Null),
    }
}
