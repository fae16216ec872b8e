//! The worker's main loop: follow the catalogs, decode, compute, apply, publish.
//!
//! One step takes whatever has arrived. The views that are through with it are written together, so that they are at
//! one point of commit order; one that is not is set aside until it is there too (see [`super::view::Standing`]).
//! If there is more to be decoded, and nobody waits for it, a step is written when the next one has been fed, while the
//! dataflows are at work on that. What they put out then is received after the write, so that it is not mixed up.
//! Nothing survives the process but the views' heaps: a new worker attaches every view again and writes the
//! difference.

use super::assistant::Assistants;
use super::capture::{Capture, Limits, Trouble};
use super::checkpoints::Checkpoints;
use super::clock::Clock;
use super::engine::Running;
use super::finished::Finished;
use super::indexes::Indexes;
use super::problem::Problem;
use super::reload::{self, Roles};
use super::retention::Retention;
use super::stack::Stack;
use super::states::States;
use super::suspects::Suspects;
use super::view::{Heals, Phase, View, Why};
use crate::pg::decoding::Decoder;
use crate::pg::ids::ViewId;
use crate::pg::markers::Work;
use crate::pg::shmem::Database;
use crate::pg::sort_keys::SortKeys;
use crate::pg::sqlstate::SqlState;
use crate::pg::{inval, markers, process, wal, xact};
use crate::settings::{self, EngineSettings};
use crate::shared::{self, DatabaseState};
use crate::shared_indexes;
use engine::DataflowId;
use rules::pace::{Growth, Pace};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

/// The loop looks around at least this often without being woken.
const IDLE: Duration = Duration::from_secs(1);

/// Transactions taken at once. The work for one group of rows grows with the square of the number of
/// times at which it changes in a batch, so batches must not grow with the lag.
const BATCH: usize = 500;

/// How long decoding goes on at most before the loop looks after everything else.
const DECODE_SLICE: Duration = Duration::from_millis(50);

/// WAL that is not on disk though nobody commits is written from so many bytes on, so that what a long transaction
/// does can be decoded meanwhile.
const FLUSH_FROM: u64 = 1 << 20;

/// How long commits with changes to the catalogs are waited for until they are visible, where that is needed.
const VISIBLE_WITHIN: Duration = Duration::from_millis(5);

/// A step that took so long to be computed may be written beside the next one: others have come to nothing by then.
const LONG: Duration = Duration::from_millis(5);

/// How soon views that are being fed get their next portions.
const FEED_PAUSE: Duration = Duration::from_millis(1);

/// How often the slot is moved on while there is no time without work.
const CONFIRM_AT_LEAST: Duration = Duration::from_secs(10);

/// The state of the process.
pub struct Worker {
    pub(super) database: &'static Database,
    pub(super) decoder: Decoder,
    pub(super) checkpoints: Checkpoints,
    caches: inval::Switch,
    pub(super) capture: Capture,
    pub(super) clock: Clock,
    pub(super) views: BTreeMap<ViewId, View>,
    pub(super) states: States,
    pub(super) suspects: Suspects,
    pub(super) roles: Roles,
    pub(super) assistants: Assistants,
    pub(super) retention: Retention,
    pub(super) engine: Running,
    pub(super) settings: EngineSettings,
    pub(super) dataflows: HashMap<DataflowId, ViewId>,
    pub(super) indexes: Indexes,
    /// Whether what was captured may go on: who was in its way has put out what it was fed.
    pub(super) more_is_due: bool,
    pub(super) stack: Stack,
    /// What its questions for the place of values have been answered with, by dataflow.
    pub(super) sort_keys: HashMap<DataflowId, SortKeys>,
    pub(super) next_dataflow: u64,
    /// Transactions that were waited for long enough: they have committed, but wait for a standby.
    pub(super) late: BTreeSet<u32>,
    /// Apply transactions that failed, one after the other.
    pub(super) failed_applies: u64,
    /// The last step, if it is to be written when the next one has been fed.
    pub(super) finished: Option<Finished>,
    confirmed: Instant,
    /// Whether there is more to decode than the last batch took.
    is_behind: bool,
    /// The last commit known when the last step began.
    seen_commit: u64,
    /// What readers waited for then.
    seen_wanted: u64,
    pace: Pace,
    growth: Growth,
}

