//! Variance and square root, with PostgreSQL's result scales.

use super::Decimal;
use num_bigint::BigInt;

/// `(count * squares - sum²) / divisor`, at the scale a quotient has; a plain 0 if nothing varies.
pub fn variance(count: i64, sum: &Decimal, squares: &Decimal, divisor: i128) -> Decimal {
    // Exact at twice the scale, which may be more than a number that is stored can have.
    let square = Decimal::new(-sum.coefficient().pow(2), 2 * sum.scale);
    let scaled = Decimal::new(squares.coefficient() * count, squares.scale).plus(&square);
    if scaled.signum() <= 0 {
        return Decimal::from_i128(0, 0);
    }
    scaled.quotient(&Decimal::from_i128(divisor, 0))
}

impl Decimal {
    /// The square root at the number's own scale, rounded half up. The number is not negative.
    pub fn square_root(&self) -> Decimal {
        // As an integer the root has half as many digits after the point as its square.
        let square = self.coefficient() * super::pow10(u32::from(self.scale));
        let root = square.sqrt();
        // (root + 1/2)² = root² + root + 1/4
        let is_above_half = &square - &root * &root > root;
        Decimal::new(root + BigInt::from(i32::from(is_above_half)), self.scale)
    }
}
