//! Input and output functions of `numeric`.

use super::arithmetic::overflow;
use super::{pow10, Decimal, Numeric, Special, MAX_SCALE};
use crate::error::DataError;
use crate::sqlstate;
use num_bigint::BigInt;
use num_traits::Zero;
use std::fmt;

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Numeric::Special(Special::NaN) => f.write_str("NaN"),
            Numeric::Special(Special::PositiveInfinity) => f.write_str("Infinity"),
            Numeric::Special(Special::NegativeInfinity) => f.write_str("-Infinity"),
            Numeric::Finite(decimal) => decimal.fmt(f),
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.small() {
            Some(small) => small.unsigned_abs().to_string(),
            None => self.coefficient().magnitude().to_str_radix(10),
        };
        if self.signum() < 0 {
            f.write_str("-")?;
        }
        let scale = usize::from(self.scale);
        if scale == 0 {
            return f.write_str(&digits);
        }
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (integer, fraction) = padded.split_at(padded.len() - scale);
        write!(f, "{integer}.{fraction}")
    }
}

impl Numeric {
    /// `numeric_in` without a type modifier.
    pub fn parse(text: &str) -> Result<Numeric, DataError> {
        let invalid = || {
            let message = format!("invalid input syntax for type numeric: \"{text}\"");
            DataError::new(sqlstate::INVALID_TEXT_REPRESENTATION, &message)
        };
        let trimmed = text.trim_matches(crate::text::input::is_space);
        if let Some(special) = parse_special(trimmed) {
            return Ok(special);
        }
        let parts = Parts::split(trimmed).ok_or_else(invalid)?;
        parts.value()
    }
}

fn parse_special(text: &str) -> Option<Numeric> {
    match text.to_ascii_lowercase().as_str() {
        "nan" => Some(Numeric::NAN),
        "infinity" | "+infinity" | "inf" | "+inf" => Some(Numeric::INFINITY),
        "-infinity" | "-inf" => Some(Numeric::NEGATIVE_INFINITY),
        _ => None,
    }
}

/// The pieces of a decimal literal.
struct Parts<'a> {
    negative: bool,
    integer: &'a str,
    fraction: &'a str,
    exponent: i64,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Option<Parts<'a>> {
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
            // Blanks before the exponent pass, as `strtol` reads it.
            Some(at) => {
                let exponent = unsigned[at + 1..].trim_start_matches(crate::text::input::is_space);
                (&unsigned[..at], parse_exponent(exponent)?)
            }
            None => (unsigned, 0),
        };
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(integer) || !digits(fraction) || integer.len() + fraction.len() == 0 {
            return None;
        }
        Some(Parts { negative, integer, fraction, exponent })
    }

    fn value(&self) -> Result<Numeric, DataError> {
        if self.exponent.abs() >= i64::from(i32::MAX / 2) {
            return Err(overflow());
        }
        let digits = format!("{}{}", self.integer, self.fraction);
        let value = BigInt::parse_bytes(digits.as_bytes(), 10).unwrap_or_default();
        let value = if self.negative { -value } else { value };
        let scale = self.fraction.len() as i64 - self.exponent;
        if scale > i64::from(MAX_SCALE) {
            return Err(overflow());
        }
        if scale >= 0 {
            return Decimal::new(value, scale as u16).checked();
        }
        if value.is_zero() {
            return Ok(Numeric::from(0i64));
        }
        // Beyond the largest number a shift is an overflow already; do not compute it.
        if -scale > 131_072 {
            return Err(overflow());
        }
        Decimal::new(value * pow10(-scale as u32), 0).checked()
    }
}

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Too many digits for 64 bits: beyond every limit in either direction.
    Some(text.parse().unwrap_or(i64::from(i32::MAX)))
}
