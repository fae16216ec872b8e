//! Input and output functions of the types: values from and to PostgreSQL's text.

use super::array::{format_array, parse_array};
use super::datetime;
use super::float::{format_float4, format_float8, parse_float4, parse_float8};
use super::input::{invalid, is_space};
use crate::error::DataError;
use crate::numeric::Numeric;
use crate::sqlstate;
use crate::types::{Scalar, Type};
use crate::value::{typmod, Datum};
use std::fmt::Write;

/// The value a literal of that type and type modifier (-1 for none) stands for. Of dates and
/// timestamps only ISO forms are known.
pub fn parse_literal(text: &str, ty: Type, modifier: i32) -> Result<Datum, DataError> {
    match ty {
        Type::Scalar(scalar) => typmod::apply(&parse(text, scalar)?, scalar, modifier, false),
        Type::Array(element) => parse_array(text, element, modifier),
    }
}

/// The type's input function, without a type modifier.
pub fn parse(text: &str, ty: Scalar) -> Result<Datum, DataError> {
    match ty {
        Scalar::Bool => parse_bool(text).map(Datum::Bool),
        Scalar::Int2 => parse_integer(text, ty, i64::from(i16::MIN), i64::from(i16::MAX))
            .map(|value| Datum::Int2(value as i16)),
        Scalar::Int4 => parse_integer(text, ty, i64::from(i32::MIN), i64::from(i32::MAX))
            .map(|value| Datum::Int4(value as i32)),
        Scalar::Int8 => parse_integer(text, ty, i64::MIN, i64::MAX).map(Datum::Int8),
        Scalar::Float4 => parse_float4(text).map(Datum::Float4),
        Scalar::Float8 => parse_float8(text).map(Datum::Float8),
        Scalar::Numeric => Numeric::parse(text).map(Datum::Numeric),
        Scalar::Text | Scalar::Varchar | Scalar::Char => Ok(Datum::text(text)),
        Scalar::Date => datetime::parse_date(text).map(Datum::Date),
        Scalar::Timestamp => datetime::parse_timestamp(text, false).map(Datum::Timestamp),
        Scalar::Timestamptz => datetime::parse_timestamp(text, true).map(Datum::Timestamp),
        Scalar::Uuid => parse_uuid(text).map(Datum::Uuid),
        Scalar::Bytea => parse_bytea(text),
        Scalar::Host(_) => Err(invalid(ty, text)),
    }
}

fn parse_bool(text: &str) -> Result<bool, DataError> {
    let word = text.trim_matches(is_space).to_ascii_lowercase();
    let abbreviates = |full: &str, least: usize| word.len() >= least && full.starts_with(&word);
    if abbreviates("true", 1) || abbreviates("yes", 1) || word == "on" || word == "1" {
        Ok(true)
    } else if abbreviates("false", 1)
        || abbreviates("no", 1)
        || abbreviates("off", 2)
        || word == "0"
    {
        Ok(false)
    } else {
        Err(invalid(Scalar::Bool, text))
    }
}

fn parse_integer(text: &str, ty: Scalar, least: i64, greatest: i64) -> Result<i64, DataError> {
    let trimmed = text.trim_matches(is_space);
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(out_of_range_prefix(digits, text, ty, greatest));
    }
    let value = trimmed.parse::<i64>().ok();
    value.filter(|value| (least..=greatest).contains(value)).ok_or_else(|| out_of_range(ty, text))
}

fn out_of_range(ty: Scalar, text: &str) -> DataError {
    let message = format!("value \"{text}\" is out of range for type {}", ty.name());
    DataError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, &message)
}

/// PostgreSQL reads digits from the left: a number that is too large already is reported as such,
/// whatever follows it. Up to the end it is taken as negative, where the range is larger by one.
fn out_of_range_prefix(digits: &str, text: &str, ty: Scalar, greatest: i64) -> DataError {
    let mut value = 0i128;
    for digit in digits.bytes().take_while(u8::is_ascii_digit) {
        value = value * 10 + i128::from(digit - b'0');
        if value > i128::from(greatest) + 1 {
            return out_of_range(ty, text);
        }
    }
    invalid(ty, text)
}

