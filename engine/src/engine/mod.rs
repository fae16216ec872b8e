//! What the caller has: one [`Engine`] with a dataflow per view; the [`Embedded`] one has each on threads of its own.
//!
//! So the operating system shares the processors out among views, and a view that is costly, stuck or lost by a
//! panic delays no other one. What is common to all is memory: whoever finds it short stops a dataflow (see
//! [`crate::core::monitor`]).

mod gathered;
mod indexes;
mod interface;
mod links;
mod running;
mod state;
mod threads;
mod tidy;
mod watched_stream;
mod worker;

use crate::core::config::Config;
use crate::core::monitor::{Dataflow, Keeps, Shared};
use crate::core::peers::Peers;
use crate::core::report::Report;
use crate::core::response::{DataflowStats, Response, StopReason};
use crate::core::updates::{DataflowId, Time, Updates};
use crate::render::{as_computed, Form, Index, SPILLING_LOOPS};
use crate::spill::remove_leftovers;
use indexes::Indexes;
use links::{Input, Links};
use plan::row::Row;
use plan::{SourceId, ViewPlan};
use running::Running;
use state::State;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::time::Duration;
use tidy::Tidying;
use worker::Work;

pub use gathered::Gathered;
pub use indexes::Read;
pub use interface::{Checkpoints, Engine};
pub use running::share_of;

/// How long whoever drops an engine waits for its memory to come back.
const FAREWELL: Duration = Duration::from_secs(1);

/// An engine whose threads are those of this process.
pub struct Embedded {
    config: Config,
    shared: Arc<Shared>,
    _tidying: Tidying,
    reports: Receiver<Report>,
    /// Closed when the last thread has ended.
    threads: Receiver<()>,
    dataflows: BTreeMap<DataflowId, Running>,
    /// Which of them has an instance's number, for all that came of it is told by that.
    instances: HashMap<u64, DataflowId>,
    /// Those of which there may be something to tell since the last poll.
    news: BTreeSet<DataflowId>,
    /// Of the dataflows those that are indexes, and who reads them.
    indexes: Indexes,
    links: Links,
    next_instance: u64,
    /// The time of the last `advance`.
    advanced: Time,
    /// Reports turned into responses that need no frontier.
    ready: Vec<Response>,
}

impl Embedded {
    /// An engine without dataflows, and so without threads.
    pub fn start(config: Config) -> Embedded {
        Embedded::start_with(config, None)
    }

    /// One of several engines over which each dataflow is spread. All are told the same in the same order, but for the updates, of which
    /// each gets a share: equal rows always go to the same engine ([`crate::share_of`]), and all [are told](Embedded::note_fed) that
    /// there are some. What one puts out is a share, too.
    pub fn start_among(config: Config, peers: Arc<dyn Peers>) -> Embedded {
        Embedded::start_with(config, Some(peers))
    }

    fn start_with(config: Config, peers: Option<Arc<dyn Peers>>) -> Embedded {
        let (report_sender, reports) = channel();
        let (alive, threads) = channel();
        if let Some(spill) = &config.spill {
            // What cannot be removed does no harm but to take space; writing there will say why.
            let _ = remove_leftovers(&spill.directory);
        }
        let shared = Arc::new(Shared::new(&config, peers, report_sender, alive));
        let tidying = tidy::start(Arc::clone(&config.thread_start));
        Embedded {
            config,
            shared,
            _tidying: tidying,
            reports,
            threads,
            dataflows: BTreeMap::new(),
            instances: HashMap::new(),
            news: BTreeSet::new(),
            indexes: Indexes::default(),
            links: Links::default(),
            next_instance: 0,
            advanced: 0,
            ready: Vec::new(),
        }
    }

    /// Installs a dataflow whose inputs are empty before `as_of`. Updates with earlier times count as of it.
    pub fn create_dataflow(&mut self, id: DataflowId, plan: &ViewPlan, as_of: Time) {
        let plan = as_computed(plan, self.shared.all_workers(), true);
        self.create_reading(id, (&plan, Form::of(&plan)), &[], as_of);
    }