impl Worker {
    /// A worker that knows no views yet.
    pub fn new(
        database: &'static Database,
        (decoder, checkpoints): (Decoder, Checkpoints),
        suspects: Suspects,
    ) -> Worker {
        let settings = settings::engine();
        shared_indexes::free_all(process::database());
        // One that ended in the middle of its work may have left them apart.
        database.next_clock.store(database.clock.load(SeqCst), SeqCst);
        Worker {
            database,
            decoder,
            checkpoints,
            caches: inval::Switch::default(),
            capture: Capture::new(limits(&settings)),
            clock: Clock::new(),
            views: BTreeMap::new(),
            states: xact::run(States::load),
            suspects,
            roles: Roles::new(),
            assistants: Assistants::default(),
            retention: Retention::default(),
            engine: Running::new(),
            indexes: Indexes::new(&settings),
            more_is_due: false,
            stack: Stack::default(),
            settings,
            dataflows: HashMap::new(),
            sort_keys: HashMap::new(),
            next_dataflow: 0,
            late: BTreeSet::new(),
            failed_applies: 0,
            finished: None,
            confirmed: Instant::now(),
            is_behind: false,
            seen_commit: 0,
            seen_wanted: 0,
            pace: Pace::new(Instant::now()),
            growth: Growth::new(wal::insert_lsn()),
        }
    }

