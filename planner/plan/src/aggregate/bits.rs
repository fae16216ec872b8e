//! How often each bit is set: `bit_and`, `bit_or` and `bit_xor` that rows can be taken away from.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

type Planes = SmallVec<[u64; 2]>;

/// The number of integers and, per bit, of those that have it set. The 64 counts are kept crosswise:
/// `planes[i]` holds bit `i` of all of them, in two's complement, the last plane standing for all that
/// would follow. So the size is the logarithm of the greatest count, and one addition adds them all.
/// There are no more planes than needed, so that equal counts are equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BitCounts {
    count: i64,
    planes: Planes,
}

impl BitCounts {
    /// The counts of so many copies of an integer.
    pub(super) fn of(value: i64, copies: i64) -> BitCounts {
        // The digits of the number of copies, with its sign, stand in every bit the integer has.
        let digits = 65 - copies.leading_zeros().max(copies.leading_ones());
        let plane = |i| if copies >> i & 1 != 0 { value as u64 } else { 0 };
        let mut counts =
            BitCounts { count: copies, planes: (0..digits.min(64)).map(plane).collect() };
        counts.trim();
        counts
    }

    pub(super) fn is_zero(&self) -> bool {
        self.count == 0 && self.planes.is_empty()
    }

    fn plane(&self, i: usize) -> u64 {
        self.planes.get(i).or(self.planes.last()).copied().unwrap_or(0)
    }

    fn trim(&mut self) {
        while let Some(last) = self.planes.pop() {
            if last != self.planes.last().copied().unwrap_or(0) {
                self.planes.push(last);
                break;
            }
        }
    }

    pub(super) fn plus(&mut self, other: &BitCounts) {
        self.count += other.count;
        let mut carry = 0;
        // A sum has at most one digit more than the longer of its terms.
        let digits = self.planes.len().max(other.planes.len()) + 1;
        self.planes.resize(digits, self.plane(digits));
        for (i, plane) in self.planes.iter_mut().enumerate() {
            let (a, b) = (*plane, other.plane(i));
            *plane = a ^ b ^ carry;
            carry = a & b | carry & (a ^ b);
        }
        self.trim();
    }

    pub(super) fn multiply(&mut self, copies: i64) {
        let mut product = BitCounts::default();
        for digit in (0..64).filter(|digit| copies.unsigned_abs() >> digit & 1 != 0) {
            let mut planes: Planes = SmallVec::from_elem(0, digit);
            planes.extend_from_slice(&self.planes);
            product.plus(&BitCounts { count: 0, planes });
        }
        if copies < 0 {
            product.negate_planes();
        }
        *self = BitCounts { count: self.count * copies, planes: product.planes };
    }

    /// In two's complement: the complement, and one more.
    fn negate_planes(&mut self) {
        self.planes.push(self.plane(self.planes.len()));
        self.planes.iter_mut().for_each(|plane| *plane = !*plane);
        let ones = SmallVec::from_slice(&[u64::MAX, 0]);
        self.plus(&BitCounts { count: 0, planes: ones });
    }

    /// The number of integers.
    pub(super) fn count(&self) -> i64 {
        self.count
    }

    /// The bits that all integers have.
    pub(super) fn and(&self) -> i64 {
        let same = |i: usize| {
            let digit = self.count >> i.min(63) & 1;
            self.plane(i) ^ if digit == 0 { u64::MAX } else { 0 }
        };
        (0..=64.max(self.planes.len())).map(same).fold(u64::MAX, |all, plane| all & plane) as i64
    }

    /// The bits that some integer has.
    pub(super) fn or(&self) -> i64 {
        self.planes.iter().fold(0, |any, plane| any | plane) as i64
    }

    /// The bits that an odd number of integers has.
    pub(super) fn xor(&self) -> i64 {
        self.plane(0) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::BitCounts;

    /// The count of a bit, read from all planes.
    fn count_of(counts: &BitCounts, bit: u32) -> i64 {
        (0..64).fold(0, |count, i| count | ((counts.plane(i) >> bit & 1) as i64) << i)
    }

    #[test]
    fn every_bit_has_its_own_count() {
        for copies in [0, 1, -1, 2, -2, 3, 1000, -1000, i64::MAX, i64::MIN] {
            for value in [0, 1, -1, 6, i64::MIN, i64::MAX] {
                let counts = BitCounts::of(value, copies);
                for bit in 0..64 {
                    let expected = if value >> bit & 1 == 0 { 0 } else { copies };
                    assert_eq!(count_of(&counts, bit), expected, "{value} {copies} {bit}");
                }
            }
        }
    }

    #[test]
    fn counts_of_many_integers_stay_small() {
        let mut counts = BitCounts::default();
        for value in 0..1_000_000 {
            counts.plus(&BitCounts::of(value, 1));
        }
        assert!(counts.planes.len() <= 20);
        assert_eq!(count_of(&counts, 0), 500_000);
        for value in (0..1_000_000).rev() {
            counts.plus(&BitCounts::of(value, -1));
        }
        assert!(counts.is_zero());
    }

    #[test]
    fn multiples_are_repeated_sums() {
        for copies in [-7, -1, 0, 1, 2, 12] {
            let mut product = BitCounts::of(5, 3);
            product.plus(&BitCounts::of(-2, -1));
            product.multiply(copies);
            let mut sum = BitCounts::of(5, 3 * copies);
            sum.plus(&BitCounts::of(-2, -copies));
            assert_eq!(product, sum);
        }
    }
}
