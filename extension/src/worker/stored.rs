//! Which rows a view's heap holds and where: what turns deltas into writes without searching.
//!
//! Rows are known by a 128-bit hash with keys of this process; equal rows share an entry.

use crate::pg::heap::Tid;
use engine::memory::{Account, Entered};
use plan::row::Row;
use plan::Diff;
use serde::{Deserialize, Serialize};
use std::collections::hash_map::{Entry, RandomState};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};

/// Consolidated output of a dataflow.
pub type Delta = hashbrown::HashMap<Row, Diff>;

/// Hash of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowHash(pub u128);

/// Secret numbers by which rows are hashed: nobody can make rows of equal hashes who does not know them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Keys([u64; 4]);

impl Keys {
    fn new() -> Keys {
        Keys([0_u64; 4].map(|_| RandomState::new().hash_one(0)))
    }
}

/// Hashes rows: two independent hashes, each begun with keys of its own.
#[derive(Clone, Debug)]
pub struct RowHasher {
    low: DefaultHasher,
    high: DefaultHasher,
}

impl RowHasher {
    pub fn new(Keys([a, b, c, d]): Keys) -> RowHasher {
        let begun = |keys: [u64; 2]| {
            let mut hasher = DefaultHasher::new();
            keys.iter().for_each(|key| hasher.write_u64(*key));
            hasher
        };
        RowHasher { low: begun([a, b]), high: begun([c, d]) }
    }

    pub fn hash(&self, row: &Row) -> RowHash {
        let of = |hasher: &DefaultHasher| {
            let mut hasher = hasher.clone();
            hasher.write(row.as_bytes());
            hasher.finish()
        };
        RowHash(u128::from(of(&self.high)) << 64 | u128::from(of(&self.low)))
    }
}

/// Places of equal rows.
#[derive(Debug)]
enum Places {
    One(Tid),
    Many(Vec<Tid>),
}

/// The hashes are uniform already.
#[derive(Default)]
struct TakeLow(u64);

impl Hasher for TakeLow {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
}

/// The rows of one heap file.
#[derive(Debug)]
pub struct StoredRows {
    /// The file the places are in.
    pub file: u32,
    keys: Keys,
    hasher: RowHasher,
    places: HashMap<RowHash, Places, BuildHasherDefault<TakeLow>>,
    len: usize,
    /// What the places take is the view's.
    account: Account,
}

/// Writes that take a heap to its next state.
#[derive(Debug, Default)]
pub struct Changes {
    pub deletes: Vec<(RowHash, Tid)>,
    /// Rows to replace, with their new contents.
    pub updates: Vec<(RowHash, Tid, Row)>,
    pub inserts: Vec<Row>,
}

impl Changes {
    /// Number of rows touched.
    pub fn len(&self) -> usize {
        self.deletes.len() + self.updates.len() + self.inserts.len()
    }

    /// The rows that the heap holds afterwards and did not before: those that replace others, then the others.
    pub fn new_rows(&self) -> impl Iterator<Item = &Row> {
        self.updates.iter().map(|(_, _, row)| row).chain(&self.inserts)
    }
}

/// The heap does not hold what the dataflow retracts: our bug, or a foreign hand.
#[derive(Debug)]
pub struct Missing;

