//! Watching running dataflows: who is busy, how far its loops went, when to stop it.
//!
//! One [`Dataflow`] per installed plan is shared by the engine and all workers. A worker's operators
//! reach it through a [`Guard`], which counts their work, notices recursion that does not end, and
//! asks now and then whether memory is short. Whoever notices first stops the dataflow for all.
//!
//! A thread whose dataflow was stopped leaves whatever it is at by unwinding, with [`Stopped`]: many operators, and what
//! they call, are not ours, and know no other way out. Nobody sees what it leaves half done: it drops it and ends.

use crate::core::config::{Config, OutputForm, Spill};
use crate::core::peers::Peers;
use crate::core::report::Report;
use crate::core::response::{DataflowStats, StopReason};
use crate::core::room::Queued;
use crate::core::updates::{DataflowId, Time};
use crate::memory;
use crate::memory::Account;
use plan::error::DataError;
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{panicking, sleep, Thread};
use std::time::Duration;

/// Updates an operator may handle between two looks at the memory in use.
const CHECK_EVERY: usize = 256;

/// Bytes beyond the limit, with a quarter of it, up to which only the guiltiest dataflow is stopped.
const HEADROOM: usize = 64 << 20;

/// How long a dataflow that is not the one that is too large waits for memory to come back, before it goes on.
const BACKOFF: Duration = Duration::from_millis(1);