    /// Works until the process is told to end.
    pub fn run(mut self) -> ! {
        reload::forget_former_views();
        loop {
            process::reset_latch();
            process::check_interrupts();
            markers::go_on();
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
        timed(&activity.decode, || self.decode(self.replayed_to(target)));
        self.come_to_starts();
        // What was decoded may have told of changes to the catalogs.
        self.wait_for_catalogs();
        timed(&activity.attach, || self.follow_catalogs());
        self.is_behind = self.decoder.position() < target;
        self.pace.note(self.capture.commits, Instant::now());
        let begun = Instant::now();
        timed(&activity.engine, || self.begin_computing());
        if let Some(finished) = self.finished.take() {
            self.apply_meanwhile(finished, begun);
        }
        let activity = &self.database.activity;
        timed(&activity.engine, || self.end_computing());
        activity.steps.fetch_add(1, Relaxed);
        activity.transactions.store(self.capture.transactions, Relaxed);
        activity.changes.store(self.capture.changes, Relaxed);
        activity.memory.store(self.allocated() as u64, Relaxed);
        let finished = self.finish_step();
        match self.may_write_later(finished.position, begun.elapsed()) {
            true => self.finished = Some(finished),
            false => self.apply(finished),
        }
        timed(&self.database.activity.attach, || self.read_on());
        self.hold_rows();
        self.let_go_of_sort_keys();
        self.capture.prune_recent();
        self.retention.go_on(&self.views);
        self.end_replay();
        self.take_checkpoint();
        self.suspects.watch(&self.views);
    }

    /// Whether a step that has been computed may be written when the next one has been fed: there is one, for there was more to be
    /// decoded or there is after this took long, and nobody waits for what would be written now.
    fn may_write_later(&self, position: u64, took: Duration) -> bool {
        let has_next = position < self.database.last_commit.load(SeqCst) && took >= LONG;
        let wanted = self.database.wanted.load(SeqCst);
        let is_wanted = wanted > self.database.applied.load(SeqCst) && wanted <= position;
        (self.is_behind || has_next) && !is_wanted && self.failed_applies == 0
    }

    /// Writes a step while the dataflows are at work on the next one, which has been fed since `begun`.
    fn apply_meanwhile(&mut self, finished: Finished, begun: Instant) {
        let began = Instant::now();
        self.apply(finished);
        let took = began.elapsed();
        let attached = self.views.values_mut().filter_map(View::attachment);
        attached.for_each(|attachment| attachment.leave_out(begun, took));
    }

    /// Sleeps until there is something to do. Commits wake the worker only while it listens, so that
    /// they do not pay for it while it is at work or naps; readers that wait do so always.
    fn rest(&mut self) {
        self.engine.flush();
        // The step may have slept through the wake-up of a reader that came meanwhile.
        let is_wanted = self.database.wanted.load(SeqCst) != self.seen_wanted;
        if self.checkpoints.is_replaying() {
            process::wait_for_latch(FEED_PAUSE);
            return;
        }
        if self.is_behind || self.finished.is_some() || is_wanted || self.is_reading() {
            // Not to sleep, but to notice signals and a changed configuration.
            process::wait_for_latch(Duration::ZERO);
            return;
        }
        if self.capture.is_feeding_any() {
            process::wait_for_latch(FEED_PAUSE);
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

    /// Time until there is something to do without being woken: a view is due to be attached or to be tried again, somebody
    /// writes a lot without a commit, or a second is over.
    fn idle_time(&self) -> Duration {
        let now = Instant::now();
        let due = self.views.values().filter_map(View::due_at).chain(self.assistants.due_at());
        let due = due.map(|at| at.saturating_duration_since(now)).chain(self.clock_is_due_in());
        let due = due.chain(self.growth.look_again_in()).chain(self.roles_are_due_in());
        due.min().map_or(IDLE, |due| due.clamp(Duration::from_millis(1), IDLE))
    }

    /// Everything that was committed or is waited for by now, flushed to disk.
    fn flushed_target(&mut self) -> u64 {
        self.seen_commit = self.database.last_commit.load(SeqCst);
        self.seen_wanted = self.database.wanted.load(SeqCst);
        wal::flush_to(self.seen_commit.max(self.seen_wanted));
        let inserted = wal::insert_lsn();
        self.growth.note(inserted);
        if inserted.saturating_sub(wal::flush_lsn()) >= FLUSH_FROM {
            wal::flush_to(inserted);
        }
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
        self.checkpoints.close();
        process::report_activity(c"decoding changes");
        self.caches.before_decoding();
        self.capture.limit = Some(BATCH);
        self.decoder.decode_to(target, DECODE_SLICE, &mut self.capture);
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
            self.database.away_since.store(0, SeqCst);
        }
    }

    /// Time until the views that read the present time are to be told it; `None` if there are none.
    pub(super) fn clock_is_due_in(&self) -> Option<Duration> {
        self.capture.reads_clock().then(|| self.clock.due_in())
    }

    /// A commit that was decoded may not be visible yet. The session will tell of its changes to the catalogs once more, but may
    /// find that everything of the commit has been published before the worker hears of it.
    fn wait_for_catalogs(&mut self) {
        if inval::is_pending() || inval::are_roles_pending() {
            let recent = self.capture.recent.keys().copied();
            let awaited = recent.filter(|xid| !self.late.contains(xid)).collect();
            xact::wait_for_all(awaited, VISIBLE_WITHIN);
        }
    }

    /// Catches up with the catalogs and with what decoding found.
    fn follow_catalogs(&mut self) {
        for (dataflow, trouble) in std::mem::take(&mut self.capture.troubles) {
            if self.end_former_of(dataflow) {
                continue;
            }
            for relid in self.concerned(dataflow) {
                match trouble.clone() {
                    Trouble::Changed => self.set_phase(relid, Phase::waiting()),
                    Trouble::Problem(problem) => self.fail(relid, problem, Heals::OnDdl),
                }
            }
        }
        inval::accept();
        while inval::is_pending() {
            self.reload(inval::take());
        }
        self.follow_roles();
        self.attach_due();
    }

    /// The view whose dataflow it is, or those that read it if it is an index, and the views above them.
    pub(super) fn concerned(&self, dataflow: DataflowId) -> Vec<ViewId> {
        let own = self.dataflows.get(&dataflow).copied();
        let mut concerned = self.indexes.readers(dataflow);
        concerned.extend(own);
        let above: Vec<_> = concerned.iter().map(|view| self.stack.all_above(*view)).collect();
        concerned.extend(above.into_iter().flatten());
        concerned.into_iter().collect()
    }

    /// From now on the others are written without this view, until it has come to their point.
    pub(super) fn set_aside(&mut self, relid: ViewId, why: Why) {
        if let Some(attachment) = self.views.get_mut(&relid).and_then(View::attachment) {
            attachment.set_aside(why);
        }
    }

    /// Puts a view into another phase; a dataflow it had is dropped, and so is what it was before it was replaced.
    pub(super) fn set_phase(&mut self, relid: ViewId, phase: Phase) {
        self.take_former(relid);
        self.drop_present(relid, phase);
    }

    /// The same, but what it was serves on.
    pub(super) fn drop_present(&mut self, relid: ViewId, phase: Phase) {
        let Some(view) = self.views.get_mut(&relid) else { return };
        let dataflow = match std::mem::replace(&mut view.phase, phase) {
            Phase::Reading(reading) => reading.dataflow,
            Phase::Attached(attachment) => attachment.dataflow,
            Phase::Waiting { .. } | Phase::Failed { .. } => return,
        };
        self.forget_dataflow(dataflow);
        self.indexes.parts.forget(relid);
        markers::end(relid, Work::Batch);
        markers::end(relid, Work::Attach);
        for above in self.stack.take(relid) {
            self.set_phase(above, Phase::waiting());
        }
    }

    /// The dataflow of a view ends, which has been fed and may read indexes.
    pub(super) fn forget_dataflow(&mut self, dataflow: DataflowId) {
        self.drop_dataflow(dataflow);
        self.capture.remove(dataflow);
        self.release_indexes(dataflow);
    }

    /// Nobody wants to know more of a dataflow.
    pub(super) fn drop_dataflow(&mut self, dataflow: DataflowId) {
        self.dataflows.remove(&dataflow);
        self.sort_keys.remove(&dataflow);
        if let Some(engine) = self.engine.get_mut() {
            engine.drop_dataflow(dataflow);
        }
    }

    /// A view cannot be maintained.
    pub(super) fn fail(&mut self, relid: ViewId, problem: Problem, heals: Heals) {
        if let Some(view) = self.views.get_mut(&relid) {
            // A view that was dropped just now is no problem.
            let is_news = view.last_problem.as_ref() != Some(&problem);
            if is_news && problem.sqlstate != SqlState::UNDEFINED_OBJECT {
                let Problem { sqlstate, message, .. } = &problem;
                pgrx::log!("pg_eddy: view {} is in error: {sqlstate}: {message}", view.name);
                view.last_problem = Some(problem.clone());
            }
        }
        self.set_phase(relid, Phase::Failed { problem, heals, again: None });
        self.wake_above(relid);
    }

    /// Takes over changed settings; a changed engine starts afresh, and so do all views.
    fn take_settings(&mut self) {
        let settings = settings::engine();
        if settings == self.settings {
            return;
        }
        self.capture.set_limits(limits(&settings));
        self.settings = settings;
        self.views.values_mut().for_each(|view| view.spills = false);
        self.start_afresh(|_| Some(Phase::waiting()));
        if self.engine.end() {
            pgrx::log!("pg_eddy: settings changed, starting all views of this database afresh");
        }
    }

    /// Puts all views into another phase, or those that are to be in one, and forgets what there is of dataflows.
    pub(super) fn start_afresh(&mut self, phase_after: impl Fn(&Phase) -> Option<Phase>) {
        let phases: Vec<(ViewId, Phase)> = self
            .views
            .values()
            .filter_map(|view| Some((view.relid, phase_after(&view.phase)?)))
            .collect();
        for (relid, phase) in phases {
            self.set_phase(relid, phase);
        }
        self.indexes = Indexes::new(&self.settings);
        shared_indexes::free_all(process::database());
        // Threads of the engine that wait for their answers could not end.
        self.tend_assistants();
    }

    /// The extension is gone: so is this process.
    pub(super) fn leave(&mut self) -> ! {
        pgrx::log!("pg_eddy: the extension was dropped, worker leaves");
        shared::remove_views(process::database(), |_| false);
        shared_indexes::free_all(process::database());
        self.decoder.give_up();
        self.database.set_state(DatabaseState::NoExtension);
        process::exit(0)
    }
}

/// What may be held of transactions that run.
fn limits(settings: &EngineSettings) -> Limits {
    Limits::new(settings.memory_limit, settings.spill())
}

/// Adds the time that `work` takes to a counter of microseconds.
pub(super) fn timed<T>(counter: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    counter.fetch_add(start.elapsed().as_micros() as u64, Relaxed);
    result
}
