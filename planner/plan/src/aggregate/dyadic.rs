//! Binary fractions of any size: sums and products of floats without rounding.

use super::exact::Exact;
use crate::float_round::{round, round_quotient, round_root, Format};
use num_bigint::BigInt;
use serde::{Deserialize, Serialize};

/// `mantissa * 2^exponent`. The mantissa is odd (or zero with exponent 0), so that equal numbers are
/// equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Dyadic {
    mantissa: Exact,
    exponent: i32,
}

impl From<i128> for Dyadic {
    fn from(value: i128) -> Dyadic {
        Dyadic::new(&Exact::Small(value), 0)
    }
}

impl Dyadic {
    fn new(mantissa: &Exact, exponent: i32) -> Dyadic {
        let mut number = Dyadic::default();
        number.add_scaled(mantissa, exponent);
        number
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.mantissa.is_zero()
    }

    /// Adds a finite float so many times.
    pub(crate) fn add_float(&mut self, value: f64, copies: i64) {
        let (mantissa, exponent) = decompose(value);
        self.add_scaled(&Exact::Small(mantissa).times(copies), exponent);
    }

    /// Adds the product of two finite floats so many times.
    pub(crate) fn add_product(&mut self, a: f64, b: f64, copies: i64) {
        let ((a, a_exponent), (b, b_exponent)) = (decompose(a), decompose(b));
        // 53 bits each: it fits.
        self.add_scaled(&Exact::Small(a * b).times(copies), a_exponent + b_exponent);
    }

    fn add_scaled(&mut self, mantissa: &Exact, exponent: i32) {
        if mantissa.is_zero() {
            return;
        }
        if self.is_zero() {
            // No number of zeros needs to be appended to add to nothing.
            self.exponent = exponent;
        }
        let common = self.exponent.min(exponent);
        let left = self.mantissa.shifted_left((self.exponent - common) as u32);
        let right = mantissa.shifted_left((exponent - common) as u32);
        let (odd, zeros) = left.plus(&right).without_trailing_zeros();
        self.exponent = if odd.is_zero() { 0 } else { common + zeros as i32 };
        self.mantissa = odd;
    }

    pub(crate) fn plus_equals(&mut self, other: &Dyadic) {
        self.add_scaled(&other.mantissa, other.exponent);
    }

    pub(crate) fn times(&self, factor: i64) -> Dyadic {
        Dyadic::new(&self.mantissa.times(factor), self.exponent)
    }

    pub(crate) fn product(&self, other: &Dyadic) -> Dyadic {
        let product = self.mantissa.to_big() * other.mantissa.to_big();
        Dyadic::new(&Exact::from(product), self.exponent + other.exponent)
    }

    pub(crate) fn minus(&self, other: &Dyadic) -> Dyadic {
        let mut difference = other.times(-1);
        difference.plus_equals(self);
        difference
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.mantissa.is_negative()
    }

    fn to_big(&self) -> BigInt {
        self.mantissa.to_big()
    }

    /// The nearest number of a format; infinite beyond its range.
    pub(crate) fn rounded(&self, format: Format) -> f64 {
        round(&self.to_big(), self.exponent, format)
    }

    /// The double nearest to the quotient; the divisor is positive.
    pub(crate) fn quotient(&self, divisor: &Dyadic) -> f64 {
        round_quotient(&self.to_big(), &divisor.to_big(), self.exponent - divisor.exponent)
    }

    /// The double nearest to the square root of the quotient; neither is negative, nor the divisor zero.
    pub(crate) fn root_of_quotient(&self, divisor: &Dyadic) -> f64 {
        round_root(&self.to_big(), &divisor.to_big(), self.exponent - divisor.exponent)
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
