//! Aggregates that add up: what a group's rows contribute is a difference like any other.
//!
//! An [`Accum`] is a linear function of the multiset of arguments: adding a row and taking it away
//! again leaves exactly what was there before, so sums of floats do not drift and no group is ever
//! rescanned. To that end everything is exact until [`Accum::finish`] rounds once:
//!
//! - integers are added in 128 bits;
//! - numerics as integers, one per display scale with the number of its rows, because the scale of a
//!   sum is the largest scale among the rows present;
//! - floats as big binary fixed-point numbers. PostgreSQL rounds after every row, in whatever order it
//!   meets them, so its own result is one of several; ours is the nearest float to the true sum;
//! - NaN, infinities and negative zeros are counted.

mod exact;
mod float;
mod numeric;

use crate::error::DataError;
use crate::numeric::Numeric;
use crate::plan::AggregateFunc;
use crate::value::Datum;
use float::FloatSum;
use numeric::NumericSum;
use serde::{Deserialize, Serialize};

/// The accumulated arguments of one aggregate of one group. The order is arbitrary but total.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Accum {
    /// Rows counted: `count`.
    Count(i64),
    /// Sum and number of integers.
    Int { sum: i128, count: i64 },
    /// Sum of numerics.
    Numeric(Box<NumericSum>),
    /// Sum of floats.
    Float(Box<FloatSum>),
    /// Numbers of true and of false values.
    Bool { trues: i64, falses: i64 },
}

impl Accum {
    /// The accumulation of nothing. `func` is one of the accumulable aggregates; for `Min`, `Max` and
    /// `Any`, which are not, the arguments are counted.
    pub fn zero(func: AggregateFunc) -> Accum {
        match func {
            AggregateFunc::Count
            | AggregateFunc::Min(_)
            | AggregateFunc::Max(_)
            | AggregateFunc::Any => Accum::Count(0),
            AggregateFunc::SumInt | AggregateFunc::SumInt8 | AggregateFunc::AvgInt => {
                Accum::Int { sum: 0, count: 0 }
            }
            AggregateFunc::SumNumeric | AggregateFunc::AvgNumeric => Accum::Numeric(Box::default()),
            AggregateFunc::SumFloat4 | AggregateFunc::SumFloat8 | AggregateFunc::AvgFloat => {
                Accum::Float(Box::default())
            }
            AggregateFunc::BoolAnd | AggregateFunc::BoolOr => Accum::Bool { trues: 0, falses: 0 },
        }
    }

    /// What `copies` rows with this argument contribute; `None` stands for the argument of `count(*)`.
    /// A NULL argument contributes nothing.
    pub fn of(func: AggregateFunc, arg: Option<&Datum>, copies: i64) -> Accum {
        let mut accum = Accum::zero(func);
        match (&mut accum, arg) {
            (_, Some(Datum::Null)) => {}
            (Accum::Count(count), _) => *count = copies,
            (Accum::Int { sum, count }, Some(value)) => {
                *sum = i128::from(value.as_i64().unwrap_or_default()) * i128::from(copies);
                *count = copies;
            }
            (Accum::Numeric(sum), Some(Datum::Numeric(value))) => sum.add(value, copies),
            (Accum::Float(sum), Some(value)) => {
                sum.add(value.as_f64().unwrap_or_default(), copies);
            }
            (Accum::Bool { trues, .. }, Some(Datum::Bool(true))) => *trues = copies,
            (Accum::Bool { falses, .. }, Some(Datum::Bool(false))) => *falses = copies,
            _ => {}
        }
        accum
    }

    /// Whether this is the accumulation of nothing.
    pub fn is_zero(&self) -> bool {
        match self {
            Accum::Count(count) => *count == 0,
            Accum::Int { sum, count } => *sum == 0 && *count == 0,
            Accum::Numeric(sum) => sum.is_zero(),
            Accum::Float(sum) => sum.is_zero(),
            Accum::Bool { trues, falses } => *trues == 0 && *falses == 0,
        }
    }

    /// Adds another accumulation of the same aggregate.
    pub fn plus_equals(&mut self, other: &Accum) {
        match (self, other) {
            (Accum::Count(a), Accum::Count(b)) => *a += b,
            (Accum::Int { sum, count }, Accum::Int { sum: more, count: rows }) => {
                *sum += more;
                *count += rows;
            }
            (Accum::Numeric(a), Accum::Numeric(b)) => a.plus(b),
            (Accum::Float(a), Accum::Float(b)) => a.plus(b),
            (Accum::Bool { trues, falses }, Accum::Bool { trues: t, falses: f }) => {
                *trues += t;
                *falses += f;
            }
            _ => debug_assert!(false, "accumulations of different aggregates"),
        }
    }

    /// Multiplies by a number of copies.
    pub fn multiply(&mut self, copies: i64) {
        match self {
            Accum::Count(count) => *count *= copies,
            Accum::Int { sum, count } => {
                *sum *= i128::from(copies);
                *count *= copies;
            }
            Accum::Numeric(sum) => sum.multiply(copies),
            Accum::Float(sum) => sum.multiply(copies),
            Accum::Bool { trues, falses } => {
                *trues *= copies;
                *falses *= copies;
            }
        }
    }

    /// Replaces the accumulation by its inverse.
    pub fn negate(&mut self) {
        self.multiply(-1);
    }

    /// The aggregate's value; NULL when it saw no argument (zero for `count`).
    pub fn finish(&self, func: AggregateFunc) -> Result<Datum, DataError> {
        match self {
            Accum::Count(count) => Ok(Datum::Int8(*count)),
            Accum::Int { count: 0, .. } => Ok(Datum::Null),
            Accum::Int { sum, count } => finish_int(func, *sum, *count),
            Accum::Numeric(sum) => match sum.total() {
                None => Ok(Datum::Null),
                Some((total, count)) if func == AggregateFunc::AvgNumeric => {
                    total.divide(&Numeric::from(count)).map(Datum::Numeric)
                }
                Some((total, _)) => total.checked().map(Datum::Numeric),
            },
            Accum::Float(sum) => match func {
                AggregateFunc::AvgFloat => sum.average(),
                AggregateFunc::SumFloat4 => sum.total_f32(),
                _ => sum.total_f64(),
            },
            Accum::Bool { trues: 0, falses: 0 } => Ok(Datum::Null),
            Accum::Bool { trues, falses } => Ok(Datum::Bool(match func {
                AggregateFunc::BoolAnd => *falses == 0,
                _ => *trues != 0,
            })),
        }
    }
}

fn finish_int(func: AggregateFunc, sum: i128, count: i64) -> Result<Datum, DataError> {
    match func {
        AggregateFunc::SumInt => i64::try_from(sum)
            .map(Datum::Int8)
            .map_err(|_| DataError::new("22003", "bigint out of range")),
        AggregateFunc::SumInt8 => Ok(Datum::Numeric(Numeric::from(sum))),
        _ => Numeric::from(sum).divide(&Numeric::from(count)).map(Datum::Numeric),
    }
}
