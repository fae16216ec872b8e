//! Exact decimal numbers with PostgreSQL semantics.
//!
//! A finite number is an integer coefficient and a display scale: `12.50` is 1250 with scale 2. Two
//! numbers of different scale can be equal in SQL; the derived equality tells them apart, as it must
//! for output. Arithmetic is in `arithmetic`, variance in `statistics`, text in `text`, PostgreSQL's base-10000
//! digits in `digits`.

mod arithmetic;
mod digits;
mod functions;
mod statistics;
mod text;

pub use digits::PgDigits;
pub use statistics::variance;

use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive, Zero};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Largest scale a stored number may have.
pub const MAX_SCALE: u32 = 0x3fff;

/// A `numeric` value. Equality is identity: same value and same scale.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Numeric {
    /// NaN or an infinity.
    Special(Special),
    /// An exact decimal number.
    Finite(Decimal),
}

/// The values that are not decimal numbers, in SQL order around the finite ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Special {
    /// Below every number.
    NegativeInfinity,
    /// Above every number.
    PositiveInfinity,
    /// Equal to itself and above everything.
    NaN,
}

/// `coefficient / 10^scale`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Decimal {
    coefficient: Coefficient,
    scale: u16,
}

/// An integer; `Small` whenever it fits, so that equal integers are equal values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Coefficient {
    Small(i64),
    Big(Box<BigInt>),
}

impl Coefficient {
    fn from_big(value: BigInt) -> Coefficient {
        match value.to_i64() {
            Some(small) => Coefficient::Small(small),
            None => Coefficient::Big(Box::new(value)),
        }
    }

    fn from_i128(value: i128) -> Coefficient {
        match i64::try_from(value) {
            Ok(small) => Coefficient::Small(small),
            Err(_) => Coefficient::Big(Box::new(BigInt::from(value))),
        }
    }
}

/// `10^exponent`.
fn pow10(exponent: u32) -> BigInt {
    match 10i128.checked_pow(exponent) {
        Some(small) => BigInt::from(small),
        None => BigInt::from(10).pow(exponent),
    }
}

impl Decimal {
    /// The number `coefficient / 10^scale`.
    pub fn new(coefficient: BigInt, scale: u16) -> Decimal {
        Decimal { coefficient: Coefficient::from_big(coefficient), scale }
    }

    fn from_i128(coefficient: i128, scale: u16) -> Decimal {
        Decimal { coefficient: Coefficient::from_i128(coefficient), scale }
    }

    /// Number of decimal digits after the point.
    pub fn scale(&self) -> u16 {
        self.scale
    }

    /// The coefficient as a big integer.
    pub fn coefficient(&self) -> BigInt {
        match &self.coefficient {
            Coefficient::Small(small) => BigInt::from(*small),
            Coefficient::Big(big) => (**big).clone(),
        }
    }

    /// The coefficient if it is small.
    pub fn small(&self) -> Option<i64> {
        match self.coefficient {
            Coefficient::Small(small) => Some(small),
            Coefficient::Big(_) => None,
        }
    }

    /// Whether the coefficient is negative, and its absolute value in little-endian bytes.
    pub fn sign_and_magnitude(&self) -> (bool, Vec<u8>) {
        let (sign, magnitude) = self.coefficient().to_bytes_le();
        (sign == Sign::Minus, magnitude)
    }

    /// Sign of the number: -1, 0 or 1.
    pub fn signum(&self) -> i32 {
        match &self.coefficient {
            Coefficient::Small(small) => small.signum() as i32,
            Coefficient::Big(big) if big.is_negative() => -1,
            Coefficient::Big(_) => 1,
        }
    }

    /// Whether the number is zero.
    pub fn is_zero(&self) -> bool {
        self.small() == Some(0)
    }

    /// The coefficient the number has at a scale not below its own.
    fn coefficient_at(&self, scale: u16) -> BigInt {
        debug_assert!(scale >= self.scale);
        self.coefficient() * pow10(u32::from(scale - self.scale))
    }

