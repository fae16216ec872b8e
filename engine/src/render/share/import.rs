//! The reader's side of an index.

use super::super::keep::Keep;
use super::super::watched::ValUpdates;
use super::batch::{SharedBatch, Sight};
use super::export::{Event, Export, Sees};
use super::trace::{Imported, InMemory, Trace};
use super::wake::{Importer, Wake};
use crate::core::collection::Collection;
use crate::core::stamp::Stamp;
use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::trace::{BatchReader, Cursor, Navigable};
use differential_dataflow::AsCollection;
use std::collections::VecDeque;
use std::sync::Arc;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::generic::OperatorInfo;
use timely::dataflow::operators::CapabilitySet;
use timely::dataflow::Scope;

/// A dataflow's place among the readers.
struct Registered<B: BatchReader + Clone> {
    export: Arc<Export<B>>,
    number: u64,
}

impl<B: BatchReader + Clone> Registered<B> {
    /// That of an operator.
    fn new<const LOOPS: usize>(
        scope: Scope<'_, Stamp<LOOPS>>,
        export: Arc<Export<B>>,
        wake: &Arc<Wake<Stamp<LOOPS>>>,
        operator: &OperatorInfo,
        sees: Sees<B>,
    ) -> Self
    where
        B: BatchReader<Time = Stamp<LOOPS>>,
    {
        let queue = scope.activations().borrow().sync();
        let importer = Importer::new(Arc::clone(wake), operator.address.to_vec(), queue);
        let number = export.lock().register(importer, sees);
        Registered { export, number }
    }

    fn take_events(&self) -> VecDeque<Event<B>> {
        self.export.lock().take_events(self.number)
    }
}

impl<B: BatchReader + Clone> Drop for Registered<B> {
    fn drop(&mut self) {
        self.export.lock().unregister(self.number);
    }
}

/// Whether there is something in a batch for somebody who sees it so.
fn sees<K: Keep, V: Keep, const LOOPS: usize>(
    sight: &Sight<Stamp<LOOPS>, <ValUpdates<K, V, Stamp<LOOPS>> as Navigable>::Cursor>,
) -> Sees<SharedBatch<ValUpdates<K, V, Stamp<LOOPS>>>> {
    let sight = sight.clone();
    Box::new(move |batch| {
        let batch = batch.seen(&sight);
        let mut cursor = batch.cursor();
        while cursor.key_valid(&batch) && !cursor.val_valid(&batch) {
            cursor.step_key(&batch);
        }
        cursor.key_valid(&batch)
    })
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
        let registered = Registered::new(scope, export, wake, &info, sees(&sight));
        let mut capabilities = CapabilitySet::from_elem(capability);
        move |output| {
            for event in registered.take_events() {
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

/// Updates of an index that are passed on before others may work.
const BURST: usize = 1 << 14;

/// What is made of each row of an index, without arranging it.
pub(in crate::render) fn import_rows<
    's,
    K: Keep,
    V: Keep,
    D: Clone + 'static,
    const LOOPS: usize,
>(
    scope: Scope<'s, Stamp<LOOPS>>,
    trace: &Imported<ValUpdates<K, V, Stamp<LOOPS>>>,
    wake: &Arc<Wake<Stamp<LOOPS>>>,
    mut make: impl FnMut(&K, &V) -> Option<D> + 'static,
) -> Collection<'s, D, LOOPS> {
    let (export, sight) = (Arc::clone(trace.export()), trace.sight().clone());
    let stream = source::<_, CapacityContainerBuilder<Vec<_>>, _, _>(
        scope,
        "Import rows",
        |capability, info| {
            let registered = Registered::new(scope, export, wake, &info, sees(&sight));
            let again = scope.activator_for(info.address);
            let mut capabilities = CapabilitySet::from_elem(capability);
            let mut events = VecDeque::new();
            // The batch that is being passed on, if one is.
            let mut cursor = None;
            move |output| {
                events.append(&mut registered.take_events());
                let mut left = BURST;
                while let Some(event) = events.front() {
                    match event {
                        Event::Frontier(frontier) => capabilities.downgrade(frontier.clone()),
                        Event::Batch(batch) => {
                            let batch = batch.seen(&sight);
                            let cursor = cursor.get_or_insert_with(|| batch.cursor());
                            for time in batch.lower().iter() {
                                let at = capabilities.delayed(time);
                                let mut session = output.session(&at);
                                while left > 0 && cursor.key_valid(&batch) {
                                    while cursor.val_valid(&batch) {
                                        if let Some(made) =
                                            make(cursor.key(&batch), cursor.val(&batch))
                                        {
                                            cursor.map_times(&batch, |time, diff| {
                                                session.give((made.clone(), *time, *diff));
                                            });
                                        }
                                        left = left.saturating_sub(1);
                                        cursor.step_val(&batch);
                                    }
                                    cursor.step_key(&batch);
                                }
                            }
                            if left == 0 && cursor.key_valid(&batch) {
                                return again.activate();
                            }
                        }
                    }
                    cursor = None;
                    events.pop_front();
                }
            }
        },
    );
    stream.as_collection()
}
