//! The host's side: starts the threads, routes updates to workers, merges their output.

use crate::monitor::{Dataflow, Keeps, Shared};
use crate::output::{move_to_last, Report, CLOSED};
use crate::render::SPILLING_LOOPS;
use crate::spill::remove_leftovers;
use crate::worker::{self, Command};
use crate::{Config, DataflowId, DataflowStats, Evaluation, OutputForm, Response, Time, Updates};
use differential_dataflow::consolidation::consolidate_updates;
use planner::error::DataError;
use planner::plan::{SourceId, ViewPlan};
use planner::row::Row;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use timely::communication::allocator::ProcessBuilder;
use timely::communication::initialize::Hooks;

/// Stack of a worker thread: plans are rendered, and expressions evaluated, by recursion.
const STACK_BYTES: usize = 64 << 20;

/// Updates in one call from which it pays to wake the workers before the time is complete.
const WAKE_EARLY: usize = 4096;

/// Handle to a running engine. Dropping it stops and joins the threads.
pub struct Engine {
    shared: Arc<Shared>,
    commands: Vec<Sender<Command>>,
    threads: Vec<JoinHandle<()>>,
    reports: Receiver<Report>,
    waker: Arc<dyn Fn() + Send + Sync>,
    dataflows: BTreeMap<DataflowId, Hosted>,
    next_instance: u64,
    /// The time of the last `advance`.
    advanced: Time,
    /// The frontier reported last.
    frontier: Option<Time>,
    /// Reports turned into responses that need no frontier.
    ready: Vec<Response>,
}

/// A dataflow as the host knows it.
struct Hosted {
    dataflow: Arc<Dataflow>,
    sources: usize,
    /// Per worker, the frontier of its output.
    frontiers: Vec<Time>,
    /// Time to which the inputs were advanced; lags behind while no updates come.
    fed_to: Time,
    /// Times fed since then are before this one; `None` if nothing was fed.
    fed_before: Option<Time>,
    oks: Updates<Row>,
    errs: Updates<DataError>,
    /// When rows changed.
    times: Vec<Time>,
}

impl Hosted {
    /// Updates with times up to `latest` were fed.
    fn note_fed(&mut self, latest: Option<Time>) {
        let before = latest.map(|latest| latest.saturating_add(1));
        self.fed_before = self.fed_before.max(before);
    }

    /// The different times before `frontier` at which rows changed, on whichever worker.
    fn take_times(&mut self, frontier: Time) -> Vec<Time> {
        self.times.sort_unstable();
        self.times.dedup();
        let later = self.times.partition_point(|time| *time < frontier);
        let rest = self.times.split_off(later);
        std::mem::replace(&mut self.times, rest)
    }

    /// Output is complete before this time, given that all updates before `advanced` were fed.
    fn complete_to(&self, advanced: Time) -> Time {
        let done = self.frontiers.iter().copied().min().unwrap_or(CLOSED);
        if done >= self.fed_to {
            advanced
        } else {
            done
        }
    }
}

impl Engine {
    /// Starts the worker threads.
    ///
    /// # Panics
    /// When the operating system refuses to start a thread.
    pub fn start(config: Config) -> Engine {
        let workers = config.workers.max(1);
        let (report_sender, reports) = channel();
        if let Some(spill) = &config.spill {
            // What cannot be removed does no harm but to take space; writing there will say why.
            let _ = remove_leftovers(&spill.directory);
        }
        let shared = Arc::new(Shared::new(&config, report_sender));
        let hooks = Hooks::default();
        let builders = ProcessBuilder::new_typed_vector(workers, hooks.refill, hooks.spill);
        let mut commands = Vec::with_capacity(workers);
        let mut threads = Vec::with_capacity(workers);
        for (index, builder) in builders.into_iter().enumerate() {
            let (sender, receiver) = channel();
            let shared = Arc::clone(&shared);
            let thread_start = Arc::clone(&config.thread_start);
            let thread = std::thread::Builder::new()
                .name(format!("engine-{index}"))
                .stack_size(STACK_BYTES)
                .spawn(move || worker::run(builder, receiver, shared, thread_start))
                .expect("the operating system starts a thread");
            commands.push(sender);
            threads.push(thread);
        }
        shared.set_threads(threads.iter().map(|thread| thread.thread().clone()).collect());
        Engine {
            shared,
            commands,
            threads,
            reports,
            waker: config.waker,
            dataflows: BTreeMap::new(),
            next_instance: 0,
            advanced: 0,
            frontier: None,
            ready: Vec::new(),
        }
    }

    /// Installs a dataflow whose inputs are empty before `as_of`. Updates to it must have times `>= as_of`.
    pub fn create_dataflow(&mut self, id: DataflowId, plan: &ViewPlan, as_of: Time) {
        self.create(id, plan, as_of, false);
    }

