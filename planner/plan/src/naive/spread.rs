//! Variances and standard deviations by definition: squared distances from the mean, as exact fractions.

use crate::aggregate::Spread;
use crate::error::DataError;
use crate::numeric::{Decimal, Numeric};
use crate::row::Diff;
use crate::sqlstate;
use crate::value::Datum;
use num_bigint::BigInt;

/// Digits after the point of a fraction: no two doubles have fewer zeros between them.
const DIGITS: u32 = 1100;

/// Binary digits after the point of the smallest double.
pub(super) const FLOAT_DIGITS: u64 = 1074;

/// Of the squared distances: for a standard deviation the root is taken.
fn is_root(spread: Spread) -> bool {
    matches!(spread, Spread::StddevPop | Spread::StddevSamp)
}

/// What the sum of squared distances is divided by, unless there are too few values.
fn divisor(spread: Spread, values: &[(Datum, Diff)]) -> Option<Diff> {
    let count: Diff = values.iter().map(|(_, diff)| diff).sum();
    let divisor = match spread {
        Spread::VarPop | Spread::StddevPop => count,
        Spread::VarSamp | Spread::StddevSamp => count - 1,
    };
    (divisor > 0).then_some(divisor)
}

/// The sum of squared distances from the mean, times the square of the number of values.
fn squared_distances(values: &[(BigInt, Diff)]) -> (BigInt, Diff) {
    let count: Diff = values.iter().map(|(_, diff)| diff).sum();
    let sum: BigInt = values.iter().map(|(value, diff)| value * diff).sum();
    let square = |(value, diff): &(BigInt, Diff)| (value * count - &sum).pow(2) * diff;
    (values.iter().map(square).sum(), count)
}

pub(super) fn of_numerics(spread: Spread, values: &[(Datum, Diff)]) -> Result<Datum, DataError> {
    let Some(divisor) = divisor(spread, values) else { return Ok(Datum::Null) };
    let mut decimals = Vec::new();
    for (value, diff) in values {
        match value {
            Datum::Numeric(Numeric::Finite(decimal)) => decimals.push((decimal.clone(), *diff)),
            Datum::Numeric(_) => return Ok(Datum::Numeric(Numeric::NAN)),
            other => {
                decimals.push((Decimal::new(other.as_i64().unwrap_or_default().into(), 0), *diff));
            }
        }
    }
    let scale = decimals.iter().map(|(decimal, _)| decimal.scale()).max().unwrap_or(0);
    let unit = |decimal: &Decimal| BigInt::from(10).pow(u32::from(scale - decimal.scale()));
    let integers = decimals.iter().map(|(d, diff)| (d.coefficient() * unit(d), *diff));
    let (distances, count) = squared_distances(&integers.collect::<Vec<_>>());
    if distances == BigInt::from(0) {
        return Ok(Datum::Numeric(Numeric::from(0i64)));
    }
    let scaled = Numeric::Finite(Decimal::new(distances / count, 2 * scale));
    let variance = scaled.divide(&Numeric::from(i128::from(count) * i128::from(divisor)))?;
    Ok(Datum::Numeric(match variance {
        Numeric::Finite(variance) if is_root(spread) => Numeric::Finite(variance.square_root()),
        variance => variance,
    }))
}

pub(super) fn of_floats(spread: Spread, values: &[(Datum, Diff)]) -> Result<Datum, DataError> {
    let Some(divisor) = divisor(spread, values) else { return Ok(Datum::Null) };
    let Some(integers) = integers(values) else { return Ok(Datum::Float8(f64::NAN)) };
    let (distances, count) = squared_distances(&integers);
    let divisor = (BigInt::from(count).pow(2) * divisor) << (2 * FLOAT_DIGITS);
    let result =
        if is_root(spread) { root(&distances, &divisor) } else { quotient(&distances, &divisor) };
    if result.is_infinite() {
        return Err(DataError::new(
            sqlstate::NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: overflow",
        ));
    }
    Ok(Datum::Float8(result))
}

/// Floats as multiples of the smallest one, unless one of them is none.
fn integers(values: &[(Datum, Diff)]) -> Option<Vec<(BigInt, Diff)>> {
    let integers = values.iter().map(|(value, diff)| {
        Some((float_integer(value.as_f64().filter(|value| value.is_finite())?), *diff))
    });
    integers.collect()
}

/// A finite double as a multiple of the smallest one.
pub(super) fn float_integer(value: f64) -> BigInt {
    let bits = value.to_bits();
    let exponent = (bits >> 52) & 0x7ff;
    let fraction = bits & ((1 << 52) - 1);
    let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
    let magnitude = BigInt::from(mantissa) << exponent.saturating_sub(1);
    if value.is_sign_negative() {
        -magnitude
    } else {
        magnitude
    }
}

/// The double nearest to the quotient.
pub(super) fn quotient(dividend: &BigInt, divisor: &BigInt) -> f64 {
    let dividend = dividend * BigInt::from(10).pow(DIGITS);
    let quotient = &dividend / divisor;
    read(&quotient, &quotient * divisor != dividend)
}

/// The double nearest to the square root of the quotient.
pub(super) fn root(dividend: &BigInt, divisor: &BigInt) -> f64 {
    let dividend = dividend * BigInt::from(10).pow(2 * DIGITS);
    let root = (&dividend / divisor).sqrt();
    read(&root, &root * &root * divisor != dividend)
}

/// The double nearest to a number with so many digits after the point, or to one a little further from zero.
fn read(digits: &BigInt, is_cut: bool) -> f64 {
    let more = u8::from(is_cut);
    format!("{digits}{more}e-{}", DIGITS + 1).parse().unwrap_or(f64::NAN)
}
