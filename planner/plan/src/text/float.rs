//! Input and output functions of `real` and `double precision`.
//!
//! Output is the shortest text that reads back as the value.
//! PostgreSQL wants text that reads back as the value whichever way a reader breaks ties, so a decimal that
//! lies exactly between two floats does not do; and of two shortest decimals equally near to the value it
//! takes the even one. In both points Rust's own shortest text differs.

use super::input::{invalid, is_space};
use crate::error::DataError;
use crate::float_round;
use crate::sqlstate;
use crate::types::Scalar;
use num_bigint::BigInt;
use std::cmp::Ordering;

/// `float8in`
pub(crate) fn parse_float8(text: &str) -> Result<f64, DataError> {
    parse(text, Scalar::Float8, |decimal| decimal.parse().ok(), float_round::DOUBLE)
}

/// `float4in`
pub(crate) fn parse_float4(text: &str) -> Result<f32, DataError> {
    // Every float is a double, so nothing is rounded twice.
    let decimal = |decimal: &str| decimal.parse::<f32>().ok().map(f64::from);
    parse(text, Scalar::Float4, decimal, float_round::SINGLE).map(|value| value as f32)
}

fn parse(
    text: &str,
    ty: Scalar,
    decimal: impl Fn(&str) -> Option<f64>,
    format: float_round::Format,
) -> Result<f64, DataError> {
    let trimmed = text.trim_matches(is_space);
    let lower = trimmed.to_ascii_lowercase();
    match lower.as_str() {
        "nan" | "+nan" | "-nan" => return Ok(f64::NAN),
        "inf" | "+inf" | "infinity" | "+infinity" => return Ok(f64::INFINITY),
        "-inf" | "-infinity" => return Ok(f64::NEG_INFINITY),
        _ => {}
    }
    let unsigned = lower.trim_start_matches(['+', '-']);
    let (value, digits) = match unsigned.strip_prefix("0x") {
        Some(hexadecimal) => {
            let value = parse_hexadecimal(hexadecimal, format);
            let negative = lower.starts_with('-');
            let valid = lower.len() - unsigned.len() < 2;
            let value = value.filter(|_| valid).map(|value| if negative { -value } else { value });
            (value, hexadecimal.split('p').next())
        }
        None => {
            let known = |byte: u8| byte.is_ascii_digit() || b"+-.e".contains(&byte);
            let value = lower.bytes().all(known).then(|| decimal(&lower)).flatten();
            (value, unsigned.split('e').next())
        }
    };
    let value = value.ok_or_else(|| invalid(ty, text))?;
    let zero_digits = |digits: &str| digits.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let lost = value == 0.0 && !digits.is_some_and(zero_digits);
    if value.is_infinite() || lost {
        let message = format!("\"{trimmed}\" is out of range for type {}", ty.name());
        return Err(DataError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, &message));
    }
    Ok(value)
}

/// A hexadecimal float without sign and `0x`, which `strtod` reads and so PostgreSQL takes.
fn parse_hexadecimal(text: &str, format: float_round::Format) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p').unwrap_or((text, "0"));
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{integer}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let value = BigInt::parse_bytes(digits.as_bytes(), 16)?;
    let exponent: i32 = exponent.parse().ok().filter(|exponent: &i32| exponent.abs() < 100_000)?;
    let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?.checked_mul(4)?)?;
    Some(float_round::round(&value, shift, format))
}

/// `float8out` with the default `extra_float_digits`.
pub(crate) fn format_float8(value: f64) -> String {
    special(value).map_or_else(|| layout(&shortest(value, &DOUBLE), 15), str::to_owned)
}

/// `float4out` with the default `extra_float_digits`.
pub(crate) fn format_float4(value: f32) -> String {
    special(value.into()).map_or_else(|| layout(&shortest(value.into(), &SINGLE), 6), str::to_owned)
}

fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value == f64::INFINITY {
        Some("Infinity")
    } else if value == f64::NEG_INFINITY {
        Some("-Infinity")
    } else {
        None
    }
}

/// What the two float types differ in.
struct Format {
    /// Bits of the mantissa below the first.
    fraction_bits: u32,
    /// Exponent of the least subnormal.
    least_exponent: i32,
    /// Decimal digits that tell all values apart.
    digits: usize,
    /// The shortest text, in scientific notation, that reads back with ties to even.
    print: fn(f64) -> String,
}

const DOUBLE: Format = Format {
    fraction_bits: 52,
    least_exponent: -1074,
    digits: 17,
    print: |value| format!("{value:e}"),
};

const SINGLE: Format = Format {
    fraction_bits: 23,
    least_exponent: -149,
    digits: 9,
    print: |value| format!("{:e}", value as f32),
};

