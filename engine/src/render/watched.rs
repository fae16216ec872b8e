//! What differential's arrangements are made with, in memory, with looks at the limits in between.
//!
//! An arrangement sorts, merges and builds a whole batch in one go, which takes seconds for millions of updates. So that a
//! dataflow that is stopped lets go at once, and one that passes its limits is noticed, updates are sorted and merged and batches
//! built here chunk by chunk. What is left to differential are merges of batches in its traces.

use super::seeded::Seeded;
use super::share::{SharedBatch, SharedBuilder};
use crate::core::diff::Mult;
use crate::core::monitor::{look, make_room, room_for};
use crate::core::stamp::Stamp;
use differential_dataflow::consolidation::consolidate_updates;
use differential_dataflow::difference::Semigroup;
use differential_dataflow::trace::implementations::merge_batcher::{MergeBatcher, Merger};
use differential_dataflow::trace::implementations::ord_neu::{
    OrdKeyBatch, OrdValBatch, OrdValBuilder,
};
use differential_dataflow::trace::implementations::{self, Vector};
use differential_dataflow::trace::{Builder, Description};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::rc::Rc;
use std::vec::IntoIter;
use timely::container::buffer::default_capacity;
use timely::container::{ContainerBuilder, PushInto};
use timely::progress::frontier::AntichainRef;
use timely::progress::Antichain;
use timely::PartialOrder;

/// Sorts updates by key and value.
pub(super) type Batcher<K, V, T, R> = MergeBatcher<Merges<(K, V), T, R>>;
/// Builds batches of values by key.
pub(super) type ValBuilder<K, V, T, R> =
    Watched<SharedBuilder<OrdValBuilder<Vector<((K, V), T, R)>, Vec<((K, V), T, R)>>>>;
/// Builds batches of keys.
pub(super) type KeyBuilder<K, T, R> = Watched<implementations::KeyBuilder<K, T, R>>;
/// What a batch of values by key consists of.
pub(super) type ValUpdates<K, V, T> = OrdValBatch<Vector<((K, V), T, Mult)>>;
/// A batch of values by key.
pub(super) type ValBatch<K, V, const LOOPS: usize> = SharedBatch<ValUpdates<K, V, Stamp<LOOPS>>>;
/// A trace of values by key.
pub(super) type Vals<K, V, T> = Seeded<SharedBatch<ValUpdates<K, V, T>>>;
/// A trace of keys.
pub(super) type Keys<K, T, R> = Seeded<Rc<OrdKeyBatch<Vector<((K, ()), T, R)>>>>;

type Update<D, T, R> = (D, T, R);

/// Sorts updates as they come, many at a time, so that few runs are left to be merged.
pub(super) struct Runs<D, T, R> {
    unsorted: Vec<Update<D, T, R>>,
    sorted: VecDeque<Vec<Update<D, T, R>>>,
    /// The one that was handed over last.
    taken: Vec<Update<D, T, R>>,
}

/// Updates that are sorted at once: a few megabytes.
const RUN: usize = 1 << 15;

impl<D, T, R> Default for Runs<D, T, R> {
    fn default() -> Self {
        Runs { unsorted: Vec::new(), sorted: VecDeque::new(), taken: Vec::new() }
    }
}

impl<D: Ord, T: Ord, R: Semigroup> Runs<D, T, R> {
    /// Sorts what there is, and lets it be if that leaves less than so many.
    fn sort(&mut self, least: usize) {
        look(self.unsorted.len());
        consolidate_updates(&mut self.unsorted);
        if self.unsorted.len() >= least {
            self.sorted.push_back(std::mem::take(&mut self.unsorted));
        }
    }
}

impl<D: Ord, T: Ord, R: Semigroup> PushInto<&mut Vec<Update<D, T, R>>> for Runs<D, T, R> {
    fn push_into(&mut self, updates: &mut Vec<Update<D, T, R>>) {
        make_room(&mut self.unsorted, updates.len());
        self.unsorted.append(updates);
        if self.unsorted.len() >= RUN {
            self.sort(RUN / 2);
        }
    }
}

