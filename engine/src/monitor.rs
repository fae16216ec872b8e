//! Watching running dataflows: who is busy, how far its loops went, when to stop it.
//!
//! One [`Dataflow`] per installed plan is shared by the host and all workers. A worker's operators
//! reach it through a [`Guard`], which counts their work, notices recursion that does not end, and
//! asks now and then whether memory is short. Whoever notices first stops the dataflow for all.

use crate::memory;
use crate::room::Queued;
use crate::{DataflowId, DataflowStats, OutputForm, Spill, StopReason, Time};
use planner::error::DataError;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

use crate::output::Report;

/// Updates an operator may handle between two looks at the memory in use.
const CHECK_EVERY: usize = 256;

/// About what an update takes in memory.
const BYTES_PER_UPDATE: usize = 64;

/// Copies of one row in a recursion beyond which its result fits no memory.
const MAX_COPIES: u64 = 1 << 40;

/// Where a dataflow keeps its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// In memory, for there is nowhere else.
    InMemory,
    /// In memory, but it may be created anew as one that spills.
    InMemoryForNow,
    /// On disk, while memory is short.
    OnDisk,
}

/// State of one dataflow that all threads see.
pub(crate) struct Dataflow {
    /// The host's name for it.
    pub(crate) id: DataflowId,
    /// Distinguishes dataflows that had the same name one after the other.
    pub(crate) instance: u64,
    stopped: AtomicBool,
    reason: OnceLock<StopReason>,
    /// Time up to which the host has promised the input to be complete.
    fed_to: AtomicU64,
    /// Per worker: output is complete up to this time.
    done_to: Vec<AtomicU64>,
    /// Per worker: estimated bytes of arrangements.
    state_bytes: Vec<AtomicUsize>,
    pub(crate) keeps: Keeps,
    /// Bytes of its state that are on disk.
    spilled: AtomicUsize,
    /// Updates handled since the dataflow last caught up with its input.
    work: AtomicU64,
    /// Highest iteration in this round of work, and in the one before.
    iteration: AtomicU64,
    last_iteration: AtomicU64,
    /// Keys whose values became better late in a loop.
    late_keys: AtomicU64,
    /// Workers that have removed the dataflow after it was stopped.
    removed: AtomicUsize,
    pub(crate) queued: Queued,
    threads: OnceLock<Vec<Thread>>,
}

impl Dataflow {
    pub(crate) fn new(
        id: DataflowId,
        instance: u64,
        as_of: Time,
        workers: usize,
        keeps: Keeps,
    ) -> Self {
        Dataflow {
            id,
            keeps,
            spilled: AtomicUsize::new(0),
            instance,
            stopped: AtomicBool::new(false),
            reason: OnceLock::new(),
            fed_to: AtomicU64::new(as_of),
            done_to: (0..workers).map(|_| AtomicU64::new(as_of)).collect(),
            state_bytes: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            work: AtomicU64::new(0),
            iteration: AtomicU64::new(0),
            last_iteration: AtomicU64::new(0),
            late_keys: AtomicU64::new(0),
            removed: AtomicUsize::new(0),
            queued: Queued::default(),
            threads: OnceLock::new(),
        }
    }

    pub(crate) fn set_threads(&self, threads: Vec<Thread>) {
        // Set once, by the host, right after it has started the threads.
        let _ = self.threads.set(threads);
        self.unpark_workers();
    }

    pub(crate) fn unpark_workers(&self) {
        for thread in self.threads.get().into_iter().flatten() {
            thread.unpark();
        }
    }

