//! Reading batches of a spilling dataflow key by key, in order, with one chunk of each in memory.

use super::block::Update;
use super::chunk::{Batch, Chunk, Difference, Stored, StoredTime};
use std::rc::Rc;

/// The updates of one key.
pub(super) type Edits<V, T, R> = Vec<(V, T, R)>;

/// A position in some batches; it only moves forward.
pub(super) struct Reader<K: Stored, V: Stored, T: StoredTime, R: Difference> {
    runs: Vec<Run<K, V, T, R>>,
}

/// A position in one batch.
struct Run<K: Stored, V: Stored, T: StoredTime, R: Difference> {
    batch: Batch<K, V, T, R>,
    /// The chunk after the one at hand.
    next: usize,
    rows: Rc<Vec<Update<K, V, T, R>>>,
    at: usize,
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> Reader<K, V, T, R> {
    pub(super) fn new(batches: Vec<Batch<K, V, T, R>>) -> Self {
        let runs = batches.into_iter().map(|batch| {
            let mut run = Run { batch, next: 0, rows: Rc::default(), at: 0 };
            run.refill();
            run
        });
        Reader { runs: runs.collect() }
    }

    /// The least key that is left.
    pub(super) fn key(&self) -> Option<&K> {
        self.runs.iter().filter_map(Run::key).min()
    }

    /// Passes over all keys before `key`.
    pub(super) fn seek(&mut self, key: &K) {
        self.runs.iter_mut().for_each(|run| run.seek(key));
    }

    /// Takes the updates of `key`, which must not be after the least key that is left, and appends them to
    /// `edits`.
    pub(super) fn take_key(&mut self, key: &K, edits: &mut Edits<V, T, R>) {
        self.runs.iter_mut().for_each(|run| run.take_key(key, edits));
    }
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> Run<K, V, T, R> {
    fn key(&self) -> Option<&K> {
        self.rows.get(self.at).map(|((key, _), _, _)| key)
    }

    /// Goes on with the next chunk while the one at hand is used up.
    fn refill(&mut self) {
        while let (true, Some(chunk)) = (self.at >= self.rows.len(), self.next_chunk()) {
            (self.rows, self.at) = (chunk.rows(), 0);
            self.next += 1;
        }
    }

    fn next_chunk(&self) -> Option<&Chunk<K, V, T, R>> {
        self.batch.chunks.get(self.next)
    }

    fn seek(&mut self, key: &K) {
        if self.rows.last().is_some_and(|((last, _), _, _)| last < key) {
            self.at = self.rows.len();
            self.next +=
                self.batch.chunks[self.next..].partition_point(|chunk| chunk.is_before(key));
            self.refill();
        }
        self.at += count_before(&self.rows[self.at..], key);
    }

    fn take_key(&mut self, key: &K, edits: &mut Edits<V, T, R>) {
        while self.key() == Some(key) {
            let ((_, value), time, diff) = &self.rows[self.at];
            edits.push((value.clone(), time.clone(), diff.clone()));
            self.at += 1;
            self.refill();
        }
    }
}

/// Number of updates before a key that is likely to be near.
fn count_before<K: Ord, V, T, R>(rows: &[Update<K, V, T, R>], key: &K) -> usize {
    let is_before = |((other, _), _, _): &Update<K, V, T, R>| other < key;
    let mut step = 1;
    while step < rows.len() && is_before(&rows[step - 1]) {
        step *= 2;
    }
    let low = step / 2;
    low + rows[low..step.min(rows.len())].partition_point(is_before)
}
