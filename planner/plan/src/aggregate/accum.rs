//! Aggregates that add up: what a group's rows contribute is a difference like any other.
//!
//! An [`Accum`] is a linear function of the multiset of arguments: adding a row and taking it away
//! again leaves exactly what was there before, so sums of floats do not drift and no group is ever
//! rescanned. To that end everything is exact until [`Accum::finish`] rounds once:
//!
//! - integers are added in 128 bits, their squares in more once they need it;
//! - numerics as integers, one per display scale with the number of its rows, because the scale of a
//!   sum is the largest scale among the rows present;
//! - floats as big binary fixed-point numbers. PostgreSQL rounds after every row, in whatever order it
//!   meets them, so its own result is one of several; ours is the nearest float to the true sum;
//! - NaN, infinities and negative zeros are counted;
//! - so are the integers that have a bit set, for each bit.
//!
//! Variances, standard deviations and the figures of pairs come from the exact sums of the values and of their
//! products. Of floats PostgreSQL sums up rounded products of distances from a mean that it corrects with every
//! row; the results differ from ours in their last digits, and it may fail where just an intermediate value is
//! too large, lose one that is too small, or find a small variance in values that are all the same. NaN and
//! infinities make all of them NaN.

use super::bits::BitCounts;
use super::float::FloatSum;
use super::kinds::AggregateFunc;
use super::moments::{FloatMoments, IntMoments, NumericMoments};
use super::numeric::NumericSum;
use super::pairs::PairMoments;
use crate::error::DataError;
use crate::numeric::Numeric;
use crate::sqlstate;
use crate::types::{Scalar, Type};
use crate::value::Datum;
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
    /// How often each bit of integers is set.
    Bits(BitCounts),
    /// Sum of integers and of their squares.
    IntMoments(Box<IntMoments>),
    /// Sum of numerics and of their squares.
    NumericMoments(Box<NumericMoments>),
    /// Sum of floats and of their squares.
    FloatMoments(Box<FloatMoments>),
    /// Sums over pairs of doubles and their products.
    Pairs(Box<PairMoments>),
}

impl Accum {
    /// The accumulation of nothing. `func` is one of the accumulable aggregates; for `Min`, `Max` and
    /// `Any` and `Collect`, which are not, the arguments are counted.
    pub fn zero(func: AggregateFunc) -> Accum {
        match func {
            AggregateFunc::Count
            | AggregateFunc::Min(_)
            | AggregateFunc::Max(_)
            | AggregateFunc::Collect(..)
            | AggregateFunc::Any => Accum::Count(0),
            AggregateFunc::SumInt | AggregateFunc::SumInt8 | AggregateFunc::AvgInt => {
                Accum::Int { sum: 0, count: 0 }
            }
            AggregateFunc::SumNumeric | AggregateFunc::AvgNumeric => Accum::Numeric(Box::default()),
            AggregateFunc::SumFloat4 | AggregateFunc::SumFloat8 | AggregateFunc::AvgFloat => {
                Accum::Float(Box::default())
            }
            AggregateFunc::BoolAnd | AggregateFunc::BoolOr => Accum::Bool { trues: 0, falses: 0 },
            AggregateFunc::BitAnd(_) | AggregateFunc::BitOr(_) | AggregateFunc::BitXor(_) => {
                Accum::Bits(BitCounts::default())
            }
            AggregateFunc::SpreadInt(_) => Accum::IntMoments(Box::default()),
            AggregateFunc::SpreadNumeric(_) => Accum::NumericMoments(Box::default()),
            AggregateFunc::SpreadFloat(_) => Accum::FloatMoments(Box::default()),
            AggregateFunc::Regression(_) => Accum::Pairs(Box::default()),
        }
    }

    /// What `copies` rows with this argument contribute; see [`Accum::add`].
    pub fn of(func: AggregateFunc, arg: Option<&Datum>, copies: i64) -> Accum {
        let mut accum = Accum::zero(func);
        accum.add(arg, copies);
        accum
    }

    /// Adds `copies` rows with this argument; `None` stands for the argument of `count(*)`. A NULL argument
    /// contributes nothing.
    pub fn add(&mut self, arg: Option<&Datum>, copies: i64) {
        match (self, arg) {
            (_, Some(Datum::Null)) => {}
            (Accum::Count(count), _) => *count += copies,
            (Accum::Int { sum, count }, Some(value)) => {
                *sum += i128::from(value.as_i64().unwrap_or_default()) * i128::from(copies);
                *count += copies;
            }
            (Accum::Numeric(sum), Some(Datum::Numeric(value))) => sum.add(value, copies),
            (Accum::Float(sum), Some(value)) => {
                sum.add(value.as_f64().unwrap_or_default(), copies);
            }
            (Accum::Bool { trues, .. }, Some(Datum::Bool(true))) => *trues += copies,
            (Accum::Bool { falses, .. }, Some(Datum::Bool(false))) => *falses += copies,
            (Accum::Bits(counts), Some(value)) => {
                counts.plus(&BitCounts::of(value.as_i64().unwrap_or_default(), copies));
            }
            (Accum::IntMoments(moments), Some(value)) => {
                moments.plus(&IntMoments::of(value.as_i64().unwrap_or_default(), copies));
            }
            (Accum::NumericMoments(moments), Some(Datum::Numeric(value))) => {
                moments.add(value, copies);
            }
            (Accum::FloatMoments(moments), Some(value)) => {
                moments.add(value.as_f64().unwrap_or_default(), copies);
            }
            (Accum::Pairs(moments), Some(Datum::Array(pair))) => {
                if let [Datum::Float8(y), Datum::Float8(x)] = *pair.elements {
                    moments.add(y, x, copies);
                }
            }
            _ => {}
        }
    }

