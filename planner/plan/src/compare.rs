//! SQL order and equality of values, and the key forms whose bytes agree with that equality.

use crate::numeric::Numeric;
use crate::types::{Scalar, Type};
use crate::value::{Array, Datum, Dimension};
use std::cmp::Ordering;

/// Order of two values of the same or of comparable types, as the types' btree operator classes have
/// it: NaN is greatest, text by bytes, arrays by elements, then length, then lower bound. NULL is
/// greater than everything and equal to itself (as in arrays and `ORDER BY`). For `char` use [`cmp_as`].
pub fn sql_cmp(a: &Datum, b: &Datum) -> Ordering {
    compare(a, b, false)
}

/// [`sql_cmp`] for values of one known type; `char` ignores trailing blanks.
pub fn cmp_as(ty: Type, a: &Datum, b: &Datum) -> Ordering {
    compare(a, b, ty.base() == Scalar::Char)
}

/// [`sql_cmp`], where `padded` says that text is of type `char`.
pub fn compare(a: &Datum, b: &Datum, padded: bool) -> Ordering {
    match (a, b) {
        (Datum::Null, Datum::Null) => Ordering::Equal,
        (Datum::Null, _) => Ordering::Greater,
        (_, Datum::Null) => Ordering::Less,
        (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
        (Datum::Int4(a), Datum::Int4(b)) => a.cmp(b),
        (Datum::Numeric(a), Datum::Numeric(b)) => a.sql_cmp(b),
        (Datum::Text(a), Datum::Text(b)) if padded => trim(a).cmp(trim(b)),
        (Datum::Text(a), Datum::Text(b)) => a.cmp(b),
        (Datum::Bytea(a), Datum::Bytea(b)) => a.cmp(b),
        (Datum::Date(a), Datum::Date(b)) => a.cmp(b),
        (Datum::Timestamp(a), Datum::Timestamp(b)) => a.cmp(b),
        (Datum::Date(a), Datum::Timestamp(b)) => instant_of_date(*a).cmp(&instant(*b)),
        (Datum::Timestamp(a), Datum::Date(b)) => instant(*a).cmp(&instant_of_date(*b)),
        (Datum::Uuid(a), Datum::Uuid(b)) => a.cmp(b),
        (Datum::Array(a), Datum::Array(b)) => compare_arrays(a, b, padded),
        _ => compare_numbers(a, b),
    }
}

fn compare_numbers(a: &Datum, b: &Datum) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.cmp(&b);
    }
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => compare_floats(a, b),
        // Only reached for values of types without a common comparison, which the binder rejects.
        _ => Ordering::Equal,
    }
}

/// Order of floats: zeros are equal, NaN equals itself and is greatest.
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn compare_arrays(a: &Array, b: &Array, padded: bool) -> Ordering {
    let elements = a.elements.iter().zip(&b.elements);
    elements
        .map(|(a, b)| compare(a, b, padded))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
        .then_with(|| a.elements.len().cmp(&b.elements.len()))
        .then_with(|| compare_dimensions(a, b))
}

/// Their number, then their lengths, then their bounds.
fn compare_dimensions(a: &Array, b: &Array) -> Ordering {
    if a.inner.is_empty() && b.inner.is_empty() {
        return a.lower_bound.cmp(&b.lower_bound);
    }
    let (left, right) = (a.dimensions(), b.dimensions());
    let lengths =
        |dimensions: &[Dimension]| dimensions.iter().map(|d| d.length).collect::<Vec<_>>();
    let bounds =
        |dimensions: &[Dimension]| dimensions.iter().map(|d| d.lower_bound).collect::<Vec<_>>();
    left.len()
        .cmp(&right.len())
        .then_with(|| lengths(&left).cmp(&lengths(&right)))
        .then_with(|| bounds(&left).cmp(&bounds(&right)))
}

/// Text of type `char` without its trailing blanks.
pub fn trim(text: &str) -> &str {
    text.trim_end_matches(' ')
}

/// Microseconds, with the infinities beyond every date.
fn instant(timestamp: i64) -> i128 {
    match timestamp {
        i64::MIN => i128::MIN,
        i64::MAX => i128::MAX,
        finite => i128::from(finite),
    }
}

fn instant_of_date(date: i32) -> i128 {
    match date {
        i32::MIN => i128::MIN,
        i32::MAX => i128::MAX,
        finite => i128::from(finite) * 86_400_000_000,
    }
}

/// The normal form: of all values equal in SQL to `value`, always the same one.
pub fn key_form(value: &Datum, padded: bool) -> Datum {
    match value {
        Datum::Float4(v) if v.is_nan() => Datum::Float4(f32::NAN),
        Datum::Float8(v) if v.is_nan() => Datum::Float8(f64::NAN),
        // Adding a positive zero turns -0.0 into 0.0 and changes nothing else.
        Datum::Float4(v) => Datum::Float4(v + 0.0),
        Datum::Float8(v) => Datum::Float8(v + 0.0),
        Datum::Numeric(v) => Datum::Numeric(Numeric::normalized(v)),
        Datum::Text(v) if padded => Datum::Text(trim(v).into()),
        Datum::Array(array) => {
            let elements = array.elements.iter().map(|element| key_form(element, padded));
            array.with_elements(elements.collect()).into()
        }
        other => other.clone(),
    }
}
