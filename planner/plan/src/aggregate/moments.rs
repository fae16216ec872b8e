//! Sums and sums of squares: what variances and standard deviations are made of.

use super::dyadic::Dyadic;
use super::exact::Exact;
use super::float::{in_range, FloatSum};
use super::numeric::NumericSum;
use crate::aggregate::Spread;
use crate::error::DataError;
use crate::numeric::{variance, Decimal, Numeric};
use crate::value::Datum;
use serde::{Deserialize, Serialize};

/// What the sum of the squared distances from the mean, times the number of values, is divided by; `None` if
/// there are too few values.
fn divisor(spread: Spread, count: i64) -> Option<i128> {
    let count = i128::from(count);
    match spread {
        _ if count == 0 => None,
        Spread::VarPop | Spread::StddevPop => Some(count * count),
        Spread::VarSamp | Spread::StddevSamp => (count > 1).then(|| count * (count - 1)),
    }
}

fn is_root(spread: Spread) -> bool {
    matches!(spread, Spread::StddevPop | Spread::StddevSamp)
}

/// PostgreSQL's result for `numeric`, its scale included.
fn finish_numeric(
    spread: Spread,
    count: i64,
    sum: &Decimal,
    squares: &Decimal,
) -> Result<Datum, DataError> {
    let Some(divisor) = divisor(spread, count) else { return Ok(Datum::Null) };
    let variance = variance(count, sum, squares, divisor);
    let result = if is_root(spread) { variance.square_root() } else { variance };
    Numeric::Finite(result).checked().map(Datum::Numeric)
}

/// Number, sum and sum of squares of integers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IntMoments {
    count: i64,
    sum: i128,
    squares: Exact,
}

impl IntMoments {
    pub(super) fn of(value: i64, copies: i64) -> IntMoments {
        let value = i128::from(value);
        IntMoments {
            count: copies,
            sum: value * i128::from(copies),
            squares: Exact::Small(value * value).times(copies),
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.count == 0 && self.sum == 0 && self.squares.is_zero()
    }

    pub(super) fn plus(&mut self, other: &IntMoments) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.plus(&other.squares);
    }

    pub(super) fn multiply(&mut self, copies: i64) {
        self.count *= copies;
        self.sum *= i128::from(copies);
        self.squares = self.squares.times(copies);
    }

    pub(super) fn finish(&self, spread: Spread) -> Result<Datum, DataError> {
        let sum = Decimal::new(self.sum.into(), 0);
        finish_numeric(spread, self.count, &sum, &Decimal::new(self.squares.to_big(), 0))
    }
}

/// Sum and sum of squares of numerics. Those that are not finite are in the sum only.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NumericMoments {
    sum: NumericSum,
    squares: NumericSum,
}

impl NumericMoments {
    pub(super) fn add(&mut self, value: &Numeric, copies: i64) {
        self.sum.add(value, copies);
        if let Some(decimal) = value.finite() {
            self.squares.add_square(decimal, copies);
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.sum.is_zero() && self.squares.is_zero()
    }

    pub(super) fn plus(&mut self, other: &NumericMoments) {
        self.sum.plus(&other.sum);
        self.squares.plus(&other.squares);
    }

    pub(super) fn multiply(&mut self, copies: i64) {
        self.sum.multiply(copies);
        self.squares.multiply(copies);
    }

    pub(super) fn finish(&self, spread: Spread) -> Result<Datum, DataError> {
        match self.sum.total() {
            Some((Numeric::Finite(sum), count)) => {
                finish_numeric(spread, count, &sum, &self.squares.finite_total())
            }
            Some((_, count)) if divisor(spread, count).is_some() => {
                Ok(Datum::Numeric(Numeric::NAN))
            }
            _ => Ok(Datum::Null),
        }
    }
}

/// Sum and sum of squares of floats. NaN and infinities are in the sum only.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FloatMoments {
    sum: FloatSum,
    squares: Dyadic,
}

impl FloatMoments {
    pub(super) fn add(&mut self, value: f64, copies: i64) {
        self.sum.add(value, copies);
        if value.is_finite() {
            self.squares.add_product(value, value, copies);
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.sum.is_zero() && self.squares.is_zero()
    }

    pub(super) fn plus(&mut self, other: &FloatMoments) {
        self.sum.plus(&other.sum);
        self.squares.plus_equals(&other.squares);
    }

    pub(super) fn multiply(&mut self, copies: i64) {
        self.sum.multiply(copies);
        self.squares = self.squares.times(copies);
    }

    pub(super) fn finish(&self, spread: Spread) -> Result<Datum, DataError> {
        let count = self.sum.count();
        let Some(divisor) = divisor(spread, count) else { return Ok(Datum::Null) };
        let Some(sum) = self.sum.finite() else { return Ok(Datum::Float8(f64::NAN)) };
        let (scaled, divisor) = (scaled_deviations(count, sum, sum, &self.squares), divisor.into());
        let result = if is_root(spread) {
            scaled.root_of_quotient(&divisor)
        } else {
            scaled.quotient(&divisor)
        };
        in_range(result).map(Datum::Float8)
    }
}

/// The sum of `(a - mean of a) * (b - mean of b)`, times the number of values, from the sums of `a`, `b` and
/// `a * b`.
pub(super) fn scaled_deviations(count: i64, a: &Dyadic, b: &Dyadic, products: &Dyadic) -> Dyadic {
    products.times(count).minus(&a.product(b))
}