    /// Updates with times up to `latest` were fed to a dataflow, if not here then to others of several engines.
    pub fn note_fed(&mut self, id: DataflowId, latest: Time) {
        if self.dataflows.get_mut(&id).is_some_and(|running| running.note_fed(Some(latest))) {
            self.note_fed_above(id, Some(latest));
        }
    }

    /// All that was polled of all dataflows together is complete before this time.
    pub fn frontier(&self) -> Time {
        let told = self.dataflows.values().map(|running| running.told()).min();
        told.unwrap_or(self.advanced)
    }

    fn keeps(&self, plan: &ViewPlan, spills: bool) -> Keeps {
        let can_spill = self.shared.spill.is_some() && plan.root.nested_loops() <= SPILLING_LOOPS;
        match (can_spill, spills) {
            (false, _) => Keeps::InMemory,
            (true, false) => Keeps::InMemoryForNow,
            (true, true) => Keeps::OnDisk,
        }
    }

    fn start_dataflow(&mut self, id: DataflowId, work: &Work, keeps: Keeps, as_of: Time) {
        self.start_with_state(id, work, keeps, (as_of, None));
    }

    fn start_with_state(
        &mut self,
        id: DataflowId,
        work: &Work,
        keeps: Keeps,
        (as_of, state): (Time, Option<State>),
    ) {
        let workers = self.shared.workers;
        let number = self.next_instance;
        let dataflow = Arc::new(Dataflow::new(id, number, as_of, workers, keeps));
        self.instances.insert(number, id);
        self.next_instance += 1;
        self.shared.register(&dataflow);
        let work = (work, state);
        let running = Running::start(&self.shared, &self.config, (dataflow, number), work, as_of);
        self.dataflows.insert(id, running);
        self.tell(id, self.advanced);
    }

    /// An index that a dataflow was to read was stopped before.
    fn stop_unstarted(&mut self, id: DataflowId) {
        // Others, of several engines, may have it still.
        self.next_instance += 1;
        self.ready.push(Response::Stopped { dataflow: id, reason: StopReason::IndexGone });
        (self.config.waker)();
    }

    fn remove(&mut self, id: DataflowId) {
        self.links.remove(id);
        if let Some(running) = self.dataflows.remove(&id) {
            self.instances.remove(&running.dataflow.instance);
            // Nobody wants to know what it asked.
            let is_of =
                |response: &Response| matches!(response, Response::Evaluate(e) if e.dataflow == id);
            self.ready.retain(|response| !is_of(response));
        }
    }

    /// Tells the dataflows that read an index, or what this one puts out, that something may come to them.
    fn note_fed_above(&mut self, id: DataflowId, latest: Option<Time>) {
        let readers = self.indexes.readers(id).into_iter();
        for reader in readers.chain(self.links.above(id)).collect::<Vec<_>>() {
            if self.dataflows.get_mut(&reader).is_some_and(|reader| reader.note_fed(latest)) {
                self.note_fed_above(reader, latest);
            }
        }
    }

    /// Tells a dataflow that nothing more comes before `time`; answers whether its threads have anything to do about it.
    fn tell(&mut self, id: DataflowId, time: Time) -> bool {
        let Some(running) = self.dataflows.get_mut(&id) else { return false };
        self.news.insert(id);
        let has_news = running.advance(time);
        if running.is_told_of(time) {
            // It waits for those, also where nothing came to them.
            self.tell_beneath(id, time);
        }
        has_news
    }

    /// The same for the indexes and the dataflows that it reads, and so on.
    fn tell_beneath(&mut self, id: DataflowId, time: Time) {
        let indexes = self.indexes.read_by(id);
        for beneath in indexes.into_iter().chain(self.links.beneath(id)).collect::<Vec<_>>() {
            let Some(running) = self.dataflows.get_mut(&beneath) else { continue };
            if !running.is_told_of(time) {
                self.news.insert(beneath);
                running.tell(time);
                self.tell_beneath(beneath, time);
            }
        }
    }

    fn receive_all(&mut self) {
        while let Ok(report) = self.reports.try_recv() {
            self.receive(report);
        }
    }

