//! Present state by key: a hash table of numbers into a slab.
//!
//! A key stays at its number while it is there, so that what is touched at one time can be listed
//! by number and finished without a second lookup.

use hashbrown::{DefaultHashBuilder, HashTable};
use planner::row::Row;
use std::hash::BuildHasher;

/// Number of a key that is there.
pub(super) type Slot = u32;

/// State per key.
pub(super) struct Keyed<S> {
    slots_by_key: HashTable<Slot>,
    slots: Vec<(Row, S)>,
    free: Vec<Slot>,
    hasher: DefaultHashBuilder,
}

impl<S> Default for Keyed<S> {
    fn default() -> Self {
        Keyed {
            slots_by_key: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl<S: Default> Keyed<S> {
    /// The slot of a key, which gets the state `new` if it was not there.
    pub(super) fn slot(&mut self, key: Row, new: impl FnOnce() -> S) -> Slot {
        let Keyed { slots_by_key, slots, free, hasher } = self;
        let hash = hasher.hash_one(&key);
        let equal = |slot: &Slot| slots[*slot as usize].0 == key;
        if let Some(slot) = slots_by_key.find(hash, equal) {
            return *slot;
        }
        let slot = free.pop().unwrap_or_else(|| {
            slots.push((Row::default(), S::default()));
            // Four billion keys are hundreds of gigabytes: the memory limit comes first.
            Slot::try_from(slots.len() - 1).expect("fewer than four billion keys")
        });
        slots[slot as usize] = (key, new());
        slots_by_key.insert_unique(hash, slot, |slot| hasher.hash_one(&slots[*slot as usize].0));
        slot
    }

    /// A key that is there, and its state.
    pub(super) fn get_mut(&mut self, slot: Slot) -> (&Row, &mut S) {
        let (key, state) = &mut self.slots[slot as usize];
        (key, state)
    }

    /// Forgets a key that is there.
    pub(super) fn remove(&mut self, slot: Slot) {
        let (key, _) = std::mem::take(&mut self.slots[slot as usize]);
        let hash = self.hasher.hash_one(&key);
        if let Ok(entry) = self.slots_by_key.find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
        self.free.push(slot);
        if self.slots_by_key.is_empty() {
            *self = Keyed::default();
        }
    }

    /// Bytes of the tables, without what keys and states keep on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.slots_by_key.allocation_size()
            + self.slots.capacity() * size_of::<(Row, S)>()
            + self.free.capacity() * size_of::<Slot>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planner::value::Datum;

    fn key(n: i64) -> Row {
        Row::pack(&[Datum::Int8(n)])
    }

    #[test]
    fn a_key_keeps_its_state_until_removed() {
        let mut keyed: Keyed<i64> = Keyed::default();
        let slots: Vec<Slot> = (0..1000).map(|n| keyed.slot(key(n), || n)).collect();
        for n in (0..1000).step_by(2) {
            keyed.remove(slots[n as usize]);
        }
        for n in 0..1000 {
            let slot = keyed.slot(key(n), || -1);
            let expected = if n % 2 == 0 { -1 } else { n };
            assert_eq!(keyed.get_mut(slot), (&key(n), &mut { expected }));
        }
    }

    #[test]
    fn nothing_is_kept_for_keys_that_are_gone() {
        let mut keyed: Keyed<i64> = Keyed::default();
        let slots: Vec<Slot> = (0..1000).map(|n| keyed.slot(key(n), || n)).collect();
        slots.into_iter().for_each(|slot| keyed.remove(slot));
        assert_eq!(keyed.bytes(), 0);
    }
}
