//! The reader's side of an index.

use super::super::keep::Keep;
use super::super::watched::ValUpdates;
use super::export::{Event, Export};
use super::trace::{Imported, InMemory, Trace};
use super::wake::{Sleeper, Wake};
use crate::core::stamp::Stamp;
use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::trace::BatchReader;
use std::sync::Arc;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::CapabilitySet;
use timely::dataflow::Scope;

/// A dataflow's place among the readers.
struct Registered<B: BatchReader + Clone> {
    export: Arc<Export<B>>,
    number: u64,
}

impl<B: BatchReader + Clone> Drop for Registered<B> {
    fn drop(&mut self) {
        self.export.lock().unregister(self.number);
    }
}

/// An index as an arrangement of this dataflow.
pub(in crate::render) fn import<'s, K: Keep, V: Keep, const LOOPS: usize>(
    scope: Scope<'s, Stamp<LOOPS>>,
    trace: Imported<ValUpdates<K, V, Stamp<LOOPS>>>,
    wake: &Arc<Wake<Stamp<LOOPS>>>,
) -> InMemory<'s, K, V, LOOPS> {
    let (export, sight) = (Arc::clone(trace.export()), trace.sight().clone());
    let trace = Trace::Imported(trace);
    let stream = source(scope, "Import", |capability, info| {
        let queue = scope.activations().borrow().sync();
        let sleeper = Sleeper::new(Arc::clone(wake), info.address.to_vec(), queue);
        let number = export.lock().register(sleeper);
        let registered = Registered { export, number };
        let mut capabilities = CapabilitySet::from_elem(capability);
        move |output| {
            let events = registered.export.lock().take_events(registered.number);
            for event in events {
                match event {
                    Event::Frontier(frontier) => capabilities.downgrade(frontier),
                    Event::Batch(batch) => {
                        let lower = batch.lower().first().cloned();
                        let at = lower.map(|time| capabilities.delayed(&time));
                        at.into_iter().for_each(|at| output.session(&at).give(batch.seen(&sight)));
                    }
                }
            }
        }
    });
    Arranged { stream, trace }
}
