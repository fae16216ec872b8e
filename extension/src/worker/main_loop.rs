//! The worker's main loop: follow the catalogs, decode, compute, apply, publish.
//!
//! One step takes whatever has arrived. Views are attached and checked against the catalogs between
//! decoding and computing, until nothing changes any more: so what is applied is consistent, for all
//! views at one point of commit order. Nothing survives the process but the views' heaps: a new
//! worker attaches every view again and writes the difference.

use super::capture::{Capture, Step, Trouble};
use super::clock::Clocks;
use super::evaluate::answer;
use super::pace::Pace;
use super::view::{Heals, Phase, Problem, View};
use crate::errors::Error;
use crate::pg::decoding::Decoder;
use crate::pg::shmem::Database;
use crate::pg::{inval, process, wal, xact};
use crate::settings::{self, EngineSettings};
use crate::shared::{self, DatabaseState};
use engine::{Config, DataflowId, DataflowStats, Engine, OutputForm, Response, StopReason, Time};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The loop looks around at least this often without being woken.
const IDLE: Duration = Duration::from_secs(1);

/// Transactions taken at once. The work for one group of rows grows with the square of the number of
/// times at which it changes in a batch, so batches must not grow with the lag.
const BATCH: usize = 500;

/// SQLSTATE of what does not exist.
const UNDEFINED_OBJECT: &str = "42704";

/// How often the slot is moved on while there is no time without work.
const CONFIRM_AT_LEAST: Duration = Duration::from_secs(10);

/// The state of the process.
pub struct Worker {
    pub(super) database: &'static Database,
    decoder: Decoder,
    caches: inval::Switch,
    pub(super) capture: Capture,
    pub(super) clocks: Clocks,
    pub(super) views: BTreeMap<u32, View>,
    pub(super) engine: Option<Engine>,
    settings: EngineSettings,
    pub(super) dataflows: HashMap<DataflowId, u32>,
    next_dataflow: u64,
    frontier: Time,
    advanced: Time,
    /// Decoding must reach this position before anything is applied.
    pub(super) decode_at_least: u64,
    confirmed: Instant,
    /// Whether there is more to decode than the last batch took.
    is_behind: bool,
    /// The last commit known when the last step began.
    seen_commit: u64,
    /// What readers waited for then.
    seen_wanted: u64,
    pace: Pace,
}

/// Set when the process ends: engine threads must not touch shared memory any more.
pub static STOPPING: AtomicBool = AtomicBool::new(false);

impl Worker {
    /// A worker that knows no views yet.
    pub fn new(database: &'static Database, decoder: Decoder) -> Worker {
        let settings = settings::engine();
        database.set_time_zone(&settings.time_zone);
        // One that ended in the middle of its work may have left them apart.
        database.next_clock.store(database.clock.load(SeqCst), SeqCst);
        Worker {
            database,
            decoder,
            caches: inval::Switch::default(),
            capture: Capture::new(),
            clocks: Clocks::new(),
            views: BTreeMap::new(),
            engine: None,
            settings,
            dataflows: HashMap::new(),
            next_dataflow: 0,
            frontier: 0,
            advanced: 0,
            decode_at_least: 0,
            confirmed: Instant::now(),
            is_behind: false,
            seen_commit: 0,
            seen_wanted: 0,
            pace: Pace::new(Instant::now()),
        }
    }

    /// Works until the process is told to end.
    pub fn run(mut self) -> ! {
        loop {
            process::reset_latch();
            process::check_interrupts();
            self.step();
            self.confirm();
            process::report_idle();
            self.rest();
            self.take_settings();
        }
    }

