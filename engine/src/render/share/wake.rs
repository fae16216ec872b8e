//! When a thread that reads indexes is woken.
//!
//! A dataflow that reads several indexes can put out nothing for a time before all of them have come past it. So the one that
//! comes last wakes it, and the others leave what they have for it; a hundred readers of two indexes are woken a hundred times
//! for a change and not two hundred times. Where there is much to do, it begins with that at once.
//!
//! Nor can it before its own inputs have: if they come last, they have it look at what the indexes have left.
//!
//! A dataflow that would see nothing of a change sleeps on: the index that comes last says for it that nothing comes out. One
//! that sleeps is woken now and then to let go of what it holds.

use crate::core::monitor::Shared;
use crate::core::report::Report;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use timely::progress::{Antichain, Timestamp};
use timely::scheduling::activate::SyncActivations;

/// Updates of a batch that are worth being begun with.
const MUCH: usize = 1 << 10;

/// Times over which a dataflow sleeps on. Until it is woken the batches that come meanwhile are not merged.
const MOST_SLEPT_OVER: usize = 32;

/// What wakes one worker of a dataflow: all its imports are activated together.
pub(in crate::render) struct Wake<T: Timestamp>(Mutex<Imports<T>>);

struct Imports<T: Timestamp> {
    /// Of the worker's thread, once there is an import.
    queue: Option<SyncActivations>,
    paths: Vec<Vec<usize>>,
    /// All before that has come from each of the indexes and inputs.
    told: Vec<Antichain<T>>,
    has_inputs: bool,
    /// Whom others speak for while it sleeps, if they may.
    sleeper: Option<Sleeper<T>>,
    /// It sees nothing from this time on.
    seen_to: T,
    /// It has put out all before this time.
    put_out_to: T,
    /// Since it was woken.
    slept_over: usize,
}

/// What to say for a worker that has nothing to put out before a time, while it is there.
pub(in crate::render) type Sleeper<T> = Box<dyn Fn(&T) -> Option<(Arc<Shared>, Report)> + Send>;

/// An import of a dataflow, as the index sees it.
pub(super) struct Importer<T: Timestamp> {
    wake: Arc<Wake<T>>,
    number: usize,
}

/// What is to be done about a reader.
pub(super) enum Due<T: Timestamp> {
    Wake(Arc<Wake<T>>),
    /// To say that it has nothing to put out.
    Say(Arc<Shared>, Report),
}

/// Does what is due.
pub(super) fn settle<T: Timestamp>(due: Vec<Due<T>>) {
    let (mut said, mut shared) = (Vec::new(), None);
    for due in due {
        match due {
            Due::Wake(wake) => wake.wake(),
            Due::Say(to, report) => {
                said.push(report);
                shared = Some(to);
            }
        }
    }
    // All dataflows of an engine report to it.
    shared.into_iter().for_each(|shared| shared.report_all(std::mem::take(&mut said)));
}

impl<T: Timestamp> Wake<T> {
    /// Of a worker that is woken for everything.
    pub(in crate::render) fn always() -> Self {
        Wake(Mutex::new(Imports {
            queue: None,
            paths: Vec::new(),
            told: Vec::new(),
            has_inputs: false,
            sleeper: None,
            seen_to: T::minimum(),
            put_out_to: T::minimum(),
            slept_over: 0,
        }))
    }

    /// A further input of its own, which is empty before a time; answers the input's place.
    pub(in crate::render) fn add_input(&self, from: T) -> usize {
        let mut imports = self.lock();
        imports.has_inputs = true;
        imports.told.push(Antichain::from_elem(from));
        imports.told.len() - 1
    }

    /// All before a time has come to an input.
    pub(in crate::render) fn note_told(&self, place: usize, time: T) {
        let mut imports = self.lock();
        imports.told[place] = Antichain::from_elem(time);
        if std::mem::take(&mut imports.slept_over) > 0 {
            imports.activate();
        }
    }

    /// From now on it is not woken for what it would not see, once it has put out all before a time. It has no other inputs,
    /// and what it has put out is told.
    pub(in crate::render) fn may_sleep(&self, sleeper: Sleeper<T>, from: T) {
        let mut imports = self.lock();
        imports.sleeper = Some(sleeper);
        if imports.seen_to < from {
            imports.seen_to = from;
        }
    }

    /// Not any more; it is to catch up with what others have said for it.
    pub(in crate::render) fn wake_up(&self) {
        self.lock().sleeper = None;
        self.wake();
    }

    /// All before a time is put out.
    pub(in crate::render) fn note_put_out(&self, time: T) {
        self.lock().put_out_to = time;
    }

    /// Wakes the worker.
    fn wake(&self) {
        self.lock().activate();
    }

    fn lock(&self) -> MutexGuard<'_, Imports<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Timestamp> Imports<T> {
    fn activate(&self) {
        if let Some(queue) = &self.queue {
            // One whose thread has ended is about to be forgotten.
            let _ = queue.activate_batch(self.paths.iter().cloned());
        }
    }

    /// All before that has come from all indexes and inputs. They are outside of loops, where times are in order.
    fn least_told(&self) -> Option<T> {
        self.told.iter().filter_map(|told| told.first().cloned()).min()
    }

    /// What to say for a worker that sleeps on, though all before a time has come.
    fn sleep_over(&mut self, time: Option<T>) -> Option<(Arc<Shared>, Report)> {
        let sleeper = self.sleeper.as_ref()?;
        if self.seen_to > self.put_out_to || self.slept_over >= MOST_SLEPT_OVER {
            return None;
        }
        let said = sleeper(&time?)?;
        self.slept_over += 1;
        Some(said)
    }
}

impl<T: Timestamp> Importer<T> {
    /// A further import, at a path of this thread's dataflow.
    pub(super) fn new(wake: Arc<Wake<T>>, path: Vec<usize>, queue: SyncActivations) -> Self {
        let mut imports = wake.lock();
        imports.queue = Some(queue);
        imports.paths.push(path);
        imports.told.push(Antichain::from_elem(T::minimum()));
        let number = imports.told.len() - 1;
        drop(imports);
        Importer { wake, number }
    }

    /// All before a frontier has come, and so many updates, of which it sees none from a time on, or none at all.
    pub(super) fn tell(
        &self,
        frontier: &Antichain<T>,
        updates: usize,
        seen_to: Option<T>,
    ) -> Option<Due<T>> {
        let mut imports = self.wake.lock();
        let before = imports.least_told();
        imports.told[self.number].clone_from(frontier);
        let is_much = updates >= MUCH && seen_to.is_some();
        if let Some(time) = seen_to.filter(|time| *time > imports.seen_to) {
            imports.seen_to = time;
        }
        let now = imports.least_told();
        // What it has to wait for anyway has it look at this, too: until then it would only pile up.
        let may_pile_up = !imports.has_inputs || imports.slept_over < MOST_SLEPT_OVER;
        if now == before && !is_much && may_pile_up {
            imports.slept_over += usize::from(imports.has_inputs);
            return None;
        }
        if let Some((shared, report)) = imports.sleep_over(now) {
            return Some(Due::Say(shared, report));
        }
        imports.slept_over = 0;
        Some(Due::Wake(Arc::clone(&self.wake)))
    }
}
