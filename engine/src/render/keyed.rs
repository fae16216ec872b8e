//! Present state by key: a hash table of numbers into a slab.
//!
//! A key stays at its number while it is there, so that what is touched at one time can be listed
//! by number and finished without a second lookup.

use crate::core::monitor::room_for;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash};

/// Number of a key that is there.
pub(super) type Slot = u32;

/// Length beyond which the memory of a list of slots is given back.
pub(super) const MANY_SLOTS: usize = 1 << 12;

pub(super) struct Keyed<K, S> {
    slots_by_key: HashTable<Slot>,
    slots: Vec<(K, S)>,
    free: Vec<Slot>,
    /// A bit per slot, for the owner to use.
    marks: Vec<u64>,
    hasher: DefaultHashBuilder,
}

impl<K, S> Default for Keyed<K, S> {
    fn default() -> Self {
        Keyed {
            slots_by_key: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            marks: Vec::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl<K: Default + Hash + Eq, S: Default> Keyed<K, S> {
    /// The slot of a key, which gets the state `new` if it was not there.
    pub(super) fn slot(&mut self, key: K, new: impl FnOnce() -> S) -> Slot {
        let Keyed { slots_by_key, slots, free, marks, hasher } = self;
        let hash = hasher.hash_one(&key);
        let equal = |slot: &Slot| slots[*slot as usize].0 == key;
        if let Some(slot) = slots_by_key.find(hash, equal) {
            return *slot;
        }
        let slot = free.pop().unwrap_or_else(|| {
            grow(slots);
            slots.push((K::default(), S::default()));
            if marks.len() * 64 < slots.len() {
                marks.push(0);
            }
            // Four billion keys are hundreds of gigabytes: the memory limit comes first.
            Slot::try_from(slots.len() - 1).expect("fewer than four billion keys")
        });
        slots[slot as usize] = (key, new());
        slots_by_key.insert_unique(hash, slot, |slot| hasher.hash_one(&slots[*slot as usize].0));
        slot
    }

    /// A key that is there, and its state.
    #[inline]
    pub(super) fn get_mut(&mut self, slot: Slot) -> (&K, &mut S) {
        let (key, state) = &mut self.slots[slot as usize];
        (key, state)
    }

    /// Marks a slot; whether it was not marked before.
    #[inline]
    pub(super) fn mark(&mut self, slot: Slot) -> bool {
        let (word, bit) = (slot as usize / 64, 1 << (slot % 64));
        let is_new = self.marks[word] & bit == 0;
        self.marks[word] |= bit;
        is_new
    }

    #[inline]
    fn is_marked(&self, slot: Slot) -> bool {
        self.marks[slot as usize / 64] & (1 << (slot % 64)) != 0
    }

    /// Takes a mark away.
    #[inline]
    pub(super) fn unmark(&mut self, slot: Slot) {
        self.marks[slot as usize / 64] &= !(1 << (slot % 64));
    }

    /// Forgets those of the given slots, each of a key that is there, whose state `is_gone`, unless they are
    /// marked.
    pub(super) fn sweep(&mut self, slots: &mut Vec<Slot>, mut is_gone: impl FnMut(&S) -> bool) {
        slots.sort_unstable();
        slots.dedup();
        for slot in slots.drain(..) {
            if !self.is_marked(slot) && is_gone(&self.slots[slot as usize].1) {
                self.remove(slot);
            }
        }
        slots.shrink_to(MANY_SLOTS);
        self.shrink();
    }

    fn remove(&mut self, slot: Slot) {
        let (key, _) = std::mem::take(&mut self.slots[slot as usize]);
        let hash = self.hasher.hash_one(&key);
        if let Ok(entry) = self.slots_by_key.find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
        self.free.push(slot);
    }

    /// All keys, and what is known of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(K, S)> {
        self.slots_by_key.iter().map(|slot| &self.slots[*slot as usize])
    }

    /// The slots of all keys.
    pub(super) fn all(&self) -> Vec<Slot> {
        self.slots_by_key.iter().copied().collect()
    }

    /// Gives memory back if no key is there.
    fn shrink(&mut self) {
        if self.slots_by_key.is_empty() && !self.slots.is_empty() {
            *self = Keyed::default();
        }
    }
}

/// Makes room for one more, by an eighth: doubling would leave a quarter of the state unused.
fn grow<T>(slots: &mut Vec<T>) {
    if slots.len() == slots.capacity() {
        let more = (slots.len() / 8).max(16);
        room_for((slots.len() + more) * size_of::<T>());
        slots.reserve_exact(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_its_state_until_removed() {
        let mut keyed: Keyed<i64, i64> = Keyed::default();
        let slots: Vec<Slot> = (0..1000).map(|n| keyed.slot(n, || n)).collect();
        for n in (0..1000).step_by(2) {
            keyed.remove(slots[n as usize]);
        }
        for n in 0..1000 {
            let slot = keyed.slot(n, || -1);
            let expected = if n % 2 == 0 { -1 } else { n };
            assert_eq!(keyed.get_mut(slot), (&n, &mut { expected }));
        }
    }

    #[test]
    fn nothing_is_kept_for_keys_that_are_gone() {
        let mut keyed: Keyed<i64, i64> = Keyed::default();
        let slots: Vec<Slot> = (0..1000).map(|n| keyed.slot(n, || n)).collect();
        slots.into_iter().for_each(|slot| keyed.remove(slot));
        keyed.shrink();
        assert!(keyed.all().is_empty());
        assert_eq!(keyed.slots.capacity(), 0);
    }
}