/// Bytes in one piece from which it is asked for room.
const LARGE: usize = 1 << 20;

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
    /// The caller's name for it.
    pub(crate) id: DataflowId,
    /// Distinguishes dataflows that had the same name one after the other.
    pub(crate) instance: u64,
    /// Who answers for the memory that it takes, together with that of others.
    owner: AtomicU32,
    stopped: AtomicBool,
    reason: OnceLock<StopReason>,
    /// Time up to which the caller has promised the input to be complete.
    fed_to: AtomicU64,
    /// Per worker: output is complete up to this time.
    done_to: Vec<AtomicU64>,
    /// What its threads allocate on.
    pub(crate) account: Account,
    pub(crate) keeps: Keeps,
    /// Whether its output has times of its own although that of others is net.
    keeps_times: AtomicBool,
    /// Bytes of its state that are on disk, and what they would take in memory.
    spilled: AtomicUsize,
    spilled_in_memory: AtomicUsize,
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
    /// Bytes of what other dataflows have put out for it and it has not taken.
    pub(crate) handed: AtomicUsize,
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
            keeps_times: AtomicBool::new(false),
            spilled: AtomicUsize::new(0),
            spilled_in_memory: AtomicUsize::new(0),
            instance,
            owner: AtomicU32::new(0),
            stopped: AtomicBool::new(false),
            reason: OnceLock::new(),
            fed_to: AtomicU64::new(as_of),
            done_to: (0..workers).map(|_| AtomicU64::new(as_of)).collect(),
            account: Account::open(),
            work: AtomicU64::new(0),
            iteration: AtomicU64::new(0),
            last_iteration: AtomicU64::new(0),
            late_keys: AtomicU64::new(0),
            removed: AtomicUsize::new(0),
            queued: Queued::default(),
            handed: AtomicUsize::new(0),
            threads: OnceLock::new(),
        }
    }

    pub(crate) fn set_threads(&self, threads: Vec<Thread>) {
        // Set once, right after the threads have been started.
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

    pub(crate) fn set_owner(&self, owner: u32) {
        self.owner.store(owner, Ordering::Relaxed);
    }

    fn owner(&self) -> u32 {
        self.owner.load(Ordering::Relaxed)
    }

    pub(crate) fn keep_times(&self) {
        self.keeps_times.store(true, Ordering::Relaxed);
    }

    pub(crate) fn keeps_times(&self) -> bool {
        self.keeps_times.load(Ordering::Relaxed)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Records the caller's promise; called before the command reaches the workers.
    pub(crate) fn set_fed_to(&self, time: Time) {
        self.fed_to.store(time, Ordering::Relaxed);
    }

    /// Which thread of this process a worker is.
    pub(crate) fn thread(&self, worker: usize) -> usize {
        worker % self.done_to.len()
    }

    /// The time to which a thread has put out everything.
    pub(crate) fn done_to(&self, worker: usize) -> Time {
        self.done_to[worker].load(Ordering::Relaxed)
    }

    /// Records a thread's progress; when all have caught up a new round of work begins.
    pub(crate) fn set_done_to(&self, worker: usize, time: Time) {
        self.done_to[worker].store(time, Ordering::Relaxed);
        let fed_to = self.fed_to.load(Ordering::Relaxed);
        if self.done_to.iter().all(|done| done.load(Ordering::Relaxed) >= fed_to) {
            self.work.store(0, Ordering::Relaxed);
            let iteration = self.iteration.swap(0, Ordering::Relaxed);
            self.last_iteration.store(iteration, Ordering::Relaxed);
        }
    }

    pub(crate) fn add_work(&self, updates: usize) {
        self.work.fetch_add(updates as u64, Ordering::Relaxed);
    }

    pub(crate) fn set_removed(&self) {
        self.removed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> DataflowStats {
        let current = self.iteration.load(Ordering::Relaxed);
        DataflowStats {
            state_bytes: self.account.bytes() + self.spilled_in_memory.load(Ordering::Relaxed),
            spilled_bytes: self.spilled.load(Ordering::Relaxed),
            iterations: current.max(self.last_iteration.load(Ordering::Relaxed)),
        }
    }
}

/// What all threads of an engine share.
pub(crate) struct Shared {
    /// Threads of each dataflow in this process.
    pub(crate) workers: usize,
    pub(crate) peers: Option<Arc<dyn Peers>>,
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
    pub(crate) fn new(
        config: &Config,
        peers: Option<Arc<dyn Peers>>,
        reports: Sender<Report>,
        alive: Sender<()>,
    ) -> Self {
        Shared {
            peers,
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

    /// Workers of each dataflow, in all processes.
    pub(crate) fn all_workers(&self) -> usize {
        self.workers * self.peers.as_ref().map_or(1, |peers| peers.processes())
    }

    /// What a thread holds as long as it lives.
    pub(crate) fn alive(&self) -> Option<Sender<()>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// No more threads are started.
    pub(crate) fn dismiss(&self) {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Hands a report to the engine and wakes its caller.
    pub(crate) fn report(&self, report: Report) {
        self.report_all([report]);
    }

    /// Hands reports to the engine and wakes its caller.
    pub(crate) fn report_all(&self, all: impl IntoIterator<Item = Report>) {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        // The engine may be gone already; then nobody wants to know.
        all.into_iter().for_each(|report| drop(reports.send(report)));
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

    /// Bytes beyond which whoever is at work makes room itself.
    fn hard_limit(&self) -> usize {
        (self.memory_limit + self.memory_limit / 4).saturating_add(HEADROOM)
    }

    /// Sees to the limit of memory, on behalf of a dataflow that is at work and about to take so many bytes more.
    pub(crate) fn check_memory(&self, at_work: &Dataflow, more: usize) {
        let bytes = memory::allocated().saturating_add(more);
        if self.memory_limit == 0 || bytes <= self.memory_limit {
            return;
        }
        let bytes = bytes - self.coming_back().min(self.memory_limit / 2);
        if bytes <= self.memory_limit {
            return;
        }
        if bytes <= self.hard_limit() {
            self.stop_guilty(bytes);
        } else if at_work.account.bytes().saturating_add(more) > self.memory_limit / 16 {
            self.stop_at_memory(at_work, bytes);
        } else {
            // It is not the one that is too large, whose memory is to come back.
            self.stop_guilty(bytes);
            sleep(BACKOFF);
        }
    }

    /// Bytes that others have put out for a dataflow that was stopped, whose thread has not noticed: it may wait for the host.
    fn coming_back(&self) -> usize {
        let dataflows = self.lock_dataflows();
        let stopped = dataflows.iter().filter(|d| self.is_returning(d));
        stopped.map(|d| d.handed.load(Ordering::Relaxed)).max().unwrap_or(0)
    }

    /// Whether what a stopped dataflow takes is still to come back.
    fn is_returning(&self, dataflow: &Dataflow) -> bool {
        dataflow.is_stopped() && dataflow.removed.load(Ordering::Relaxed) < self.workers
    }

    /// Stops a dataflow because memory is short, unless what one takes that was stopped is still to come back. One that
    /// could spill but does not is stopped in order to be created anew as one that does.
    fn stop_guilty(&self, bytes: usize) {
        let dataflows = self.lock_dataflows();
        if dataflows.iter().any(|d| self.is_returning(d)) {
            return;
        }
        let running: Vec<_> = dataflows.iter().filter(|d| !d.is_stopped()).cloned().collect();
        drop(dataflows);
        let Some(guilty) = self.guilty(&running) else { return };
        // One that spills needs a moment to bring to disk what its threads, and those of others, hold just now.
        let passing = self.memory_limit / 4 + HEADROOM / 4;
        if guilty.keeps == Keeps::OnDisk && bytes <= self.memory_limit + passing {
            return;
        }
        self.stop_at_memory(guilty, bytes);
    }

    /// The dataflow for which most waits that others have put out, if that is much: it does not take it, however long they go
    /// on. Else the one that does the most work: one that is idle, not being behind its input, does not grow. But if its state is
    /// on disk already, rather the largest of those whose state is not; and if its owner has little, rather the largest
    /// of the owner who has most.
    fn guilty<'d>(&self, running: &'d [Arc<Dataflow>]) -> Option<&'d Arc<Dataflow>> {
        let is_large = |bytes: usize| bytes > self.memory_limit / 16;
        let handed = |d: &Arc<Dataflow>| d.handed.load(Ordering::Relaxed);
        let slow = running.iter().max_by_key(|d| handed(d));
        if let Some(slow) = slow.filter(|slow| handed(slow) > self.memory_limit / 4) {
            return Some(slow);
        }
        let work = |d: &Arc<Dataflow>| d.work.load(Ordering::Relaxed);
        let busiest = running.iter().filter(|d| work(d) > 0).max_by_key(|d| work(d))?;
        let mut held: BTreeMap<u32, usize> = BTreeMap::new();
        for dataflow in running {
            *held.entry(dataflow.owner()).or_default() += dataflow.account.bytes();
        }
        let largest_owner = held.iter().max_by_key(|(_, bytes)| **bytes);
        if let Some((owner, bytes)) = largest_owner {
            if is_large(*bytes) && !is_large(held[&busiest.owner()]) {
                let theirs = running.iter().filter(|d| d.owner() == *owner);
                return theirs.max_by_key(|d| d.account.bytes());
            }
        }
        if busiest.keeps != Keeps::OnDisk {
            return Some(busiest);
        }
        let in_memory = running.iter().filter(|d| d.keeps == Keeps::InMemoryForNow);
        let large = in_memory.filter(|d| is_large(d.account.bytes()));
        large.max_by_key(|d| d.account.bytes()).or(Some(busiest))
    }

    fn stop_at_memory(&self, guilty: &Dataflow, bytes: usize) {
        let iteration = guilty.iteration.load(Ordering::Relaxed);
        let reason = if guilty.keeps == Keeps::InMemoryForNow {
            StopReason::OutgrewMemory { bytes }
        } else {
            StopReason::MemoryLimit { iteration, bytes }
        };
        self.stop(guilty, reason);
    }

    /// Whether what is on its way should be little.
    pub(crate) fn is_memory_short(&self) -> bool {
        self.spill.as_ref().is_some_and(|spill| memory::allocated() > spill.above / 2)
    }

    /// Bytes on disk, of all dataflows.
    pub(crate) fn spilled(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }

    pub(crate) fn add_spilled(&self, dataflow: &Dataflow, bytes: usize, in_memory: usize) {
        self.spilled.fetch_add(bytes as u64, Ordering::Relaxed);
        dataflow.spilled_in_memory.fetch_add(in_memory, Ordering::Relaxed);
        dataflow.spilled.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn subtract_spilled(&self, dataflow: &Dataflow, bytes: usize, in_memory: usize) {
        self.spilled.fetch_sub(bytes as u64, Ordering::Relaxed);
        dataflow.spilled_in_memory.fetch_sub(in_memory, Ordering::Relaxed);
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

    /// Lets [`look`] and [`room_for`] find this guard on this thread.
    pub(crate) fn install(&self) {
        // A thread has one dataflow.
        CURRENT.with(|current| drop(current.set(self.clone())));
    }

    /// Counts updates handled. Looks at the memory in use every few hundred updates, or some megabytes.
    ///
    /// Does not return when the dataflow was stopped: see [`Stopped`].
    #[inline]
    pub(crate) fn proceed(&self, updates: usize) {
        let uncounted = self.uncounted.get() + updates;
        self.uncounted.set(uncounted);
        if uncounted >= CHECK_EVERY || memory::is_look_due() {
            self.flush(0);
        }
        if self.dataflow.is_stopped() {
            leave();
        }
    }

    /// Asks for so many bytes in one piece. Does not return where there is no room for them.
    fn room_for(&self, bytes: usize) {
        if bytes >= LARGE {
            self.flush(bytes);
            if self.dataflow.is_stopped() {
                leave();
            }
        }
    }

    /// Stops the dataflow because of a row that its plan does not expect.
    pub(crate) fn refuse(&self, error: DataError) {
        self.shared.stop(&self.dataflow, StopReason::UnexpectedRow(error));
    }

    /// Stops the dataflow because of an error that those who read what it makes have to have themselves, and leaves it.
    pub(crate) fn raise(&self, error: DataError) {
        self.shared.stop(&self.dataflow, StopReason::Raised(error));
        leave();
    }

    fn flush(&self, more: usize) {
        memory::note_look();
        self.dataflow.add_work(self.uncounted.replace(0));
        self.shared.check_memory(&self.dataflow, more);
    }

    /// Records that a loop has new rows in `iteration`, the largest multiplicity among them being
    /// `largest`; stops the dataflow beyond the limits.
    pub(crate) fn reach(&self, iteration: u64, largest: u64) {
        self.flush(0);
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

/// What a thread unwinds with whose dataflow was stopped.
pub(crate) struct Stopped;

thread_local! {
    static CURRENT: OnceCell<Guard> = const { OnceCell::new() };
}

/// Leaves everything. What is dropped on the way may not do so once more.
fn leave() {
    if !panicking() {
        resume_unwind(Box::new(Stopped));
    }
}

/// Counts updates handled by this thread: [`Guard::proceed`], for what is called without a guard.
#[inline]
pub(crate) fn look(updates: usize) {
    CURRENT.with(|current| current.get().into_iter().for_each(|guard| guard.proceed(updates)));
}

/// Asks for room, on behalf of this thread's dataflow, for so many bytes in one piece. Does not return where there is none.
pub(crate) fn room_for(bytes: usize) {
    CURRENT.with(|current| current.get().into_iter().for_each(|guard| guard.room_for(bytes)));
}

/// Makes room in a vector for more, as it would by itself, but asks for it before.
#[inline]
pub(crate) fn make_room<T>(vector: &mut Vec<T>, more: usize) {
    let needed = vector.len() + more;
    if needed > vector.capacity() {
        room_for(needed.max(2 * vector.capacity()) * size_of::<T>());
        vector.reserve(more);
    }
}
