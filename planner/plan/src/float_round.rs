//! Rounds binary numbers of any size, their quotients and roots, once to the float types.

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::ToPrimitive;

/// A binary floating-point format.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    /// Bits of a normal number's mantissa.
    precision: i64,
    /// Exponent of the least subnormal.
    least_exponent: i64,
    /// Numbers of this many integer bits or more are infinite.
    overflow_bits: i64,
}

/// `double precision`
pub(crate) const DOUBLE: Format =
    Format { precision: 53, least_exponent: -1074, overflow_bits: 1025 };
/// `real`
pub(crate) const SINGLE: Format =
    Format { precision: 24, least_exponent: -149, overflow_bits: 129 };

/// The number of a format nearest to `mantissa * 2^exponent`, ties to even.
pub(crate) fn round(mantissa: &BigInt, exponent: i32, format: Format) -> f64 {
    let magnitude = mantissa.magnitude();
    // Whatever its exponent.
    if mantissa.sign() == Sign::NoSign {
        return 0.0;
    }
    let top = magnitude.bits() as i64 + i64::from(exponent);
    if top >= format.overflow_bits {
        return infinite(mantissa.sign());
    }
    // The exponent the last kept bit has.
    let unit = (top - format.precision).max(format.least_exponent);
    let drop = unit - i64::from(exponent);
    let kept = if drop <= 0 { magnitude << (-drop) as u64 } else { shift_rounded(magnitude, drop) };
    if kept.bits() as i64 + unit >= format.overflow_bits {
        return infinite(mantissa.sign());
    }
    // At most 2^53 units: exact. Two steps, as the power alone may be below the normal range.
    let units = kept.to_f64().unwrap_or(0.0);
    let half = (unit / 2) as i32;
    let value = units * 2f64.powi(half) * 2f64.powi(unit as i32 - half);
    if mantissa.sign() == Sign::Minus {
        -value
    } else {
        value
    }
}

/// Bits a quotient or a root is computed to before it is rounded: enough that none of the formats has its
/// ties beyond them.
const WORKING_BITS: u64 = 64;

/// The double nearest to `dividend / divisor * 2^exponent`; the divisor is positive.
pub(crate) fn round_quotient(dividend: &BigInt, divisor: &BigInt, exponent: i32) -> f64 {
    let (sign, dividend) = (dividend.sign(), dividend.magnitude());
    let divisor = divisor.magnitude();
    let shift = (WORKING_BITS + divisor.bits()).saturating_sub(dividend.bits());
    let (quotient, is_cut) = cut_quotient(dividend, divisor, shift);
    round_cut(sign, &quotient, is_cut, i64::from(exponent) - shift as i64)
}

/// The double nearest to the square root of `dividend / divisor * 2^exponent`; neither is negative, nor the
/// divisor zero.
pub(crate) fn round_root(dividend: &BigInt, divisor: &BigInt, exponent: i32) -> f64 {
    let (sign, dividend) = (dividend.sign(), dividend.magnitude());
    let divisor = divisor.magnitude();
    let mut shift = (2 * WORKING_BITS + divisor.bits()).saturating_sub(dividend.bits());
    // Only of an even power of two the root is one.
    shift += u64::from((i64::from(exponent) - shift as i64) % 2 != 0);
    let (quotient, is_cut) = cut_quotient(dividend, divisor, shift);
    let root = quotient.sqrt();
    let is_cut = is_cut || &root * &root != quotient;
    round_cut(sign, &root, is_cut, (i64::from(exponent) - shift as i64) / 2)
}

/// `dividend * 2^shift / divisor` cut off to an integer, and whether anything was.
fn cut_quotient(dividend: &BigUint, divisor: &BigUint, shift: u64) -> (BigUint, bool) {
    let dividend = dividend << shift;
    let quotient = &dividend / divisor;
    let is_cut = &quotient * divisor != dividend;
    (quotient, is_cut)
}

/// Rounds `magnitude * 2^exponent`, or a little more if something was cut off: one more bit tells.
fn round_cut(sign: Sign, magnitude: &BigUint, is_cut: bool, exponent: i64) -> f64 {
    let magnitude = (magnitude << 1u32) + u32::from(is_cut);
    round(&BigInt::from_biguint(sign, magnitude), (exponent - 1) as i32, DOUBLE)
}

fn infinite(sign: Sign) -> f64 {
    if sign == Sign::Minus {
        f64::NEG_INFINITY
    } else {
        f64::INFINITY
    }
}

/// `value / 2^bits` to the nearest integer, ties to even.
fn shift_rounded(value: &BigUint, bits: i64) -> BigUint {
    let bits = bits as u64;
    let quotient = value >> bits;
    let half = value.bit(bits - 1);
    let exact_half = half && value.trailing_zeros() == Some(bits - 1);
    if half && (!exact_half || quotient.bit(0)) {
        quotient + 1u32
    } else {
        quotient
    }
}
