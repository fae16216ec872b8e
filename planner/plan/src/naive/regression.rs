//! Figures of pairs by definition: distances from the means, as exact fractions.

use super::aggregate::float_average;
use super::spread::{float_integer, quotient, root, FLOAT_DIGITS};
use crate::aggregate::Regression;
use crate::error::DataError;
use crate::row::Diff;
use crate::sqlstate;
use crate::value::Datum;
use num_bigint::{BigInt, Sign};

/// Members of pairs, as multiples of the smallest double, with their multiplicities; `None` if one is not finite.
type Members = Option<Vec<(BigInt, Diff)>>;

/// One member of every pair.
fn members(pairs: &[(Datum, Diff)], position: usize) -> Vec<(Datum, Diff)> {
    let members = pairs
        .iter()
        .filter_map(|(pair, diff)| Some((pair.as_array()?.elements.get(position)?.clone(), *diff)));
    members.collect()
}

fn integers(members: &[(Datum, Diff)]) -> Members {
    let integer = |(value, diff): &(Datum, Diff)| {
        Some((float_integer(value.as_f64().filter(|value| value.is_finite())?), *diff))
    };
    members.iter().map(integer).collect()
}

fn sum(members: &[(BigInt, Diff)]) -> BigInt {
    members.iter().map(|(value, diff)| value * diff).sum()
}

/// The sum of products of distances from the means, times the square of the number of pairs.
fn products(a: &Members, b: &Members, count: Diff) -> Option<BigInt> {
    let (a, b) = (a.as_ref()?, b.as_ref()?);
    let (a_sum, b_sum) = (sum(a), sum(b));
    let product = |((x, diff), (y, _)): (&(BigInt, Diff), &(BigInt, Diff))| {
        (x * count - &a_sum) * (y * count - &b_sum) * diff
    };
    Some(a.iter().zip(b).map(product).sum())
}

/// The figure of some pairs; there is one at least.
pub(super) fn of_pairs(kind: Regression, pairs: &[(Datum, Diff)]) -> Result<Datum, DataError> {
    use Regression as R;
    let count: Diff = pairs.iter().map(|(_, diff)| diff).sum();
    let (y, x) = (integers(&members(pairs, 0)), integers(&members(pairs, 1)));
    let (xx, yy) = (products(&x, &x, count), products(&y, &y, count));
    let xy = products(&x, &y, count);
    let is_zero = |products: &Option<BigInt>| *products == Some(BigInt::from(0));
    let part = |products: &Option<BigInt>, divisor: Diff| {
        let divisor = (BigInt::from(count).pow(2) * divisor) << (2 * FLOAT_DIGITS);
        products.as_ref().map(|products| quotient(products, &divisor))
    };
    let figure = match kind {
        R::AvgY => return float_average(&members(pairs, 0)),
        R::AvgX => return float_average(&members(pairs, 1)),
        R::CovarSamp if count < 2 => return Ok(Datum::Null),
        R::Sxx => part(&xx, 1),
        R::Syy => part(&yy, 1),
        R::CovarPop => part(&xy, count),
        R::CovarSamp => part(&xy, count - 1),
        R::Sxy => part(&xy, 1),
        _ if is_zero(&xx) => return Ok(Datum::Null),
        R::Corr if is_zero(&yy) => return Ok(Datum::Null),
        R::R2 if is_zero(&yy) => return Ok(Datum::Float8(1.0)),
        R::Slope => xy.zip(xx).map(|(xy, xx)| quotient(&xy, &xx)),
        R::Intercept => xy.zip(xx).zip(y.zip(x)).map(|((xy, xx), (y, x))| {
            quotient(&(sum(&y) * &xx - sum(&x) * xy), &((xx * count) << FLOAT_DIGITS))
        }),
        R::R2 | R::Corr => xy.zip(xx.zip(yy)).map(|(xy, (xx, yy))| match (kind, xy.sign()) {
            (R::R2, _) => quotient(&xy.pow(2), &(xx * yy)),
            (_, Sign::Minus) => -root(&xy.pow(2), &(xx * yy)),
            _ => root(&xy.pow(2), &(xx * yy)),
        }),
    };
    let is_sum = !matches!(kind, R::Slope | R::Intercept);
    match figure {
        Some(figure) if figure.is_infinite() && is_sum => Err(DataError::new(
            sqlstate::NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: overflow",
        )),
        figure => Ok(Datum::Float8(figure.unwrap_or(f64::NAN))),
    }
}
