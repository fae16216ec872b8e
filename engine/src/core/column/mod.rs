//! Values of a type as bytes, all those of a block together.
//!
//! What belongs together stands together: a compressor that looks for repetition, as LZ4 does, then finds
//! it, and reading is a loop per column instead of a decision per value. Reading never panics: bytes that
//! are not what was written give `None`.

mod rows;

use crate::core::diff::Mult;
use crate::core::stamp::Stamp;
use plan::error::DataError;
use serde::de::DeserializeOwned;
use serde::Serialize;

/// A type whose values can be stored as a column.
pub trait Column: Sized + Clone + 'static {
    /// Appends the values.
    fn write<'a>(values: impl Iterator<Item = &'a Self> + Clone, out: &mut Vec<u8>);

    /// Takes `count` values from the front of `input`.
    fn read(count: usize, input: &mut &[u8]) -> Option<Vec<Self>>;
}

/// Appends a number in as few groups of seven bits as hold it.
fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number that [`write_varint`] wrote.
fn read_varint(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = input.split_first()?;
        *input = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Takes `count` bytes from the front of `input`.
pub(crate) fn take<'a>(count: usize, input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (taken, rest) = input.split_at_checked(count)?;
    *input = rest;
    Some(taken)
}

/// Appends the differences of neighbours: times and multiplicities of neighbours are often equal.
fn write_deltas(values: impl Iterator<Item = u64>, out: &mut Vec<u8>) {
    let mut previous = 0;
    for value in values {
        let delta = value.wrapping_sub(previous) as i64;
        write_varint(((delta << 1) ^ (delta >> 63)) as u64, out);
        previous = value;
    }
}

fn read_deltas<N>(count: usize, input: &mut &[u8], make: impl Fn(u64) -> N) -> Option<Vec<N>> {
    let mut previous = 0_u64;
    let mut next = || {
        let zigzag = read_varint(input)?;
        let delta = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        previous = previous.wrapping_add(delta as u64);
        Some(make(previous))
    };
    (0..count).map(|_| next()).collect()
}

macro_rules! integer_column {
    ($ty:ty) => {
        impl Column for $ty {
            fn write<'a>(values: impl Iterator<Item = &'a Self> + Clone, out: &mut Vec<u8>) {
                write_deltas(values.map(|value| *value as u64), out);
            }

            fn read(count: usize, input: &mut &[u8]) -> Option<Vec<Self>> {
                read_deltas(count, input, |value| value as $ty)
            }
        }
    };
}

integer_column!(u32);
integer_column!(u64);
integer_column!(i64);

impl Column for () {
    fn write<'a>(_values: impl Iterator<Item = &'a Self> + Clone, _out: &mut Vec<u8>) {}

    fn read(count: usize, _input: &mut &[u8]) -> Option<Vec<Self>> {
        Some(vec![(); count])
    }
}

impl<A: Column, B: Column> Column for (A, B) {
    fn write<'a>(values: impl Iterator<Item = &'a Self> + Clone, out: &mut Vec<u8>) {
        A::write(values.clone().map(|(a, _)| a), out);
        B::write(values.map(|(_, b)| b), out);
    }

    fn read(count: usize, input: &mut &[u8]) -> Option<Vec<Self>> {
        let first = A::read(count, input)?;
        let second = B::read(count, input)?;
        Some(first.into_iter().zip(second).collect())
    }
}

/// Appends values of a type that is too rare for a form of its own.
pub(crate) fn write_any<'a, D: Serialize + 'a>(
    values: impl Iterator<Item = &'a D>,
    out: &mut Vec<u8>,
) {
    for value in values {
        // A vector takes whatever is written, and types of state have no way to refuse.
        bincode::serialize_into(&mut *out, value).expect("state can be serialized");
    }
}

/// Takes values that [`write_any`] wrote.
pub(crate) fn read_any<D: DeserializeOwned>(count: usize, input: &mut &[u8]) -> Option<Vec<D>> {
    (0..count).map(|_| bincode::deserialize_from(&mut *input).ok()).collect()
}

impl<D, E> Column for Result<D, E>
where
    Result<D, E>: Serialize + DeserializeOwned + Clone + 'static,
{
    fn write<'a>(values: impl Iterator<Item = &'a Self> + Clone, out: &mut Vec<u8>) {
        write_any(values, out);
    }

    fn read(count: usize, input: &mut &[u8]) -> Option<Vec<Self>> {
        read_any(count, input)
    }
}

impl Column for DataError {
    fn write<'a>(values: impl Iterator<Item = &'a Self> + Clone, out: &mut Vec<u8>) {
        write_any(values, out);
    }

    fn read(count: usize, input: &mut &[u8]) -> Option<Vec<Self>> {
        read_any(count, input)
    }
}

impl Column for Mult {
    fn write<'a>(values: impl Iterator<Item = &'a Self> + Clone, out: &mut Vec<u8>) {
        i64::write(values.map(|mult| &mult.0), out);
    }

    fn read(count: usize, input: &mut &[u8]) -> Option<Vec<Self>> {
        read_deltas(count, input, |value| Mult(value as i64))
    }
}

impl<const LOOPS: usize> Column for Stamp<LOOPS> {
    fn write<'a>(values: impl Iterator<Item = &'a Self> + Clone, out: &mut Vec<u8>) {
        u64::write(values.clone().map(|stamp| &stamp.time), out);
        for level in 0..LOOPS {
            u32::write(values.clone().map(|stamp| &stamp.iterations[level]), out);
        }
    }

    fn read(count: usize, input: &mut &[u8]) -> Option<Vec<Self>> {
        let mut stamps: Vec<Self> = read_deltas(count, input, Stamp::of)?;
        for level in 0..LOOPS {
            let iterations = u32::read(count, input)?;
            let slots = stamps.iter_mut().map(|stamp| &mut stamp.iterations[level]);
            slots.zip(iterations).for_each(|(slot, iteration)| *slot = iteration);
        }
        Some(stamps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_back() {
        let values: Vec<(i64, (u64, u32))> = [0, 1, -1, i64::MAX, i64::MIN, 7]
            .into_iter()
            .map(|n| (n, (n as u64, n as u32)))
            .collect();
        let mut bytes = Vec::new();
        Column::write(values.iter(), &mut bytes);
        let mut input = &bytes[..];
        assert_eq!(Column::read(values.len(), &mut input), Some(values.clone()));
        assert!(input.is_empty());
        for length in 0..bytes.len() {
            let mut input = &bytes[..length];
            assert_eq!(<(i64, (u64, u32))>::read(values.len(), &mut input), None);
        }
    }
}
