//! Order-independent checksums of output deltas, one per time.
//!
//! The checksum of a time is the sum of diff × hash(row, time) over its updates. It is linear, so
//! neither the order of updates nor whether they were consolidated matters: two programs agree on a
//! time exactly when (hash collisions aside) their deltas at that time are equal as multisets.

use plan::row::Row;
use plan::value::Datum;

use crate::workload::{Time, LOAD_TIME};

/// Checksums of all deltas so far, from [`LOAD_TIME`] on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checksums {
    sums: Vec<u64>,
    /// Sum of all diffs: the number of rows of the output.
    pub rows: i64,
    /// Output updates counted.
    pub updates: u64,
}

impl Checksums {
    /// Adds one output update.
    pub fn add(&mut self, row: RowHash, time: Time, diff: i64) {
        let index = index(time);
        if self.sums.len() <= index {
            self.sums.resize(index + 1, 0);
        }
        let hash = mix(row.0 ^ mix(time));
        self.sums[index] = self.sums[index].wrapping_add(hash.wrapping_mul(diff as u64));
        self.rows += diff;
        self.updates += 1;
    }

    /// One number for all times before `end`.
    pub fn digest(&self, end: Time) -> u64 {
        (LOAD_TIME..end).fold(0, |digest, time| mix(digest ^ self.at(time)))
    }

    /// The first time before `end` whose deltas differ.
    pub fn first_difference(&self, other: &Checksums, end: Time) -> Option<Time> {
        (LOAD_TIME..end).find(|time| self.at(*time) != other.at(*time))
    }

    /// A line per time before `end` at which there was output.
    pub fn by_time(&self, end: Time) -> String {
        let times = (LOAD_TIME..end).filter(|time| self.at(*time) != 0);
        times.map(|time| format!("{time} {:016x}\n", self.at(time))).collect()
    }

    fn at(&self, time: Time) -> u64 {
        self.sums.get(index(time)).copied().unwrap_or(0)
    }
}

fn index(time: Time) -> usize {
    usize::try_from(time - LOAD_TIME).expect("times fit in memory")
}

/// Hash of a row's values; integers of every width hash alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowHash(u64);

impl RowHash {
    fn word(&mut self, word: u64) {
        self.0 = mix(self.0.wrapping_add(word));
    }

    pub fn integer(&mut self, value: i64) {
        self.word(1);
        self.word(value as u64);
    }

    pub fn text(&mut self, value: &str) {
        self.word(2);
        self.word(value.len() as u64);
        for chunk in value.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    /// Of a row as the engine outputs it; `None` for types that no workload has.
    pub fn of_row(row: &Row) -> Option<RowHash> {
        let mut hash = RowHash::default();
        for value in row.unpack() {
            match value {
                Datum::Int2(value) => hash.integer(value.into()),
                Datum::Int4(value) => hash.integer(value.into()),
                Datum::Int8(value) => hash.integer(value),
                Datum::Text(value) => hash.text(&value),
                _ => return None,
            }
        }
        Some(hash)
    }

    /// Of a row as a hand-written program outputs it.
    pub fn of(values: &impl Values) -> RowHash {
        let mut hash = RowHash::default();
        values.hash_into(&mut hash);
        hash
    }
}

/// The finaliser of splitmix64.
pub fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Plain Rust data that stands for the values of a row.
pub trait Values {
    fn hash_into(&self, hash: &mut RowHash);
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl Values for $integer {
            fn hash_into(&self, hash: &mut RowHash) {
                hash.integer(*self as i64);
            }
        }
    )*};
}

integers!(u32 i64 isize);

impl Values for String {
    fn hash_into(&self, hash: &mut RowHash) {
        hash.text(self);
    }
}

impl<A: Values, B: Values> Values for (A, B) {
    fn hash_into(&self, hash: &mut RowHash) {
        self.0.hash_into(hash);
        self.1.hash_into(hash);
    }
}

impl<A: Values, B: Values, C: Values> Values for (A, B, C) {
    fn hash_into(&self, hash: &mut RowHash) {
        self.0.hash_into(hash);
        self.1.hash_into(hash);
        self.2.hash_into(hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_rows_and_plain_tuples_hash_alike() {
        let row = Row::pack(&[Datum::Int4(7), Datum::Int8(-1), Datum::text("libc6-dev")]);
        let tuple = (7u32, -1isize, "libc6-dev".to_owned());
        assert_eq!(RowHash::of_row(&row), Some(RowHash::of(&tuple)));
        assert_ne!(RowHash::of(&(1u32, 2u32)), RowHash::of(&(2u32, 1u32)));
    }

    #[test]
    fn order_and_cancelling_updates_do_not_matter_but_times_do() {
        let (a, b) = (RowHash::of(&1u32), RowHash::of(&2u32));
        let (mut one, mut two, mut three) =
            (Checksums::default(), Checksums::default(), Checksums::default());
        for (row, time, diff) in [(a, 1, 1), (b, 3, 2)] {
            one.add(row, time, diff);
        }
        for (row, time, diff) in [(b, 3, 3), (a, 2, 1), (a, 1, 1), (b, 3, -1), (a, 2, -1)] {
            two.add(row, time, diff);
        }
        for (row, time, diff) in [(a, 1, 1), (b, 2, 2)] {
            three.add(row, time, diff);
        }
        assert_eq!(one.first_difference(&two, 9), None);
        assert_eq!(one.digest(9), two.digest(9));
        assert_eq!(one.first_difference(&three, 9), Some(2));
        assert_eq!(one.first_difference(&three, 2), None);
    }
}
