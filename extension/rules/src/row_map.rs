//! Where rows are, by their hashes: a table of 16 bytes an entry that is two thirds to four fifths full, so at most 24 bytes a
//! row.
//!
//! A map of many rows is in shards that grow at different moments, so no moment is a long one, and no more than a small
//! part of it is there twice. Equal rows share an entry. Hashes are random bits of which nobody knows the keys: that two rows of a
//! thousand million have the same is as likely as one in millions.

/// A random number of 80 bits; all others are 0.
pub type Hash = u128;

/// The bits that a hash has.
pub const HASH_BITS: u32 = 80;

/// Bits of a place.
const PLACE_BITS: u32 = 48;
const PLACE: u64 = (1 << PLACE_BITS) - 1;

/// Marks an entry of several rows: its place is a number of a list and this. Places of rows have it not: the lower 16 bits of a place
/// are a line pointer, which is small.
const SEVERAL: u64 = 1 << 15;

/// Entries from which on there are shards.
const LARGE: usize = 1 << 14;
const SHARDS: usize = 1 << 6;

/// Where rows are.
#[derive(Debug)]
pub struct RowMap {
    shards: Vec<Shard>,
    /// Of rows that are there several times.
    lists: Vec<Vec<u64>>,
    /// Of which nobody has these.
    free: Vec<u32>,
    len: usize,
}

/// A hash and a place; no place is 0, which is in no entry that is taken.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    low: u64,
    high_and_place: u64,
}

/// A table in the order of hashes but for entries that found their slot taken: these are in the next free one.
#[derive(Debug, Default)]
struct Shard {
    slots: Vec<Entry>,
    used: usize,
}

/// The places of equal rows, in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places<'a> {
    One(u64),
    Of(&'a [u64]),
}

impl Places<'_> {
    pub fn len(&self) -> usize {
        match self {
            Places::One(_) => 1,
            Places::Of(places) => places.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The last ones, the very last first; `None` if there are not so many.
    pub fn last(&self, count: usize) -> Option<impl Iterator<Item = u64> + '_> {
        let all = match self {
            Places::One(place) => std::slice::from_ref(place),
            Places::Of(places) => places,
        };
        let from = all.len().checked_sub(count)?;
        Some(all[from..].iter().rev().copied())
    }
}

impl Entry {
    fn new(hash: Hash, place: u64) -> Entry {
        let high = (hash >> 64) as u64;
        Entry { low: hash as u64, high_and_place: high << PLACE_BITS | place }
    }

    fn is_free(self) -> bool {
        self.place() == 0
    }

    fn place(self) -> u64 {
        self.high_and_place & PLACE
    }

    fn hash(self) -> Hash {
        Hash::from(self.high_and_place >> PLACE_BITS) << 64 | Hash::from(self.low)
    }

    /// Which of the lists has its places, if there are several.
    fn list(self) -> Option<usize> {
        (self.high_and_place & SEVERAL != 0).then(|| (self.place() >> 16) as usize)
    }
}

impl Shard {
    fn with_slots(count: usize) -> Shard {
        Shard { slots: vec![Entry::default(); count], used: 0 }
    }

    /// The slot in which an entry would be if it were alone.
    fn home(&self, low: u64) -> usize {
        ((u128::from(low) * self.slots.len() as u128) >> 64) as usize
    }

    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() {
            0
        } else {
            slot + 1
        }
    }

    /// The slot of a hash, or the free one that ends the search.
    fn slot(&self, hash: Hash) -> usize {
        let mut slot = self.home(hash as u64);
        while !self.slots[slot].is_free() && self.slots[slot].hash() != hash {
            slot = self.after(slot);
        }
        slot
    }

    /// The entry of a hash.
    fn find(&self, hash: Hash) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let slot = self.slot(hash);
        (!self.slots[slot].is_free()).then_some(slot)
    }

    /// A further entry, of a hash that is not there.
    fn insert(&mut self, entry: Entry) {
        if (self.used + 1) * 5 > self.slots.len() * 4 {
            self.grow_to(self.slots.len() + self.slots.len() / 5 + 4);
        }
        let slot = self.slot(entry.hash());
        self.slots[slot] = entry;
        self.used += 1;
    }

    fn grow_to(&mut self, count: usize) {
        let former = std::mem::replace(self, Shard::with_slots(count));
        for entry in former.slots.into_iter().filter(|entry| !entry.is_free()) {
            let slot = self.slot(entry.hash());
            self.slots[slot] = entry;
        }
        self.used = former.used;
    }

    /// Frees a slot; entries behind it that found theirs taken move up, so that searches find them.
    fn free(&mut self, mut slot: usize) {
        self.used -= 1;
        let mut next = self.after(slot);
        while !self.slots[next].is_free() {
            let home = self.home(self.slots[next].low);
            let count = self.slots.len();
            let distance = |from: usize| (next + count - from) % count;
            if distance(home) >= distance(slot) {
                self.slots[slot] = self.slots[next];
                slot = next;
            }
            next = self.after(next);
        }
        self.slots[slot] = Entry::default();
    }
}