    /// As [`Engine::create_dataflow`], but its state goes to disk while memory is short. It is slower,
    /// also while it is not. Without [`Config::spill`], or where recursion is nested deeper than two, it is
    /// like any other.
    pub fn create_spilling_dataflow(&mut self, id: DataflowId, plan: &ViewPlan, as_of: Time) {
        self.create(id, plan, as_of, true);
    }

    fn create(&mut self, id: DataflowId, plan: &ViewPlan, as_of: Time, spills: bool) {
        self.drop_dataflow(id);
        let workers = self.shared.workers;
        let can_spill = self.shared.spill.is_some() && plan.root.nested_loops() <= SPILLING_LOOPS;
        let keeps = match (can_spill, spills) {
            (false, _) => Keeps::InMemory,
            (true, false) => Keeps::InMemoryForNow,
            (true, true) => Keeps::OnDisk,
        };
        let dataflow = Arc::new(Dataflow::new(id, self.next_instance, as_of, workers, keeps));
        self.next_instance += 1;
        self.shared.register(&dataflow);
        let plan = Arc::new(plan.clone());
        self.send_all(|| Command::Create {
            dataflow: Arc::clone(&dataflow),
            plan: Arc::clone(&plan),
            as_of,
        });
        let hosted = Hosted {
            dataflow,
            sources: plan.sources.len(),
            frontiers: vec![as_of; workers],
            fed_to: as_of,
            // Constants make output at `as_of` without any update.
            fed_before: Some(as_of),
            oks: Vec::new(),
            errs: Vec::new(),
            times: Vec::new(),
        };
        self.dataflows.insert(id, hosted);
        self.shared.unpark_workers();
    }

    /// Removes a dataflow and its state.
    pub fn drop_dataflow(&mut self, id: DataflowId) {
        if let Some(hosted) = self.dataflows.remove(&id) {
            self.shared.unregister(&hosted.dataflow);
            self.send_all(|| Command::Drop { id });
            self.shared.unpark_workers();
        }
    }

    /// Feeds updates of one source. Times must not be before the last `advance`. Unknown or stopped
    /// dataflows are ignored.
    pub fn update(&mut self, id: DataflowId, source: SourceId, updates: Updates<Row>) {
        let Some(hosted) = self.dataflows.get_mut(&id) else { return };
        if updates.is_empty() || source.0 >= hosted.sources {
            return;
        }
        hosted.note_fed(updates.iter().map(|(_, time, _)| *time).max());
        self.shared.queued.add(updates.len());
        let wake = updates.len() >= WAKE_EARLY;
        let workers = self.commands.len();
        if workers == 1 {
            self.send(0, Command::Update { id, source, updates });
        } else {
            let mut shares: Vec<Updates<Row>> = vec![Vec::new(); workers];
            for update in updates {
                let mut hasher = DefaultHasher::new();
                update.0.hash(&mut hasher);
                let share = hasher.finish() as usize % workers;
                shares[share].push(update);
            }
            for (worker, updates) in shares.into_iter().enumerate() {
                if !updates.is_empty() {
                    self.send(worker, Command::Update { id, source, updates });
                }
            }
        }
        if wake {
            self.shared.unpark_workers();
        }
    }

    /// Waits, if memory is short, until the dataflows have taken most of what was fed, at most for `timeout`;
    /// answers whether they have. Whoever feeds more than fits into memory asks for it in between.
    pub fn wait_for_room(&self, timeout: Duration) -> bool {
        if !self.shared.is_memory_short() {
            return true;
        }
        self.shared.unpark_workers();
        self.shared.queued.wait(timeout)
    }

    /// Retracts, at `time`, all rows that `source` holds before `time` (TRUNCATE). Updates at `time`
    /// fed afterwards are not retracted; updates at `time` fed before are. Truncations of one source
    /// must be fed in the order of their times.
    pub fn truncate(&mut self, id: DataflowId, source: SourceId, time: Time) {
        let Some(hosted) = self.dataflows.get_mut(&id) else { return };
        if source.0 < hosted.sources {
            hosted.note_fed(Some(time));
            self.send_all(|| Command::Truncate { id, source, time });
        }
    }

    /// Promises that no further update has a time before `time`, for any dataflow.
    pub fn advance(&mut self, time: Time) {
        if time <= self.advanced {
            return;
        }
        self.advanced = time;
        let mut ids = Vec::new();
        for (id, hosted) in &mut self.dataflows {
            if hosted.fed_before.is_some() && hosted.fed_to < time {
                // What was fed ahead of `time` is to be told of later advances.
                hosted.fed_before = hosted.fed_before.filter(|before| *before > time);
                hosted.fed_to = time;
                hosted.dataflow.set_fed_to(time);
                ids.push(*id);
            }
        }
        if ids.is_empty() {
            // No thread has anything to do: the new frontier can be polled at once.
            (self.waker)();
        } else {
            let ids: Arc<[DataflowId]> = ids.into();
            self.send_all(|| Command::Advance { ids: Arc::clone(&ids), time });
            self.shared.unpark_workers();
        }
    }