    fn receive(&mut self, report: Report) {
        match report {
            Report::Output { instance, worker, oks, errs, times, frontier } => {
                let Some(running) = self.running(instance) else { return };
                let id = running.dataflow.id;
                for (above, source, updates) in self.links.pass_on(id, worker, &oks) {
                    self.update(above, source, updates);
                }
                if let Some(running) = self.dataflows.get_mut(&id) {
                    self.news.insert(id);
                    running.receive(worker, (oks, errs), times, frontier);
                }
            }
            Report::Connected { instance, worker, reader } => {
                let ids = (self.instances.get(&instance), self.instances.get(&reader.0));
                if let (Some(beneath), Some(above)) = ids {
                    self.links.note_known(*beneath, (*above, reader.1), worker);
                    self.dataflows[above].catch_up(worker, reader.1);
                }
            }
            Report::Saved { instance, outcome } => {
                let Some(running) = self.running(instance) else { return };
                if let Some(outcome) = running.note_saved(outcome) {
                    let dataflow = running.dataflow.id;
                    self.ready.push(Response::Saved { dataflow, outcome });
                }
            }
            Report::Stopped { instance, reason } => {
                if let Some(id) = self.running(instance).map(|running| running.dataflow.id) {
                    // What reads an index has nothing to go on with.
                    for dataflow in self.indexes.all_readers(id).into_iter().chain([id]) {
                        self.drop_dataflow(dataflow);
                        let reason = reason.clone();
                        self.ready.push(Response::Stopped { dataflow, reason });
                    }
                }
            }
            Report::Evaluate { instance, evaluation } => {
                // Of a dataflow that is gone: its thread learns that nobody answers.
                if self.running(instance).is_some() {
                    self.ready.push(Response::Evaluate(evaluation));
                }
            }
        }
    }

    fn running(&mut self, instance: u64) -> Option<&mut Running> {
        self.dataflows.get_mut(self.instances.get(&instance)?)
    }
}

impl Checkpoints for Embedded {
    fn create_kept(
        &mut self,
        id: DataflowId,
        (plan, form): (&ViewPlan, Form),
        from: Option<&Path>,
        as_of: Time,
    ) {
        self.drop_dataflow(id);
        let work = Work::View { plan: Arc::new(plan.clone()), form, imports: Arc::new([]) };
        let state = State::of((plan, form), from);
        self.start_with_state(id, &work, self.keeps(plan, false), (as_of, Some(state)));
    }

    fn save(&mut self, id: DataflowId, path: &Path) {
        match self.dataflows.get_mut(&id) {
            Some(running) => running.save(path),
            None => {
                let outcome = Err("there is no such dataflow".into());
                self.ready.push(Response::Saved { dataflow: id, outcome });
            }
        }
    }
}

impl Engine for Embedded {
    fn create_reading(
        &mut self,
        id: DataflowId,
        (plan, form): (&ViewPlan, Form),
        reads: &[Read],
        as_of: Time,
    ) {
        self.drop_dataflow(id);
        let Some(imports) = self.indexes.read(id, (plan, form), reads, as_of) else {
            return self.stop_unstarted(id);
        };
        let work = Work::View { plan: Arc::new(plan.clone()), form, imports: imports.into() };
        self.start_dataflow(id, &work, self.keeps(plan, false), as_of);
    }

    fn create_index(&mut self, id: DataflowId, index: &Index, reads: &[Read], as_of: Time) {
        self.drop_dataflow(id);
        let imports = index.made_by.as_ref().map_or_else(
            || Some(Vec::new()),
            |plan| self.indexes.read(id, (plan, index.form), reads, as_of),
        );
        let Some(imports) = imports else { return self.stop_unstarted(id) };
        let exports = self.indexes.add(id, index, self.shared.workers);
        let keeps = match self.shared.spill {
            Some(_) => Keeps::InMemoryForNow,
            None => Keeps::InMemory,
        };
        let index = Arc::new(index.clone());
        let work = Work::Index { index, imports: imports.into(), exports };
        self.start_dataflow(id, &work, keeps, as_of);
    }

    fn create_spilling_dataflow(&mut self, id: DataflowId, plan: &ViewPlan, as_of: Time) {
        self.drop_dataflow(id);
        let keeps = self.keeps(plan, true);
        let plan = as_computed(plan, self.shared.all_workers(), true).into_owned();
        let form = Form::of(&plan);
        let work = Work::View { plan: Arc::new(plan), form, imports: Arc::new([]) };
        self.start_dataflow(id, &work, keeps, as_of);
    }

