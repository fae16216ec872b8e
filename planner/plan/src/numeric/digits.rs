//! PostgreSQL's own form of a `numeric`: base-10000 digits with a weight.

use super::{pow10, Decimal, Numeric, Special};
use num_bigint::{BigInt, Sign};
use num_traits::Zero;

const POSITIVE: u16 = 0x0000;
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xc000;
const POSITIVE_INFINITY: u16 = 0xd000;
const NEGATIVE_INFINITY: u16 = 0xf000;

/// The fields of a `numeric` as `numeric_send` writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PgDigits {
    /// 0x0000 positive, 0x4000 negative, 0xC000 NaN, 0xD000 and 0xF000 the infinities.
    pub sign: u16,
    /// Exponent (base 10000) of the first digit.
    pub weight: i16,
    /// Number of decimal digits after the point.
    pub dscale: u16,
    /// Base-10000 digits, the most significant first, without zeros at either end.
    pub digits: Vec<i16>,
}

impl Numeric {
    /// From the fields `numeric_send` writes; decimal digits beyond `dscale` are cut off.
    pub fn from_pg_digits(sign: u16, weight: i16, dscale: u16, digits: &[i16]) -> Numeric {
        match sign {
            NAN => return Numeric::NAN,
            POSITIVE_INFINITY => return Numeric::INFINITY,
            NEGATIVE_INFINITY => return Numeric::NEGATIVE_INFINITY,
            _ => {}
        }
        // Exponent (base 10) of the last digit, relative to the coefficient's last digit.
        let shift = 4 * (i64::from(weight) - digits.len() as i64 + 1) + i64::from(dscale);
        if let Some(coefficient) = small_coefficient(sign, digits, shift) {
            return Numeric::from_small(coefficient, dscale);
        }
        let bytes: Vec<u8> = digits.iter().flat_map(|digit| ascii(*digit)).collect();
        let value = BigInt::parse_bytes(&bytes, 10).unwrap_or_default();
        let value =
            if shift >= 0 { value * pow10(shift as u32) } else { value / pow10(-shift as u32) };
        Numeric::Finite(Decimal::new(if sign == NEGATIVE { -value } else { value }, dscale))
    }

    /// The fields `numeric_recv` reads.
    pub fn to_pg_digits(&self) -> PgDigits {
        let decimal = match self {
            Numeric::Special(special) => {
                let sign = match special {
                    Special::NaN => NAN,
                    Special::PositiveInfinity => POSITIVE_INFINITY,
                    Special::NegativeInfinity => NEGATIVE_INFINITY,
                };
                return PgDigits { sign, weight: 0, dscale: 0, digits: Vec::new() };
            }
            Numeric::Finite(decimal) => decimal,
        };
        let fraction_digits = usize::from(decimal.scale).div_ceil(4);
        let padding = (fraction_digits * 4) as u32 - u32::from(decimal.scale);
        let mut digits = match decimal.small_at(decimal.scale + padding as u16) {
            Some(small) => base10000_small(small.unsigned_abs()),
            None => base10000(decimal.coefficient() * pow10(padding)),
        };
        let weight = digits.len() as i64 - fraction_digits as i64 - 1;
        while digits.last() == Some(&0) {
            digits.pop();
        }
        let sign = if decimal.signum() < 0 { NEGATIVE } else { POSITIVE };
        let weight = if digits.is_empty() { 0 } else { weight as i16 };
        PgDigits { sign, weight, dscale: decimal.scale, digits }
    }
}

fn small_coefficient(sign: u16, digits: &[i16], shift: i64) -> Option<i64> {
    if digits.len() > 8 {
        return None;
    }
    let value = digits.iter().fold(0i128, |value, digit| value * 10_000 + i128::from(*digit));
    let factor = 10i128.checked_pow(shift.unsigned_abs().try_into().ok()?)?;
    let value = if shift >= 0 { value.checked_mul(factor)? } else { value / factor };
    i64::try_from(if sign == NEGATIVE { -value } else { value }).ok()
}

/// Of a number that is no digit, as only a damaged page has it, some decimal digits.
fn ascii(digit: i16) -> [u8; 4] {
    [1000, 100, 10, 1].map(|unit| b'0' + (digit / unit).rem_euclid(10) as u8)
}

fn base10000_small(mut value: u128) -> Vec<i16> {
    let mut digits = Vec::new();
    while value != 0 {
        digits.push((value % 10_000) as i16);
        value /= 10_000;
    }
    digits.reverse();
    digits
}

fn base10000(value: BigInt) -> Vec<i16> {
    if value.is_zero() || value.sign() == Sign::NoSign {
        return Vec::new();
    }
    let text = value.magnitude().to_str_radix(10);
    let (head, tail) = text.as_bytes().split_at(text.len() % 4);
    let chunks = std::iter::once(head).filter(|head| !head.is_empty()).chain(tail.chunks(4));
    chunks
        .map(|chunk| chunk.iter().fold(0, |value, byte| value * 10 + i16::from(byte - b'0')))
        .collect()
}
