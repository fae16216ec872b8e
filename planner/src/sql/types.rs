//! Type names of canonical SQL to types and type modifiers.

use super::refuse::unsupported;
use crate::error::PlanError;
use plan::types::{Scalar, Type};
use sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, ObjectName, TimezoneInfo,
};

/// PostgreSQL's size of a varlena header, part of the type modifiers of text and numeric.
const HEADER: i32 = 4;

/// The type and its modifier, -1 for none.
pub(super) fn bind_type(name: &DataType) -> Result<(Type, i32), PlanError> {
    if let DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) = name {
        return match bind_scalar(element)? {
            (scalar, -1) => Ok((Type::Array(scalar), -1)),
            _ => Err(unsupported(format!("type {name} (an array with a type modifier) is"))),
        };
    }
    let (scalar, typmod) = bind_scalar(name)?;
    Ok((Type::Scalar(scalar), typmod))
}

fn bind_scalar(name: &DataType) -> Result<(Scalar, i32), PlanError> {
    let scalar = match name {
        DataType::Bool | DataType::Boolean => Scalar::Bool,
        DataType::SmallInt(None) | DataType::Int2(None) => Scalar::Int2,
        DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => Scalar::Int4,
        DataType::BigInt(None) | DataType::Int8(None) => Scalar::Int8,
        DataType::Real | DataType::Float4 => Scalar::Float4,
        DataType::DoublePrecision | DataType::Float8 => Scalar::Float8,
        DataType::Text => Scalar::Text,
        DataType::Date => Scalar::Date,
        DataType::Uuid => Scalar::Uuid,
        DataType::Bytea => Scalar::Bytea,
        DataType::Numeric(info) | DataType::Decimal(info) => {
            return Ok((Scalar::Numeric, numeric_typmod(info)));
        }
        DataType::Varchar(length) | DataType::CharacterVarying(length) => {
            return Ok((Scalar::Varchar, length_typmod(name, length.as_ref(), -1)?));
        }
        DataType::Char(length) | DataType::Character(length) => {
            return Ok((Scalar::Char, length_typmod(name, length.as_ref(), HEADER + 1)?));
        }
        DataType::Timestamp(digits, zone) => {
            let typmod = digits.map_or(-1, |digits| digits as i32);
            return Ok((timestamp(*zone), typmod));
        }
        DataType::Custom(custom, modifiers) => match named(custom, modifiers) {
            Some(scalar) => scalar,
            None => return Err(unsupported(format!("type {name} is"))),
        },
        _ => return Err(unsupported(format!("type {} is", name.to_string().to_lowercase()))),
    };
    Ok((scalar, -1))
}

fn timestamp(zone: TimezoneInfo) -> Scalar {
    match zone {
        TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => Scalar::Timestamp,
        TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => Scalar::Timestamptz,
    }
}

/// Types the parser has no name for, and names in quotes. The quoted `"char"` is another type than
/// `char`.
fn named(name: &ObjectName, modifiers: &[String]) -> Option<Scalar> {
    let [part] = name.0.as_slice() else { return None };
    let ident = part.as_ident()?;
    match ident.value.as_str() {
        _ if !modifiers.is_empty() => None,
        "bpchar" => Some(Scalar::Char),
        "bytea" => Some(Scalar::Bytea),
        "date" => Some(Scalar::Date),
        "text" => Some(Scalar::Text),
        "timestamptz" => Some(Scalar::Timestamptz),
        "uuid" => Some(Scalar::Uuid),
        _ => None,
    }
}

fn length_typmod(
    name: &DataType,
    length: Option<&CharacterLength>,
    default: i32,
) -> Result<i32, PlanError> {
    match length {
        None => Ok(default),
        Some(CharacterLength::IntegerLength { length, unit: None }) => {
            i32::try_from(*length).map(|length| length + HEADER).map_err(|_| length_error(name))
        }
        Some(_) => Err(length_error(name)),
    }
}

fn length_error(name: &DataType) -> PlanError {
    unsupported(format!("type {name} is"))
}

fn numeric_typmod(info: &ExactNumberInfo) -> i32 {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return -1,
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    (((precision as i32) << 16) | ((scale as i32) & 0x7ff)) + HEADER
}
