//! Sums of `real` and `double precision`, exact until rounded.

use super::exact::Exact;
use crate::error::DataError;
use crate::float_round::{round, Format, DOUBLE, SINGLE};
use crate::value::Datum;
use serde::{Deserialize, Serialize};

/// Sum of floats: `mantissa * 2^exponent` for the finite ones, counts of the others. The mantissa is
/// odd (or zero with exponent 0), so that equal sums are equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FloatSum {
    count: i64,
    mantissa: Exact,
    exponent: i32,
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
            let (mantissa, exponent) = decompose(value);
            self.add_finite(&Exact::Small(mantissa).times(copies), exponent);
        }
    }

    fn add_finite(&mut self, mantissa: &Exact, exponent: i32) {
        let common = self.exponent.min(exponent);
        let left = self.mantissa.shifted_left((self.exponent - common) as u32);
        let right = mantissa.shifted_left((exponent - common) as u32);
        let (odd, zeros) = left.plus(&right).without_trailing_zeros();
        self.exponent = if odd.is_zero() { 0 } else { common + zeros as i32 };
        self.mantissa = odd;
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
        self.add_finite(&other.mantissa, other.exponent);
    }

    pub(super) fn multiply(&mut self, copies: i64) {
        self.count *= copies;
        self.nans *= copies;
        self.positive_infinities *= copies;
        self.negative_infinities *= copies;
        self.negative_zeros *= copies;
        let product = self.mantissa.times(copies);
        let exponent = self.exponent;
        self.mantissa = Exact::default();
        self.exponent = 0;
        self.add_finite(&product, exponent);
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
        self.negative_zeros == self.count && self.mantissa.is_zero()
    }

    fn rounded(&self, format: Format) -> Result<f64, DataError> {
        if let Some(special) = self.special() {
            return Ok(special);
        }
        if self.only_negative_zeros() {
            return Ok(-0.0);
        }
        let value = round(&self.mantissa.to_big(), self.exponent, format);
        if value.is_infinite() {
            return Err(DataError::new("22003", "value out of range: overflow"));
        }
        Ok(value)
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

/// A finite float as integer times power of two.
fn decompose(value: f64) -> (i128, i32) {
    let bits = value.to_bits();
    let fraction = (bits & ((1 << 52) - 1)) as i128;
    let biased = (bits >> 52 & 0x7ff) as i32;
    let (mantissa, exponent) =
        if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
    (if value < 0.0 { -mantissa } else { mantissa }, exponent)
}