fn parse_uuid(text: &str) -> Result<[u8; 16], DataError> {
    let wrong = || invalid(Scalar::Uuid, text);
    let inner = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}').ok_or_else(wrong)?,
        None => text,
    };
    let mut rest = inner.as_bytes();
    let mut uuid = [0; 16];
    for (i, byte) in uuid.iter_mut().enumerate() {
        let (pair, tail) = rest.split_at_checked(2).ok_or_else(wrong)?;
        *byte = hex_pair(pair[0], pair[1]).ok_or_else(wrong)?;
        let group_ends = i % 2 == 1 && i < 15;
        rest = if group_ends { tail.strip_prefix(b"-").unwrap_or(tail) } else { tail };
    }
    if rest.is_empty() {
        Ok(uuid)
    } else {
        Err(wrong())
    }
}

fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

fn hex_pair(high: u8, low: u8) -> Option<u8> {
    Some(hex_digit(high)? << 4 | hex_digit(low)?)
}

fn parse_bytea(text: &str) -> Result<Datum, DataError> {
    let bytes = match text.strip_prefix("\\x") {
        Some(hex) => parse_hex(hex)?,
        None => parse_escaped(text.as_bytes()).ok_or_else(|| {
            DataError::new(
                sqlstate::INVALID_TEXT_REPRESENTATION,
                "invalid input syntax for type bytea",
            )
        })?,
    };
    Ok(Datum::Bytea(bytes.into()))
}

fn parse_hex(hex: &str) -> Result<Vec<u8>, DataError> {
    let mut bytes = Vec::with_capacity(hex.len() / 2);
    let mut digits = hex.chars();
    let value = |digit: char| {
        digit.to_digit(16).map(|value| value as u8).ok_or_else(|| {
            let message = format!("invalid hexadecimal digit: \"{digit}\"");
            DataError::new(sqlstate::INVALID_PARAMETER_VALUE, &message)
        })
    };
    while let Some(first) = digits.next() {
        if matches!(first, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let high = value(first)?;
        let odd = || {
            DataError::new(
                sqlstate::INVALID_PARAMETER_VALUE,
                "invalid hexadecimal data: odd number of digits",
            )
        };
        let low = value(digits.next().ok_or_else(odd)?)?;
        bytes.push(high << 4 | low);
    }
    Ok(bytes)
}

fn parse_escaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        rest = match (first, tail) {
            (b'\\', [b'\\', tail @ ..]) => {
                bytes.push(b'\\');
                tail
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                tail
            }
            (b'\\', _) => return None,
            (byte, tail) => {
                bytes.push(*byte);
                tail
            }
        };
    }
    Some(bytes)
}

/// The type's output function; "NULL" for NULL. Timestamps with time zone are shown in UTC.
pub fn format_datum(value: &Datum, ty: Type) -> String {
    match value {
        Datum::Null => "NULL".to_owned(),
        Datum::Bool(value) => if *value { "t" } else { "f" }.to_owned(),
        Datum::Int2(value) => value.to_string(),
        Datum::Int4(value) => value.to_string(),
        Datum::Int8(value) => value.to_string(),
        Datum::Float4(value) => format_float4(*value),
        Datum::Float8(value) => format_float8(*value),
        Datum::Numeric(value) => value.to_string(),
        Datum::Text(value) => value.to_string(),
        Datum::Bytea(value) => format_bytea(value),
        Datum::Date(value) => datetime::format_date(*value),
        Datum::Timestamp(value) => {
            datetime::format_timestamp(*value, ty.base() == Scalar::Timestamptz)
        }
        Datum::Uuid(value) => format_uuid(value),
        Datum::Array(array) => format_array(array, ty.base()),
    }
}

fn format_bytea(bytes: &[u8]) -> String {
    let mut out = String::from("\\x");
    push_hex(bytes, &mut out);
    out
}

fn push_hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(out, "{byte:02x}");
    }
}

fn format_uuid(uuid: &[u8; 16]) -> String {
    let mut out = String::with_capacity(36);
    for (i, group) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
        if i > 0 {
            out.push('-');
        }
        push_hex(&uuid[group], &mut out);
    }
    out
}