impl RowMap {
    /// No rows yet, and room for as many as are expected.
    pub fn new(expected: usize) -> RowMap {
        let mut map = RowMap { shards: Vec::new(), lists: Vec::new(), free: Vec::new(), len: 0 };
        if expected < LARGE {
            map.shards.push(Shard::with_slots(expected + expected / 4));
        } else {
            map.split(expected);
        }
        map
    }

    /// Rows, equal ones counted as often as they are there.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Hashes that rows have.
    pub fn hashes(&self) -> usize {
        self.shards.iter().map(|shard| shard.used).sum()
    }

    fn shard(&self, hash: Hash) -> usize {
        match self.shards.len() {
            1 => 0,
            _ => (hash >> (HASH_BITS - SHARDS.trailing_zeros())) as usize,
        }
    }

    /// From now on there are shards. Each begins a little larger than the one before, and so is full at another moment.
    fn split(&mut self, expected: usize) {
        let size = |shard: usize| {
            let even = (expected + expected / 4) / SHARDS;
            even + even * shard / (5 * SHARDS)
        };
        let former = std::mem::take(&mut self.shards);
        self.shards = (0..SHARDS).map(|shard| Shard::with_slots(size(shard))).collect();
        for entry in former.into_iter().flat_map(|shard| shard.slots) {
            if !entry.is_free() {
                let shard = self.shard(entry.hash());
                self.shards[shard].insert(entry);
            }
        }
    }

    /// A row of that hash is at a place.
    pub fn add(&mut self, hash: Hash, place: u64) {
        debug_assert!(place & !PLACE == 0 && place & SEVERAL == 0 && place != 0);
        self.len += 1;
        let mut shard = self.shard(hash);
        let Some(slot) = self.shards[shard].find(hash) else {
            if self.shards.len() == 1 && self.shards[0].used >= LARGE {
                self.split(LARGE);
                shard = self.shard(hash);
            }
            return self.shards[shard].insert(Entry::new(hash, place));
        };
        let entry = self.shards[shard].slots[slot];
        if let Some(list) = entry.list() {
            return self.lists[list].push(place);
        }
        let list = self.free.pop().map_or(self.lists.len(), |list| list as usize);
        if list == self.lists.len() {
            self.lists.push(Vec::new());
        }
        self.lists[list].extend([entry.place(), place]);
        self.shards[shard].slots[slot] = Entry::new(hash, (list as u64) << 16 | SEVERAL);
    }

    /// A row of that hash is no longer at a place.
    pub fn remove(&mut self, hash: Hash, place: u64) {
        let shard = self.shard(hash);
        let Some(slot) = self.shards[shard].find(hash) else { return };
        let entry = self.shards[shard].slots[slot];
        let Some(list) = entry.list() else {
            if entry.place() == place {
                self.len -= 1;
                self.shards[shard].free(slot);
            }
            return;
        };
        let places = &mut self.lists[list];
        // Places are taken from the end: a search from there finds them at once.
        let Some(index) = places.iter().rposition(|other| *other == place) else { return };
        self.len -= 1;
        places.remove(index);
        if let [last] = places[..] {
            self.shards[shard].slots[slot] = Entry::new(hash, last);
            self.lists[list] = Vec::new();
            self.free.push(list as u32);
        }
    }

    /// To be called before several calls for these hashes. Each finds its entry far away in memory, and would wait for it; here
    /// the processor fetches all of them at once.
    pub fn come_close(&self, hashes: impl Iterator<Item = Hash>) {
        let fetched = hashes.fold(0, |bits, hash| {
            let shard = &self.shards[self.shard(hash)];
            bits ^ shard.slots.get(shard.home(hash as u64)).map_or(0, |entry| entry.low)
        });
        std::hint::black_box(fetched);
    }