impl<D, T, R> ContainerBuilder for Runs<D, T, R>
where
    D: Ord + Clone + 'static,
    T: Ord + Clone + 'static,
    R: Semigroup + 'static,
{
    type Container = Vec<Update<D, T, R>>;

    fn extract(&mut self) -> Option<&mut Self::Container> {
        self.taken = self.sorted.pop_front()?;
        Some(&mut self.taken)
    }

    fn finish(&mut self) -> Option<&mut Self::Container> {
        if !self.unsorted.is_empty() {
            self.sort(1);
        }
        self.extract()
    }
}

/// Merges runs of sorted chunks.
pub(super) struct Merges<D, T, R>(PhantomData<(D, T, R)>);

impl<D, T, R> Default for Merges<D, T, R> {
    fn default() -> Self {
        Merges(PhantomData)
    }
}

impl<D, T, R> Merger for Merges<D, T, R>
where
    D: Ord + Clone + 'static,
    T: Ord + Clone + PartialOrder + 'static,
    R: Semigroup + 'static,
{
    type Chunk = Vec<Update<D, T, R>>;
    type Time = T;

    fn merge(
        &mut self,
        left: Vec<Self::Chunk>,
        right: Vec<Self::Chunk>,
        output: &mut Vec<Self::Chunk>,
        _stash: &mut Vec<Self::Chunk>,
    ) {
        let (mut left, mut right) = (Run::new(left), Run::new(right));
        let mut chunks = Chunks::new(output);
        while let (Some((data1, time1, _)), Some((data2, time2, _))) = (left.peek(), right.peek()) {
            match (data1, time1).cmp(&(data2, time2)) {
                Ordering::Less => chunks.extend(left.next()),
                Ordering::Greater => chunks.extend(right.next()),
                Ordering::Equal => {
                    let both = left.next().zip(right.next());
                    let sum = both.map(|((data, time, mut diff), (_, _, more))| {
                        diff.plus_equals(&more);
                        (data, time, diff)
                    });
                    chunks.extend(sum.filter(|(_, _, diff)| !diff.is_zero()));
                }
            }
        }
        chunks.finish();
        left.append_to(output);
        right.append_to(output);
    }

    fn extract(
        &mut self,
        merged: Vec<Self::Chunk>,
        upper: AntichainRef<T>,
        frontier: &mut Antichain<T>,
        readied: &mut Vec<Self::Chunk>,
        kept: &mut Vec<Self::Chunk>,
        _stash: &mut Vec<Self::Chunk>,
    ) {
        let (mut readied, mut kept) = (Chunks::new(readied), Chunks::new(kept));
        for chunk in merged {
            if !chunk.iter().any(|(_, time, _)| upper.less_equal(time)) {
                readied.extend_whole(chunk);
                continue;
            }
            for update in chunk {
                if upper.less_equal(&update.1) {
                    frontier.insert_with(&update.1, Clone::clone);
                    kept.extend(Some(update));
                } else {
                    readied.extend(Some(update));
                }
            }
        }
        readied.finish();
        kept.finish();
    }

    fn len(chunk: &Self::Chunk) -> usize {
        chunk.len()
    }
}

/// Updates of some chunks, one after the other.
struct Run<U> {
    open: IntoIter<U>,
    rest: IntoIter<Vec<U>>,
}

impl<U> Run<U> {
    fn new(chunks: Vec<Vec<U>>) -> Run<U> {
        let mut run = Run { open: Vec::new().into_iter(), rest: chunks.into_iter() };
        run.open_next();
        run
    }

    fn open_next(&mut self) {
        while self.open.as_slice().is_empty() {
            let Some(chunk) = self.rest.next() else { return };
            self.open = chunk.into_iter();
        }
    }

    #[inline]
    fn peek(&self) -> Option<&U> {
        self.open.as_slice().first()
    }

