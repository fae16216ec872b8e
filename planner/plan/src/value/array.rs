//! Array values.

use super::Datum;
use crate::error::DataError;
use crate::sqlstate;
use serde::{Deserialize, Serialize};

/// An array value. The empty array has one lower bound, 1, and no dimension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    /// Subscript of the first element of the first dimension.
    pub lower_bound: i32,
    /// The dimensions below the first, outermost first.
    pub inner: Vec<Dimension>,
    /// The elements, all of the array's element type, or NULL; the last subscript changes fastest.
    pub elements: Vec<Datum>,
}

/// A dimension of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dimension {
    /// How many subscripts there are, at least one.
    pub length: i32,
    /// The first of them.
    pub lower_bound: i32,
}

/// Elements an array may have.
const MAX_ELEMENTS: usize = 0x3fff_ffff / 8;

/// Dimensions an array may have.
const MAX_DIMENSIONS: usize = 6;

/// The error of an array of so many dimensions, if they are too many.
pub(crate) fn check_depth(depth: usize) -> Result<(), DataError> {
    if depth <= MAX_DIMENSIONS {
        return Ok(());
    }
    let message = format!(
        "number of array dimensions ({depth}) exceeds the maximum allowed ({MAX_DIMENSIONS})"
    );
    Err(DataError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, &message))
}

impl Dimension {
    /// The last subscript.
    pub fn upper_bound(self) -> i64 {
        i64::from(self.lower_bound) + i64::from(self.length) - 1
    }
}

impl Array {
    /// An array of one dimension, or the empty one.
    pub fn of_one(lower_bound: i32, elements: Vec<Datum>) -> Array {
        Array { lower_bound, inner: Vec::new(), elements }
    }

    /// The array with these dimensions, which have as many elements; none for the empty array.
    pub fn of(dimensions: &[Dimension], elements: Vec<Datum>) -> Array {
        match dimensions {
            [first, inner @ ..] if !elements.is_empty() => {
                Array { lower_bound: first.lower_bound, inner: inner.to_vec(), elements }
            }
            _ => Array::of_one(1, Vec::new()),
        }
    }

    /// The array with other elements, as many.
    pub fn with_elements(&self, elements: Vec<Datum>) -> Array {
        Array { lower_bound: self.lower_bound, inner: self.inner.clone(), elements }
    }

    /// The array, if its size and its subscripts are within PostgreSQL's limits.
    pub fn checked(self) -> Result<Array, DataError> {
        if self.elements.len() > MAX_ELEMENTS {
            let message = format!("array size exceeds the maximum allowed ({MAX_ELEMENTS})");
            return Err(DataError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, &message));
        }
        let is_too_large = |d: &Dimension| d.upper_bound() >= i64::from(i32::MAX);
        if let Some(Dimension { lower_bound, .. }) =
            self.dimensions().iter().find(|d| is_too_large(d))
        {
            let message = format!("array lower bound is too large: {lower_bound}");
            return Err(DataError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, &message));
        }
        Ok(self)
    }

    /// All dimensions, outermost first.
    pub fn dimensions(&self) -> Vec<Dimension> {
        if self.elements.is_empty() {
            return Vec::new();
        }
        let below: usize = self.inner.iter().map(|d| d.length as usize).product();
        // No array has as many elements as would not fit.
        let length = (self.elements.len() / below) as i32;
        let first = Dimension { length, lower_bound: self.lower_bound };
        [&[first], self.inner.as_slice()].concat()
    }

    /// The arrays that are the items of the first dimension.
    pub fn slices(&self) -> Vec<Datum> {
        let width: usize = self.inner.iter().map(|d| d.length as usize).product();
        let slice = |elements: &[Datum]| Array::of(&self.inner, elements.to_vec()).into();
        self.elements.chunks(width).map(slice).collect()
    }

    /// How many dimensions there are.
    pub fn depth(&self) -> usize {
        if self.elements.is_empty() {
            0
        } else {
            1 + self.inner.len()
        }
    }

    /// A dimension by its number, from 1.
    pub fn dimension(&self, number: i64) -> Option<Dimension> {
        self.dimensions().get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
    }
}