    /// Stops it because nobody wants it any more.
    pub(crate) fn abandon(&self) {
        self.stopped.store(true, Ordering::Release);
        self.unpark_workers();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Records the host's promise; called before the command reaches the workers.
    pub(crate) fn set_fed_to(&self, time: Time) {
        self.fed_to.store(time, Ordering::Relaxed);
    }

    pub(crate) fn set_state_bytes(&self, worker: usize, bytes: usize) {
        self.state_bytes[worker].store(bytes, Ordering::Relaxed);
    }

    /// Records a worker's progress; when all have caught up a new round of work begins.
    pub(crate) fn set_done_to(&self, worker: usize, time: Time) {
        self.done_to[worker].store(time, Ordering::Relaxed);
        let fed_to = self.fed_to.load(Ordering::Relaxed);
        if self.done_to.iter().all(|done| done.load(Ordering::Relaxed) >= fed_to) {
            self.work.store(0, Ordering::Relaxed);
            let iteration = self.iteration.swap(0, Ordering::Relaxed);
            self.last_iteration.store(iteration, Ordering::Relaxed);
        }
    }

    /// Whether a worker's output covers everything the host has promised.
    pub(crate) fn is_caught_up(&self, worker: usize) -> bool {
        self.done_to[worker].load(Ordering::Relaxed) >= self.fed_to.load(Ordering::Relaxed)
    }

    pub(crate) fn add_work(&self, updates: usize) {
        self.work.fetch_add(updates as u64, Ordering::Relaxed);
    }

    pub(crate) fn set_removed(&self) {
        self.removed.fetch_add(1, Ordering::Relaxed);
    }

    fn state_bytes(&self) -> usize {
        self.state_bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }

    /// Estimated bytes of state, with what may have come to it since it was counted.
    fn size(&self) -> usize {
        let work = usize::try_from(self.work.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        self.state_bytes().saturating_add(work.saturating_mul(BYTES_PER_UPDATE))
    }

    pub(crate) fn stats(&self) -> DataflowStats {
        let current = self.iteration.load(Ordering::Relaxed);
        DataflowStats {
            state_bytes: self.state_bytes(),
            spilled_bytes: self.spilled.load(Ordering::Relaxed),
            iterations: current.max(self.last_iteration.load(Ordering::Relaxed)),
        }
    }
}

/// What all threads of an engine share.
pub(crate) struct Shared {
    pub(crate) workers: usize,
    pub(crate) max_recursion: u64,
    memory_limit: usize,
    pub(crate) spill: Option<Spill>,
    pub(crate) output: OutputForm,
    /// Bytes on disk, of all dataflows.
    spilled: AtomicU64,
    dataflows: Mutex<Vec<Arc<Dataflow>>>,
    /// Cloned by each thread, so that its end can be noticed; gone with the engine.
    alive: Mutex<Option<Sender<()>>>,
    waker: Arc<dyn Fn() + Send + Sync>,
    reports: Mutex<Sender<Report>>,
}

impl Shared {
    pub(crate) fn new(config: &crate::Config, reports: Sender<Report>, alive: Sender<()>) -> Self {
        Shared {
            workers: config.workers.max(1),
            max_recursion: config.max_recursion,
            memory_limit: config.memory_limit,
            spill: config.spill.clone(),
            output: config.output,
            spilled: AtomicU64::new(0),
            dataflows: Mutex::new(Vec::new()),
            alive: Mutex::new(Some(alive)),
            waker: Arc::clone(&config.waker),
            reports: Mutex::new(reports),
        }
    }

    /// What a thread holds as long as it lives.
    pub(crate) fn alive(&self) -> Option<Sender<()>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// No more threads are started.
    pub(crate) fn dismiss(&self) {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Hands a report to the host and wakes it.
    pub(crate) fn report(&self, report: Report) {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        // The host may be gone already; then nobody wants to know.
        let _ = reports.send(report);
        drop(reports);
        (self.waker)();
    }

    pub(crate) fn register(&self, dataflow: &Arc<Dataflow>) {
        let mut dataflows = self.lock_dataflows();
        dataflows
            .retain(|d| !(d.is_stopped() && d.removed.load(Ordering::Relaxed) >= self.workers));
        dataflows.push(Arc::clone(dataflow));
    }

    fn lock_dataflows(&self) -> MutexGuard<'_, Vec<Arc<Dataflow>>> {
        self.dataflows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops a dataflow for all workers; the first reason counts.
    pub(crate) fn stop(&self, dataflow: &Dataflow, reason: StopReason) {
        if dataflow.reason.set(reason.clone()).is_ok() {
            dataflow.stopped.store(true, Ordering::Release);
            self.report(Report::Stopped { instance: dataflow.instance, reason });
            dataflow.unpark_workers();
        }
    }

    /// Stops a dataflow if memory is short: the one that does the most work, but if its state is on disk
    /// already, rather the largest of those whose state is not. One that could spill but does not is
    /// stopped in order to be created anew as one that does.
    ///
    /// Only dataflows behind their input do work: one that is idle does not grow.
    /// While a stopped one has not been removed by all workers its memory is still to come back.
    pub(crate) fn check_memory(&self) {
        let bytes = memory::allocated();
        if self.memory_limit == 0 || bytes <= self.memory_limit {
            return;
        }
        let dataflows = self.lock_dataflows();
        let returning =
            |d: &Dataflow| d.is_stopped() && d.removed.load(Ordering::Relaxed) < self.workers;
        if dataflows.iter().any(|d| returning(d)) {
            return;
        }
        let work = |d: &Arc<Dataflow>| d.work.load(Ordering::Relaxed);
        let running = || dataflows.iter().filter(|d| !d.is_stopped());
        let Some(busiest) = running().filter(|d| work(d) > 0).max_by_key(|d| work(d)).cloned()
        else {
            return;
        };
        let in_memory = running().filter(|d| d.keeps == Keeps::InMemoryForNow);
        let large = in_memory.filter(|d| d.size() > self.memory_limit / 16);
        let largest = large.max_by_key(|d| d.size()).cloned();
        drop(dataflows);
        let guilty =
            if busiest.keeps == Keeps::OnDisk { largest.unwrap_or(busiest) } else { busiest };
        // One that spills needs a moment to bring to disk what its threads, and those of others, hold just now.
        if guilty.keeps == Keeps::OnDisk && bytes <= self.memory_limit + self.memory_limit / 4 {
            return;
        }
        let iteration = guilty.iteration.load(Ordering::Relaxed);
        let reason = if guilty.keeps == Keeps::InMemoryForNow {
            StopReason::OutgrewMemory { bytes }
        } else {
            StopReason::MemoryLimit { iteration, bytes }
        };
        self.stop(&guilty, reason);
    }

    /// Whether what is on its way should be little.
    pub(crate) fn is_memory_short(&self) -> bool {
        self.spill.as_ref().is_some_and(|spill| memory::allocated() > spill.above / 2)
    }

    /// Bytes on disk, of all dataflows.
    pub(crate) fn spilled(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }

    pub(crate) fn add_spilled(&self, dataflow: &Dataflow, bytes: usize) {
        self.spilled.fetch_add(bytes as u64, Ordering::Relaxed);
        dataflow.spilled.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn subtract_spilled(&self, dataflow: &Dataflow, bytes: usize) {
        self.spilled.fetch_sub(bytes as u64, Ordering::Relaxed);
        dataflow.spilled.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Stops a dataflow because a multiplicity no longer fits 64 bits.
    pub(crate) fn stop_overflowed(&self, dataflow: &Dataflow) {
        let iteration = dataflow.iteration.load(Ordering::Relaxed);
        let copies = i64::MAX.unsigned_abs();
        self.stop(dataflow, StopReason::TooManyCopies { iteration, copies });
    }
}

/// A worker's operators' view of their dataflow.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) dataflow: Arc<Dataflow>,
    pub(crate) shared: Arc<Shared>,
    uncounted: Rc<Cell<usize>>,
}

impl Guard {
    pub(crate) fn new(dataflow: Arc<Dataflow>, shared: Arc<Shared>) -> Self {
        Guard { dataflow, shared, uncounted: Rc::new(Cell::new(0)) }
    }

    /// Counts updates handled; false when the dataflow is stopped and the caller should produce
    /// nothing more. Looks at the memory in use every few hundred updates.
    pub(crate) fn proceed(&self, updates: usize) -> bool {
        let uncounted = self.uncounted.get() + updates;
        self.uncounted.set(uncounted);
        if uncounted >= CHECK_EVERY {
            self.flush();
        }
        !self.dataflow.is_stopped()
    }

    /// Stops the dataflow because of a row that its plan does not expect.
    pub(crate) fn refuse(&self, error: DataError) {
        self.shared.stop(&self.dataflow, StopReason::UnexpectedRow(error));
    }

    fn flush(&self) {
        self.dataflow.add_work(self.uncounted.replace(0));
        self.shared.check_memory();
    }

    /// Records that a loop has new rows in `iteration`, the largest multiplicity among them being
    /// `largest`; stops the dataflow beyond the limits.
    pub(crate) fn reach(&self, iteration: u64, largest: u64) {
        self.flush();
        self.dataflow.iteration.fetch_max(iteration, Ordering::Relaxed);
        let limit = self.shared.max_recursion;
        if iteration > limit {
            let reason = StopReason::RecursionLimit { iteration: limit };
            self.shared.stop(&self.dataflow, reason);
        } else if largest > MAX_COPIES {
            let reason = StopReason::TooManyCopies { iteration, copies: largest };
            self.shared.stop(&self.dataflow, reason);
        }
    }

    /// Counts `new` keys whose values became better in a loop; stops the dataflow if that went on for more
    /// iterations (`rounds`) than all workers have counted keys.
    pub(crate) fn improve(&self, new: usize, iteration: u64, rounds: u64) {
        let counted = self.dataflow.late_keys.fetch_add(new as u64, Ordering::AcqRel);
        if rounds > counted + new as u64 {
            self.shared.stop(&self.dataflow, StopReason::Endless { iteration });
        }
    }
}
