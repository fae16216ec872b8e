//! Rounding, type modifiers and conversions of `numeric`.

use super::{pow10, Decimal, Numeric, Special, MAX_SCALE};
use crate::error::DataError;
use crate::sqlstate;
use num_bigint::BigInt;

/// Scales `round` and `trunc` are limited to: what a number can have of digits on either side.
const LEAST_SCALE: i64 = -131_073;

impl Numeric {
    fn map(&self, change: impl FnOnce(&Decimal) -> Decimal) -> Result<Numeric, DataError> {
        match self {
            Numeric::Special(special) => Ok(Numeric::Special(*special)),
            Numeric::Finite(decimal) => change(decimal).checked(),
        }
    }

    /// `round(x, scale)`: half away from zero.
    pub fn round(&self, scale: i32) -> Result<Numeric, DataError> {
        let scale = i64::from(scale).clamp(LEAST_SCALE, i64::from(MAX_SCALE));
        self.map(|decimal| decimal.round_to(scale))
    }

    /// `trunc(x, scale)`: towards zero.
    pub fn truncate(&self, scale: i32) -> Result<Numeric, DataError> {
        let scale = i64::from(scale).clamp(LEAST_SCALE, i64::from(MAX_SCALE));
        self.map(|decimal| decimal.truncate_to(scale))
    }

    /// `floor(x)`
    pub fn floor(&self) -> Result<Numeric, DataError> {
        self.map(|decimal| integer_beside(decimal, -1))
    }

    /// `ceil(x)`
    pub fn ceil(&self) -> Result<Numeric, DataError> {
        self.map(|decimal| integer_beside(decimal, 1))
    }

    /// `sign(x)`; NaN stays NaN.
    pub fn sign(&self) -> Numeric {
        match self {
            Numeric::Special(Special::NaN) => Numeric::NAN,
            _ => Numeric::from(i64::from(self.signum())),
        }
    }

    /// Coerces to `numeric(precision, scale)` given as type modifier; below 4 means no restriction.
    pub fn apply_typmod(&self, typmod: i32) -> Result<Numeric, DataError> {
        if typmod < 4 {
            return Ok(self.clone());
        }
        let precision = ((typmod - 4) >> 16) & 0xffff;
        // The scale is an 11-bit two's complement number.
        let scale = (((typmod - 4) & 0x7ff) ^ 1024) - 1024;
        let overflow =
            || DataError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow");
        match self {
            Numeric::Special(Special::NaN) => Ok(Numeric::NAN),
            Numeric::Special(_) => Err(overflow()),
            Numeric::Finite(decimal) => {
                let rounded = decimal.round_to(i64::from(scale));
                let digits = (precision - scale + i32::from(rounded.scale)).max(0);
                let limit = pow10(digits as u32);
                if !rounded.is_zero() && rounded.coefficient().magnitude() >= limit.magnitude() {
                    return Err(overflow());
                }
                Ok(Numeric::Finite(rounded))
            }
        }
    }

    /// The integer nearest to the value (half away from zero), if it fits 64 bits.
    pub fn to_i64(&self) -> Option<i64> {
        self.finite()?.round_to(0).small()
    }

    /// The nearest double, as reading its text gives it; `None` beyond the range (or for a nonzero
    /// number that would become zero).
    pub fn to_f64(&self) -> Option<f64> {
        match self {
            Numeric::Special(Special::NaN) => Some(f64::NAN),
            Numeric::Special(Special::PositiveInfinity) => Some(f64::INFINITY),
            Numeric::Special(Special::NegativeInfinity) => Some(f64::NEG_INFINITY),
            Numeric::Finite(decimal) => {
                let text = format!("{}e-{}", decimal.coefficient(), decimal.scale);
                let value: f64 = text.parse().ok()?;
                let lost = value == 0.0 && !decimal.is_zero();
                (value.is_finite() && !lost).then_some(value)
            }
        }
    }

    /// The nearest float, `None` as for [`Numeric::to_f64`].
    pub fn to_f32(&self) -> Option<f32> {
        match self {
            Numeric::Special(_) => self.to_f64().map(|value| value as f32),
            Numeric::Finite(decimal) => {
                let text = format!("{}e-{}", decimal.coefficient(), decimal.scale);
                let value: f32 = text.parse().ok()?;
                let lost = value == 0.0 && !decimal.is_zero();
                (value.is_finite() && !lost).then_some(value)
            }
        }
    }

    /// A double to 15 significant digits, as the cast from `double precision` rounds it.
    pub fn from_f64(value: f64) -> Numeric {
        from_float(value, 14)
    }

    /// A float to 6 significant digits, as the cast from `real` rounds it.
    pub fn from_f32(value: f32) -> Numeric {
        from_float(f64::from(value), 5)
    }
}

/// The integer on one side (-1 below, 1 above) of a number that is not an integer itself.
fn integer_beside(decimal: &Decimal, side: i32) -> Decimal {
    let cut = decimal.truncate_to(0);
    let exact = cut.compare(decimal).is_eq();
    if exact || decimal.signum() != side {
        return cut;
    }
    Decimal::new(cut.coefficient() + side, 0)
}

fn from_float(value: f64, fraction_digits: usize) -> Numeric {
    if value.is_nan() {
        return Numeric::NAN;
    }
    if value.is_infinite() {
        return if value > 0.0 { Numeric::INFINITY } else { Numeric::NEGATIVE_INFINITY };
    }
    let text = format!("{value:.fraction_digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i64 = exponent.parse().unwrap_or_default();
    let digits: i64 = mantissa.replace('.', "").parse().unwrap_or_default();
    let scale = fraction_digits as i64 - exponent;
    let big = BigInt::from(digits);
    if scale <= 0 {
        return Numeric::Finite(Decimal::new(big * pow10(-scale as u32), 0));
    }
    Numeric::Finite(Decimal::new(big, scale as u16).normalized())
}