    fn set_owner(&mut self, id: DataflowId, owner: u32) {
        if let Some(running) = self.dataflows.get(&id) {
            running.dataflow.set_owner(owner);
        }
    }

    fn keep_times(&mut self, id: DataflowId) {
        if let Some(running) = self.dataflows.get(&id) {
            running.dataflow.keep_times();
        }
    }

    fn drop_dataflow(&mut self, id: DataflowId) {
        for unread in self.indexes.release(id) {
            self.remove(unread);
        }
        if !self.indexes.is_read(id) {
            self.remove(id);
        }
    }

    fn update(&mut self, id: DataflowId, source: SourceId, updates: Updates<Row>) {
        let Some(running) = self.dataflows.get(&id) else { return };
        let updates = running.wanted(source, updates);
        if updates.is_empty() {
            return;
        }
        self.note_fed_above(id, running::latest(&updates));
        if let Some(running) = self.dataflows.get_mut(&id) {
            running.update(source, updates);
        }
    }

    fn connect(
        &mut self,
        beneath: DataflowId,
        (above, source): (DataflowId, SourceId),
        columns: Vec<usize>,
        unfed: &Updates<Row>,
    ) {
        let Some((lower, upper)) = self.dataflows.get(&beneath).zip(self.dataflows.get(&above))
        else {
            return;
        };
        let input = Input { source, columns, as_of: upper.as_of() };
        let mut updates = input.take(unfed);
        updates.extend(input.take(lower.untold()));
        lower.connect(upper, &input);
        self.links.add(beneath, above, input, self.shared.workers);
        self.update(above, source, updates);
    }

    fn checkpoints(&mut self) -> Option<&mut dyn Checkpoints> {
        // Of several engines each has but a share.
        match self.shared.peers {
            None => Some(self),
            Some(_) => None,
        }
    }

    fn is_memory_short(&self) -> bool {
        self.shared.is_memory_short()
    }

    fn wait_for_room(&self, id: DataflowId, timeout: Duration) -> bool {
        let Some(running) = self.dataflows.get(&id) else { return true };
        if !self.is_memory_short() {
            return true;
        }
        running.dataflow.unpark_workers();
        running.dataflow.queued.wait(timeout)
    }

    fn truncate(&mut self, id: DataflowId, source: SourceId, time: Time) {
        self.note_fed_above(id, Some(time));
        if let Some(running) = self.dataflows.get_mut(&id) {
            running.truncate(source, time);
        }
    }

    fn advance_dataflow(&mut self, id: DataflowId, time: Time) {
        if self.dataflows.contains_key(&id) && !self.tell(id, time) {
            // No thread has anything to do: the new frontier can be polled at once.
            (self.config.waker)();
        }
    }

    fn advance(&mut self, time: Time) {
        self.advanced = self.advanced.max(time);
        let mut is_anyone_idle = self.dataflows.is_empty();
        for id in self.dataflows.keys().copied().collect::<Vec<_>>() {
            is_anyone_idle |= !self.tell(id, time);
        }
        if is_anyone_idle {
            (self.config.waker)();
        }
    }

    fn poll(&mut self) -> Vec<Response> {
        self.receive_all();
        // Stopped dataflows first: whoever waits for all does not wait for them.
        let mut responses = std::mem::take(&mut self.ready);
        for id in std::mem::take(&mut self.news) {
            if let Some(running) = self.dataflows.get_mut(&id) {
                responses.append(&mut running.take_complete(self.shared.output));
            }
        }
        responses
    }

    fn stats(&self, id: DataflowId) -> DataflowStats {
        self.dataflows.get(&id).map(|running| running.dataflow.stats()).unwrap_or_default()
    }

    fn allocated(&self) -> usize {
        crate::memory::allocated()
    }

    fn rows_of_index(&self, id: DataflowId) -> usize {
        self.indexes.rows(id)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.dataflows.clear();
        // A thread that waits for an answer waits no more.
        self.reports = channel().1;
        self.ready.clear();
        self.shared.dismiss();
        // A thread in the middle of something costly ends later, by itself.
        let _ = self.threads.recv_timeout(FAREWELL);
    }
}
