//! `+ - * / %`, negation and absolute value, with PostgreSQL's result scales.

use super::{pow10, Coefficient, Decimal, Numeric, Special, MAX_SCALE};
use crate::error::DataError;
use crate::sqlstate;
use num_bigint::{BigInt, Sign};
use num_traits::Zero;
use std::cmp::Ordering;

/// Significant digits a quotient has at least.
pub(super) const MIN_SIGNIFICANT_DIGITS: i64 = 16;
/// Largest scale a computed (not stored) result is given.
pub(super) const MAX_DISPLAY_SCALE: i64 = 1000;
/// Decimal digits before the point a number may have.
const MAX_INTEGER_DIGITS: u64 = 131_072;

/// 22003, as raised for results too large to store.
pub(super) fn overflow() -> DataError {
    DataError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

fn division_by_zero() -> DataError {
    DataError::new(sqlstate::DIVISION_BY_ZERO, "division by zero")
}

impl Decimal {
    /// The number as a result: an error if it has too many digits to be stored.
    pub(super) fn checked(self) -> Result<Numeric, DataError> {
        if let Coefficient::Big(big) = &self.coefficient {
            // log10(2) < 0.30103: only numbers near the limit need their digits counted.
            let digits = big.bits() * 30_103 / 100_000 + 1;
            let allowed = MAX_INTEGER_DIGITS + u64::from(self.scale);
            if digits >= allowed && big.magnitude() >= pow10(allowed as u32).magnitude() {
                return Err(overflow());
            }
        }
        Ok(Numeric::Finite(self))
    }

    /// Sum, at the larger scale.
    pub fn plus(&self, other: &Decimal) -> Decimal {
        let scale = self.scale.max(other.scale);
        if let (Some(a), Some(b)) = (self.small_at(scale), other.small_at(scale)) {
            if let Some(sum) = a.checked_add(b) {
                return Decimal::from_i128(sum, scale);
            }
        }
        Decimal::new(self.coefficient_at(scale) + other.coefficient_at(scale), scale)
    }

    pub(super) fn negate(&self) -> Decimal {
        match self.small() {
            Some(small) => Decimal::from_i128(-i128::from(small), self.scale),
            None => Decimal::new(-self.coefficient(), self.scale),
        }
    }

    fn multiply(&self, other: &Decimal) -> Decimal {
        let scale = u32::from(self.scale) + u32::from(other.scale);
        if let (Some(a), Some(b), true) = (self.small(), other.small(), scale <= MAX_SCALE) {
            return Decimal::from_i128(i128::from(a) * i128::from(b), scale as u16);
        }
        let product = self.coefficient() * other.coefficient();
        if scale <= MAX_SCALE {
            return Decimal::new(product, scale as u16);
        }
        let divisor = pow10(scale - MAX_SCALE);
        Decimal::new(divide_rounded(&product, &divisor), MAX_SCALE as u16)
    }

    /// Number of decimal digits of the coefficient, 1 for zero.
    pub(super) fn digit_count(&self) -> i64 {
        match self.small() {
            Some(0) => 1,
            Some(small) => i64::from(small.unsigned_abs().ilog10()) + 1,
            None => self.coefficient().magnitude().to_str_radix(10).len() as i64,
        }
    }

    /// Exponent (base 10000) of the first digit (base 10000) and that digit; both 0 for zero.
    pub(super) fn leading_digit(&self) -> (i64, i64) {
        if self.is_zero() {
            return (0, 0);
        }
        let digits = self.coefficient().magnitude().to_str_radix(10);
        let exponent = digits.len() as i64 - 1 - i64::from(self.scale);
        let weight = exponent.div_euclid(4);
        let width = exponent.rem_euclid(4) as usize + 1;
        let first = digits.bytes().chain(std::iter::repeat(b'0')).take(width);
        (weight, first.fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
    }

    /// Scale of the quotient: at least 16 significant digits, never below the operands' scales.
    fn quotient_scale(&self, divisor: &Decimal) -> u16 {
        let (weight, first) = self.leading_digit();
        let (divisor_weight, divisor_first) = divisor.leading_digit();
        // Equal first digits: assume that the dividend's remaining digits are the smaller ones.
        let borrow = i64::from(first <= divisor_first);
        let quotient_weight = weight - divisor_weight - borrow;
        (MIN_SIGNIFICANT_DIGITS - quotient_weight * 4)
            .max(i64::from(self.scale))
            .max(i64::from(divisor.scale))
            .clamp(0, MAX_DISPLAY_SCALE) as u16
    }

    /// The quotient rounded half away from zero at `scale`; the divisor is not zero.
    fn divide_at(&self, divisor: &Decimal, scale: u16) -> Decimal {
        // self/10^s ÷ divisor/10^d at scale r is self·10^(r+d-s) ÷ divisor.
        let shift = i64::from(scale) + i64::from(divisor.scale) - i64::from(self.scale);
        let mut dividend = self.coefficient();
        let mut divisor = divisor.coefficient();
        if shift >= 0 {
            dividend *= pow10(shift as u32);
        } else {
            divisor *= pow10(-shift as u32);
        }
        Decimal::new(divide_rounded(&dividend, &divisor), scale)
    }

    /// The quotient at the scale PostgreSQL selects; the divisor is not zero.
    pub(super) fn quotient(&self, divisor: &Decimal) -> Decimal {
        self.divide_at(divisor, self.quotient_scale(divisor))
    }

    /// The number rounded (half away from zero) to a scale; negative scales clear integer digits.
    pub(super) fn round_to(&self, scale: i64) -> Decimal {
        let result_scale = scale.max(0) as u16;
        if scale >= i64::from(self.scale) {
            return Decimal::new(self.coefficient_at(result_scale), result_scale);
        }
        let dropped = i64::from(self.scale) - scale;
        let digits = self.coefficient();
        // More digits dropped than there are, with one to spare for rounding: the result is zero.
        if dropped > self.digit_count() {
            return Decimal::from_i128(0, result_scale);
        }
        let rounded = divide_rounded(&digits, &pow10(dropped as u32));
        Decimal::new(rounded * pow10((-scale).max(0) as u32), result_scale)
    }

    /// The number cut off (towards zero) at a scale; negative scales clear integer digits.
    pub(super) fn truncate_to(&self, scale: i64) -> Decimal {
        let result_scale = scale.max(0) as u16;
        if scale >= i64::from(self.scale) {
            return Decimal::new(self.coefficient_at(result_scale), result_scale);
        }
        let dropped = i64::from(self.scale) - scale;
        if dropped > self.digit_count() {
            return Decimal::from_i128(0, result_scale);
        }
        let cut = self.coefficient() / pow10(dropped as u32);
        Decimal::new(cut * pow10((-scale).max(0) as u32), result_scale)
    }

    /// Remainder of the division truncated towards zero; the divisor is not zero.
    fn remainder(&self, divisor: &Decimal) -> Decimal {
        let scale = self.scale.max(divisor.scale);
        if let (Some(a), Some(b)) = (self.small_at(scale), divisor.small_at(scale)) {
            return Decimal::from_i128(a % b, scale);
        }
        Decimal::new(self.coefficient_at(scale) % divisor.coefficient_at(scale), scale)
    }
}

/// Integer quotient rounded half away from zero.
pub(super) fn divide_rounded(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let negative = (dividend.sign() == Sign::Minus) != (divisor.sign() == Sign::Minus);
    let quotient = dividend.magnitude() / divisor.magnitude();
    let remainder = dividend.magnitude() - &quotient * divisor.magnitude();
    let up = (remainder << 1u32).cmp(divisor.magnitude()) != Ordering::Less;
    let rounded = if up { quotient + 1u32 } else { quotient };
    if rounded.is_zero() {
        return BigInt::zero();
    }
    BigInt::from_biguint(if negative { Sign::Minus } else { Sign::Plus }, rounded)
}

fn infinity(sign: i32) -> Numeric {
    if sign < 0 {
        Numeric::NEGATIVE_INFINITY
    } else {
        Numeric::INFINITY
    }
}

impl Numeric {
    /// -1, 0 or 1; 1 for NaN.
    pub fn signum(&self) -> i32 {
        match self {
            Numeric::Special(Special::NegativeInfinity) => -1,
            Numeric::Special(_) => 1,
            Numeric::Finite(decimal) => decimal.signum(),
        }
    }

    /// Sum, at the larger scale.
    pub fn add(&self, other: &Numeric) -> Result<Numeric, DataError> {
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => a.plus(b).checked(),
            (Numeric::Finite(_), special) | (special, Numeric::Finite(_)) => Ok(special.clone()),
            (a, b) if a == b => Ok(a.clone()),
            _ => Ok(Numeric::NAN),
        }
    }

    /// Difference, at the larger scale.
    pub fn subtract(&self, other: &Numeric) -> Result<Numeric, DataError> {
        self.add(&other.negate())
    }

    /// The value with the opposite sign.
    pub fn negate(&self) -> Numeric {
        match self {
            Numeric::Special(Special::NaN) => Numeric::NAN,
            Numeric::Special(_) => infinity(-self.signum()),
            Numeric::Finite(decimal) => Numeric::Finite(decimal.negate()),
        }
    }

    /// The value without its sign.
    pub fn abs(&self) -> Numeric {
        if self.signum() < 0 {
            self.negate()
        } else {
            self.clone()
        }
    }

    /// Product, exact up to the largest scale.
    pub fn multiply(&self, other: &Numeric) -> Result<Numeric, DataError> {
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => a.multiply(b).checked(),
            _ if self.is_nan() || other.is_nan() => Ok(Numeric::NAN),
            _ => match self.signum() * other.signum() {
                0 => Ok(Numeric::NAN),
                sign => Ok(infinity(sign)),
            },
        }
    }

    /// Quotient at the scale PostgreSQL selects, rounded half away from zero.
    pub fn divide(&self, other: &Numeric) -> Result<Numeric, DataError> {
        match (self, other) {
            _ if self.is_nan() || other.is_nan() => Ok(Numeric::NAN),
            (Numeric::Special(_), Numeric::Special(_)) => Ok(Numeric::NAN),
            (_, Numeric::Finite(b)) if b.is_zero() => Err(division_by_zero()),
            (Numeric::Special(_), _) => Ok(infinity(self.signum() * other.signum())),
            (_, Numeric::Special(_)) => Ok(Numeric::from(0i64)),
            (Numeric::Finite(a), Numeric::Finite(b)) => a.quotient(b).checked(),
        }
    }

    /// Remainder with the sign of the dividend.
    pub fn modulo(&self, other: &Numeric) -> Result<Numeric, DataError> {
        match (self, other) {
            _ if self.is_nan() || other.is_nan() => Ok(Numeric::NAN),
            (_, Numeric::Finite(b)) if b.is_zero() => Err(division_by_zero()),
            (Numeric::Special(_), _) => Ok(Numeric::NAN),
            (_, Numeric::Special(_)) => Ok(self.clone()),
            (Numeric::Finite(a), Numeric::Finite(b)) => Ok(Numeric::Finite(a.remainder(b))),
        }
    }
}

impl Numeric {
    /// The value as a result: an error if it has too many digits to be stored.
    pub fn checked(self) -> Result<Numeric, DataError> {
        match self {
            Numeric::Special(special) => Ok(Numeric::Special(special)),
            Numeric::Finite(decimal) => decimal.checked(),
        }
    }
}
