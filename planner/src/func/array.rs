//! Kernels of one-dimensional arrays.

use super::{Blanks, SetRelation};
use crate::compare::compare;
use crate::error::DataError;
use crate::value::{Array, Datum};

type Result<T> = std::result::Result<T, DataError>;

fn build(lower_bound: i32, elements: Vec<Datum>) -> Result<Datum> {
    Array { lower_bound, elements }.checked().map(|array| Datum::Array(Box::new(array)))
}

/// `array || array`: keeps the lower bound of the first that is not empty; NULL is neutral.
pub(super) fn cat(a: &Datum, b: &Datum) -> Result<Datum> {
    match (a.as_array(), b.as_array()) {
        (None, _) => Ok(b.clone()),
        (_, None) => Ok(a.clone()),
        (Some(left), Some(_)) if left.elements.is_empty() => Ok(b.clone()),
        (Some(_), Some(right)) if right.elements.is_empty() => Ok(a.clone()),
        (Some(left), Some(right)) => {
            let elements = [left.elements.as_slice(), &right.elements].concat();
            build(left.lower_bound, elements)
        }
    }
}

/// `array || element`; a NULL array counts as empty.
pub(super) fn append(array: &Datum, element: &Datum) -> Result<Datum> {
    let Some(array) = array.as_array() else { return Ok(Datum::array(vec![element.clone()])) };
    let mut elements = Vec::with_capacity(array.elements.len() + 1);
    elements.extend_from_slice(&array.elements);
    elements.push(element.clone());
    build(array.lower_bound, elements)
}

/// `element || array`; the lower bound stays.
pub(super) fn prepend(element: &Datum, array: &Datum) -> Result<Datum> {
    let Some(array) = array.as_array() else { return Ok(Datum::array(vec![element.clone()])) };
    let mut elements = Vec::with_capacity(array.elements.len() + 1);
    elements.push(element.clone());
    elements.extend_from_slice(&array.elements);
    // The new element is put below the first one; then all move up.
    if array.lower_bound == i32::MIN {
        return Err(DataError::new("22003", "integer out of range"));
    }
    Ok(Datum::Array(Box::new(Array { lower_bound: array.lower_bound, elements })))
}

/// A figure of the array's only dimension; NULL for other dimensions and empty arrays.
pub(super) fn dimension(array: &Datum, dimension: &Datum, figure: fn(&Array) -> i64) -> Datum {
    match array.as_array() {
        Some(array) if dimension.as_i64() == Some(1) && !array.elements.is_empty() => {
            Datum::Int4(figure(array) as i32)
        }
        _ => Datum::Null,
    }
}

pub(super) fn ndims(array: &Datum) -> Datum {
    match array.as_array() {
        Some(array) if !array.elements.is_empty() => Datum::Int4(1),
        _ => Datum::Null,
    }
}

pub(super) fn cardinality(array: &Datum) -> Datum {
    Datum::Int4(array.as_array().map_or(0, |array| array.elements.len()) as i32)
}

/// `array[i]`; NULL outside the bounds.
pub(super) fn subscript(array: &Datum, index: &Datum) -> Datum {
    let element = array.as_array().zip(index.as_i64()).and_then(|(array, index)| {
        let offset = usize::try_from(index - i64::from(array.lower_bound)).ok()?;
        array.elements.get(offset)
    });
    element.cloned().unwrap_or(Datum::Null)
}

fn is_equal(a: &Datum, b: &Datum, blanks: Blanks) -> bool {
    compare(a, b, blanks.ignored()).is_eq()
}

/// Subscript of the first element not distinct from `wanted`.
pub(super) fn position(array: &Datum, wanted: &Datum, blanks: Blanks) -> Datum {
    let Some(array) = array.as_array() else { return Datum::Null };
    let found = array.elements.iter().position(|element| is_equal(element, wanted, blanks));
    match found {
        Some(at) => Datum::Int4((i64::from(array.lower_bound) + at as i64) as i32),
        None => Datum::Null,
    }
}

/// The array without the elements not distinct from `unwanted`.
pub(super) fn remove(array: &Datum, unwanted: &Datum, blanks: Blanks) -> Result<Datum> {
    let Some(source) = array.as_array() else { return Ok(Datum::Null) };
    let kept = |element: &&Datum| !is_equal(element, unwanted, blanks);
    let elements: Vec<Datum> = source.elements.iter().filter(kept).cloned().collect();
    if elements.is_empty() {
        return Ok(Datum::array(elements));
    }
    build(source.lower_bound, elements)
}

/// `@>`, `<@`, `&&`: NULL elements equal nothing.
pub(super) fn set_relation(relation: SetRelation, a: &Datum, b: &Datum, blanks: Blanks) -> bool {
    let (Some(a), Some(b)) = (a.as_array(), b.as_array()) else { return false };
    let has = |set: &Array, wanted: &Datum| {
        !wanted.is_null() && set.elements.iter().any(|element| is_equal(element, wanted, blanks))
    };
    match relation {
        SetRelation::Contains => b.elements.iter().all(|wanted| has(a, wanted)),
        SetRelation::ContainedBy => a.elements.iter().all(|wanted| has(b, wanted)),
        SetRelation::Overlaps => a.elements.iter().any(|wanted| has(b, wanted)),
    }
}
