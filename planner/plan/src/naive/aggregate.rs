//! Aggregates computed from the whole group at once.

use super::regression::of_pairs;
use super::spread::{self, float_integer};
use crate::aggregate::AggregateFunc;
use crate::compare::cmp_as;
use crate::error::DataError;
use crate::nodes::Aggregate;
use crate::numeric::Numeric;
use crate::row::{Diff, Row};
use crate::sqlstate;
use crate::types::{Scalar, Type};
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
        A::Collect(collect, _) => {
            let mut entries: Vec<(&[u8], Diff)> = values.iter().filter_map(entry).collect();
            entries.sort_unstable();
            collect.finish(entries.into_iter())
        }
        _ if values.is_empty() => Ok(Datum::Null),
        A::SumInt => {
            let sum: i128 = integers(&values).map(|(v, diff)| v * i128::from(diff)).sum();
            i64::try_from(sum).map(Datum::Int8).map_err(|_| {
                DataError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
            })
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
        A::AvgFloat => float_average(&values),
        A::Regression(kind) => of_pairs(kind, &values),
        A::Min(ty) => Ok(extreme(&values, ty, Ordering::Less)),
        A::Max(ty) => Ok(extreme(&values, ty, Ordering::Greater)),
        A::BoolAnd => Ok(Datum::Bool(values.iter().all(|(value, _)| value.is_true()))),
        A::BoolOr => Ok(Datum::Bool(values.iter().any(|(value, _)| value.is_true()))),
        A::BitAnd(ty) => Ok(integer(ty, bits(&values).fold(-1, |all, bits| all & bits))),
        A::BitOr(ty) => Ok(integer(ty, bits(&values).fold(0, |any, bits| any | bits))),
        A::BitXor(ty) => {
            let odd: Vec<_> = values.into_iter().filter(|(_, diff)| diff % 2 != 0).collect();
            Ok(integer(ty, bits(&odd).fold(0, |odd, bits| odd ^ bits)))
        }
        A::SpreadInt(kind) | A::SpreadNumeric(kind) => spread::of_numerics(kind, &values),
        A::SpreadFloat(kind) => spread::of_floats(kind, &values),
        A::Any => Ok(least(values.into_iter().map(|(value, _)| value))),
    }
}

fn entry((value, copies): &(Datum, Diff)) -> Option<(&[u8], Diff)> {
    match value {
        Datum::Bytea(bytes) => Some((bytes, *copies)),
        _ => None,
    }
}

fn count(values: &[(Datum, Diff)]) -> Diff {
    values.iter().map(|(_, diff)| diff).sum()
}

fn integers(values: &[(Datum, Diff)]) -> impl Iterator<Item = (i128, Diff)> + '_ {
    values.iter().filter_map(|(value, diff)| Some((i128::from(value.as_i64()?), *diff)))
}

fn bits(values: &[(Datum, Diff)]) -> impl Iterator<Item = i64> + '_ {
    values.iter().filter_map(|(value, _)| value.as_i64())
}

fn integer(ty: Type, bits: i64) -> Datum {
    match ty.base() {
        Scalar::Int2 => Datum::Int2(bits as i16),
        Scalar::Int4 => Datum::Int4(bits as i32),
        _ => Datum::Int8(bits),
    }
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
    let specials = || floats().map(|(value, _)| value).filter(|value| !value.is_finite());
    if specials().next().is_some() {
        return specials().sum::<f64>().to_string();
    }
    let mut sum = BigInt::from(0);
    for (value, diff) in floats() {
        sum += float_integer(value) * diff;
    }
    format!("{}e-1074", sum * BigInt::from(5).pow(1074))
}

fn float8_sum(values: &[(Datum, Diff)]) -> Result<f64, DataError> {
    let sum: f64 = float_sum(values).parse().unwrap_or(f64::NAN);
    finite_sum(values, sum.is_infinite()).map(|()| sum)
}

pub(super) fn float_average(values: &[(Datum, Diff)]) -> Result<Datum, DataError> {
    float8_sum(values).map(|sum| Datum::Float8(sum / count(values) as f64))
}

/// Finite values whose sum is too large are an error.
fn finite_sum(values: &[(Datum, Diff)], infinite: bool) -> Result<(), DataError> {
    let finite = values.iter().all(|(value, _)| value.as_f64().is_some_and(f64::is_finite));
    if infinite && finite {
        return Err(DataError::new(
            sqlstate::NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: overflow",
        ));
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