    /// The small coefficient at a scale not below its own, if that fits.
    fn small_at(&self, scale: u16) -> Option<i128> {
        let factor = 10i128.checked_pow(u32::from(scale - self.scale))?;
        i128::from(self.small()?).checked_mul(factor)
    }

    fn compare(&self, other: &Decimal) -> Ordering {
        let scale = self.scale.max(other.scale);
        match (self.small_at(scale), other.small_at(scale)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ if self.signum() != other.signum() => self.signum().cmp(&other.signum()),
            _ => self.coefficient_at(scale).cmp(&other.coefficient_at(scale)),
        }
    }

    /// The same number with the least scale, not below zero.
    fn normalized(&self) -> Decimal {
        if let Some(mut small) = self.small() {
            let mut scale = self.scale;
            while scale > 0 && small % 10 == 0 {
                small /= 10;
                scale -= 1;
            }
            return Decimal { coefficient: Coefficient::Small(small), scale };
        }
        let mut coefficient = self.coefficient();
        let mut scale = self.scale;
        while scale > 0 && (&coefficient % 10u32).is_zero() {
            coefficient /= 10u32;
            scale -= 1;
        }
        Decimal::new(coefficient, scale)
    }
}

impl Numeric {
    pub const NAN: Numeric = Numeric::Special(Special::NaN);
    pub const INFINITY: Numeric = Numeric::Special(Special::PositiveInfinity);
    pub const NEGATIVE_INFINITY: Numeric = Numeric::Special(Special::NegativeInfinity);

    /// `coefficient / 10^scale`.
    pub fn from_small(coefficient: i64, scale: u16) -> Numeric {
        Numeric::Finite(Decimal { coefficient: Coefficient::Small(coefficient), scale })
    }

    /// `coefficient / 10^scale` of any size.
    pub fn from_i128_scaled(coefficient: i128, scale: u16) -> Numeric {
        Numeric::Finite(Decimal::from_i128(coefficient, scale))
    }

    /// `±magnitude / 10^scale`, the magnitude in little-endian bytes.
    pub fn from_magnitude(negative: bool, magnitude: &[u8], scale: u16) -> Numeric {
        let sign = if negative { Sign::Minus } else { Sign::Plus };
        Numeric::Finite(Decimal::new(BigInt::from_bytes_le(sign, magnitude), scale))
    }

    /// Whether the value is NaN.
    pub fn is_nan(&self) -> bool {
        *self == Numeric::NAN
    }

    /// The finite number, if it is one.
    pub fn finite(&self) -> Option<&Decimal> {
        match self {
            Numeric::Special(_) => None,
            Numeric::Finite(decimal) => Some(decimal),
        }
    }

    /// SQL order: -Infinity, numbers, Infinity, NaN; scale does not matter.
    pub fn sql_cmp(&self, other: &Numeric) -> Ordering {
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => a.compare(b),
            (Numeric::Special(a), Numeric::Special(b)) => a.cmp(b),
            (Numeric::Special(Special::NegativeInfinity), _) => Ordering::Less,
            (_, Numeric::Special(Special::NegativeInfinity)) => Ordering::Greater,
            (Numeric::Special(_), _) => Ordering::Greater,
            (_, Numeric::Special(_)) => Ordering::Less,
        }
    }

    /// The key form: the same value with the least scale.
    pub fn normalized(&self) -> Numeric {
        match self {
            Numeric::Special(special) => Numeric::Special(*special),
            Numeric::Finite(decimal) => Numeric::Finite(decimal.normalized()),
        }
    }
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Numeric {
        Numeric::from_small(value, 0)
    }
}

impl From<i128> for Numeric {
    fn from(value: i128) -> Numeric {
        Numeric::Finite(Decimal::from_i128(value, 0))
    }
}
