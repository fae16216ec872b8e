//! A byte string of 24 bytes when short: what rows are stored as.
//!
//! Most rows of a dataflow are a few integers. Comparing, hashing and copying those takes no call and
//! no loop: they are three words.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// Bytes that fit in without an allocation.
pub const SHORT: usize = 22;

/// An immutable byte string. Its order is total, but not that of the bytes.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "Vec<u8>", into = "Vec<u8>")]
pub enum ByteString {
    /// Up to [`SHORT`] bytes, then zeros, then the length.
    Short([u8; SHORT + 1]),
    /// Longer ones, allocated.
    Long(Box<[u8]>),
}

const _: () = assert!(size_of::<ByteString>() == 24);

impl ByteString {
    /// A copy of some bytes.
    #[inline]
    pub fn new(bytes: &[u8]) -> ByteString {
        if bytes.len() > SHORT {
            return ByteString::Long(bytes.into());
        }
        let mut short = [0; SHORT + 1];
        short[..bytes.len()].copy_from_slice(bytes);
        short[SHORT] = bytes.len() as u8;
        ByteString::Short(short)
    }

    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            ByteString::Short(short) => &short[..usize::from(short[SHORT])],
            ByteString::Long(bytes) => bytes,
        }
    }

    /// A number that is never less than that of a lesser string, if both begin with the same `skip` bytes: the eight bytes
    /// after these, of which one bit is given up to tell the short from the long.
    pub fn rank(&self, skip: usize) -> u64 {
        let after = self.as_slice().get(skip..).unwrap_or_default();
        let mut bytes = [0; 8];
        let count = after.len().min(bytes.len());
        bytes[..count].copy_from_slice(&after[..count]);
        let is_long = matches!(self, ByteString::Long(_));
        u64::from(is_long) << 63 | u64::from_be_bytes(bytes) >> 1
    }

    /// Bytes allocated.
    pub fn heap_bytes(&self) -> usize {
        match self {
            ByteString::Short(_) => 0,
            ByteString::Long(bytes) => bytes.len(),
        }
    }
}

/// A short string as three numbers; the last two overlap by a byte.
#[inline]
fn words(short: &[u8; SHORT + 1]) -> [u64; 3] {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&short[at..at + 8]);
        u64::from_be_bytes(bytes)
    };
    [word(0), word(8), word(SHORT - 7)]
}

impl Default for ByteString {
    fn default() -> ByteString {
        ByteString::Short([0; SHORT + 1])
    }
}

impl From<Vec<u8>> for ByteString {
    fn from(bytes: Vec<u8>) -> ByteString {
        ByteString::new(&bytes)
    }
}

impl From<ByteString> for Vec<u8> {
    fn from(packed: ByteString) -> Vec<u8> {
        packed.as_slice().to_vec()
    }
}

impl PartialEq for ByteString {
    #[inline]
    fn eq(&self, other: &ByteString) -> bool {
        match (self, other) {
            (ByteString::Short(a), ByteString::Short(b)) => words(a) == words(b),
            (ByteString::Long(a), ByteString::Long(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for ByteString {}

impl Ord for ByteString {
    #[inline]
    fn cmp(&self, other: &ByteString) -> Ordering {
        match (self, other) {
            (ByteString::Short(a), ByteString::Short(b)) => words(a).cmp(&words(b)),
            (ByteString::Long(a), ByteString::Long(b)) => a.cmp(b),
            (ByteString::Short(_), ByteString::Long(_)) => Ordering::Less,
            (ByteString::Long(_), ByteString::Short(_)) => Ordering::Greater,
        }
    }
}

impl PartialOrd for ByteString {
    #[inline]
    fn partial_cmp(&self, other: &ByteString) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for ByteString {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            ByteString::Short(short) => {
                words(short).into_iter().for_each(|word| state.write_u64(word))
            }
            ByteString::Long(bytes) => bytes.hash(state),
        }
    }
}

impl std::fmt::Debug for ByteString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_slice().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn strings_are_told_apart_by_bytes_and_length() {
        let mut strings: Vec<Vec<u8>> = Vec::new();
        for length in 0..=SHORT + 3 {
            strings.push(vec![0; length]);
            strings.extend((0..length).map(|at| {
                let mut bytes = vec![0; length];
                bytes[at] = 1;
                bytes
            }));
        }
        let packed: BTreeSet<ByteString> =
            strings.iter().map(|bytes| ByteString::new(bytes)).collect();
        assert_eq!(packed.len(), strings.len());
        for bytes in &strings {
            let packed = ByteString::new(bytes);
            assert_eq!(packed.as_slice(), bytes);
            assert_eq!(packed, packed.clone());
            assert_eq!(packed.heap_bytes() > 0, bytes.len() > SHORT);
        }
    }

    #[test]
    fn ranks_never_contradict_the_order() {
        let bytes = |number: u32| number.wrapping_mul(0x9e37_79b9).to_be_bytes();
        for skip in [0, 3, SHORT - 1, SHORT + 1] {
            let mut strings: Vec<ByteString> = (0..2000_u32)
                .map(|number| {
                    let mut string = vec![7; skip];
                    string.extend(bytes(number).iter().map(|byte| byte & 3));
                    string.extend(bytes(number + 1));
                    string.truncate(skip + number as usize % 9);
                    string.resize(string.len() + number as usize % (SHORT + 2), 1);
                    ByteString::new(&string)
                })
                .collect();
            strings.sort();
            assert!(strings.windows(2).all(|pair| pair[0].rank(skip) <= pair[1].rank(skip)));
        }
    }
}
