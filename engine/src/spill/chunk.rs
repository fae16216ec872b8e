//! Chunks: what batches of a spilling dataflow are made of.
//!
//! A chunk is a sorted, consolidated run of updates, in memory or on disk; it never changes. Differential
//! builds batches and merges them chunk by chunk, and says when a chunk is settled: not needed for a while.
//! Whoever reads a chunk holds its updates by a reference count, so a chunk can be forgotten at any time.

use super::block::{decode, encode, Update};
use super::pager::{Evict, Pager};
use super::store::Extent;
use crate::core::column::Column;
use differential_dataflow::consolidation::consolidate_updates;
use differential_dataflow::difference::Semigroup;
use differential_dataflow::lattice::Lattice;
use differential_dataflow::trace::chunk::{self, ChunkBatch};
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::rc::Rc;
use timely::progress::frontier::AntichainRef;
use timely::progress::{Antichain, Timestamp};

/// Updates in a chunk: little enough to be read for one key, enough to be compressed.
pub(super) const TARGET: usize = 1024;

/// Chunks of input that a merge uses up before what has come out can be settled, and so leave memory.
const MERGE_AT_ONCE: usize = 8;

/// Keys and values.
pub(crate) trait Stored: Column + Ord {}
impl<D: Column + Ord> Stored for D {}

pub(crate) trait StoredTime: Column + Timestamp + Lattice {}
impl<T: Column + Timestamp + Lattice> StoredTime for T {}

pub(crate) trait Difference: Column + Ord + Semigroup {}
impl<R: Column + Ord + Semigroup> Difference for R {}

/// A run of updates; cheap to clone.
pub(crate) struct Chunk<K: Stored, V: Stored, T: StoredTime, R: Difference>(Rc<Inner<K, V, T, R>>);

/// A batch of chunks.
pub(crate) type Batch<K, V, T, R> = Rc<ChunkBatch<Chunk<K, V, T, R>>>;

struct Inner<K: Stored, V: Stored, T: StoredTime, R: Difference> {
    len: usize,
    /// `None` until the chunk is part of a dataflow.
    pager: Option<Rc<Pager>>,
    /// Whether the pager knows that the updates are in memory.
    is_registered: Cell<bool>,
    body: RefCell<Body<K, V, T, R>>,
}

/// Bytes that so many updates take in memory, without what they keep on the heap.
fn in_memory<K, V, T, R>(updates: usize) -> usize {
    updates * size_of::<Update<K, V, T, R>>()
}

/// Updates, shared by those who read them.
type Rows<K, V, T, R> = Rc<Vec<Update<K, V, T, R>>>;

/// At least one of the two is there, unless the disk has failed.
struct Body<K, V, T, R> {
    rows: Option<Rows<K, V, T, R>>,
    block: Option<Block<K>>,
}

