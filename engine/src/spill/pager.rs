//! What of a dataflow's state is in memory, and what on disk.
//!
//! One per dataflow and worker. Chunks of updates register here when they are settled or read; while
//! the process has more memory than it may, those that came first are written, if they were not before,
//! and forgotten. Failures of the disk stop the dataflow: from then on reads may return nothing, but
//! nothing a stopped dataflow computes is seen by anybody.

use super::store::{Extent, Store};
use crate::core::config::Spill;
use crate::core::monitor::Guard;
use crate::core::response::StopReason;
use crate::memory;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::{Rc, Weak};

/// Chunks that stay in memory however short it is: those about to be used.
const KEEP: usize = 8;

/// Chunks of fewer updates are not worth a block: they are merged soon.
const LEAST: usize = 128;

/// Chunks written or forgotten at most for one that is registered, so that no step takes long.
const EVICT_AT_ONCE: usize = 4;

/// Something in memory that can be read again from disk.
pub(super) trait Evict {
    /// Lets go of the memory; false if somebody is using it.
    fn evict(&self) -> bool;
}

/// Keeps the state of a dataflow on one worker.
pub(crate) struct Pager {
    spill: Spill,
    guard: Guard,
    store: RefCell<Option<Store>>,
    resident: RefCell<VecDeque<Weak<dyn Evict>>>,
    keep: usize,
    least: usize,
    /// Length of `resident` at which to drop what is not there any more.
    sweep_at: Cell<usize>,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Pager>>> = const { RefCell::new(None) };
}

impl Pager {
    pub(crate) fn new(spill: Spill, guard: Guard) -> Rc<Pager> {
        // State that must not be in memory at all is what tests ask for.
        let (keep, least) = if spill.above == 0 { (0, 1) } else { (KEEP, LEAST) };
        Rc::new(Pager {
            spill,
            keep,
            least,
            guard,
            store: RefCell::new(None),
            resident: RefCell::new(VecDeque::new()),
            sweep_at: Cell::new(1 << 10),
        })
    }

    /// Builds operators, those of differential among them, that find this pager as [`Pager::current`].
    pub(crate) fn while_current<R>(self: &Rc<Self>, build: impl FnOnce() -> R) -> R {
        let before = CURRENT.replace(Some(Rc::clone(self)));
        let result = build();
        CURRENT.set(before);
        result
    }

    /// The pager of the dataflow that is being built.
    ///
    /// # Panics
    /// When none is.
    pub(super) fn current() -> Rc<Pager> {
        let current = CURRENT.with_borrow(Clone::clone);
        current.expect("operators that spill are built in a dataflow that does")
    }

    /// Keeps track of a chunk of some updates that came into memory.
    pub(super) fn register(&self, updates: usize, chunk: impl FnOnce() -> Weak<dyn Evict>) {
        self.guard.proceed(updates);
        if updates < self.least {
            return;
        }
        let chunk = chunk();
        let mut resident = self.resident.borrow_mut();
        resident.push_back(chunk);
        if resident.len() >= self.sweep_at.get() {
            resident.retain(|chunk| chunk.strong_count() > 0);
            self.sweep_at.set((2 * resident.len()).max(1 << 10));
        }
        let mut evicted = 0;
        // Most of those that came first are not there any more: they count for nothing.
        for _ in 0..resident.len() {
            let is_short = memory::allocated() >= self.spill.above;
            if evicted == EVICT_AT_ONCE || resident.len() <= self.keep || !is_short {
                break;
            }
            let Some(first) = resident.pop_front() else { break };
            match first.upgrade().map(|chunk| chunk.evict()) {
                Some(true) => evicted += 1,
                Some(false) => resident.push_back(first),
                None => {}
            }
        }
    }

    /// Writes a block of what takes so many bytes in memory; `None` if that failed, which stops the dataflow.
    pub(super) fn write(&self, bytes: &[u8], in_memory: usize) -> Option<Extent> {
        let shared = &self.guard.shared;
        let limit = self.spill.limit;
        if shared.spilled() + bytes.len() as u64 > limit {
            shared.stop(&self.guard.dataflow, StopReason::SpillLimit { bytes: limit });
            return None;
        }
        let written = self.try_write(bytes);
        match written {
            Ok(_) => shared.add_spilled(&self.guard.dataflow, bytes.len(), in_memory),
            Err(ref error) => self.fail("written", error),
        }
        written.ok()
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<Extent> {
        let mut store = self.store.borrow_mut();
        let store = match &mut *store {
            Some(store) => store,
            none => none.insert(Store::create(&self.spill.directory)?),
        };
        store.write(bytes)
    }

    /// Reads a block; `None` if that failed, which stops the dataflow.
    pub(super) fn read(&self, extent: &Extent) -> Option<Vec<u8>> {
        let store = self.store.borrow();
        let read = store.as_ref().map(|store| store.read(extent)).transpose();
        read.inspect_err(|error| self.fail("read", error)).ok().flatten()
    }

    /// A block is not needed any more.
    pub(super) fn release(&self, extent: Extent, in_memory: usize) {
        let length = extent.length();
        self.guard.shared.subtract_spilled(&self.guard.dataflow, length, in_memory);
        if let Some(store) = &mut *self.store.borrow_mut() {
            store.release(extent);
        }
    }

    /// A block was not what had been written.
    pub(super) fn fail_damaged(&self) {
        self.fail("read", &io::Error::other("a block is damaged"));
    }

    fn fail(&self, done: &str, error: &io::Error) {
        let message = format!("state on disk could not be {done}: {error}");
        self.guard.shared.stop(&self.guard.dataflow, StopReason::SpillFailed { message });
    }
}