impl StoredRows {
    /// No rows yet, of no file, and room for as many as are expected.
    pub fn new(expected: usize) -> StoredRows {
        let keys = Keys::new();
        let account = Account::open();
        let on_it = account.enter();
        let places = HashMap::with_capacity_and_hasher(expected, BuildHasherDefault::default());
        drop(on_it);
        StoredRows { file: 0, keys, hasher: RowHasher::new(keys), places, len: 0, account }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Lets this thread allocate as long as what is returned lives on the account of these rows.
    pub fn allocate(&self) -> Entered {
        self.account.enter()
    }

    /// Bytes that the rows' places take.
    pub fn bytes(&self) -> usize {
        self.account.bytes()
    }

    /// By which its rows are hashed.
    pub fn keys(&self) -> Keys {
        self.keys
    }

    fn hash(&self, row: &Row) -> RowHash {
        self.hasher.hash(row)
    }

    /// A row is stored.
    pub fn add(&mut self, row: &Row, tid: Tid) {
        self.add_hash(self.hash(row), tid);
    }

    /// The same, by the row's hash.
    pub fn add_hash(&mut self, hash: RowHash, tid: Tid) {
        self.len += 1;
        match self.places.entry(hash) {
            Entry::Vacant(entry) => {
                entry.insert(Places::One(tid));
            }
            Entry::Occupied(mut entry) => match entry.get_mut() {
                Places::One(first) => {
                    let both = vec![*first, tid];
                    entry.insert(Places::Many(both));
                }
                Places::Many(tids) => tids.push(tid),
            },
        }
    }

    fn remove(&mut self, hash: RowHash, tid: Tid) {
        let Entry::Occupied(mut entry) = self.places.entry(hash) else { return };
        self.len -= 1;
        match entry.get_mut() {
            Places::One(_) => {
                entry.remove();
            }
            Places::Many(tids) => {
                // Places are taken from the end: a search from there finds them at once.
                if let Some(index) = tids.iter().rposition(|other| *other == tid) {
                    tids.remove(index);
                }
                if tids.is_empty() {
                    entry.remove();
                }
            }
        }
    }

    fn places(&self, hash: RowHash) -> &[Tid] {
        match self.places.get(&hash) {
            None => &[],
            Some(Places::One(tid)) => std::slice::from_ref(tid),
            Some(Places::Many(tids)) => tids,
        }
    }

    /// Writes for a delta. With a key, a deleted and an inserted row of equal key become one update.
    pub fn changes_for_delta(
        &self,
        delta: &Delta,
        key: Option<&[usize]>,
    ) -> Result<Changes, Missing> {
        let mut changes = Changes::default();
        let mut replaceable = hashbrown::HashMap::new();
        for (row, diff) in delta.iter().filter(|(_, diff)| **diff < 0) {
            let hash = self.hash(row);
            let count = diff.unsigned_abs() as usize;
            let tids = self.places(hash);
            let tids = tids.get(tids.len().checked_sub(count).ok_or(Missing)?..).ok_or(Missing)?;
            match (key, tids) {
                (Some(key), [tid]) => {
                    if let Some(previous) = replaceable.insert(key_of(row, key), (hash, *tid)) {
                        changes.deletes.push(previous);
                    }
                }
                _ => changes.deletes.extend(tids.iter().rev().map(|tid| (hash, *tid))),
            }
        }
        for (row, diff) in delta.iter().filter(|(_, diff)| **diff > 0) {
            match key.and_then(|key| replaceable.remove(&key_of(row, key))) {
                Some((hash, tid)) if *diff == 1 => changes.updates.push((hash, tid, row.clone())),
                replaced => {
                    changes.deletes.extend(replaced);
                    changes.inserts.extend((0..*diff).map(|_| row.clone()));
                }
            }
        }
        changes.deletes.extend(replaceable.into_values());
        // In the order of the heap, pages are found in the cache and new rows come to lie together.
        changes.updates.sort_unstable_by_key(|(_, tid, _)| *tid);
        Ok(changes)
    }

    /// Writes that make the heap hold exactly the desired rows.
    pub fn changes_to_reach(&self, desired: &Delta) -> Changes {
        let mut changes = Changes::default();
        let mut matched = 0;
        for (row, diff) in desired {
            let wanted = usize::try_from(*diff).unwrap_or(0);
            let (hash, tids) = self.find(row);
            matched += usize::from(!tids.is_empty());
            let surplus = tids.get(wanted..).unwrap_or_default();
            changes.deletes.extend(surplus.iter().rev().map(|tid| (hash, *tid)));
            changes.inserts.extend((tids.len()..wanted).map(|_| row.clone()));
        }
        // Mostly the heap is right, and no more has to be looked at.
        if matched < self.places.len() {
            self.delete_others(desired, &mut changes);
        }
        changes
    }

    /// Adds the deletion of all stored rows that are not desired.
    fn delete_others(&self, desired: &Delta, changes: &mut Changes) {
        let kept: HashSet<RowHash, BuildHasherDefault<TakeLow>> =
            desired.keys().map(|row| self.hash(row)).collect();
        for hash in self.places.keys().filter(|hash| !kept.contains(hash)) {
            changes.deletes.extend(self.places(*hash).iter().rev().map(|tid| (*hash, *tid)));
        }
    }

    fn find(&self, row: &Row) -> (RowHash, &[Tid]) {
        let hash = self.hash(row);
        (hash, self.places(hash))
    }

    /// Records what has been written, with the places of the new rows in the order of [`Changes::new_rows`].
    pub fn note(&mut self, changes: &Changes, places: &[Tid]) {
        let _on_their_account = self.allocate();
        for (hash, tid) in &changes.deletes {
            self.remove(*hash, *tid);
        }
        for (hash, tid, _) in &changes.updates {
            self.remove(*hash, *tid);
        }
        for (row, tid) in changes.new_rows().zip(places) {
            self.add(row, *tid);
        }
    }
}

fn key_of(row: &Row, key: &[usize]) -> Row {
    let columns = row.unpack();
    Row::pack(key.iter().filter_map(|column| columns.get(*column)))
}
