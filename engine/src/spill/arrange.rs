//! Arrangements of a spilling dataflow.
//!
//! They are made of differential's own batcher, spine and operators; only what they are made of, chunks,
//! is ours. Updates on their way from one operator to the next are in memory: so operators
//! pass on a bounded number of them and wait until they have been taken.

use super::block::Update;
use super::chunk::{Batch, Chunk, Difference, Stored, StoredTime, TARGET};
use super::pager::Pager;
use differential_dataflow::consolidation::consolidate_updates;
use differential_dataflow::hashable::Hashable;
use differential_dataflow::logging::Logger;
use differential_dataflow::operators::arrange::arrangement::arrange_core;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::chunk::{ChunkBatcher, ChunkBuilder, ChunkSpine};
use differential_dataflow::trace::{Batcher, Description};
use differential_dataflow::{AsCollection, ExchangeData, VecCollection};
use std::collections::VecDeque;
use std::rc::Rc;
use timely::container::{CapacityContainerBuilder, ContainerBuilder, PushInto};
use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::Capability;
use timely::progress::frontier::AntichainRef;
use timely::progress::Antichain;
use timely::Accountable;

/// The trace of an arrangement.
pub(crate) type Spine<K, V, T, R> = ChunkSpine<Chunk<K, V, T, R>>;

/// An arrangement whose state can be on disk.
pub(crate) type Arrangement<'s, K, V, T, R> = Arranged<'s, TraceAgent<Spine<K, V, T, R>>>;

/// Updates that an operator passes on before it lets others work.
const BURST: usize = 16 * TARGET;

/// Arranges updates by key.
pub(crate) fn arrange<'s, K, V, T, R>(
    updates: VecCollection<'s, T, (K, V), R>,
    name: &str,
) -> Arrangement<'s, K, V, T, R>
where
    K: Stored + ExchangeData + Hashable<Output = u64>,
    V: Stored + ExchangeData,
    T: StoredTime + ExchangeData,
    R: Difference + ExchangeData,
{
    let by_key = Exchange::new(|((key, _), _, _): &Update<K, V, T, R>| key.hashed());
    arrange_core::<
        _,
        _,
        Chunker<K, V, T, R>,
        PagedBatcher<K, V, T, R>,
        ChunkBuilder<Chunk<K, V, T, R>>,
        Spine<K, V, T, R>,
    >(updates.inner, by_key, name)
}

/// A batch to be put out from one of its chunks on.
type Waiting<K, V, T, R> = (Capability<T>, Batch<K, V, T, R>, usize);

/// The updates of an arrangement, made into something else.
pub(crate) fn as_collection<'s, K, V, T, R, D>(
    arranged: Arrangement<'s, K, V, T, R>,
    mut logic: impl FnMut(&K, &V) -> D + 'static,
) -> VecCollection<'s, T, D, R>
where
    K: Stored,
    V: Stored,
    T: StoredTime,
    R: Difference,
    D: Clone + 'static,
{
    let scope = arranged.stream.scope();
    let stream = arranged.stream.unary::<CapacityContainerBuilder<Vec<_>>, _, _, _>(
        Pipeline,
        "AsCollection",
        move |_, info| {
            let activator = scope.activator_for(info.address);
            let mut waiting: VecDeque<Waiting<K, V, T, R>> = VecDeque::new();
            move |input, output| {
                input.for_each(|capability, batches: &mut Vec<Batch<K, V, T, R>>| {
                    let capability = capability.retain(0);
                    waiting.extend(batches.drain(..).map(|batch| (capability.clone(), batch, 0)));
                });
                let mut given = 0;
                while let (true, Some((capability, batch, next))) =
                    (given < BURST, waiting.front_mut())
                {
                    let Some(chunk) = batch.chunks.get(*next) else {
                        waiting.pop_front();
                        continue;
                    };
                    let rows = chunk.rows();
                    *next += 1;
                    given += rows.len();
                    output.session(capability).give_iterator(rows.iter().map(
                        |((key, value), time, diff)| {
                            (logic(key, value), time.clone(), diff.clone())
                        },
                    ));
                }
                if !waiting.is_empty() {
                    activator.activate();
                }
            }
        },
    );
    stream.as_collection()
}

/// One copy of each update, whose multiplicities are added up.
pub(crate) fn consolidate<'s, D, T, R>(
    updates: VecCollection<'s, T, D, R>,
) -> VecCollection<'s, T, D, R>
where
    D: Stored + ExchangeData + Hashable<Output = u64>,
    T: StoredTime + ExchangeData,
    R: Difference + ExchangeData,
{
    as_collection(arrange(updates.map(|data| (data, ())), "Consolidate"), |data, _| data.clone())
}

/// Makes chunks of updates that come in any order.
pub(crate) struct Chunker<K: Stored, V: Stored, T: StoredTime, R: Difference> {
    pending: Vec<Update<K, V, T, R>>,
    ready: VecDeque<Chunk<K, V, T, R>>,
    taken: Chunk<K, V, T, R>,
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> Default for Chunker<K, V, T, R> {
    fn default() -> Self {
        Chunker { pending: Vec::new(), ready: VecDeque::new(), taken: Chunk::default() }
    }
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> Chunker<K, V, T, R> {
    fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.ready.push_back(Chunk::new(std::mem::take(&mut self.pending), None));
        }
    }
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> PushInto<&mut Vec<Update<K, V, T, R>>>
    for Chunker<K, V, T, R>
{
    fn push_into(&mut self, updates: &mut Vec<Update<K, V, T, R>>) {
        self.pending.append(updates);
        if self.pending.len() >= TARGET {
            consolidate_updates(&mut self.pending);
            // Updates that cancel should not become many small chunks.
            if self.pending.len() >= TARGET / 2 {
                self.flush();
            }
        }
    }
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> ContainerBuilder for Chunker<K, V, T, R> {
    type Container = Chunk<K, V, T, R>;

    fn extract(&mut self) -> Option<&mut Self::Container> {
        self.taken = self.ready.pop_front()?;
        Some(&mut self.taken)
    }

    fn finish(&mut self) -> Option<&mut Self::Container> {
        consolidate_updates(&mut self.pending);
        self.flush();
        self.extract()
    }
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> Accountable for Chunk<K, V, T, R> {
    fn record_count(&self) -> i64 {
        use differential_dataflow::trace::chunk::Chunk;
        self.len() as i64
    }
}

/// Differential's batcher, over chunks that a pager keeps.
pub(crate) struct PagedBatcher<K: Stored, V: Stored, T: StoredTime, R: Difference> {
    batcher: ChunkBatcher<Chunk<K, V, T, R>>,
    pager: Rc<Pager>,
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> Batcher for PagedBatcher<K, V, T, R> {
    type Output = Chunk<K, V, T, R>;
    type Time = T;

    fn new(logger: Option<Logger>, operator_id: usize) -> Self {
        PagedBatcher { batcher: Batcher::new(logger, operator_id), pager: Pager::current() }
    }

    fn seal(&mut self, upper: Antichain<T>) -> (Vec<Self::Output>, Description<T>) {
        self.batcher.seal(upper)
    }

    fn frontier(&mut self) -> AntichainRef<'_, T> {
        self.batcher.frontier()
    }
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> PushInto<Chunk<K, V, T, R>>
    for PagedBatcher<K, V, T, R>
{
    fn push_into(&mut self, chunk: Chunk<K, V, T, R>) {
        self.batcher.push_into(chunk.kept_by(&self.pager));
    }
}
