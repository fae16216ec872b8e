//! Aggregates computed from the whole group at once.

use crate::compare::cmp_as;
use crate::error::DataError;
use crate::numeric::Numeric;
use crate::plan::{Aggregate, AggregateFunc, Diff};
use crate::row::Row;
use crate::types::Type;
use crate::value::Datum;
use num_bigint::BigInt;
use std::cmp::Ordering;

/// The aggregate's value for a group of rows (as columns) with multiplicities.
pub(super) fn aggregate(
    aggregate: &Aggregate,
    rows: &[(Vec<Datum>, Diff)],
) -> Result<Datum, DataError> {
    let mut values = Vec::with_capacity(rows.len());
    for (columns, diff) in rows {
        let value = match &aggregate.arg {
            Some(arg) => arg.eval(columns)?,
            None => Datum::Bool(true),
        };
        if *diff != 0 && (!value.is_null() || aggregate.func == AggregateFunc::Any) {
            values.push((value, *diff));
        }
    }
    use AggregateFunc as A;
    match aggregate.func {
        A::Count => Ok(Datum::Int8(count(&values))),
        _ if values.is_empty() => Ok(Datum::Null),
        A::SumInt => {
            let sum: i128 = integers(&values).map(|(v, diff)| v * i128::from(diff)).sum();
            i64::try_from(sum)
                .map(Datum::Int8)
                .map_err(|_| DataError::new("22003", "bigint out of range"))
        }
        A::SumInt8 | A::SumNumeric => Ok(Datum::Numeric(numeric_sum(&values)?)),
        A::AvgInt | A::AvgNumeric => {
            let count = Numeric::from_small(count(&values), 0);
            Ok(Datum::Numeric(numeric_sum(&values)?.divide(&count)?))
        }
        A::SumFloat4 => {
            let sum = float_sum(&values);
            let sum: f32 = sum.parse().unwrap_or(f32::NAN);
            finite_sum(&values, sum.is_infinite()).map(|()| Datum::Float4(sum))
        }
        A::SumFloat8 => float8_sum(&values).map(Datum::Float8),
        A::AvgFloat => float8_sum(&values).map(|sum| Datum::Float8(sum / count(&values) as f64)),
        A::Min(ty) => Ok(extreme(&values, ty, Ordering::Less)),
        A::Max(ty) => Ok(extreme(&values, ty, Ordering::Greater)),
        A::BoolAnd => Ok(Datum::Bool(values.iter().all(|(value, _)| value.is_true()))),
        A::BoolOr => Ok(Datum::Bool(values.iter().any(|(value, _)| value.is_true()))),
        A::Any => Ok(least(values.into_iter().map(|(value, _)| value))),
    }
}

fn count(values: &[(Datum, Diff)]) -> Diff {
    values.iter().map(|(_, diff)| diff).sum()
}

fn integers(values: &[(Datum, Diff)]) -> impl Iterator<Item = (i128, Diff)> + '_ {
    values.iter().filter_map(|(value, diff)| Some((i128::from(value.as_i64()?), *diff)))
}

fn numeric_sum(values: &[(Datum, Diff)]) -> Result<Numeric, DataError> {
    let mut sum = Numeric::from_small(0, 0);
    for (value, diff) in values {
        let value = match value {
            Datum::Numeric(value) => value.clone(),
            other => Numeric::from_small(other.as_i64().unwrap_or_default(), 0),
        };
        sum = sum.add(&value.multiply(&Numeric::from_small(*diff, 0))?)?;
    }
    Ok(sum)
}

/// The exact sum as a decimal: every finite double is an integer times 2⁻¹⁰⁷⁴ = 5¹⁰⁷⁴ · 10⁻¹⁰⁷⁴.
fn float_sum(values: &[(Datum, Diff)]) -> String {
    let floats = || values.iter().filter_map(|(value, diff)| Some((value.as_f64()?, *diff)));
    if floats().any(|(value, _)| !value.is_finite()) {
        return floats().map(|(value, _)| value).sum::<f64>().to_string();
    }
    let mut sum = BigInt::from(0);
    for (value, diff) in floats() {
        let bits = value.to_bits();
        let exponent = (bits >> 52) & 0x7ff;
        let fraction = bits & ((1 << 52) - 1);
        let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        let magnitude = BigInt::from(mantissa) << exponent.saturating_sub(1);
        let signed = if value.is_sign_negative() { -magnitude } else { magnitude };
        sum += signed * diff;
    }
    format!("{}e-1074", sum * BigInt::from(5).pow(1074))
}

fn float8_sum(values: &[(Datum, Diff)]) -> Result<f64, DataError> {
    let sum: f64 = float_sum(values).parse().unwrap_or(f64::NAN);
    finite_sum(values, sum.is_infinite()).map(|()| sum)
}

/// Finite values whose sum is too large are an error.
fn finite_sum(values: &[(Datum, Diff)], infinite: bool) -> Result<(), DataError> {
    let finite = values.iter().all(|(value, _)| value.as_f64().is_some_and(f64::is_finite));
    if infinite && finite {
        return Err(DataError::new("22003", "value out of range: overflow"));
    }
    Ok(())
}

/// The least or greatest in the order of the type; of values that are equal the least as bytes.
fn extreme(values: &[(Datum, Diff)], ty: Type, wanted: Ordering) -> Datum {
    let better = |a: &Datum, b: &Datum| cmp_as(ty, a, b) == wanted;
    let best =
        values.iter().map(|(value, _)| value).reduce(|a, b| if better(b, a) { b } else { a });
    let Some(best) = best else { return Datum::Null };
    let equal = values.iter().map(|(value, _)| value);
    least(equal.filter(|value| cmp_as(ty, value, best) == Ordering::Equal).cloned())
}

fn least(values: impl Iterator<Item = Datum>) -> Datum {
    values.min_by_key(|value| Row::pack([value])).unwrap_or(Datum::Null)
}