    fn step(&mut self) {
        let target = self.flushed_target();
        let activity = &self.database.activity;
        timed(&activity.attach, || self.follow_catalogs());
        loop {
            timed(&activity.decode, || self.decode(target.max(self.decode_at_least)));
            if !timed(&activity.attach, || self.follow_catalogs()) {
                break;
            }
        }
        self.is_behind = self.decoder.position() < target;
        let transactions = self.capture.commits.len();
        self.pace.note(transactions, Instant::now());
        timed(&activity.engine, || self.compute());
        activity.steps.fetch_add(1, Relaxed);
        activity.transactions.fetch_add(transactions as u64, Relaxed);
        activity.changes.store(self.capture.changes, Relaxed);
        self.apply();
        self.capture.prune_recent();
    }

    /// Sleeps until there is something to do. Commits wake the worker only while it listens, so that
    /// they do not pay for it while it is at work or naps; readers that wait do so always.
    fn rest(&mut self) {
        // The step may have slept through the wake-up of a reader that came meanwhile.
        let is_wanted = self.database.wanted.load(SeqCst) != self.seen_wanted;
        if self.is_behind || is_wanted {
            // Not to sleep, but to notice signals and a changed configuration.
            process::wait_for_latch(Duration::ZERO);
            return;
        }
        let nap = self.pace.nap();
        if !nap.is_zero() {
            process::wait_for_latch(nap);
            return;
        }
        self.database.listening.store(1, SeqCst);
        // A commit from before the worker listened has woken nobody.
        if self.database.last_commit.load(SeqCst) == self.seen_commit {
            process::wait_for_latch(self.idle_time());
        }
        self.database.listening.store(0, SeqCst);
    }

    /// Time until there is something to do without being woken: a view is due to be attached, or a second is over.
    fn idle_time(&self) -> Duration {
        let due = self.views.values().filter_map(|view| match view.phase {
            Phase::Waiting { not_before, .. } => {
                Some(not_before.saturating_duration_since(Instant::now()))
            }
            _ => None,
        });
        let due = due.chain(self.clocks.due_in());
        due.min().map_or(IDLE, |due| due.clamp(Duration::from_millis(1), IDLE))
    }

    /// Everything that was committed or is waited for by now, flushed to disk.
    fn flushed_target(&mut self) -> u64 {
        self.seen_commit = self.database.last_commit.load(SeqCst);
        self.seen_wanted = self.database.wanted.load(SeqCst);
        wal::flush_to(self.seen_commit.max(self.seen_wanted));
        let target = wal::flush_lsn();
        if target.is_multiple_of(wal::PAGE) {
            // Flushed to a page's end: reading the record that crosses it would wait for the rest.
            wal::flush_to(wal::insert_lsn());
        }
        target
    }

    fn decode(&mut self, target: u64) {
        if self.decoder.position() >= target {
            return;
        }
        wal::flush_to(target);
        self.caches.before_decoding();
        // Views being attached must get to the point of the others at once.
        self.capture.limit = None;
        self.decoder.decode_to(self.decode_at_least, &mut self.capture);
        self.capture.limit = Some(BATCH);
        self.decoder.decode_to(target, &mut self.capture);
        self.caches.after_decoding(self.decoder.position());
    }

    /// Position up to which everything has been decoded.
    pub(super) fn position(&self) -> u64 {
        self.decoder.position()
    }

    /// Lets go of WAL: when there is nothing else to do, as this writes to disk.
    fn confirm(&mut self) {
        let since = self.confirmed.elapsed();
        let is_idle = self.decoder.position() >= wal::flush_lsn();
        if since > CONFIRM_AT_LEAST || (is_idle && since > IDLE) {
            self.decoder.confirm();
            self.confirmed = Instant::now();
        }
    }

    /// Catches up with the catalogs and with what decoding found; answers whether a view was
    /// attached or detached, so that more must be decoded before anything may be applied.
    fn follow_catalogs(&mut self) -> bool {
        let mut changed = false;
        for (relid, trouble) in std::mem::take(&mut self.capture.troubles) {
            changed = true;
            match trouble {
                Trouble::Changed => self.set_phase(relid, Phase::waiting()),
                Trouble::Problem(problem) => self.fail(relid, problem, Heals::OnDdl),
            }
        }
        inval::accept();
        while inval::is_pending() {
            changed |= self.reload(inval::take());
        }
        changed | self.attach_due()
    }

