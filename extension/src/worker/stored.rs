//! Which rows a view's heap holds and where: what turns deltas into writes without searching.
//!
//! Rows are known by a hash with keys of this process; equal rows share an entry ([`rules::row_map`]).

use super::changelog::Entries;
use crate::pg::heap::Tid;
use engine::memory::{Account, Entered};
use engine::{Time, Updates};
use plan::row::Row;
use plan::Diff;
use rules::row_hash::Keys;
use rules::row_map::{Places, RowMap};
use std::collections::hash_map::RandomState;
use std::collections::HashSet;
use std::convert::Infallible;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

/// Output of a dataflow that is to be written: each row once. The times are of no use any more.
pub type Delta = Updates<Row>;

/// Rows whose places are looked up together.
const TOGETHER: usize = 64;

/// Hash of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowHash(pub u128);

/// Keys that nobody knows.
fn new_keys() -> Keys {
    Keys([0_u64; 2].map(|_| RandomState::new().hash_one(0)))
}

/// The hash of a row.
pub fn hash(keys: Keys, row: &Row) -> RowHash {
    RowHash(keys.hash(row.as_bytes()))
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
    places: RowMap,
    /// The hashes of all rows added up. As nobody knows the keys, two heaps of the same number of rows and the same sum
    /// have the same rows.
    sum: u128,
    /// What the places take is the view's.
    account: Account,
}

/// What a heap was found to hold.
#[derive(Debug)]
pub struct Compared {
    pub stored: StoredRows,
    /// Whether the view may be read.
    pub is_populated: bool,
}

/// Writes that take a heap to its next state.
#[derive(Debug, Default)]
pub struct Changes {
    pub deletes: Vec<(RowHash, Tid)>,
    /// Rows to replace, with their new contents.
    pub updates: Vec<(RowHash, Tid, Row)>,
    pub inserts: Vec<Row>,
    /// What the table of the view's changes gets.
    pub entries: Entries,
}

