//! Rounds binary numbers of any size to the float types.

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::ToPrimitive;

/// A binary floating-point format.
#[derive(Clone, Copy)]
pub struct Format {
    /// Bits of a normal number's mantissa.
    precision: i64,
    /// Exponent of the least subnormal.
    least_exponent: i64,
    /// Numbers of this many integer bits or more are infinite.
    overflow_bits: i64,
}

/// `double precision`
pub const DOUBLE: Format = Format { precision: 53, least_exponent: -1074, overflow_bits: 1025 };
/// `real`
pub const SINGLE: Format = Format { precision: 24, least_exponent: -149, overflow_bits: 129 };

/// The number of a format nearest to `mantissa * 2^exponent`, ties to even.
pub fn round(mantissa: &BigInt, exponent: i32, format: Format) -> f64 {
    let magnitude = mantissa.magnitude();
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