    #[inline]
    fn next(&mut self) -> Option<U> {
        let next = self.open.next();
        if self.open.as_slice().is_empty() {
            self.open_next();
        }
        next
    }

    fn append_to(self, output: &mut Vec<Vec<U>>) {
        let open: Vec<U> = self.open.collect();
        output.extend((!open.is_empty()).then_some(open));
        output.extend(self.rest);
    }
}

/// Makes chunks of a usual size, with a look at the limits for each.
struct Chunks<'o, U> {
    chunk: Vec<U>,
    output: &'o mut Vec<Vec<U>>,
}

impl<'o, U> Chunks<'o, U> {
    fn new(output: &'o mut Vec<Vec<U>>) -> Self {
        Chunks { chunk: Vec::new(), output }
    }

    #[inline]
    fn extend(&mut self, update: Option<U>) {
        let Some(update) = update else { return };
        if self.chunk.len() == self.chunk.capacity() {
            self.flush();
        }
        self.chunk.push(update);
    }

    /// Takes a chunk as it is.
    fn extend_whole(&mut self, chunk: Vec<U>) {
        look(chunk.len());
        let open = std::mem::take(&mut self.chunk);
        self.output.extend([open, chunk].into_iter().filter(|chunk| !chunk.is_empty()));
    }

    fn flush(&mut self) {
        look(self.chunk.len());
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(default_capacity::<U>()));
        self.output.extend((!chunk.is_empty()).then_some(chunk));
    }

    fn finish(self) {
        self.output.extend((!self.chunk.is_empty()).then_some(self.chunk));
    }
}

/// Builds batches chunk by chunk.
pub(super) struct Watched<B>(B);

impl<B, K, V, T, R> Builder for Watched<B>
where
    B: Builder<Input = Vec<Update<(K, V), T, R>>>,
    K: PartialEq,
    V: PartialEq,
{
    type Input = B::Input;
    type Time = B::Time;
    type Output = B::Output;

    fn with_capacity(keys: usize, vals: usize, updates: usize) -> Self {
        room_for(keys * size_of::<K>() + vals * size_of::<V>() + updates * size_of::<(T, R)>());
        Watched(B::with_capacity(keys, vals, updates))
    }

    fn push(&mut self, chunk: &mut Self::Input) {
        look(chunk.len());
        self.0.push(chunk);
    }

    fn done(self, description: Description<Self::Time>) -> Self::Output {
        self.0.done(description)
    }

    fn seal(chain: &mut Vec<Self::Input>, description: Description<Self::Time>) -> Self::Output {
        let (mut keys, mut vals, mut updates) = (0, 0, 0);
        let mut before: Option<&(K, V)> = None;
        for (data, _, _) in chain.iter().flatten() {
            let is_new_key = before.is_none_or(|before| before.0 != data.0);
            keys += usize::from(is_new_key);
            vals += usize::from(is_new_key || before.is_none_or(|before| before.1 != data.1));
            updates += 1;
            before = Some(data);
        }
        let mut builder = Self::with_capacity(keys, vals, updates);
        for mut chunk in chain.drain(..) {
            builder.push(&mut chunk);
        }
        builder.done(description)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_sorted_and_have_every_update_once() {
        let mut runs = Runs::<u64, u64, Mult>::default();
        let mut found = Vec::new();
        let update = |number: u64| {
            let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            (scattered % 50_000, scattered % 3, Mult(if number.is_multiple_of(3) { -1 } else { 1 }))
        };
        let mut all: Vec<_> = (0..200_000).map(update).collect();
        for some in all.chunks(1000) {
            runs.push_into(&mut some.to_vec());
            while let Some(run) = runs.extract() {
                assert!(run.len() >= RUN / 2 && run.is_sorted());
                found.append(run);
            }
        }
        while let Some(run) = runs.finish() {
            assert!(run.is_sorted());
            found.append(run);
        }
        consolidate_updates(&mut found);
        consolidate_updates(&mut all);
        assert_eq!(found, all);
    }
}
