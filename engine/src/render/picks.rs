//! The values of one group that min, max or any may pick, in the order of preference.
//!
//! All of them are kept, because retracting the one picked needs the next best.

use super::extremes::Extreme;
use crate::diff::Mult;
use differential_dataflow::difference::{IsZero, Semigroup};
use planner::value::Datum;
use std::cmp::Ordering;
use std::collections::btree_map::{BTreeMap, Entry};

/// Most groups are small: up to this many values are kept in a plain sorted vector.
const FEW: usize = 16;

/// A multiset of values. Only the sum of all diffs of a time counts; in between, and for inputs that
/// are negative, a value may be there less than no times.
pub(super) enum Picks {
    Few(Vec<(Candidate, Mult)>),
    Many(BTreeMap<Candidate, Mult>),
}

impl Default for Picks {
    fn default() -> Self {
        Picks::Few(Vec::new())
    }
}

/// A value, less than those that are worse.
#[derive(PartialEq, Eq)]
pub(super) struct Candidate {
    value: Datum,
    extreme: Extreme,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.extreme.compare(&self.value, &other.value)
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Picks {
    /// Adds `copies` of a value, which may be negative.
    pub(super) fn add(&mut self, extreme: Extreme, value: Datum, copies: Mult) {
        let candidate = Candidate { value, extreme };
        match self {
            Picks::Few(values) => add_to_few(values, candidate, copies),
            Picks::Many(values) => add_to_many(values, candidate, copies),
        }
        match self {
            Picks::Few(values) if values.len() > FEW => {
                *self = Picks::Many(std::mem::take(values).into_iter().collect());
            }
            Picks::Many(values) if values.is_empty() => *self = Picks::default(),
            _ => {}
        }
    }

    /// The value to pick; NULL if there is none.
    pub(super) fn best(&self) -> Datum {
        let is_there = |copies: &Mult| *copies > Mult(0);
        let best = match self {
            Picks::Few(values) => {
                values.iter().find(|(_, copies)| is_there(copies)).map(|(value, _)| value)
            }
            Picks::Many(values) => {
                values.iter().find(|(_, copies)| is_there(copies)).map(|(value, _)| value)
            }
        };
        best.map_or(Datum::Null, |candidate| candidate.value.clone())
    }

    /// Whether no value is left.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Picks::Few(values) => values.is_empty(),
            Picks::Many(values) => values.is_empty(),
        }
    }

    /// Estimated bytes, without what values keep on the heap.
    pub(super) fn bytes(&self) -> usize {
        let values = match self {
            Picks::Few(values) => values.capacity(),
            Picks::Many(values) => values.len() * 3 / 2,
        };
        values * size_of::<(Candidate, Mult)>()
    }
}

fn add_to_few(values: &mut Vec<(Candidate, Mult)>, candidate: Candidate, copies: Mult) {
    match values.binary_search_by(|(other, _)| other.cmp(&candidate)) {
        Ok(index) => {
            values[index].1.plus_equals(&copies);
            if values[index].1.is_zero() {
                values.remove(index);
            }
        }
        Err(index) => values.insert(index, (candidate, copies)),
    }
}

fn add_to_many(values: &mut BTreeMap<Candidate, Mult>, candidate: Candidate, copies: Mult) {
    match values.entry(candidate) {
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
