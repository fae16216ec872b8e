//! Integers of any size, cheap while they fit 128 bits.

use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};

/// An integer; `Small` whenever it fits, so that equal integers are equal values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Exact {
    Small(i128),
    Big(Box<BigInt>),
}

impl Default for Exact {
    fn default() -> Exact {
        Exact::Small(0)
    }
}

impl From<BigInt> for Exact {
    fn from(value: BigInt) -> Exact {
        match value.to_i128() {
            Some(small) => Exact::Small(small),
            None => Exact::Big(Box::new(value)),
        }
    }
}

impl Exact {
    pub(crate) fn is_zero(&self) -> bool {
        *self == Exact::Small(0)
    }

    pub(crate) fn is_negative(&self) -> bool {
        match self {
            Exact::Small(small) => *small < 0,
            Exact::Big(big) => big.sign() == Sign::Minus,
        }
    }

    pub(crate) fn to_big(&self) -> BigInt {
        match self {
            Exact::Small(small) => BigInt::from(*small),
            Exact::Big(big) => (**big).clone(),
        }
    }

    pub(crate) fn plus(&self, other: &Exact) -> Exact {
        if let (Exact::Small(a), Exact::Small(b)) = (self, other) {
            if let Some(sum) = a.checked_add(*b) {
                return Exact::Small(sum);
            }
        }
        Exact::from(self.to_big() + other.to_big())
    }

    pub(crate) fn times(&self, factor: i64) -> Exact {
        if let Exact::Small(small) = self {
            if let Some(product) = small.checked_mul(i128::from(factor)) {
                return Exact::Small(product);
            }
        }
        Exact::from(self.to_big() * factor)
    }

    /// `self * 2^bits`
    pub(crate) fn shifted_left(&self, bits: u32) -> Exact {
        if let Exact::Small(small) = self {
            // The sign bit and every bit shifted out must stay free.
            if bits < 127 && small.unsigned_abs().leading_zeros() > bits + 1 {
                return Exact::Small(small << bits);
            }
        }
        Exact::from(self.to_big() << bits)
    }

    /// The odd part and the number of trailing zero bits; of zero, (0, 0).
    pub(crate) fn without_trailing_zeros(self) -> (Exact, u32) {
        match self {
            Exact::Small(0) => (self, 0),
            Exact::Small(small) => {
                let zeros = small.trailing_zeros();
                (Exact::Small(small >> zeros), zeros)
            }
            Exact::Big(big) => {
                let zeros = big.trailing_zeros().unwrap_or(0) as u32;
                (Exact::from(*big >> zeros), zeros)
            }
        }
    }
}
