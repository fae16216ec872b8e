//! Values as the evaluator sees them.
//!
//! Text forms are in [`crate::text`], SQL order in [`crate::compare`], the stored form in [`crate::row`].

mod array;
pub(crate) mod typmod;

pub(crate) use array::check_depth;
pub use array::{Array, Dimension};

use crate::numeric::Numeric;
use serde::{Deserialize, Serialize};

/// One SQL value. Its type is known from the plan, not from the value:
/// `varchar` and `char` are `Text`, `timestamptz` is `Timestamp`.
///
/// Equality is identity of the representation (a NaN equals itself, `-0.0` differs from `0.0`, `1.0` differs
/// from `1.00`), *not* SQL's: use [`crate::compare::sql_cmp`] and key forms for that.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Datum {
    /// SQL NULL of any type.
    Null,
    /// `boolean`
    Bool(bool),
    /// `smallint`
    Int2(i16),
    /// `integer`
    Int4(i32),
    /// `bigint`
    Int8(i64),
    /// `real`
    Float4(#[serde(with = "float_text")] f32),
    /// `double precision`
    Float8(#[serde(with = "float_text")] f64),
    /// `numeric`
    Numeric(Numeric),
    /// `text`, `character varying`, `character` (with its padding)
    Text(Box<str>),
    /// `bytea`
    Bytea(Box<[u8]>),
    /// days since 2000-01-01; `i32::MIN` and `i32::MAX` are -infinity and infinity
    Date(i32),
    /// microseconds since 2000-01-01 (UTC for `timestamptz`); `i64::MIN` and `i64::MAX` are the infinities
    Timestamp(i64),
    /// `uuid`
    Uuid([u8; 16]),
    /// an array
    Array(Box<Array>),
}

impl From<Array> for Datum {
    fn from(array: Array) -> Datum {
        Datum::Array(Box::new(array))
    }
}

impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        match (self, other) {
            (Datum::Null, Datum::Null) => true,
            (Datum::Bool(a), Datum::Bool(b)) => a == b,
            (Datum::Int2(a), Datum::Int2(b)) => a == b,
            (Datum::Int4(a), Datum::Int4(b)) => a == b,
            (Datum::Int8(a), Datum::Int8(b)) => a == b,
            (Datum::Float4(a), Datum::Float4(b)) => a.to_bits() == b.to_bits(),
            (Datum::Float8(a), Datum::Float8(b)) => a.to_bits() == b.to_bits(),
            (Datum::Numeric(a), Datum::Numeric(b)) => a == b,
            (Datum::Text(a), Datum::Text(b)) => a == b,
            (Datum::Bytea(a), Datum::Bytea(b)) => a == b,
            (Datum::Date(a), Datum::Date(b)) => a == b,
            (Datum::Timestamp(a), Datum::Timestamp(b)) => a == b,
            (Datum::Uuid(a), Datum::Uuid(b)) => a == b,
            (Datum::Array(a), Datum::Array(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Datum {}

impl Datum {
    /// A value of one of the text types.
    pub fn text(text: impl Into<Box<str>>) -> Datum {
        Datum::Text(text.into())
    }

    /// An array of one dimension, with lower bound 1.
    pub fn array(elements: Vec<Datum>) -> Datum {
        Array::of_one(1, elements).into()
    }

    /// Whether the value is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// Whether the value is the boolean true; what a WHERE clause asks.
    pub fn is_true(&self) -> bool {
        matches!(self, Datum::Bool(true))
    }

    /// The text of a value of one of the text types.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Datum::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of any integer type, widened.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Datum::Int2(value) => Some(i64::from(*value)),
            Datum::Int4(value) => Some(i64::from(*value)),
            Datum::Int8(value) => Some(*value),
            _ => None,
        }
    }

    /// The value of either timestamp type, in microseconds.
    pub fn as_timestamp(&self) -> Option<i64> {
        match self {
            Datum::Timestamp(value) => Some(*value),
            _ => None,
        }
    }

    /// The value of either float type, widened.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Datum::Float4(value) => Some(f64::from(*value)),
            Datum::Float8(value) => Some(*value),
            _ => None,
        }
    }

    /// The elements of an array.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Datum::Array(array) => Some(array),
            _ => None,
        }
    }
}

/// Floats as text, because JSON has no NaN and no infinities.
mod float_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::fmt::Display;
    use std::str::FromStr;

    pub fn serialize<F: Display, S: Serializer>(value: &F, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(value)
    }

    pub fn deserialize<'de, F: FromStr, D: Deserializer<'de>>(input: D) -> Result<F, D::Error> {
        let text = String::deserialize(input)?;
        text.parse().map_err(|_| D::Error::custom("invalid floating-point number"))
    }
}