    /// Puts a view into another phase; a dataflow it had is dropped.
    pub(super) fn set_phase(&mut self, relid: u32, phase: Phase) {
        let Some(view) = self.views.get_mut(&relid) else { return };
        if let Phase::Attached(attachment) = std::mem::replace(&mut view.phase, phase) {
            self.dataflows.remove(&attachment.dataflow);
            self.capture.remove_view(relid);
            self.clocks.retain(|dataflow| dataflow != attachment.dataflow);
            if let Some(engine) = &mut self.engine {
                engine.drop_dataflow(attachment.dataflow);
            }
        }
    }

    /// A view cannot be maintained.
    pub(super) fn fail(&mut self, relid: u32, problem: Problem, heals: Heals) {
        if let Some(view) = self.views.get_mut(&relid) {
            // A view that was dropped just now is no problem.
            let is_news = view.last_problem.as_ref() != Some(&problem);
            if is_news && problem.sqlstate != UNDEFINED_OBJECT {
                let Problem { sqlstate, message, .. } = &problem;
                pgrx::log!("pg_eddy: view {} is in error: {sqlstate}: {message}", view.name);
                view.last_problem = Some(problem.clone());
            }
        }
        self.set_phase(relid, Phase::Failed { problem, heals });
    }

    // ---- engine ----------------------------------------------------------------------------

    /// The engine, started if it is not running.
    pub(super) fn engine(&mut self) -> &mut Engine {
        let settings = &self.settings;
        self.engine.get_or_insert_with(|| start_engine(settings))
    }

    /// Bytes the views may take, 0 for no limit.
    pub(super) fn memory_limit(&self) -> usize {
        self.settings.memory_limit
    }

    /// A name for a new dataflow of a view.
    pub(super) fn new_dataflow(&mut self, relid: u32) -> DataflowId {
        let id = DataflowId(self.next_dataflow);
        self.next_dataflow += 1;
        self.dataflows.insert(id, relid);
        id
    }

    /// Takes over changed settings; a changed engine starts afresh, and so do all views.
    fn take_settings(&mut self) {
        let settings = settings::engine();
        if settings == self.settings {
            return;
        }
        self.database.set_time_zone(&settings.time_zone);
        self.settings = settings;
        self.views.values_mut().for_each(|view| view.spills = false);
        let relids: Vec<u32> = self.views.keys().copied().collect();
        for relid in relids {
            self.set_phase(relid, Phase::waiting());
        }
        if self.engine.take().is_some() {
            pgrx::log!("pg_eddy: settings changed, starting all views of this database afresh");
        }
        (self.frontier, self.advanced) = (0, 0);
    }

    /// Feeds what was captured and waits until all of it has gone through the dataflows.
    fn compute(&mut self) {
        let steps = self.capture.take_steps();
        let Some(engine) = &mut self.engine else { return };
        if self.clocks.due_in().is_some_and(|due| due.is_zero()) {
            self.clocks.tell(engine, self.capture.take_time());
        }
        let upper = self.capture.upper();
        for (dataflow, source, steps) in steps {
            for step in steps {
                match step {
                    Step::Update(updates) => engine.update(dataflow, source, updates),
                    Step::Truncate(time) => engine.truncate(dataflow, source, time),
                }
            }
        }
        if upper > self.advanced {
            engine.advance(upper);
            self.advanced = upper;
        }
        while !self.dataflows.is_empty() && self.frontier < self.advanced {
            self.receive();
            if self.frontier < self.advanced {
                process::wait_for_latch(IDLE);
            }
        }
        self.receive();
    }