/// A decimal number in scientific notation.
struct Scientific {
    negative: bool,
    /// Significant digits, the first not zero unless all are.
    digits: String,
    /// Exponent of the first digit.
    exponent: i32,
}

impl Scientific {
    /// Reads `[-]d[.ddd]e[-]x`.
    fn parse(text: &str) -> Scientific {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        Scientific {
            negative: mantissa.starts_with('-'),
            digits: mantissa.chars().filter(char::is_ascii_digit).collect(),
            exponent: exponent.parse().unwrap_or_default(),
        }
    }

    fn last_exponent(&self) -> i32 {
        self.exponent + 1 - self.digits.len() as i32
    }

    fn integer(&self) -> BigInt {
        self.digits.parse().unwrap_or_default()
    }
}

/// The range of numbers whose nearest float is the value, in units of `2^exponent`.
struct Interval {
    low: BigInt,
    value: BigInt,
    high: BigInt,
    exponent: i32,
}

impl Interval {
    /// `value` is positive.
    fn of(value: f64, format: &Format) -> Interval {
        let bits = value.to_bits();
        let biased = (bits >> 52 & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, exponent) =
            if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
        // Drop the zeros a double has where the format's own mantissa ends.
        let unit = (exponent + 52 - format.fraction_bits as i32).max(format.least_exponent);
        let mantissa = mantissa >> (unit - exponent);
        // Below a power of two floats are twice as dense.
        let dense = mantissa == 1 << format.fraction_bits && unit > format.least_exponent;
        let value = BigInt::from(mantissa) * 4u32;
        Interval {
            low: &value - if dense { 1u32 } else { 2u32 },
            high: &value + 2u32,
            value,
            exponent: unit - 2,
        }
    }

    /// Integers proportional to the bounds, the value and a decimal, in this order.
    fn scaled(&self, digits: &BigInt, last_exponent: i32) -> [BigInt; 4] {
        let two = BigInt::from(2).pow(self.exponent.unsigned_abs());
        let ten = BigInt::from(10).pow(last_exponent.unsigned_abs());
        let mut decimal = digits.clone();
        let mut float = BigInt::from(1);
        if last_exponent >= 0 {
            decimal *= ten;
        } else {
            float *= ten;
        }
        if self.exponent >= 0 {
            float *= two;
        } else {
            decimal *= two;
        }
        [&self.low * &float, &self.value * &float, &self.high * &float, decimal]
    }

    /// Distance of a decimal from the value, if it is inside; in units that depend on `last_exponent`.
    fn distance(&self, digits: &BigInt, last_exponent: i32) -> Option<BigInt> {
        let [low, value, high, decimal] = self.scaled(digits, last_exponent);
        let inside = low.cmp(&decimal) == Ordering::Less && decimal.cmp(&high) == Ordering::Less;
        inside.then(|| if decimal < value { value - decimal } else { decimal - value })
    }
}

fn shortest(value: f64, format: &Format) -> Scientific {
    let printed = Scientific::parse(&(format.print)(value));
    // A decimal can only lie halfway between two floats, or a float halfway between two decimals, if the
    // last digit is near the point: halves have few digits after it, and few factors 5 before it.
    if value == 0.0 || !(-30..=30).contains(&printed.last_exponent()) {
        return printed;
    }
    let interval = Interval::of(value.abs(), format);
    for count in printed.digits.len()..format.digits {
        let nearest = Scientific::parse(&format!("{value:.*e}", count - 1));
        let last_exponent = nearest.last_exponent();
        let candidates = [-1, 0, 1].map(|step| nearest.integer() + step);
        let inside = candidates.into_iter().filter_map(|digits| {
            Some((interval.distance(&digits, last_exponent)?, digits.bit(0), digits))
        });
        // The nearest; of two equally near the even one.
        if let Some((_, _, digits)) = inside.min() {
            let digits = digits.to_string();
            let exponent = last_exponent + digits.len() as i32 - 1;
            return Scientific { negative: nearest.negative, digits, exponent };
        }
    }
    Scientific::parse(&format!("{value:.*e}", format.digits - 1))
}

/// Fixed-point for exponents from -4 below `limit`, else scientific with two digits of exponent.
fn layout(number: &Scientific, limit: i32) -> String {
    let sign = if number.negative { "-" } else { "" };
    let digits = number.digits.as_str();
    let exponent = number.exponent;
    if !(-4..limit).contains(&exponent) {
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}e{exponent_sign}{:02}", exponent.abs());
    }
    if exponent < 0 {
        let zeros = "0".repeat((-exponent - 1) as usize);
        return format!("{sign}0.{zeros}{digits}");
    }
    let integer_digits = exponent as usize + 1;
    if digits.len() <= integer_digits {
        return format!("{sign}{digits:0<integer_digits$}");
    }
    let (integer, fraction) = digits.split_at(integer_digits);
    format!("{sign}{integer}.{fraction}")
}