    /// What worker threads wait for, for a host that cannot poll now.
    pub fn take_evaluations(&mut self) -> Vec<Evaluation> {
        self.receive_all();
        let mut evaluations = Vec::new();
        for response in std::mem::take(&mut self.ready) {
            match response {
                Response::Evaluate(evaluation) => evaluations.push(evaluation),
                other => self.ready.push(other),
            }
        }
        evaluations
    }

    /// What has happened since the last poll; never blocks.
    pub fn poll(&mut self) -> Vec<Response> {
        self.receive_all();
        let advanced = self.advanced;
        let complete = self.dataflows.values().map(|hosted| hosted.complete_to(advanced)).min();
        let frontier = complete.unwrap_or(advanced);
        // Stopped dataflows first: the frontier that follows no longer waits for them.
        let mut responses = std::mem::take(&mut self.ready);
        // Net updates are of all times up to some `advance`: none may be torn by a frontier.
        let is_whole = self.shared.output == OutputForm::ByTime || frontier == advanced;
        if is_whole && self.frontier.is_none_or(|reported| reported < frontier) {
            let workers = self.commands.len();
            for (id, hosted) in &mut self.dataflows {
                let times = hosted.take_times(frontier);
                let mut oks = take_before(&mut hosted.oks, frontier);
                let mut errs = take_before(&mut hosted.errs, frontier);
                // Reports are consolidated each for itself; workers report apart, and as times complete.
                let mut is_mixed = workers > 1;
                if self.shared.output == OutputForm::Net {
                    is_mixed |= move_to_last(&mut oks, &times);
                }
                if is_mixed {
                    consolidate_updates(&mut oks);
                    consolidate_updates(&mut errs);
                }
                if !oks.is_empty() || !errs.is_empty() || !times.is_empty() {
                    responses.push(Response::Deltas { dataflow: *id, oks, errs, times });
                }
            }
            self.frontier = Some(frontier);
            responses.push(Response::Frontier(frontier));
        }
        responses
    }

    /// Latest known figures of a dataflow.
    pub fn stats(&self, id: DataflowId) -> DataflowStats {
        self.dataflows.get(&id).map(|hosted| hosted.dataflow.stats()).unwrap_or_default()
    }

    fn receive_all(&mut self) {
        while let Ok(report) = self.reports.try_recv() {
            self.receive(report);
        }
    }

    fn receive(&mut self, report: Report) {
        match report {
            Report::Output { instance, worker, oks, errs, times, frontier } => {
                if let Some(hosted) = self.hosted(instance) {
                    hosted.frontiers[worker] = frontier;
                    append(&mut hosted.oks, oks);
                    append(&mut hosted.errs, errs);
                    hosted.times.extend(times);
                }
            }
            Report::Stopped { instance, reason } => {
                if let Some(id) = self.hosted(instance).map(|hosted| hosted.dataflow.id) {
                    // It stays registered until all workers have removed it: its memory is to come back.
                    self.dataflows.remove(&id);
                    self.ready.push(Response::Stopped { dataflow: id, reason });
                }
            }
            Report::Evaluate(evaluation) => self.ready.push(Response::Evaluate(evaluation)),
            Report::Panicked { message } => self.ready.push(Response::Panicked { message }),
        }
    }

    fn hosted(&mut self, instance: u64) -> Option<&mut Hosted> {
        self.dataflows.values_mut().find(|hosted| hosted.dataflow.instance == instance)
    }

    fn send(&self, worker: usize, command: Command) {
        // A thread that is gone has reported why.
        let _ = self.commands[worker].send(command);
    }

    fn send_all(&self, command: impl Fn() -> Command) {
        for worker in 0..self.commands.len() {
            self.send(worker, command());
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.shutdown.store(true, Ordering::Release);
        // A thread that waits for an answer waits no more.
        self.reports = channel().1;
        self.ready.clear();
        self.shared.unpark_workers();
        for thread in self.threads.drain(..) {
            // A panic of the thread has been caught and reported inside it.
            let _ = thread.join();
        }
    }
}

fn append<D>(all: &mut Updates<D>, mut more: Updates<D>) {
    if all.is_empty() {
        *all = more;
    } else {
        all.append(&mut more);
    }
}

/// Takes updates with times before `frontier`.
fn take_before<D>(all: &mut Updates<D>, frontier: Time) -> Updates<D> {
    if all.iter().all(|(_, time, _)| *time < frontier) {
        std::mem::take(all)
    } else {
        let (ready, later) =
            std::mem::take(all).into_iter().partition(|(_, time, _)| *time < frontier);
        *all = later;
        ready
    }
}
