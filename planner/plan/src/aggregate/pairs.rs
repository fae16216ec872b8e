//! Sums over pairs of doubles: covariance, correlation and the line that fits best.

use super::dyadic::Dyadic;
use super::float::{in_range, FloatSum};
use super::moments::scaled_deviations;
use crate::aggregate::Regression;
use crate::error::DataError;
use crate::value::Datum;
use serde::{Deserialize, Serialize};
use Datum::Null;

/// The sums of both members of pairs and of their products. NaN and infinities are in the sums only.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PairMoments {
    y: FloatSum,
    x: FloatSum,
    yy: Dyadic,
    xx: Dyadic,
    xy: Dyadic,
}

/// The sums of products of distances from the means, times the number of pairs; `None` where NaN or an
/// infinity takes part.
struct Deviations {
    yy: Option<Dyadic>,
    xx: Option<Dyadic>,
    xy: Option<Dyadic>,
}

impl PairMoments {
    pub(super) fn add(&mut self, y: f64, x: f64, copies: i64) {
        self.y.add(y, copies);
        self.x.add(x, copies);
        for (product, a, b) in [(&mut self.yy, y, y), (&mut self.xx, x, x), (&mut self.xy, x, y)] {
            if a.is_finite() && b.is_finite() {
                product.add_product(a, b, copies);
            }
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        *self == PairMoments::default()
    }

    pub(super) fn plus(&mut self, other: &PairMoments) {
        self.y.plus(&other.y);
        self.x.plus(&other.x);
        self.yy.plus_equals(&other.yy);
        self.xx.plus_equals(&other.xx);
        self.xy.plus_equals(&other.xy);
    }

    pub(super) fn multiply(&mut self, copies: i64) {
        self.y.multiply(copies);
        self.x.multiply(copies);
        for product in [&mut self.yy, &mut self.xx, &mut self.xy] {
            *product = product.times(copies);
        }
    }

    fn deviations(&self) -> Deviations {
        let scaled = |a: &FloatSum, b: &FloatSum, products| {
            Some(scaled_deviations(a.count(), a.finite()?, b.finite()?, products))
        };
        Deviations {
            yy: scaled(&self.y, &self.y, &self.yy),
            xx: scaled(&self.x, &self.x, &self.xx),
            xy: scaled(&self.x, &self.y, &self.xy),
        }
    }

    pub(super) fn finish(&self, regression: Regression) -> Result<Datum, DataError> {
        let count = i128::from(self.x.count());
        if count == 0 {
            return Ok(Null);
        }
        let Deviations { yy, xx, xy } = self.deviations();
        match regression {
            Regression::AvgX => self.x.average(),
            Regression::AvgY => self.y.average(),
            Regression::Sxx => sum(xx, count),
            Regression::Syy => sum(yy, count),
            Regression::Sxy => sum(xy, count),
            Regression::CovarPop => sum(xy, count * count),
            Regression::CovarSamp if count < 2 => Ok(Null),
            Regression::CovarSamp => sum(xy, count * (count - 1)),
            // Of a vertical line there is no slope.
            _ if is_zero(&xx) => Ok(Null),
            Regression::Slope => Ok(slope(xx, xy)),
            Regression::Intercept => Ok(self.intercept(xx, xy)),
            Regression::R2 if is_zero(&yy) => Ok(Datum::Float8(1.0)),
            Regression::R2 => Ok(determination(yy, xx, xy)),
            Regression::Corr if is_zero(&yy) => Ok(Null),
            Regression::Corr => Ok(correlation(yy, xx, xy)),
        }
    }

    /// (Σy - Σx · xy / xx) / n
    fn intercept(&self, xx: Option<Dyadic>, xy: Option<Dyadic>) -> Datum {
        let intercept = || {
            let (xx, xy) = (xx?, xy?);
            let height = self.y.finite()?.product(&xx).minus(&self.x.finite()?.product(&xy));
            Some(height.quotient(&xx.times(self.x.count())))
        };
        float(intercept())
    }
}

fn is_zero(sum: &Option<Dyadic>) -> bool {
    sum.as_ref().is_some_and(Dyadic::is_zero)
}

fn float(value: Option<f64>) -> Datum {
    Datum::Float8(value.unwrap_or(f64::NAN))
}

/// A sum of products, or a part of it.
fn sum(products: Option<Dyadic>, divisor: i128) -> Result<Datum, DataError> {
    let quotient = products.map(|products| in_range(products.quotient(&divisor.into())));
    Ok(float(quotient.transpose()?))
}

fn slope(xx: Option<Dyadic>, xy: Option<Dyadic>) -> Datum {
    float(xy.zip(xx).map(|(xy, xx)| xy.quotient(&xx)))
}

fn determination(yy: Option<Dyadic>, xx: Option<Dyadic>, xy: Option<Dyadic>) -> Datum {
    let squares = xx.zip(yy).map(|(xx, yy)| xx.product(&yy));
    float(xy.zip(squares).map(|(xy, squares)| xy.product(&xy).quotient(&squares)))
}

fn correlation(yy: Option<Dyadic>, xx: Option<Dyadic>, xy: Option<Dyadic>) -> Datum {
    let squares = xx.zip(yy).map(|(xx, yy)| xx.product(&yy));
    float(xy.zip(squares).map(|(xy, squares)| {
        let size = xy.product(&xy).root_of_quotient(&squares);
        if xy.is_negative() {
            -size
        } else {
            size
        }
    }))
}