    fn receive(&mut self) {
        let responses = self.engine.as_mut().map(Engine::poll).unwrap_or_default();
        for response in responses {
            match response {
                Response::Deltas { dataflow, oks, errs, times } => {
                    let view = self.dataflows.get(&dataflow).and_then(|id| self.views.get_mut(id));
                    if let Some(attachment) = view.and_then(View::attachment) {
                        attachment.receive(oks, errs, times);
                    }
                }
                Response::Frontier(time) => self.frontier = time,
                Response::Stopped { dataflow, reason } => {
                    if let Some(relid) = self.dataflows.get(&dataflow).copied() {
                        self.note_stopped(relid, reason);
                    }
                }
                Response::Evaluate(evaluation) => answer(evaluation),
                Response::Panicked { message } => {
                    pgrx::error!("pg_eddy: the engine failed: {message}")
                }
            }
        }
    }

    fn note_stopped(&mut self, relid: u32, reason: StopReason) {
        let error = match reason {
            StopReason::RecursionLimit { iteration } => Error::recursion_limit(iteration),
            StopReason::Endless { iteration } => Error::endless(iteration),
            StopReason::MemoryLimit { iteration, bytes } => Error::memory_limit(iteration, bytes),
            StopReason::OutgrewMemory { bytes } => return self.start_spilling(relid, bytes),
            StopReason::SpillLimit { bytes } => Error::spill_limit(bytes),
            StopReason::SpillFailed { message } => {
                // Where that is, is not for everyone who reads the view.
                if let Some(directory) = &self.settings.spill_directory {
                    pgrx::log!("pg_eddy: in \"{}\": {message}", directory.display());
                }
                Error::spill_failed(message)
            }
            StopReason::TooManyCopies { iteration, copies } => {
                Error::too_many_copies(iteration, copies)
            }
            // The table was altered and its rows came sooner than the news: a new plan is needed.
            StopReason::UnexpectedRow(_) => return self.set_phase(relid, Phase::waiting()),
        };
        let file = crate::worker::attach::file_of(relid).unwrap_or(0);
        self.fail(relid, error.into(), Heals::OnRefresh { file });
    }

    /// Attaches a view again, with a dataflow whose state goes to disk.
    fn start_spilling(&mut self, relid: u32, bytes: usize) {
        if let Some(view) = self.views.get_mut(&relid) {
            view.spills = true;
            pgrx::log!(
                "pg_eddy: at {bytes} bytes, beyond eddy.memory_limit, view {} starts afresh with its state on disk",
                view.name
            );
        }
        self.set_phase(relid, Phase::waiting());
    }

    /// Figures of a view's dataflow.
    pub(super) fn stats(&self, view: &View) -> DataflowStats {
        match (&self.engine, &view.phase) {
            (Some(engine), Phase::Attached(attachment)) => engine.stats(attachment.dataflow),
            _ => DataflowStats::default(),
        }
    }

    /// The extension is gone: so is this process.
    pub(super) fn leave(&mut self) -> ! {
        pgrx::log!("pg_eddy: the extension was dropped, worker leaves");
        shared::remove_views(process::database(), |_| false);
        self.database.set_state(DatabaseState::NoExtension);
        process::exit(0)
    }
}

/// Adds the time that `work` takes to a counter of microseconds.
pub(super) fn timed<T>(counter: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    counter.fetch_add(start.elapsed().as_micros() as u64, Relaxed);
    result
}

/// Starts an engine whose threads cannot get in the way of PostgreSQL.
fn start_engine(settings: &EngineSettings) -> Engine {
    let wake = process::waker();
    let config = Config {
        workers: settings.workers,
        max_recursion: settings.max_recursion,
        memory_limit: settings.memory_limit,
        spill: settings.spill(),
        // Nobody asks which transaction changed which row.
        output: OutputForm::Net,
        waker: Arc::new(move || {
            if !STOPPING.load(SeqCst) {
                wake();
            }
        }),
        thread_start: Arc::new(process::block_signals),
    };
    process::with_signals_blocked(|| Engine::start(config))
}

/// Ends transactions of old before a snapshot is taken: what was decoded must be visible.
pub(super) fn wait_for_decoded(recent: &[u32]) {
    for xid in recent {
        xact::wait_for_end(*xid);
    }
}
