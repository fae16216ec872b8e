//! Kernels of arrays.

use super::{Blanks, SetRelation};
use crate::compare::compare;
use crate::error::DataError;
use crate::sqlstate;
use crate::value::{Array, Datum, Dimension};
use std::cmp::Ordering;

type Result<T> = std::result::Result<T, DataError>;

fn build(array: Array) -> Result<Datum> {
    array.checked().map(Datum::from)
}

/// `array || array`, or an array and one of its elements: keeps the lower bound of the first that is not empty;
/// NULL is neutral.
pub(super) fn cat(a: &Datum, b: &Datum) -> Result<Datum> {
    match (a.as_array(), b.as_array()) {
        (None, _) => Ok(b.clone()),
        (_, None) => Ok(a.clone()),
        (Some(left), Some(_)) if left.elements.is_empty() => Ok(b.clone()),
        (Some(_), Some(right)) if right.elements.is_empty() => Ok(a.clone()),
        (Some(left), Some(right)) => {
            let elements = [left.elements.as_slice(), &right.elements].concat();
            let like = if left.depth() < right.depth() { right } else { left };
            let fits = match left.depth().cmp(&right.depth()) {
                Ordering::Equal => left.inner == right.inner,
                Ordering::Less => left.dimensions() == right.inner,
                Ordering::Greater => left.inner == right.dimensions(),
            };
            if !fits {
                return Err(DataError::new(
                    sqlstate::ARRAY_SUBSCRIPT_ERROR,
                    "cannot concatenate incompatible arrays",
                ));
            }
            build(like.with_elements(elements))
        }
    }
}

/// Fails for an array of several dimensions.
fn require_one_dimension(array: &Array, sqlstate: &str, message: &str) -> Result<()> {
    match array.inner.is_empty() {
        true => Ok(()),
        false => Err(DataError::new(sqlstate, message)),
    }
}

/// Fails for an array that is not to get one more element.
fn require_extensible(array: &Array) -> Result<()> {
    require_one_dimension(
        array,
        sqlstate::DATA_EXCEPTION,
        "argument must be empty or one-dimensional array",
    )
}

/// `array || element`; a NULL array counts as empty.
pub(super) fn append(array: &Datum, element: &Datum) -> Result<Datum> {
    let Some(array) = array.as_array() else { return Ok(Datum::array(vec![element.clone()])) };
    require_extensible(array)?;
    let mut elements = Vec::with_capacity(array.elements.len() + 1);
    elements.extend_from_slice(&array.elements);
    elements.push(element.clone());
    build(Array::of_one(array.lower_bound, elements))
}

/// `element || array`; the lower bound stays.
pub(super) fn prepend(element: &Datum, array: &Datum) -> Result<Datum> {
    let Some(array) = array.as_array() else { return Ok(Datum::array(vec![element.clone()])) };
    require_extensible(array)?;
    let mut elements = Vec::with_capacity(array.elements.len() + 1);
    elements.push(element.clone());
    elements.extend_from_slice(&array.elements);
    // The new element is put below the first one; then all move up.
    if array.lower_bound == i32::MIN {
        return Err(DataError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"));
    }
    // Not checked, as in PostgreSQL.
    Ok(array.with_elements(elements).into())
}

/// A figure of a dimension; NULL if the array does not have it.
pub(super) fn dimension(array: &Datum, number: &Datum, figure: fn(Dimension) -> i64) -> Datum {
    let dimension = array.as_array().zip(number.as_i64());
    let dimension = dimension.and_then(|(array, number)| array.dimension(number));
    dimension.map_or(Datum::Null, |dimension| Datum::Int4(figure(dimension) as i32))
}

pub(super) fn ndims(array: &Datum) -> Datum {
    match array.as_array() {
        Some(array) if !array.elements.is_empty() => Datum::Int4(array.depth() as i32),
        _ => Datum::Null,
    }
}

pub(super) fn cardinality(array: &Datum) -> Datum {
    Datum::Int4(array.as_array().map_or(0, |array| array.elements.len()) as i32)
}

/// `array[i]`; NULL outside the bounds, and of an array of several dimensions.
pub(super) fn subscript(array: &Datum, index: &Datum) -> Datum {
    let array = array.as_array().filter(|array| array.inner.is_empty());
    let element = array.zip(index.as_i64()).and_then(|(array, index)| {
        let offset = usize::try_from(index - i64::from(array.lower_bound)).ok()?;
        array.elements.get(offset)
    });
    element.cloned().unwrap_or(Datum::Null)
}

fn is_equal(a: &Datum, b: &Datum, blanks: Blanks) -> bool {
    compare(a, b, blanks.ignored()).is_eq()
}

/// Subscript of the first element not distinct from `wanted`.
pub(super) fn position(array: &Datum, wanted: &Datum, blanks: Blanks) -> Result<Datum> {
    let Some(array) = array.as_array() else { return Ok(Datum::Null) };
    let message = "searching for elements in multidimensional arrays is not supported";
    require_one_dimension(array, sqlstate::FEATURE_NOT_SUPPORTED, message)?;
    let found = array.elements.iter().position(|element| is_equal(element, wanted, blanks));
    Ok(match found {
        Some(at) => Datum::Int4((i64::from(array.lower_bound) + at as i64) as i32),
        None => Datum::Null,
    })
}

/// The array without the elements not distinct from `unwanted`.
pub(super) fn remove(array: &Datum, unwanted: &Datum, blanks: Blanks) -> Result<Datum> {
    let Some(source) = array.as_array() else { return Ok(Datum::Null) };
    let message = "removing elements from multidimensional arrays is not supported";
    require_one_dimension(source, sqlstate::FEATURE_NOT_SUPPORTED, message)?;
    let kept = |element: &&Datum| !is_equal(element, unwanted, blanks);
    let elements: Vec<Datum> = source.elements.iter().filter(kept).cloned().collect();
    if elements.is_empty() {
        return Ok(Datum::array(elements));
    }
    build(Array::of_one(source.lower_bound, elements))
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
