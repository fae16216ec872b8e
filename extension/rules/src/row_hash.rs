//! Hashes of rows that nobody can foresee who does not know their keys: SipHash (Aumasson, Bernstein 2012) with an output of 128 bits, one
//! round a word and three at the end, as Rust's own hasher has them. One pass instead of that one's two.

use crate::row_map::{Hash, HASH_BITS};
use serde::{Deserialize, Serialize};

/// Secret numbers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Keys(pub [u64; 2]);

impl Keys {
    pub fn hash(self, bytes: &[u8]) -> Hash {
        sip_hash::<1, 3>(self, bytes) >> (Hash::BITS - HASH_BITS)
    }
}

struct Sip([u64; 4]);

impl Sip {
    #[inline]
    fn rounds<const COUNT: usize>(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        for _ in 0..COUNT {
            a = a.wrapping_add(b);
            c = c.wrapping_add(d);
            b = b.rotate_left(13) ^ a;
            d = d.rotate_left(16) ^ c;
            a = a.rotate_left(32).wrapping_add(d);
            c = c.wrapping_add(b);
            d = d.rotate_left(21) ^ a;
            b = b.rotate_left(17) ^ c;
            c = c.rotate_left(32);
        }
        self.0 = [a, b, c, d];
    }

    #[inline]
    fn take<const EACH: usize>(&mut self, word: u64) {
        self.0[3] ^= word;
        self.rounds::<EACH>();
        self.0[0] ^= word;
    }

    fn output(&self) -> u64 {
        self.0.iter().fold(0, |all, word| all ^ word)
    }
}

/// SipHash with that many rounds for each word and at the end.
fn sip_hash<const EACH: usize, const LAST: usize>(Keys([low, high]): Keys, bytes: &[u8]) -> u128 {
    let mut sip = Sip([
        low ^ 0x736f_6d65_7073_6575,
        high ^ 0x646f_7261_6e64_6f6d ^ 0xee,
        low ^ 0x6c79_6765_6e65_7261,
        high ^ 0x7465_6462_7974_6573,
    ]);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        sip.take::<EACH>(u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    let rest = words.remainder().iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    sip.take::<EACH>((bytes.len() as u64) << 56 | rest);
    sip.0[2] ^= 0xee;
    sip.rounds::<LAST>();
    let low = sip.output();
    sip.0[1] ^= 0xdd;
    sip.rounds::<LAST>();
    u128::from(sip.output()) << 64 | u128::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of the test vectors that the authors give for 2 and 4 rounds.
    #[test]
    fn it_is_sip_hash() {
        let keys = Keys([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        let hash = |bytes: &[u8]| sip_hash::<2, 4>(keys, bytes).to_le_bytes();
        let hex = |bytes: [u8; 16]| bytes.map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(hex(hash(&[])), "a3817f04ba25a8e66df67214c7550293");
        assert_eq!(hex(hash(&[0])), "da87c1d86b99af44347659119b22fc45");
    }

    #[test]
    fn every_byte_and_the_length_count() {
        let keys = Keys([1, 2]);
        let mut hashes = std::collections::BTreeSet::new();
        for len in 0..40 {
            let mut bytes = vec![0; len];
            hashes.insert(keys.hash(&bytes));
            for place in 0..len {
                bytes[place] = 1;
                hashes.insert(keys.hash(&bytes));
                bytes[place] = 0;
            }
        }
        assert_eq!(hashes.len(), 40 + (0..40).sum::<usize>());
        assert!(hashes.iter().all(|hash| hash >> HASH_BITS == 0));
    }
}
