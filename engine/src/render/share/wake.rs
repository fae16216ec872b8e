//! When a thread that reads indexes is woken.
//!
//! A dataflow that reads several indexes can put out nothing for a time before all of them have come past it. So the one that
//! comes last wakes it, and the others leave what they have for it; a hundred readers of two indexes are woken a hundred times
//! for a change and not two hundred times. Where there is much to do, it begins with that at once.

use std::sync::{Arc, Mutex, PoisonError};
use timely::progress::{Antichain, Timestamp};
use timely::scheduling::activate::SyncActivations;

/// Updates of a batch that are worth being begun with.
const MUCH: usize = 1 << 10;

/// What wakes one worker of a dataflow: all its imports are activated together.
pub(in crate::render) struct Wake<T: Timestamp>(Mutex<Imports<T>>);

struct Imports<T: Timestamp> {
    /// Of the worker's thread, once there is an import.
    queue: Option<SyncActivations>,
    paths: Vec<Vec<usize>>,
    /// All before that has come from each of the indexes.
    told: Vec<Antichain<T>>,
}

/// An import of a dataflow, as the index sees it.
pub(super) struct Sleeper<T: Timestamp> {
    wake: Arc<Wake<T>>,
    number: usize,
}

impl<T: Timestamp> Default for Wake<T> {
    fn default() -> Self {
        Wake(Mutex::new(Imports { queue: None, paths: Vec::new(), told: Vec::new() }))
    }
}

impl<T: Timestamp> Wake<T> {
    /// Wakes the worker.
    pub(super) fn wake(&self) {
        let imports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = &imports.queue {
            // One whose thread has ended is about to be forgotten.
            let _ = queue.activate_batch(imports.paths.iter().cloned());
        }
    }
}

impl<T: Timestamp> Sleeper<T> {
    /// A further import, at a path of this thread's dataflow.
    pub(super) fn new(wake: Arc<Wake<T>>, path: Vec<usize>, queue: SyncActivations) -> Self {
        let mut imports = wake.0.lock().unwrap_or_else(PoisonError::into_inner);
        imports.queue = Some(queue);
        imports.paths.push(path);
        imports.told.push(Antichain::from_elem(T::minimum()));
        let number = imports.told.len() - 1;
        drop(imports);
        Sleeper { wake, number }
    }

    /// All before a frontier has come, and some updates. Answers whom to wake if there is something to do about it.
    pub(super) fn tell(&self, frontier: &Antichain<T>, updates: usize) -> Option<Arc<Wake<T>>> {
        let mut imports = self.wake.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Indexes are outside of loops, where times are in order.
        let least =
            |told: &[Antichain<T>]| told.iter().filter_map(|told| told.first().cloned()).min();
        let before = least(&imports.told);
        imports.told[self.number].clone_from(frontier);
        let is_due = least(&imports.told) != before || updates >= MUCH;
        is_due.then(|| Arc::clone(&self.wake))
    }
}
