//! The loop of one worker thread: take commands, step the dataflow, park when there is nothing to do.

use super::links::Input;
use super::state::{path_of, State};
use super::threads::{Build, Start};
use crate::checkpoint::{building, Parts, Saving, Target};
use crate::core::asker;
use crate::core::diff::take_overflow;
use crate::core::monitor::{Dataflow, Guard, Shared, Stopped};
use crate::core::readers::{self, PutOut, Reader};
use crate::core::report::Report;
use crate::core::response::StopReason;
use crate::core::updates::{Time, Updates};
use crate::render::{
    own_sources, render_index, render_view, sources_of_index, wanted_rows, Exports, Feed, Form,
    Import, Index, INPUT_PART,
};
use plan::row::Row;
use plan::{Mfp, SourceId, ViewPlan};
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use timely::communication::Allocator;
use timely::worker::Worker;

/// What timely says when a thread that sends or receives has lost another process.
const CHANNEL_LOST: &str = "MergeQueue poisoned";

/// Updates of another dataflow's output that are taken over at a time.
const CHUNK: usize = 1 << 14;

/// What the threads of a dataflow are asked to do. All get the same commands in the same order, except
/// that each gets only its share of the updates.
pub(crate) enum Command {
    Update {
        source: SourceId,
        updates: Updates<Row>,
    },
    Truncate {
        source: SourceId,
        time: Time,
    },
    Advance {
        time: Time,
    },
    /// What another dataflow has put out, which is complete before a time: nothing more comes to the input's source before what
    /// is earlier, this time or what all sources are advanced to.
    PutOut {
        input: Arc<Input>,
        output: Arc<PutOut>,
        frontier: Time,
    },
    /// What the other dataflow had put out before it knew of this one has come, too: until then the source stays where it starts.
    CaughtUp {
        source: SourceId,
    },
    /// Another dataflow is to get what is put out from now on.
    Connect(Reader),
    /// The state is to be written to a file under that path.
    Save {
        path: PathBuf,
    },
}

/// What a dataflow computes.
#[derive(Clone)]
pub(crate) enum Work {
    View { plan: Arc<ViewPlan>, form: Form, imports: Arc<[Import]> },
    Index { index: Arc<Index>, imports: Arc<[Import]>, exports: Exports },
}

impl Work {
    /// How many sources it has.
    pub(crate) fn sources(&self) -> usize {
        match self {
            Work::View { plan, .. } => plan.sources.len(),
            Work::Index { index, imports, .. } => sources_of_index(index, imports).0,
        }
    }

    /// By source, which rows it has a use for, if not for all.
    pub(crate) fn wanted_rows(&self) -> BTreeMap<SourceId, Mfp> {
        match self {
            Work::View { plan, .. } => wanted_rows(plan),
            Work::Index { index, .. } => {
                index.made_by.as_ref().map(wanted_rows).unwrap_or_default()
            }
        }
    }

    /// Whether it reads sources beside what indexes answer.
    pub(crate) fn has_inputs(&self) -> bool {
        match self {
            Work::View { plan, imports, .. } => {
                imports.is_empty() || !own_sources(plan, imports).is_empty()
            }
            Work::Index { index, imports, .. } => !sources_of_index(index, imports).1.is_empty(),
        }
    }
}

/// Runs a dataflow until it is stopped, which a panic does too.
pub(super) fn run(build: Build, commands: Receiver<Command>, start: Start) {
    let (shared, dataflow) = (Arc::clone(&start.shared), Arc::clone(&start.dataflow));
    // As long as this lives the thread counts as one that may hold memory.
    let _alive = shared.alive();
    let _account = dataflow.account.enter();
    let mut running = None;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        (start.thread_start)(start.dataflow.id);
        asker::start(Arc::clone(&start.shared), &start.dataflow);
        let running = running.insert(WorkerLoop::new(build(), commands, start));
        running.run();
    }));
    if let Some(payload) = outcome.err().filter(|payload| !payload.is::<Stopped>()) {
        let message = panic_message(payload.as_ref());
        let reason = match shared.peers.is_some() && message.starts_with(CHANNEL_LOST) {
            true => StopReason::NotConnected { message },
            false => StopReason::Failed { message },
        };
        shared.stop(&dataflow, reason);
    }
    dataflow.queued.close();
    // What a panic has left half done may panic once more on its way out: not while unwinding.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(running)));
    dataflow.set_removed();
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("worker thread panicked").to_owned()
}

