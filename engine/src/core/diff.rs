//! Multiplicity of a row inside a dataflow: an `i64` whose arithmetic is checked.
//!
//! A recursion over cyclic data under UNION ALL doubles multiplicities in every iteration; wrapped
//! around, they could even add up to zero and end the loop with a wrong answer. Overflow therefore
//! raises a flag of the thread, which the worker looks at after every step (see [`take_overflow`]).

use differential_dataflow::difference::{Abelian, IsZero, Monoid, Multiply, Semigroup};
use serde::{Deserialize, Serialize};
use std::cell::Cell;

thread_local! {
    static OVERFLOWED: Cell<bool> = const { Cell::new(false) };
}

/// Signed multiplicity with checked arithmetic.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub(crate) struct Mult(pub(crate) i64);

/// Whether a multiplicity overflowed on this thread since the last call.
pub(crate) fn take_overflow() -> bool {
    OVERFLOWED.with(|flag| flag.replace(false))
}

fn checked(value: Option<i64>) -> i64 {
    value.unwrap_or_else(|| {
        OVERFLOWED.with(|flag| flag.set(true));
        // Any value will do, except one that could cancel: the dataflow is stopped before it is used.
        i64::MAX
    })
}

impl Mult {
    /// What takes so many copies back.
    pub(crate) fn negated(mut self) -> Self {
        self.negate();
        self
    }
}

impl From<i8> for Mult {
    fn from(value: i8) -> Self {
        Mult(value.into())
    }
}

impl IsZero for Mult {
    #[inline]
    fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl Semigroup for Mult {
    #[inline]
    fn plus_equals(&mut self, rhs: &Self) {
        self.0 = checked(self.0.checked_add(rhs.0));
    }
}

impl Monoid for Mult {
    fn zero() -> Self {
        Mult(0)
    }
}

impl Abelian for Mult {
    #[inline]
    fn negate(&mut self) {
        self.0 = checked(self.0.checked_neg());
    }
}

impl Multiply<Self> for Mult {
    type Output = Self;
    #[inline]
    fn multiply(self, rhs: &Self) -> Self {
        Mult(checked(self.0.checked_mul(rhs.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_is_noticed_once() {
        let mut m = Mult(i64::MAX - 1);
        m.plus_equals(&Mult(1));
        assert!(!take_overflow());
        m.plus_equals(&Mult(1));
        assert!(take_overflow());
        assert!(!take_overflow());
        let _ = Mult(1 << 40).multiply(&Mult(1 << 40));
        assert!(take_overflow());
    }
}
