//! The traces that operators read.

use super::super::keep::Keep;
use super::super::watched::{ValBatch, ValUpdates, Vals};
use super::batch::{SharedBatch, Sieve, Sight};
use super::export::{Compaction, Export};
use crate::core::stamp::Stamp;
use differential_dataflow::lattice::{antichain_join_into, Lattice};
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::{BatchReader, Cursor, Navigable, TraceReader};
use std::sync::Arc;
use timely::progress::frontier::AntichainRef;
use timely::progress::{Antichain, Timestamp};
use timely::PartialOrder;

/// An index as a reader's trace. What it holds is that of the keeper, who may be ahead of the reader's stream.
pub(in crate::render) struct Imported<B: BatchReader + Navigable> {
    export: Arc<Export<SharedBatch<B>>>,
    sight: Sight<B::Time, B::Cursor>,
    /// What the keeper leaves for it.
    asked: Compaction<B::Time>,
}

impl<B: BatchReader + Navigable> Imported<B> {
    /// Of an index that is complete to no later than `as_of`.
    pub(in crate::render) fn new(export: Arc<Export<SharedBatch<B>>>, as_of: B::Time) -> Self {
        let asked = export.lock().ask();
        Imported { export, sight: Sight { as_of, sieve: None }, asked }
    }

    /// The same for a reader that wants to see some values only.
    pub(in crate::render) fn sifted(mut self, sieve: Option<Sieve<B::Cursor>>) -> Self {
        self.sight.sieve = sieve;
        self
    }

    /// Where it was published.
    pub(super) fn export(&self) -> &Arc<Export<SharedBatch<B>>> {
        &self.export
    }

    /// What its reader sees.
    pub(super) fn sight(&self) -> &Sight<B::Time, B::Cursor> {
        &self.sight
    }

    /// Asks for less than before.
    fn ask(&mut self, now: Compaction<B::Time>) {
        self.export.lock().replace(&self.asked, &now);
        self.asked = now;
    }
}

fn joined<T: Timestamp + Lattice>(one: &Antichain<T>, other: AntichainRef<'_, T>) -> Antichain<T> {
    let mut joined = Antichain::new();
    antichain_join_into(&one.borrow()[..], &other[..], &mut joined);
    joined
}

impl<B: BatchReader + Navigable> Clone for Imported<B> {
    fn clone(&self) -> Self {
        let Imported { export, sight, asked } = self;
        export.lock().count(asked, 1);
        Imported { export: Arc::clone(export), sight: sight.clone(), asked: asked.clone() }
    }
}

impl<B: BatchReader + Navigable> Drop for Imported<B> {
    fn drop(&mut self) {
        self.export.lock().count(&self.asked, -1);
    }
}

impl<B> TraceReader for Imported<B>
where
    B: BatchReader + Navigable + 'static,
    B::Cursor: for<'a> Cursor<Storage = B, Time = B::Time, TimeGat<'a> = &'a B::Time>,
{
    type Time = B::Time;
    type Batch = SharedBatch<B>;

    fn batches_through(&mut self, upper: AntichainRef<'_, B::Time>) -> Option<Vec<SharedBatch<B>>> {
        let published = self.export.lock();
        let mut through = Vec::new();
        for batch in published.batches.iter().filter(|batch| !batch.is_empty()) {
            if PartialOrder::less_equal(&batch.upper().borrow(), &upper) {
                through.push(batch.seen(&self.sight));
            } else if !PartialOrder::less_equal(&upper, &batch.lower().borrow()) {
                return None;
            }
        }
        Some(through)
    }

    fn set_logical_compaction(&mut self, frontier: AntichainRef<'_, B::Time>) {
        let logical = joined(&self.asked.logical, frontier);
        self.ask(Compaction { logical, ..self.asked.clone() });
    }

    fn get_logical_compaction(&mut self) -> AntichainRef<'_, B::Time> {
        self.asked.logical.borrow()
    }

    fn set_physical_compaction(&mut self, frontier: AntichainRef<'_, B::Time>) {
        let physical = joined(&self.asked.physical, frontier);
        self.ask(Compaction { physical, ..self.asked.clone() });
    }

    fn get_physical_compaction(&mut self) -> AntichainRef<'_, B::Time> {
        self.asked.physical.borrow()
    }

    fn map_batches<F: FnMut(&SharedBatch<B>)>(&self, mut f: F) {
        let batches = self.export.lock().batches.clone();
        batches.iter().for_each(|batch| f(&batch.seen(&self.sight)));
    }
}

/// A trace of values by key: the dataflow's own, or that of an index. Operators are made for both at once.
#[derive(Clone)]
pub(in crate::render) enum Trace<K: Keep, V: Keep, const LOOPS: usize> {
    Own(TraceAgent<Vals<K, V, Stamp<LOOPS>>>),
    Imported(Imported<ValUpdates<K, V, Stamp<LOOPS>>>),
}

impl<K: Keep, V: Keep, const LOOPS: usize> TraceReader for Trace<K, V, LOOPS> {
    type Time = Stamp<LOOPS>;
    type Batch = ValBatch<K, V, LOOPS>;

    fn batches_through(
        &mut self,
        upper: AntichainRef<'_, Stamp<LOOPS>>,
    ) -> Option<Vec<Self::Batch>> {
        match self {
            Trace::Own(trace) => trace.batches_through(upper),
            Trace::Imported(trace) => trace.batches_through(upper),
        }
    }

    fn set_logical_compaction(&mut self, frontier: AntichainRef<'_, Stamp<LOOPS>>) {
        match self {
            Trace::Own(trace) => trace.set_logical_compaction(frontier),
            Trace::Imported(trace) => trace.set_logical_compaction(frontier),
        }
    }

    fn get_logical_compaction(&mut self) -> AntichainRef<'_, Stamp<LOOPS>> {
        match self {
            Trace::Own(trace) => trace.get_logical_compaction(),
            Trace::Imported(trace) => trace.get_logical_compaction(),
        }
    }

    fn set_physical_compaction(&mut self, frontier: AntichainRef<'_, Stamp<LOOPS>>) {
        match self {
            Trace::Own(trace) => trace.set_physical_compaction(frontier),
            Trace::Imported(trace) => trace.set_physical_compaction(frontier),
        }
    }

    fn get_physical_compaction(&mut self) -> AntichainRef<'_, Stamp<LOOPS>> {
        match self {
            Trace::Own(trace) => trace.get_physical_compaction(),
            Trace::Imported(trace) => trace.get_physical_compaction(),
        }
    }

    fn map_batches<F: FnMut(&Self::Batch)>(&self, f: F) {
        match self {
            Trace::Own(trace) => trace.map_batches(f),
            Trace::Imported(trace) => trace.map_batches(f),
        }
    }
}

/// An arrangement of values by key.
pub(in crate::render) type InMemory<'s, K, V, const LOOPS: usize> =
    Arranged<'s, Trace<K, V, LOOPS>>;
