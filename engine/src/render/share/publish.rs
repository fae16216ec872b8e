//! The keeper's side of an index.

use super::super::keep::Keep;
use super::super::watched::ValBatch;
use super::export::Export;
use super::trace::InMemory;
use super::wake::settle;
use crate::core::stamp::Stamp;
use differential_dataflow::trace::TraceReader;
use std::sync::Arc;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::progress::{Antichain, Timestamp};

/// Publishes an arrangement, from now on and as long as its dataflow runs.
pub(in crate::render) fn publish<K: Keep, V: Keep, const LOOPS: usize>(
    arranged: InMemory<'_, K, V, LOOPS>,
    export: Arc<Export<ValBatch<K, V, LOOPS>>>,
) {
    let mut trace = arranged.trace;
    let mut held = Antichain::from_elem(Stamp::minimum());
    arranged
        .stream
        .unary_frontier::<timely::container::CapacityContainerBuilder<Vec<()>>, _, _, _>(
            Pipeline,
            "Publish",
            move |_capability, _info| {
                move |(input, frontier), _output| {
                    let mut new = Vec::new();
                    input.for_each(|_, batches| new.append(batches));
                    let upper = frontier.frontier();
                    let due = {
                        let mut published = export.lock();
                        published.batches = batches_of(&trace);
                        published.tell(&new, upper)
                    };
                    settle(due);
                    if upper.is_empty() || held.borrow() == upper {
                        return;
                    }
                    let before = std::mem::replace(&mut held, upper.to_owned());
                    let compaction = export.lock().hold(&before, &held);
                    // May take a while: nobody is kept out meanwhile.
                    trace.set_logical_compaction(compaction.logical.borrow());
                    trace.set_physical_compaction(compaction.physical.borrow());
                    export.lock().batches = batches_of(&trace);
                }
            },
        );
}

fn batches_of<T: TraceReader>(trace: &T) -> Vec<T::Batch> {
    let mut batches = Vec::new();
    trace.map_batches(|batch| batches.push(batch.clone()));
    batches
}
