//! Sums of `numeric`.

use super::exact::Exact;
use crate::numeric::{Decimal, Numeric, Special};
use serde::{Deserialize, Serialize};

/// Rows of one display scale: their number and the sum of their coefficients.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Part {
    scale: u16,
    count: i64,
    sum: Exact,
}

/// Sum of numerics. `parts` is ordered by scale and holds no part that is all zero, so that equal sums
/// of equal rows are equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NumericSum {
    parts: Vec<Part>,
    nans: i64,
    positive_infinities: i64,
    negative_infinities: i64,
}

impl NumericSum {
    pub(super) fn add(&mut self, value: &Numeric, copies: i64) {
        match value {
            Numeric::Special(Special::NaN) => self.nans += copies,
            Numeric::Special(Special::PositiveInfinity) => self.positive_infinities += copies,
            Numeric::Special(Special::NegativeInfinity) => self.negative_infinities += copies,
            Numeric::Finite(decimal) => {
                let coefficient = match decimal.small() {
                    Some(small) => Exact::Small(i128::from(small)),
                    None => Exact::from(decimal.coefficient()),
                };
                let sum = coefficient.times(copies);
                self.add_part(&Part { scale: decimal.scale(), count: copies, sum });
            }
        }
    }

    /// Adds the exact square, at twice the scale.
    pub(super) fn add_square(&mut self, value: &Decimal, copies: i64) {
        let square = match value.small() {
            Some(small) => Exact::Small(i128::from(small) * i128::from(small)),
            None => Exact::from(value.coefficient().pow(2)),
        };
        let sum = square.times(copies);
        self.add_part(&Part { scale: 2 * value.scale(), count: copies, sum });
    }

    fn add_part(&mut self, part: &Part) {
        match self.parts.binary_search_by_key(&part.scale, |part| part.scale) {
            Err(at) => {
                if part.count != 0 || !part.sum.is_zero() {
                    self.parts.insert(at, part.clone());
                }
            }
            Ok(at) => {
                let present = &mut self.parts[at];
                present.count += part.count;
                present.sum = present.sum.plus(&part.sum);
                if present.count == 0 && present.sum.is_zero() {
                    self.parts.remove(at);
                }
            }
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.parts.is_empty()
            && self.nans == 0
            && self.positive_infinities == 0
            && self.negative_infinities == 0
    }

    pub(super) fn plus(&mut self, other: &NumericSum) {
        for part in &other.parts {
            self.add_part(part);
        }
        self.nans += other.nans;
        self.positive_infinities += other.positive_infinities;
        self.negative_infinities += other.negative_infinities;
    }

    pub(super) fn multiply(&mut self, copies: i64) {
        for part in &mut self.parts {
            part.count *= copies;
            part.sum = part.sum.times(copies);
        }
        self.parts.retain(|part| part.count != 0 || !part.sum.is_zero());
        self.nans *= copies;
        self.positive_infinities *= copies;
        self.negative_infinities *= copies;
    }

    /// The sum, at the largest scale present, and the number of rows; `None` without rows.
    pub(super) fn total(&self) -> Option<(Numeric, i64)> {
        let finite: i64 = self.parts.iter().map(|part| part.count).sum();
        let specials = self.nans + self.positive_infinities + self.negative_infinities;
        let count = finite + specials;
        if count == 0 {
            return None;
        }
        let both = self.positive_infinities != 0 && self.negative_infinities != 0;
        let total = if self.nans != 0 || both {
            Numeric::NAN
        } else if self.positive_infinities != 0 {
            Numeric::INFINITY
        } else if self.negative_infinities != 0 {
            Numeric::NEGATIVE_INFINITY
        } else {
            Numeric::Finite(self.finite_total())
        };
        Some((total, count))
    }

    /// The sum of the finite numbers, at the largest scale present.
    pub(super) fn finite_total(&self) -> Decimal {
        let mut total = Decimal::new(0.into(), 0);
        for part in &self.parts {
            total = total.plus(&Decimal::new(part.sum.to_big(), part.scale));
        }
        total
    }
}
