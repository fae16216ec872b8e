//! Casts.

use crate::datetime;
use crate::error::DataError;
use crate::numeric::Numeric;
use crate::sqlstate;
use crate::text;
use crate::types::{Scalar, Type};
use crate::value::{typmod, Datum};

/// Casts a value (not NULL) without type modifier.
pub(crate) fn cast(value: &Datum, from: Scalar, to: Scalar) -> Result<Datum, DataError> {
    match (from, to) {
        (Scalar::Char, Scalar::Text | Scalar::Varchar) => {
            Ok(Datum::text(crate::compare::trim(string(value))))
        }
        _ if from.is_string() && to.is_string() => Ok(value.clone()),
        _ if from.is_string() => text::parse(string(value), to),
        (Scalar::Bool, _) if to.is_string() => {
            Ok(Datum::text(if value.is_true() { "true" } else { "false" }))
        }
        _ if to.is_string() => Ok(Datum::text(text::format_datum(value, Type::Scalar(from)))),
        (Scalar::Date, _) => match value {
            Datum::Date(date) => datetime::timestamp_of_date(*date).map(Datum::Timestamp),
            other => Ok(other.clone()),
        },
        (_, Scalar::Date) => match value {
            Datum::Timestamp(timestamp) => Ok(Datum::Date(datetime::date_of_timestamp(*timestamp))),
            other => Ok(other.clone()),
        },
        (_, Scalar::Bool) => Ok(Datum::Bool(value.as_i64() != Some(0))),
        (Scalar::Bool, _) => Ok(Datum::Int4(i32::from(value.is_true()))),
        _ => cast_number(value, to),
    }
}

fn string(value: &Datum) -> &str {
    value.as_str().unwrap_or_default()
}

fn out_of_range(to: Scalar) -> DataError {
    DataError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, &format!("{} out of range", to.name()))
}

fn cast_number(value: &Datum, to: Scalar) -> Result<Datum, DataError> {
    match value {
        Datum::Numeric(value) => cast_numeric(value, to),
        Datum::Float4(_) | Datum::Float8(_) => cast_float(value, to),
        _ => cast_integer(value.as_i64().unwrap_or_default(), to),
    }
}

fn cast_integer(value: i64, to: Scalar) -> Result<Datum, DataError> {
    let narrow = match to {
        Scalar::Int2 => i16::try_from(value).ok().map(Datum::Int2),
        Scalar::Int4 => i32::try_from(value).ok().map(Datum::Int4),
        Scalar::Int8 => Some(Datum::Int8(value)),
        Scalar::Float4 => Some(Datum::Float4(value as f32)),
        Scalar::Float8 => Some(Datum::Float8(value as f64)),
        _ => Some(Datum::Numeric(Numeric::from(value))),
    };
    narrow.ok_or_else(|| out_of_range(to))
}

fn cast_float(value: &Datum, to: Scalar) -> Result<Datum, DataError> {
    let wide = value.as_f64().unwrap_or_default();
    match to {
        Scalar::Float8 => return Ok(Datum::Float8(wide)),
        Scalar::Float4 => return narrow_float(wide),
        Scalar::Numeric => {
            return Ok(Datum::Numeric(match value {
                Datum::Float4(value) => Numeric::from_f32(*value),
                _ => Numeric::from_f64(wide),
            }))
        }
        _ => {}
    }
    let rounded = wide.round_ties_even();
    // Conversions saturate in Rust, so bounds are checked first: [-2^(n-1), 2^(n-1)).
    let bound = match to {
        Scalar::Int2 => 32_768.0,
        Scalar::Int4 => 2_147_483_648.0,
        _ => 9_223_372_036_854_775_808.0,
    };
    if rounded >= -bound && rounded < bound {
        cast_integer(rounded as i64, to)
    } else {
        Err(out_of_range(to))
    }
}

/// `double precision` to `real`.
pub(crate) fn narrow_float(wide: f64) -> Result<Datum, DataError> {
    let narrow = wide as f32;
    if narrow.is_infinite() && !wide.is_infinite() {
        return Err(DataError::new(
            sqlstate::NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: overflow",
        ));
    }
    if narrow == 0.0 && wide != 0.0 {
        return Err(DataError::new(
            sqlstate::NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: underflow",
        ));
    }
    Ok(Datum::Float4(narrow))
}

fn cast_numeric(value: &Numeric, to: Scalar) -> Result<Datum, DataError> {
    match to {
        Scalar::Float8 => value.to_f64().map(Datum::Float8).ok_or_else(|| unreadable(value, to)),
        Scalar::Float4 => value.to_f32().map(Datum::Float4).ok_or_else(|| unreadable(value, to)),
        _ => {
            if value.finite().is_none() {
                let what = if value.is_nan() { "NaN" } else { "infinity" };
                let message = format!("cannot convert {what} to {}", to.name());
                return Err(DataError::new(sqlstate::FEATURE_NOT_SUPPORTED, &message));
            }
            let integer = value.to_i64().ok_or_else(|| out_of_range(to))?;
            cast_integer(integer, to)
        }
    }
}

/// The cast reads the number's text, and reports that text.
fn unreadable(value: &Numeric, to: Scalar) -> DataError {
    let message = format!("\"{value}\" is out of range for type {}", to.name());
    DataError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, &message)
}

/// Coerces a value, or the elements of an array, to a type modifier.
pub(super) fn to_typmod(
    value: &Datum,
    ty: Type,
    modifier: i32,
    explicit: bool,
) -> Result<Datum, DataError> {
    let apply = |value: &Datum| typmod::apply(value, ty.base(), modifier, explicit);
    match ty {
        Type::Scalar(_) => apply(value),
        Type::Array(_) => map_elements(value, apply),
    }
}

/// Coerces the elements of an array.
pub(crate) fn map_elements(
    value: &Datum,
    change: impl Fn(&Datum) -> Result<Datum, DataError>,
) -> Result<Datum, DataError> {
    let Some(array) = value.as_array() else { return Ok(value.clone()) };
    let change = |element: &Datum| match element {
        Datum::Null => Ok(Datum::Null),
        element => change(element),
    };
    let elements = array.elements.iter().map(change).collect::<Result<_, _>>()?;
    Ok(array.with_elements(elements).into())
}

/// Whether some values may make a cast raise an error. True when in doubt.
pub(super) fn cast_may_fail(from: Scalar, to: Scalar) -> bool {
    use Scalar::{Float4, Float8, Int2, Int4, Int8, Numeric, Text, Varchar};
    let widens = matches!(
        (from, to),
        (Int2, Int4 | Int8 | Numeric | Float8)
            | (Int4, Int8 | Numeric | Float8)
            | (Int8, Numeric)
            | (Float4, Float8)
    );
    !widens && !matches!(to, Text | Varchar)
}