/// What is known of updates on disk.
struct Block<K> {
    extent: Extent,
    last_key: K,
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> Drop for Inner<K, V, T, R> {
    fn drop(&mut self) {
        if let (Some(block), Some(pager)) = (self.body.get_mut().block.take(), &self.pager) {
            pager.release(block.extent, in_memory::<K, V, T, R>(self.len));
        }
    }
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> Evict for Inner<K, V, T, R> {
    fn evict(&self) -> bool {
        let mut body = self.body.borrow_mut();
        let Body { rows, block } = &mut *body;
        if rows.as_ref().is_some_and(|rows| Rc::strong_count(rows) > 1) {
            return false;
        }
        self.is_registered.set(false);
        if let (None, Some(pager), Some(rows)) = (&*block, &self.pager, &*rows) {
            let Some(((last_key, _), _, _)) = rows.last() else { return true };
            let Some(extent) = pager.write(&encode(rows), in_memory::<K, V, T, R>(rows.len()))
            else {
                return true;
            };
            *block = Some(Block { extent, last_key: last_key.clone() });
        }
        if block.is_some() {
            *rows = None;
        }
        true
    }
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> Clone for Chunk<K, V, T, R> {
    fn clone(&self) -> Self {
        Chunk(Rc::clone(&self.0))
    }
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> Default for Chunk<K, V, T, R> {
    fn default() -> Self {
        Chunk::new(Vec::new(), None)
    }
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> Chunk<K, V, T, R> {
    /// A chunk of sorted, consolidated updates.
    pub(super) fn new(rows: Vec<Update<K, V, T, R>>, pager: Option<Rc<Pager>>) -> Self {
        let len = rows.len();
        let body = RefCell::new(Body { rows: Some(Rc::new(rows)), block: None });
        Chunk(Rc::new(Inner { len, pager, is_registered: Cell::new(false), body }))
    }

    /// The same updates, kept by a pager.
    pub(super) fn kept_by(self, pager: &Rc<Pager>) -> Self {
        let pager = Some(Rc::clone(pager));
        Chunk::new(self.into_rows(), pager)
    }

    /// The updates, read from disk if necessary.
    pub(super) fn rows(&self) -> Rc<Vec<Update<K, V, T, R>>> {
        let mut body = self.0.body.borrow_mut();
        if let Some(rows) = &body.rows {
            return Rc::clone(rows);
        }
        let rows = Rc::new(self.read(&body).unwrap_or_default());
        body.rows = Some(Rc::clone(&rows));
        drop(body);
        self.register();
        rows
    }

    fn read(&self, body: &Body<K, V, T, R>) -> Option<Vec<Update<K, V, T, R>>> {
        let pager = self.0.pager.as_ref()?;
        let bytes = pager.read(&body.block.as_ref()?.extent)?;
        let rows = decode(self.0.len, &bytes);
        if rows.is_none() {
            pager.fail_damaged();
        }
        rows
    }

    /// The updates, copied only if somebody else has them.
    pub(super) fn into_rows(self) -> Vec<Update<K, V, T, R>> {
        let rows = self.rows();
        drop(self);
        Rc::try_unwrap(rows).unwrap_or_else(|shared| Vec::clone(&shared))
    }

    /// Whether all keys are before `key`. Reads nothing.
    pub(super) fn is_before(&self, key: &K) -> bool {
        let body = self.0.body.borrow();
        match (&body.block, &body.rows) {
            (Some(block), _) => block.last_key < *key,
            (None, Some(rows)) => rows.last().is_none_or(|((last, _), _, _)| last < key),
            (None, None) => true,
        }
    }

    /// Lets the pager know that the updates are not needed for a while.
    pub(super) fn register(&self) {
        if let (Some(pager), false) = (&self.0.pager, self.0.is_registered.replace(true)) {
            let inner: &Rc<dyn Evict> = &(self.0.clone() as _);
            pager.register(self.0.len, || Rc::downgrade(inner));
        }
    }

    fn pager(&self) -> Option<Rc<Pager>> {
        self.0.pager.clone()
    }
}

/// Updates on their way into chunks.
struct Packer<'a, K: Stored, V: Stored, T: StoredTime, R: Difference> {
    rows: Vec<Update<K, V, T, R>>,
    pager: Option<Rc<Pager>>,
    out: &'a mut VecDeque<Chunk<K, V, T, R>>,
}

impl<'a, K: Stored, V: Stored, T: StoredTime, R: Difference> Packer<'a, K, V, T, R> {
    fn new(pager: Option<Rc<Pager>>, out: &'a mut VecDeque<Chunk<K, V, T, R>>) -> Self {
        Packer { rows: Vec::new(), pager, out }
    }

    fn push(&mut self, update: Update<K, V, T, R>) {
        if !update.2.is_zero() {
            if self.rows.is_empty() {
                self.rows.reserve_exact(TARGET);
            }
            self.rows.push(update);
            if self.rows.len() == TARGET {
                self.flush();
            }
        }
    }

    fn flush(&mut self) {
        if !self.rows.is_empty() {
            let mut rows = std::mem::take(&mut self.rows);
            rows.shrink_to_fit();
            self.out.push_back(Chunk::new(rows, self.pager.clone()));
        }
    }
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> chunk::Chunk for Chunk<K, V, T, R> {
    type Time = T;

    const TARGET: usize = TARGET;

    fn len(&self) -> usize {
        self.0.len
    }

    fn merge(in1: &mut VecDeque<Self>, in2: &mut VecDeque<Self>, out: &mut VecDeque<Self>) {
        let (Some(first), Some(second)) = (in1.pop_front(), in2.pop_front()) else { return };
        let pager = first.pager();
        let (mut rows1, mut rows2) = (first.rows(), second.rows());
        let (mut at1, mut at2) = (0, 0);
        let mut packer = Packer::new(pager.clone(), out);
        for _ in 0..MERGE_AT_ONCE {
            merge_runs((&rows1, &mut at1), (&rows2, &mut at2), &mut packer);
            // Whichever is used up goes on with the next chunk; what is left of the other one waits
            // if there is none, as more may come that is less than it.
            if at1 == rows1.len() {
                let Some(chunk) = in1.pop_front() else { break };
                (rows1, at1) = (chunk.rows(), 0);
            } else {
                let Some(chunk) = in2.pop_front() else { break };
                (rows2, at2) = (chunk.rows(), 0);
            }
        }
        packer.flush();
        for (rows, at, input) in [(rows1, at1, in1), (rows2, at2, in2)] {
            if at < rows.len() {
                input.push_front(Chunk::new(rows[at..].to_vec(), pager.clone()));
            }
        }
    }

    fn extract(
        input: &mut VecDeque<Self>,
        frontier: AntichainRef<T>,
        residual: &mut Antichain<T>,
        keep: &mut VecDeque<Self>,
        ship: &mut VecDeque<Self>,
    ) {
        let Some(chunk) = input.pop_front() else { return };
        let rows = chunk.rows();
        let is_later = |(_, time, _): &&Update<K, V, T, R>| frontier.less_equal(time);
        let later = rows.iter().filter(is_later).count();
        rows.iter().filter(is_later).for_each(|(_, time, _)| {
            residual.insert_ref(time);
        });
        if later == 0 {
            ship.push_back(chunk);
        } else if later == rows.len() {
            keep.push_back(chunk);
        } else {
            let (kept, shipped): (Vec<_>, Vec<_>) =
                rows.iter().cloned().partition(|update| is_later(&update));
            keep.push_back(Chunk::new(kept, chunk.pager()));
            ship.push_back(Chunk::new(shipped, chunk.pager()));
        }
    }

    fn advance(
        input: &mut VecDeque<Self>,
        frontier: AntichainRef<T>,
        done: bool,
        out: &mut VecDeque<Self>,
    ) {
        let Some(first) = input.pop_front() else { return };
        let pager = first.pager();
        let mut rows = first.into_rows();
        input.drain(..).for_each(|chunk| rows.append(&mut chunk.into_rows()));
        // The last (key, value) may go on in what is still to come.
        let last = rows.last().filter(|_| !done).map(|(last, _, _)| last);
        if let Some(last) = last {
            let complete = rows.partition_point(|(data, _, _)| data < last);
            input.push_front(Chunk::new(rows.split_off(complete), pager.clone()));
        }
        let mut packer = Packer::new(pager, out);
        let mut group = Vec::new();
        for (data, mut time, diff) in rows {
            time.advance_by(frontier);
            if group.last().is_some_and(|(other, _, _)| *other != data) {
                consolidate_updates(&mut group);
                group.drain(..).for_each(|update| packer.push(update));
            }
            group.push((data, time, diff));
        }
        consolidate_updates(&mut group);
        group.into_iter().for_each(|update| packer.push(update));
        packer.flush();
    }

    fn settle(input: &mut VecDeque<Self>, done: bool, out: &mut VecDeque<Self>) {
        let combine = |first: &mut Self, second: Self| {
            let pager = first.pager();
            let mut rows = std::mem::take(first).into_rows();
            rows.append(&mut second.into_rows());
            *first = Chunk::new(rows, pager);
        };
        let split = |chunk: Self, count| {
            let pager = chunk.pager();
            let mut rows = chunk.into_rows();
            let rest = rows.split_off(count);
            (Chunk::new(rows, pager.clone()), Chunk::new(rest, pager))
        };
        let seal = |chunk: Self| {
            chunk.register();
            chunk
        };
        chunk::pack(input, done, out, combine, split, seal);
    }
}

/// Merges updates until one run is used up.
fn merge_runs<K: Stored, V: Stored, T: StoredTime, R: Difference>(
    (rows1, at1): (&[Update<K, V, T, R>], &mut usize),
    (rows2, at2): (&[Update<K, V, T, R>], &mut usize),
    packer: &mut Packer<'_, K, V, T, R>,
) {
    while let (Some(a), Some(b)) = (rows1.get(*at1), rows2.get(*at2)) {
        match (&a.0, &a.1).cmp(&(&b.0, &b.1)) {
            Ordering::Less => {
                packer.push(a.clone());
                *at1 += 1;
            }
            Ordering::Greater => {
                packer.push(b.clone());
                *at2 += 1;
            }
            Ordering::Equal => {
                let mut sum = a.clone();
                sum.2.plus_equals(&b.2);
                packer.push(sum);
                *at1 += 1;
                *at2 += 1;
            }
        }
    }
}