/// Times go through a dataflow without updates at once, when all threads are there.
const THROUGH_WITHIN: Duration = Duration::from_secs(30);

/// State is written for so long at a time.
const SLICE: Duration = Duration::from_millis(1);

/// Lets the dataflow work until a condition holds, which it soon does.
fn step_until(worker: &mut Worker, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() && began.elapsed() < THROUGH_WITHIN {
        worker.step_or_park(Some(Duration::from_millis(1)));
    }
}

fn parts_of(state: &State, (worker, workers): (usize, usize), as_of: Time) -> Parts {
    Parts::new(state.header(worker, workers), state.origin(worker).as_deref(), as_of)
}

/// What has come of the output of another dataflow.
struct Beneath {
    /// All that it put out before this time, but for what it put out before it knew of this dataflow.
    complete_to: Time,
    /// That, too.
    is_caught_up: bool,
}

struct WorkerLoop {
    worker: Worker,
    inputs: Vec<Box<dyn Feed>>,
    commands: Receiver<Command>,
    shared: Arc<Shared>,
    dataflow: Arc<Dataflow>,
    /// Nothing comes any more before this time, but for what other dataflows put out.
    advanced: Time,
    /// The sources that read the output of another dataflow.
    put_out: BTreeMap<SourceId, Beneath>,
    /// Updates taken since the last step.
    taken: usize,
    /// Of a dataflow that can be saved, what it is saved as.
    parts: Option<Parts>,
    /// What is being written of it.
    saving: Option<Saving>,
}

impl WorkerLoop {
    fn new(allocator: Allocator, commands: Receiver<Command>, start: Start) -> WorkerLoop {
        let Start { shared, dataflow, work, state, as_of, .. } = start;
        // Timely parks only if it has a timer.
        let timer = Some(Instant::now());
        let mut worker = Worker::new(timely::WorkerConfig::default(), allocator, timer);
        let guard = Guard::new(Arc::clone(&dataflow), Arc::clone(&shared));
        guard.install();
        let parts = state.map(|state| parts_of(&state, (worker.index(), worker.peers()), as_of));
        let render = || match work {
            Work::View { plan, form, imports } => {
                render_view(&mut worker, (&plan, form), &imports, as_of, guard)
            }
            Work::Index { index, imports, exports } => {
                render_index(&mut worker, &index, &imports, &exports, as_of, guard)
            }
        };
        let (inputs, parts) = match parts {
            None => (render(), None),
            Some(parts) => {
                let (inputs, parts) = building(parts, render);
                (inputs, Some(parts))
            }
        };
        let (advanced, put_out, taken) = (as_of, BTreeMap::new(), 0);
        let mut worker = WorkerLoop {
            worker,
            inputs,
            commands,
            shared,
            dataflow,
            advanced,
            put_out,
            taken,
            parts,
            saving: None,
        };
        worker.begin_with_state();
        worker
    }

    /// Before any update the times before the start go through the dataflow, so that what it starts with is everywhere.
    fn begin_with_state(&mut self) {
        let Some(parts) = &self.parts else { return };
        let mut trouble = parts.trouble();
        if trouble.is_none() {
            let is_through = || parts.unseeded().is_none() || self.dataflow.is_stopped();
            step_until(&mut self.worker, is_through);
        }
        if self.dataflow.is_stopped() {
            return;
        }
        let stuck = || parts.unseeded().map(|name| format!("\"{name}\" does not get its part"));
        trouble = trouble.or_else(stuck);
        if let Some(message) = trouble {
            self.shared.stop(&self.dataflow, StopReason::NotRestored { message });
        }
    }

    /// Begins to write the state to a file, if all that it was fed has gone through.
    fn begin_saving(&mut self, path: &Path) -> Result<Saving, String> {
        let (index, time) = (self.worker.index(), self.advanced);
        let thread = self.dataflow.thread(index);
        let Some(parts) = &self.parts else { return Err("it is none that can be saved".into()) };
        if self.saving.is_some() {
            return Err("it is being saved".into());
        }
        if time <= parts.as_of() {
            // What is there without any input has not been put out.
            return Err("it has not started".into());
        }
        if self.dataflow.done_to(thread) < time {
            return Err("it is at work".into());
        }
        // Operators that have nothing to put out may be behind the last one.
        step_until(&mut self.worker, || parts.incomplete_at(time).is_none());
        if let Some(name) = parts.incomplete_at(time) {
            return Err(format!("\"{name}\" is at work"));
        }
        let inputs = self.inputs.iter().filter_map(|input| input.part());
        parts.save(&path_of(path, index), inputs.map(|part| (INPUT_PART, part)))
    }