impl Changes {
    /// Number of rows of the view touched.
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
        let keys = new_keys();
        let account = Account::open();
        let on_it = account.enter();
        let places = RowMap::new(expected);
        drop(on_it);
        StoredRows { file: 0, keys, places, sum: 0, account }
    }

    /// Makes room for as many as are going to be added, if there are none yet.
    pub fn reserve(&mut self, expected: usize) {
        if self.len() == 0 {
            let _on_their_account = self.account.enter();
            self.places = RowMap::new(expected);
        }
    }

    pub fn len(&self) -> usize {
        self.places.len()
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
        hash(self.keys, row)
    }

    /// A row is stored.
    pub fn add(&mut self, row: &Row, tid: Tid) {
        self.add_hash(self.hash(row), tid);
    }

    /// The same, by the row's hash.
    pub fn add_hash(&mut self, RowHash(hash): RowHash, tid: Tid) {
        self.sum = self.sum.wrapping_add(hash);
        self.places.add(hash, tid.to_number());
    }

    fn remove(&mut self, RowHash(hash): RowHash, tid: Tid) {
        let before = self.len();
        self.places.remove(hash, tid.to_number());
        if self.len() < before {
            self.sum = self.sum.wrapping_sub(hash);
        }
    }

    /// Writes for a delta. With a key, a deleted and an inserted row of equal key become one update.
    pub fn changes_for_delta(
        &self,
        delta: &Delta,
        key: Option<&[usize]>,
    ) -> Result<Changes, Missing> {
        let mut changes = Changes::default();
        let is_new = |(_, _, diff): &&(Row, Time, Diff)| *diff > 0;
        let new = delta.iter().filter(is_new).count();
        // Without new rows nothing is replaced.
        let key = key.filter(|_| new > 0);
        let mut replaceable =
            hashbrown::HashMap::with_capacity(key.map_or(0, |_| delta.len() - new));
        self.look_up(
            delta.iter().filter(|(_, _, diff)| *diff < 0),
            |hash, places, (row, _, diff)| {
                let count = diff.unsigned_abs() as usize;
                let mut tids = places.last(count).ok_or(Missing)?.map(Tid::from_number);
                match key.filter(|_| count == 1) {
                    Some(key) => {
                        let tid = tids.next().ok_or(Missing)?;
                        if let Some(previous) = replaceable.insert(key_of(row, key), (hash, tid)) {
                            changes.deletes.push(previous);
                        }
                    }
                    None => changes.deletes.extend(tids.map(|tid| (hash, tid))),
                }
                Ok(())
            },
        )?;
        for (row, _, diff) in delta.iter().filter(is_new) {
            let replaced = match key {
                Some(key) if !replaceable.is_empty() => replaceable.remove(&key_of(row, key)),
                _ => None,
            };
            match replaced {
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

    /// Hands over the places of rows.
    fn look_up<'a, E>(
        &self,
        rows: impl Iterator<Item = &'a (Row, Time, Diff)>,
        mut each: impl FnMut(RowHash, Places<'_>, &'a (Row, Time, Diff)) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rows = rows.map(|update| (self.hash(&update.0), update));
        loop {
            let together: Vec<_> = rows.by_ref().take(TOGETHER).collect();
            if together.is_empty() {
                return Ok(());
            }
            self.places.come_close(together.iter().map(|(hash, _)| hash.0));
            for (hash, update) in together {
                each(hash, self.places.places(hash.0), update)?;
            }
        }
    }

    /// Writes that make the heap hold exactly the desired rows.
    pub fn changes_to_reach(&self, desired: &Delta) -> Changes {
        let mut changes = Changes::default();
        if self.len() > 0 && self.holds_exactly(desired) {
            return changes;
        }
        let mut matched = 0;
        let looked_up = self.look_up(desired.iter(), |hash, places, (row, _, diff)| {
            let wanted = usize::try_from(*diff).unwrap_or(0);
            matched += usize::from(!places.is_empty());
            let surplus = places.last(places.len().saturating_sub(wanted)).into_iter().flatten();
            changes.deletes.extend(surplus.map(|place| (hash, Tid::from_number(place))));
            changes.inserts.extend((places.len()..wanted).map(|_| row.clone()));
            Ok::<(), Infallible>(())
        });
        let Ok(()) = looked_up;
        // Mostly the heap is right, and no more has to be looked at.
        if matched < self.places.hashes() {
            self.delete_others(desired, &mut changes);
        }
        changes
    }

    /// Whether the heap holds these rows and no others. It mostly does after a start, and this looks nothing up.
    fn holds_exactly(&self, desired: &Delta) -> bool {
        let (mut len, mut sum) = (0_u64, 0_u128);
        for (row, _, diff) in desired {
            let wanted = u64::try_from(*diff).unwrap_or(0);
            len = len.saturating_add(wanted);
            sum = sum.wrapping_add(self.hash(row).0.wrapping_mul(wanted.into()));
        }
        (len, sum) == (self.len() as u64, self.sum)
    }

    /// Adds the deletion of all stored rows that are not desired.
    fn delete_others(&self, desired: &Delta, changes: &mut Changes) {
        let kept: HashSet<RowHash, BuildHasherDefault<TakeLow>> =
            desired.iter().map(|(row, ..)| self.hash(row)).collect();
        let others = self.places.iter().filter(|(hash, _)| !kept.contains(&RowHash(*hash)));
        for (hash, places) in others {
            let tids = places.last(places.len()).into_iter().flatten().map(Tid::from_number);
            changes.deletes.extend(tids.map(|tid| (RowHash(hash), tid)));
        }
    }

    /// Records what has been written, with the places of the new rows in the order of [`Changes::new_rows`].
    pub fn note(&mut self, changes: &Changes, places: &[Tid]) {
        let _on_their_account = self.account.enter();
        for gone in changes.deletes.chunks(TOGETHER) {
            self.places.come_close(gone.iter().map(|(hash, _)| hash.0));
            gone.iter().for_each(|(hash, tid)| self.remove(*hash, *tid));
        }
        for replaced in changes.updates.chunks(TOGETHER) {
            self.places.come_close(replaced.iter().map(|(hash, ..)| hash.0));
            replaced.iter().for_each(|(hash, tid, _)| self.remove(*hash, *tid));
        }
        let mut new = changes.new_rows().zip(places);
        loop {
            let together = new.by_ref().take(TOGETHER);
            let together: Vec<_> = together.map(|(row, tid)| (self.hash(row), *tid)).collect();
            if together.is_empty() {
                return;
            }
            self.places.come_close(together.iter().map(|(hash, _)| hash.0));
            together.iter().for_each(|(hash, tid)| self.add_hash(*hash, *tid));
        }
    }
}

fn key_of(row: &Row, key: &[usize]) -> Row {
    Row::project(&[row], key)
}
