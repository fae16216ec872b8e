//! The values of one group that min, max or any may pick, in the order of preference.
//!
//! All of them are kept, because retracting the one picked needs the next best.

use super::extremes::Extreme;
use super::multiset::Multiset;
use crate::core::diff::Mult;
use plan::types::{Scalar, Type};
use plan::value::Datum;
use std::cmp::Ordering;

/// The values of one group.
pub(super) enum Picks {
    /// Of a type whose order is that of integers: a fraction of the memory, and of the cache misses.
    Ordinals(Ordinal, Multiset<i64>),
    /// Of any type.
    Values(Extreme, Multiset<Candidate>),
}

impl Picks {
    pub(super) fn new(extreme: Extreme) -> Self {
        match Ordinal::of(extreme) {
            Some(ordinal) => Picks::Ordinals(ordinal, Multiset::default()),
            None => Picks::Values(extreme, Multiset::default()),
        }
    }

    /// Adds `copies` of a value, which may be negative.
    pub(super) fn add(&mut self, value: &Datum, copies: Mult) {
        match self {
            Picks::Ordinals(ordinal, values) => {
                if let Some(number) = ordinal.encode(value) {
                    values.add(number, copies);
                }
            }
            Picks::Values(extreme, values) if extreme.may_pick(value) => {
                values.add(Candidate { value: value.clone(), extreme: *extreme }, copies);
            }
            Picks::Values(..) => {}
        }
    }

    /// All values, with their copies.
    pub(super) fn all(&self) -> Vec<(Datum, Mult)> {
        match self {
            Picks::Ordinals(ordinal, values) => {
                values.all().map(|(number, copies)| (ordinal.decode(*number), copies)).collect()
            }
            Picks::Values(_, values) => {
                values.all().map(|(value, copies)| (value.value.clone(), copies)).collect()
            }
        }
    }

    /// The value to pick; NULL if there is none.
    pub(super) fn best(&self) -> Datum {
        let best = match self {
            Picks::Ordinals(ordinal, values) => {
                values.first().map(|number| ordinal.decode(*number))
            }
            Picks::Values(_, values) => values.first().map(|candidate| candidate.value.clone()),
        };
        best.unwrap_or(Datum::Null)
    }

    /// Whether no value is left.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Picks::Ordinals(_, values) => values.is_empty(),
            Picks::Values(_, values) => values.is_empty(),
        }
    }
}

/// How values that are no more than an integer become numbers of which the least is to be picked.
#[derive(Clone, Copy)]
pub(super) struct Ordinal {
    scalar: Scalar,
    is_reversed: bool,
}

impl Ordinal {
    fn of(extreme: Extreme) -> Option<Self> {
        use Scalar::*;
        let (ty, is_reversed) = match extreme {
            Extreme::Min(ty) => (ty, false),
            Extreme::Max(ty) => (ty, true),
            Extreme::Any => return None,
        };
        match ty {
            Type::Scalar(scalar @ (Int2 | Int4 | Int8 | Date | Timestamp | Timestamptz)) => {
                Some(Ordinal { scalar, is_reversed })
            }
            _ => None,
        }
    }

    /// `None` for NULL.
    fn encode(self, value: &Datum) -> Option<i64> {
        let number = match value {
            Datum::Date(days) => i64::from(*days),
            Datum::Timestamp(microseconds) => *microseconds,
            value => value.as_i64()?,
        };
        // The complement reverses the order and, unlike the negative, always exists.
        Some(if self.is_reversed { !number } else { number })
    }

    fn decode(self, number: i64) -> Datum {
        let number = if self.is_reversed { !number } else { number };
        // What is cut off was never there: the number comes from a value of this type.
        match self.scalar {
            Scalar::Int2 => Datum::Int2(number as i16),
            Scalar::Int4 => Datum::Int4(number as i32),
            Scalar::Date => Datum::Date(number as i32),
            Scalar::Timestamp | Scalar::Timestamptz => Datum::Timestamp(number),
            _ => Datum::Int8(number),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(extreme: Extreme) -> impl Fn(&[(Datum, i64)]) -> Datum {
        move |updates| {
            let mut picks = Picks::new(extreme);
            updates.iter().for_each(|(value, copies)| picks.add(value, Mult(*copies)));
            picks.best()
        }
    }

    #[test]
    fn the_best_that_is_left_is_picked() {
        let day = Type::Scalar(Scalar::Date);
        let dates: Vec<_> = (-40..40).map(|n| (Datum::Date(n), 1)).collect();
        let gone = (-40..-3).map(|n| (Datum::Date(n), -1)).chain([(Datum::Null, 5)]);
        let updates: Vec<_> = dates.into_iter().chain(gone).collect();
        assert_eq!(picks(Extreme::Min(day))(&updates), Datum::Date(-3));
        assert_eq!(picks(Extreme::Max(day))(&updates), Datum::Date(39));
    }

    #[test]
    fn the_ends_of_a_type_are_kept() {
        let ends = [(Datum::Int8(i64::MIN), 1), (Datum::Int8(i64::MAX), 1)];
        let bigint = Type::Scalar(Scalar::Int8);
        assert_eq!(picks(Extreme::Min(bigint))(&ends), ends[0].0);
        assert_eq!(picks(Extreme::Max(bigint))(&ends), ends[1].0);
    }

    #[test]
    fn nothing_is_kept_of_values_that_are_gone() {
        let mut picks = Picks::new(Extreme::Max(Type::Scalar(Scalar::Text)));
        for copies in [1, -1] {
            (0..100).for_each(|n| picks.add(&Datum::Text(n.to_string().into()), Mult(copies)));
        }
        assert!(picks.is_empty());
        assert_eq!(picks.best(), Datum::Null);
    }
}