    /// Writes some more of the state; what else there is to do is done in between.
    fn go_on_saving(&mut self, mut saving: Saving) {
        let began = Instant::now();
        loop {
            match saving.go_on() {
                Err(error) => return self.report_saved(Err(error.to_string())),
                Ok(false) => return self.finish_saving(saving.into_target()),
                Ok(true) if began.elapsed() >= SLICE => break,
                Ok(true) => {}
            }
        }
        self.saving = Some(saving);
    }

    /// Whoever waits for the disk is another thread.
    fn finish_saving(&self, target: Target) {
        let (shared, instance) = (Arc::clone(&self.shared), self.dataflow.instance);
        let finish = move || {
            let _alive = shared.alive();
            let outcome = target.finish().map_err(|error| error.to_string());
            shared.report(Report::Saved { instance, outcome });
        };
        let spawned = std::thread::Builder::new().name("save".into()).spawn(finish);
        if let Err(error) = spawned {
            self.report_saved(Err(error.to_string()));
        }
    }

    fn report_saved(&self, outcome: Result<u64, String>) {
        let instance = self.dataflow.instance;
        self.shared.report(Report::Saved { instance, outcome });
    }

    fn run(&mut self) {
        while self.take_commands() && !self.dataflow.is_stopped() {
            match self.saving.take() {
                None => drop(self.worker.step_or_park(None)),
                Some(saving) => {
                    self.worker.step();
                    self.go_on_saving(saving);
                }
            }
            self.dataflow.queued.subtract(std::mem::take(&mut self.taken));
            if take_overflow() {
                self.shared.stop_overflowed(&self.dataflow);
            }
        }
    }

    /// Carries out all waiting commands; false when nobody wants the dataflow any more.
    fn take_commands(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(command) => self.execute(command),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::Update { source, updates } => {
                self.taken += updates.len();
                self.dataflow.add_work(updates.len());
                self.inputs[source.0].update(updates);
                self.shared.check_memory(&self.dataflow, 0);
            }
            Command::Truncate { source, time } => self.inputs[source.0].truncate(time),
            Command::Advance { time } => {
                self.advanced = time;
                self.parts.iter_mut().for_each(|parts| parts.advance(time));
                (0..self.inputs.len()).for_each(|number| self.advance(SourceId(number)));
            }
            Command::PutOut { input, output, frontier } => {
                self.taken += output.updates.len();
                self.dataflow.add_work(output.updates.len());
                let source = &mut self.inputs[input.source.0];
                for some in output.updates.chunks(CHUNK) {
                    source.update(input.take(some));
                    self.shared.check_memory(&self.dataflow, 0);
                }
                self.dataflow.handed.fetch_sub(output.bytes, Ordering::Relaxed);
                let unknown = Beneath { complete_to: frontier, is_caught_up: false };
                self.put_out.entry(input.source).or_insert(unknown).complete_to = frontier;
                self.advance(input.source);
            }
            Command::CaughtUp { source } => {
                if let Some(beneath) = self.put_out.get_mut(&source) {
                    beneath.is_caught_up = true;
                }
                self.advance(source);
            }
            Command::Save { path } => match self.begin_saving(&path) {
                Ok(saving) => self.saving = Some(saving),
                Err(error) => self.report_saved(Err(error)),
            },
            Command::Connect(reader) => {
                let (input, instance) = (reader.input, self.dataflow.instance);
                readers::add(reader);
                let worker = self.dataflow.thread(self.worker.index());
                self.shared.report(Report::Connected { instance, worker, reader: input });
            }
        }
    }

    /// Promises a source what is known to have come.
    fn advance(&mut self, source: SourceId) {
        let time = match self.put_out.get(&source) {
            None => self.advanced,
            Some(beneath) if beneath.is_caught_up => self.advanced.min(beneath.complete_to),
            Some(_) => return,
        };
        self.inputs[source.0].advance(time);
    }
}
