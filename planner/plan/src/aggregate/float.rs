//! Sums of `real` and `double precision`, exact until rounded.

use super::dyadic::Dyadic;
use crate::error::DataError;
use crate::float_round::{Format, DOUBLE, SINGLE};
use crate::sqlstate;
use crate::value::Datum;
use serde::{Deserialize, Serialize};

/// Sum of floats: the total of the finite ones, counts of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FloatSum {
    count: i64,
    total: Dyadic,
    nans: i64,
    positive_infinities: i64,
    negative_infinities: i64,
    negative_zeros: i64,
}

impl FloatSum {
    pub(super) fn add(&mut self, value: f64, copies: i64) {
        self.count += copies;
        if value.is_nan() {
            self.nans += copies;
        } else if value == f64::INFINITY {
            self.positive_infinities += copies;
        } else if value == f64::NEG_INFINITY {
            self.negative_infinities += copies;
        } else if value == 0.0 {
            self.negative_zeros += if value.is_sign_negative() { copies } else { 0 };
        } else {
            self.total.add_float(value, copies);
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        *self == FloatSum::default()
    }

    pub(super) fn plus(&mut self, other: &FloatSum) {
        self.count += other.count;
        self.nans += other.nans;
        self.positive_infinities += other.positive_infinities;
        self.negative_infinities += other.negative_infinities;
        self.negative_zeros += other.negative_zeros;
        self.total.plus_equals(&other.total);
    }

    pub(super) fn multiply(&mut self, copies: i64) {
        self.count *= copies;
        self.nans *= copies;
        self.positive_infinities *= copies;
        self.negative_infinities *= copies;
        self.negative_zeros *= copies;
        self.total = self.total.times(copies);
    }

    pub(super) fn count(&self) -> i64 {
        self.count
    }

    /// The exact sum; `None` when NaN or an infinity takes part.
    pub(super) fn finite(&self) -> Option<&Dyadic> {
        self.special().is_none().then_some(&self.total)
    }

    /// The sum when NaN or an infinity takes part.
    fn special(&self) -> Option<f64> {
        let positive = self.positive_infinities != 0;
        let negative = self.negative_infinities != 0;
        match (self.nans != 0, positive, negative) {
            (true, _, _) | (_, true, true) => Some(f64::NAN),
            (_, true, _) => Some(f64::INFINITY),
            (_, _, true) => Some(f64::NEG_INFINITY),
            _ => None,
        }
    }

    fn only_negative_zeros(&self) -> bool {
        self.negative_zeros == self.count && self.total.is_zero()
    }

    fn rounded(&self, format: Format) -> Result<f64, DataError> {
        if let Some(special) = self.special() {
            return Ok(special);
        }
        if self.only_negative_zeros() {
            return Ok(-0.0);
        }
        in_range(self.total.rounded(format))
    }

    pub(super) fn total_f64(&self) -> Result<Datum, DataError> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        self.rounded(DOUBLE).map(Datum::Float8)
    }

    pub(super) fn total_f32(&self) -> Result<Datum, DataError> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        self.rounded(SINGLE).map(|value| Datum::Float4(value as f32))
    }

    /// The rounded sum divided by the number of rows.
    pub(super) fn average(&self) -> Result<Datum, DataError> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        // Unlike a sum, an average starts from a positive zero.
        let sum = self.rounded(DOUBLE)? + 0.0;
        Ok(Datum::Float8(sum / self.count as f64))
    }
}

/// Finite arguments do not make an infinite result.
pub(super) fn in_range(value: f64) -> Result<f64, DataError> {
    if value.is_infinite() {
        return Err(DataError::new(
            sqlstate::NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: overflow",
        ));
    }
    Ok(value)
}
