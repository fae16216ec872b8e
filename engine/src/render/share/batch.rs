//! Batches that several threads may read. What differential has for one thread, with counts that threads share.

use crate::core::monitor::look;
use differential_dataflow::lattice::Lattice;
use differential_dataflow::trace::{
    Batch, BatchReader, Builder, Cursor, Description, Merger, Navigable,
};
use std::sync::Arc;
use timely::progress::frontier::AntichainRef;
use timely::progress::Antichain;
use timely::PartialOrder;

/// Which values a reader wants to see.
pub(in crate::render) type Sieve<C> =
    Arc<dyn for<'a> Fn(<C as Cursor>::Key<'a>, <C as Cursor>::Val<'a>) -> bool + Send + Sync>;

/// What a reader sees of a batch.
pub(in crate::render) struct Sight<T, C: Cursor> {
    /// Times before this one are read as this one: who began to read at it is not concerned with what was before.
    pub(super) as_of: T,
    pub(super) sieve: Option<Sieve<C>>,
}

impl<T: Clone, C: Cursor> Clone for Sight<T, C> {
    fn clone(&self) -> Self {
        Sight { as_of: self.as_of.clone(), sieve: self.sieve.clone() }
    }
}

/// A batch that may have many owners, on any thread.
pub(in crate::render) struct SharedBatch<B: BatchReader + Navigable> {
    batch: Arc<B>,
    /// All of it, if nothing is said.
    sight: Option<Sight<B::Time, B::Cursor>>,
}

impl<B: BatchReader + Navigable> SharedBatch<B> {
    fn new(batch: B) -> Self {
        SharedBatch { batch: Arc::new(batch), sight: None }
    }

    /// The same for a reader.
    pub(super) fn seen(&self, sight: &Sight<B::Time, B::Cursor>) -> Self {
        SharedBatch { batch: Arc::clone(&self.batch), sight: Some(sight.clone()) }
    }
}

impl<B: BatchReader + Navigable> Clone for SharedBatch<B> {
    fn clone(&self) -> Self {
        SharedBatch { batch: Arc::clone(&self.batch), sight: self.sight.clone() }
    }
}

impl<B: BatchReader + Navigable> BatchReader for SharedBatch<B> {
    type Time = B::Time;

    fn len(&self) -> usize {
        self.batch.len()
    }

    fn description(&self) -> &Description<B::Time> {
        self.batch.description()
    }
}

impl<B: Batch + Navigable> Batch for SharedBatch<B> {
    type Merger = SharedMerger<B>;

    fn empty(lower: Antichain<B::Time>, upper: Antichain<B::Time>) -> Self {
        SharedBatch::new(B::empty(lower, upper))
    }
}

impl<B> Navigable for SharedBatch<B>
where
    B: BatchReader + Navigable,
    B::Cursor: for<'a> Cursor<Time = B::Time, TimeGat<'a> = &'a B::Time>,
{
    type Cursor = SharedCursor<B::Cursor>;

    fn cursor(&self) -> Self::Cursor {
        let mut cursor = SharedCursor { cursor: self.batch.cursor(), sight: self.sight.clone() };
        cursor.sift(self);
        cursor
    }
}

/// A merge of two batches.
pub(in crate::render) struct SharedMerger<B: Batch>(B::Merger);

impl<B: Batch + Navigable> Merger<SharedBatch<B>> for SharedMerger<B> {
    fn new(
        one: &SharedBatch<B>,
        other: &SharedBatch<B>,
        compaction: AntichainRef<'_, B::Time>,
    ) -> Self {
        SharedMerger(one.batch.begin_merge(&other.batch, compaction))
    }

    fn work(&mut self, one: &SharedBatch<B>, other: &SharedBatch<B>, fuel: &mut isize) {
        self.0.work(&one.batch, &other.batch, fuel);
    }

    fn done(self) -> SharedBatch<B> {
        SharedBatch::new(self.0.done())
    }
}

/// Builds batches.
pub(in crate::render) struct SharedBuilder<B>(B);

impl<B: Builder> Builder for SharedBuilder<B>
where
    B::Output: BatchReader<Time = B::Time> + Navigable,
{
    type Input = B::Input;
    type Time = B::Time;
    type Output = SharedBatch<B::Output>;

    fn with_capacity(keys: usize, vals: usize, updates: usize) -> Self {
        SharedBuilder(B::with_capacity(keys, vals, updates))
    }

    fn push(&mut self, chunk: &mut Self::Input) {
        self.0.push(chunk);
    }

    fn done(self, description: Description<Self::Time>) -> Self::Output {
        SharedBatch::new(self.0.done(description))
    }

    fn seal(chain: &mut Vec<Self::Input>, description: Description<Self::Time>) -> Self::Output {
        SharedBatch::new(B::seal(chain, description))
    }
}

