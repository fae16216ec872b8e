//! Ordered multisets: what a group's values, and the rows of a partition, are kept in.

use crate::core::diff::Mult;
use differential_dataflow::difference::{IsZero, Semigroup};
use std::collections::btree_map::{BTreeMap, Entry};

/// Most groups are small: up to this many elements are kept in a plain sorted vector.
const FEW: usize = 16;

/// An ordered multiset. Only the sum of all diffs of a time counts; in between, and for inputs that
/// are negative, an element may be there less than no times.
pub(super) enum Multiset<T> {
    Few(Vec<(T, Mult)>),
    Many(BTreeMap<T, Mult>),
}

impl<T> Default for Multiset<T> {
    fn default() -> Self {
        Multiset::Few(Vec::new())
    }
}

impl<T: Ord> Multiset<T> {
    pub(super) fn add(&mut self, element: T, copies: Mult) {
        match self {
            Multiset::Few(elements) => {
                add_to_few(elements, element, copies);
                if elements.len() > FEW {
                    *self = Multiset::Many(std::mem::take(elements).into_iter().collect());
                }
            }
            Multiset::Many(elements) => {
                add_to_many(elements, element, copies);
                if elements.is_empty() {
                    *self = Multiset::default();
                }
            }
        }
    }

    /// The least element that is there.
    pub(super) fn first(&self) -> Option<&T> {
        self.iter().next().map(|(element, _)| element)
    }

    /// The elements that are there, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&T, Mult)> {
        self.all().filter(|(_, copies)| *copies > Mult(0))
    }

    /// The same with those that are there less than no times.
    pub(super) fn all(&self) -> impl Iterator<Item = (&T, Mult)> {
        let (few, many) = match self {
            Multiset::Few(elements) => {
                (Some(elements.iter().map(|(e, copies)| (e, *copies))), None)
            }
            Multiset::Many(elements) => {
                (None, Some(elements.iter().map(|(e, copies)| (e, *copies))))
            }
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Multiset::Few(elements) => elements.is_empty(),
            Multiset::Many(elements) => elements.is_empty(),
        }
    }
}

fn add_to_few<T: Ord>(elements: &mut Vec<(T, Mult)>, element: T, copies: Mult) {
    match elements.binary_search_by(|(other, _)| other.cmp(&element)) {
        Ok(index) => {
            elements[index].1.plus_equals(&copies);
            if elements[index].1.is_zero() {
                elements.remove(index);
            }
        }
        Err(index) => elements.insert(index, (element, copies)),
    }
}

fn add_to_many<T: Ord>(elements: &mut BTreeMap<T, Mult>, element: T, copies: Mult) {
    match elements.entry(element) {
        Entry::Vacant(entry) => {
            entry.insert(copies);
        }
        Entry::Occupied(mut entry) => {
            entry.get_mut().plus_equals(&copies);
            if entry.get().is_zero() {
                entry.remove();
            }
        }
    }
}
