//! Values as the evaluator sees them.

use crate::numeric::Numeric;
use serde::{Deserialize, Serialize};

/// One SQL value. Its type is known from the plan, not from the value:
/// `varchar` and `char` are `Text`, `timestamptz` is `Timestamp`.
///
/// The derived order and equality are those of the representation (see [`crate::row`]),
/// *not* SQL's: use [`crate::compare::sql_cmp`] and key forms for that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    Float4(f32),
    /// `double precision`
    Float8(f64),
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
    /// a one-dimensional array
    Array(Box<Array>),
}

/// A one-dimensional array value; the empty array has no elements and lower bound 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Array {
    /// Subscript of the first element.
    pub lower_bound: i32,
    /// The elements, all of the array's element type, or NULL.
    pub elements: Vec<Datum>,
}