/// A cursor of the batch itself, which stands on values that are seen. There may be none of a key.
pub(in crate::render) struct SharedCursor<C: Cursor> {
    cursor: C,
    sight: Option<Sight<C::Time, C>>,
}

impl<C: Cursor> SharedCursor<C>
where
    C::Storage: BatchReader<Time = C::Time> + Navigable<Cursor = C>,
{
    /// Goes on to a value that is seen.
    #[inline]
    fn sift(&mut self, batch: &SharedBatch<C::Storage>) {
        let Some(Sight { sieve: Some(sieve), .. }) = &self.sight else { return };
        let batch = &*batch.batch;
        if !self.cursor.key_valid(batch) {
            return;
        }
        while self.cursor.val_valid(batch) && !sieve(self.cursor.key(batch), self.cursor.val(batch))
        {
            look(1);
            self.cursor.step_val(batch);
        }
    }
}

impl<C> Cursor for SharedCursor<C>
where
    C: for<'a> Cursor<TimeGat<'a> = &'a <C as Cursor>::Time>,
    C::Storage: BatchReader<Time = C::Time> + Navigable<Cursor = C>,
{
    type Storage = SharedBatch<C::Storage>;
    type Key<'a> = C::Key<'a>;
    type ValOwn = C::ValOwn;
    type Val<'a> = C::Val<'a>;
    type Time = C::Time;
    type TimeGat<'a> = C::TimeGat<'a>;
    type Diff = C::Diff;
    type DiffGat<'a> = C::DiffGat<'a>;
    type KeyContainer = C::KeyContainer;
    type ValContainer = C::ValContainer;
    type TimeContainer = C::TimeContainer;
    type DiffContainer = C::DiffContainer;

    #[inline]
    fn key_valid(&self, batch: &Self::Storage) -> bool {
        self.cursor.key_valid(&batch.batch)
    }

    #[inline]
    fn val_valid(&self, batch: &Self::Storage) -> bool {
        self.cursor.val_valid(&batch.batch)
    }

    #[inline]
    fn key<'a>(&self, batch: &'a Self::Storage) -> Self::Key<'a> {
        self.cursor.key(&batch.batch)
    }

    #[inline]
    fn val<'a>(&self, batch: &'a Self::Storage) -> Self::Val<'a> {
        self.cursor.val(&batch.batch)
    }

    #[inline]
    fn get_key<'a>(&self, batch: &'a Self::Storage) -> Option<Self::Key<'a>> {
        self.cursor.get_key(&batch.batch)
    }

    #[inline]
    fn get_val<'a>(&self, batch: &'a Self::Storage) -> Option<Self::Val<'a>> {
        self.cursor.get_val(&batch.batch)
    }

    #[inline]
    fn map_times<L: FnMut(Self::TimeGat<'_>, Self::DiffGat<'_>)>(
        &mut self,
        batch: &Self::Storage,
        mut logic: L,
    ) {
        let Some(Sight { as_of, .. }) = &self.sight else {
            return self.cursor.map_times(&batch.batch, logic);
        };
        self.cursor.map_times(&batch.batch, |time, diff| match as_of.less_equal(time) {
            true => logic(time, diff),
            false => logic(&time.join(as_of), diff),
        });
    }

    #[inline]
    fn step_key(&mut self, batch: &Self::Storage) {
        self.cursor.step_key(&batch.batch);
        self.sift(batch);
    }

    #[inline]
    fn seek_key(&mut self, batch: &Self::Storage, key: Self::Key<'_>) {
        self.cursor.seek_key(&batch.batch, key);
        self.sift(batch);
    }

    #[inline]
    fn step_val(&mut self, batch: &Self::Storage) {
        self.cursor.step_val(&batch.batch);
        self.sift(batch);
    }

    #[inline]
    fn seek_val(&mut self, batch: &Self::Storage, val: Self::Val<'_>) {
        self.cursor.seek_val(&batch.batch, val);
        self.sift(batch);
    }

    #[inline]
    fn rewind_keys(&mut self, batch: &Self::Storage) {
        self.cursor.rewind_keys(&batch.batch);
        self.sift(batch);
    }

    #[inline]
    fn rewind_vals(&mut self, batch: &Self::Storage) {
        self.cursor.rewind_vals(&batch.batch);
        self.sift(batch);
    }
}