    /// Whether this is the accumulation of nothing.
    pub fn is_zero(&self) -> bool {
        match self {
            Accum::Count(count) => *count == 0,
            Accum::Int { sum, count } => *sum == 0 && *count == 0,
            Accum::Numeric(sum) => sum.is_zero(),
            Accum::Float(sum) => sum.is_zero(),
            Accum::Bool { trues, falses } => *trues == 0 && *falses == 0,
            Accum::Bits(counts) => counts.is_zero(),
            Accum::IntMoments(moments) => moments.is_zero(),
            Accum::NumericMoments(moments) => moments.is_zero(),
            Accum::FloatMoments(moments) => moments.is_zero(),
            Accum::Pairs(moments) => moments.is_zero(),
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
            (Accum::Bits(a), Accum::Bits(b)) => a.plus(b),
            (Accum::IntMoments(a), Accum::IntMoments(b)) => a.plus(b),
            (Accum::NumericMoments(a), Accum::NumericMoments(b)) => a.plus(b),
            (Accum::FloatMoments(a), Accum::FloatMoments(b)) => a.plus(b),
            (Accum::Pairs(a), Accum::Pairs(b)) => a.plus(b),
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
            Accum::Bits(counts) => counts.multiply(copies),
            Accum::IntMoments(moments) => moments.multiply(copies),
            Accum::NumericMoments(moments) => moments.multiply(copies),
            Accum::FloatMoments(moments) => moments.multiply(copies),
            Accum::Pairs(moments) => moments.multiply(copies),
        }
    }

    /// Replaces the accumulation by its inverse.
    pub fn negate(&mut self) {
        self.multiply(-1);
    }

    /// The aggregate's value; NULL when it saw no argument (zero for `count`).
    pub fn finish(&self, func: AggregateFunc) -> Result<Datum, DataError> {
        use AggregateFunc as A;
        match (self, func) {
            (Accum::Count(count), _) => Ok(Datum::Int8(*count)),
            (Accum::Int { count: 0, .. } | Accum::Bool { trues: 0, falses: 0 }, _) => {
                Ok(Datum::Null)
            }
            (Accum::Int { sum, count }, _) => finish_int(func, *sum, *count),
            (Accum::Numeric(sum), _) => finish_numeric(func, sum),
            (Accum::Float(sum), A::AvgFloat) => sum.average(),
            (Accum::Float(sum), A::SumFloat4) => sum.total_f32(),
            (Accum::Float(sum), _) => sum.total_f64(),
            (Accum::Bool { falses, .. }, A::BoolAnd) => Ok(Datum::Bool(*falses == 0)),
            (Accum::Bool { trues, .. }, _) => Ok(Datum::Bool(*trues != 0)),
            (Accum::Bits(counts), _) => Ok(finish_bits(func, counts)),
            (Accum::IntMoments(moments), A::SpreadInt(spread)) => moments.finish(spread),
            (Accum::NumericMoments(moments), A::SpreadNumeric(spread)) => moments.finish(spread),
            (Accum::FloatMoments(moments), A::SpreadFloat(spread)) => moments.finish(spread),
            (Accum::Pairs(moments), A::Regression(regression)) => moments.finish(regression),
            (
                Accum::IntMoments(_)
                | Accum::NumericMoments(_)
                | Accum::FloatMoments(_)
                | Accum::Pairs(_),
                _,
            ) => {
                debug_assert!(false, "the accumulation of another aggregate");
                Ok(Datum::Null)
            }
        }
    }
}

fn finish_int(func: AggregateFunc, sum: i128, count: i64) -> Result<Datum, DataError> {
    match func {
        AggregateFunc::SumInt => i64::try_from(sum).map(Datum::Int8).map_err(|_| {
            DataError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
        }),
        AggregateFunc::SumInt8 => Ok(Datum::Numeric(Numeric::from(sum))),
        _ => Numeric::from(sum).divide(&Numeric::from(count)).map(Datum::Numeric),
    }
}

fn finish_numeric(func: AggregateFunc, sum: &NumericSum) -> Result<Datum, DataError> {
    match sum.total() {
        None => Ok(Datum::Null),
        Some((total, count)) if func == AggregateFunc::AvgNumeric => {
            total.divide(&Numeric::from(count)).map(Datum::Numeric)
        }
        Some((total, _)) => total.checked().map(Datum::Numeric),
    }
}

fn finish_bits(func: AggregateFunc, counts: &BitCounts) -> Datum {
    if counts.count() == 0 {
        return Datum::Null;
    }
    match func {
        AggregateFunc::BitAnd(ty) => integer(ty, counts.and()),
        AggregateFunc::BitOr(ty) => integer(ty, counts.or()),
        AggregateFunc::BitXor(ty) => integer(ty, counts.xor()),
        _ => Datum::Null,
    }
}

/// An integer of the type from its bits, of which narrower types have repeated the sign.
fn integer(ty: Type, bits: i64) -> Datum {
    match ty.base() {
        Scalar::Int2 => Datum::Int2(bits as i16),
        Scalar::Int4 => Datum::Int4(bits as i32),
        _ => Datum::Int8(bits),
    }
}