    /// The places of the rows of a hash.
    pub fn places(&self, hash: Hash) -> Places<'_> {
        let shard = &self.shards[self.shard(hash)];
        match shard.find(hash) {
            None => Places::Of(&[]),
            Some(slot) => self.places_of(shard.slots[slot]),
        }
    }

    fn places_of(&self, entry: Entry) -> Places<'_> {
        match entry.list() {
            None => Places::One(entry.place()),
            Some(list) => Places::Of(&self.lists[list]),
        }
    }

    /// All hashes and the places of their rows.
    pub fn iter(&self) -> impl Iterator<Item = (Hash, Places<'_>)> {
        let entries = self.shards.iter().flat_map(|shard| &shard.slots);
        let taken = entries.filter(|entry| !entry.is_free());
        taken.map(|entry| (entry.hash(), self.places_of(*entry)))
    }

    /// Bytes that its tables take.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.slots.capacity() * size_of::<Entry>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Numbers without order.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        }

        fn below(&mut self, limit: u64) -> u64 {
            self.next() % limit
        }

        fn hash(&mut self) -> Hash {
            (Hash::from(self.next()) << 64 | Hash::from(self.next())) >> (128 - HASH_BITS)
        }
    }

    fn place(number: u64) -> u64 {
        (number / 100) << 16 | (1 + number % 100)
    }

    fn all(places: Places<'_>) -> Vec<u64> {
        let mut all: Vec<u64> = places.last(places.len()).unwrap().collect();
        all.reverse();
        all
    }

    #[test]
    fn it_is_a_map_of_lists_whatever_comes_and_goes() {
        for (hashes, rounds) in [(3, 2_000), (400, 20_000), (60_000, 400_000)] {
            let mut random = Random(hashes);
            // Some that only differ in a bit, and some that begin at the same slot.
            let mut known: Vec<Hash> = (0..hashes).map(|_| random.hash()).collect();
            for near in 0..hashes as usize / 3 {
                known[near * 3] = known[near * 3 + 1] ^ 1 << (near % HASH_BITS as usize);
            }
            let mut map = RowMap::new(0);
            let mut expected: BTreeMap<Hash, Vec<u64>> = BTreeMap::new();
            let mut rows = 0;
            for round in 0..rounds {
                let hash = known[random.below(hashes) as usize];
                // It grows first, and shrinks then.
                if random.below(rounds) > round / 2 + rounds / 4 {
                    map.add(hash, place(round));
                    expected.entry(hash).or_default().push(place(round));
                    rows += 1;
                } else if let Some(places) = expected.get_mut(&hash) {
                    let gone = places.remove(random.below(places.len() as u64) as usize);
                    map.remove(hash, gone);
                    map.remove(hash, place(rounds));
                    rows -= 1;
                    if places.is_empty() {
                        expected.remove(&hash);
                    }
                }
                let hash = known[random.below(hashes) as usize];
                let there = expected.get(&hash).cloned().unwrap_or_default();
                assert_eq!(all(map.places(hash)), there);
                assert_eq!((map.len(), map.hashes()), (rows, expected.len()));
            }
            let found: BTreeMap<Hash, Vec<u64>> =
                map.iter().map(|(hash, places)| (hash, all(places))).collect();
            assert_eq!(found, expected);
            while let Some((hash, places)) = expected.pop_first() {
                places.iter().for_each(|place| map.remove(hash, *place));
            }
            assert!(map.is_empty() && map.iter().next().is_none());
        }
    }

    #[test]
    fn a_row_takes_24_bytes_at_most() {
        let mut random = Random(1);
        for expected in [0, 300_000] {
            let mut map = RowMap::new(expected);
            for number in 0..400_000 {
                map.add(random.hash(), place(number));
                let most = 24 * map.len() + 100 * SHARDS;
                if map.len() >= expected {
                    assert!(map.bytes() <= most, "{} rows: {} bytes", map.len(), map.bytes());
                }
            }
        }
    }

    #[test]
    fn shards_do_not_grow_all_at_once() {
        let mut random = Random(1);
        let mut map = RowMap::new(0);
        let (mut at_once, mut before) = (0, 0);
        for number in 0..1_000_000 {
            map.add(random.hash(), place(number));
            if number >= 100_000 && number % 1000 == 0 {
                at_once = at_once.max(map.bytes() - before);
            }
            if number % 1000 == 0 {
                before = map.bytes();
            }
        }
        assert!(at_once < map.bytes() / 40, "{at_once} of {}", map.bytes());
    }

    #[test]
    fn the_last_places_are_taken_first() {
        let mut map = RowMap::new(0);
        (1..=3).for_each(|number| map.add(7, number));
        let last = |count| map.places(7).last(count).map(Iterator::collect::<Vec<u64>>);
        assert_eq!(last(2), Some(vec![3, 2]));
        assert_eq!(last(0), Some(vec![]));
        assert_eq!(last(4), None);
        assert_eq!(map.places(8).len(), 0);
    }
}
