//! A dataflow that runs: its threads, how far it was fed, and its output so far.

use super::gathered::Gathered;
use super::links::Input;
use super::state::State;
use super::threads::{self, Start};
use super::worker::{Command, Work};
use crate::core::config::{Config, OutputForm};
use crate::core::monitor::{Dataflow, Shared};
use crate::core::readers::{PutOut, Reader};
use crate::core::response::Response;
use crate::core::updates::{Time, Updates};
use plan::error::DataError;
use plan::row::Row;
use plan::{Mfp, SourceId};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::Arc;

/// Updates from which it pays to wake the workers before the time is complete.
const WAKE_EARLY: usize = 4096;

/// Updates of which it is looked first whether they are wanted.
const FEW: usize = 64;

/// One dataflow and its threads. Dropping it stops them; they end by themselves.
pub(crate) struct Running {
    pub(crate) dataflow: Arc<Dataflow>,
    commands: Vec<Sender<Command>>,
    sources: usize,
    /// Whether it has inputs of its own, so that it has something to do when it is told of a time. Indexes wake it themselves.
    has_inputs: bool,
    /// By source, which rows it has a use for, if not for all.
    wanted: BTreeMap<SourceId, Mfp>,
    /// Its start: what comes with an earlier time counts as of it.
    as_of: Time,
    output: Gathered,
    /// No update has a time before this one any more.
    advanced: Time,
    /// Time to which the inputs were advanced; lags behind while no updates come.
    fed_to: Time,
    /// Times fed since then are before this one; `None` if nothing was fed.
    fed_before: Option<Time>,
    /// Updates and truncations that were fed since the workers were woken.
    unseen: usize,
    /// While it is saved: how many threads have not answered, and what the others have.
    saved: Option<(usize, Result<u64, String>)>,
}

impl Running {
    /// Starts the threads of the dataflow that was created as the n-th.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        config: &Config,
        (dataflow, number): (Arc<Dataflow>, u64),
        (work, state): (&Work, Option<State>),
        as_of: Time,
    ) -> Running {
        let start = Start {
            shared: Arc::clone(shared),
            dataflow: Arc::clone(&dataflow),
            work: work.clone(),
            state,
            as_of,
            thread_start: Arc::clone(&config.thread_start),
        };
        let commands = threads::start(start, number);
        let output = Gathered::new(dataflow.id, shared.workers, as_of);
        Running {
            dataflow,
            commands,
            sources: work.sources(),
            has_inputs: work.has_inputs(),
            wanted: work.wanted_rows(),
            as_of,
            output,
            advanced: as_of,
            fed_to: as_of,
            // Constants make output at `as_of` without any update.
            fed_before: Some(as_of),
            unseen: 0,
            saved: None,
        }
    }

    /// Of a few updates those of rows that the dataflow has a use for: it need not be woken for others.
    pub(crate) fn wanted(&self, source: SourceId, mut updates: Updates<Row>) -> Updates<Row> {
        let wanted = self.wanted.get(&source).filter(|_| updates.len() <= FEW);
        if let Some(wanted) = wanted {
            let mut values = Vec::new();
            updates.retain(|(row, ..)| {
                values.clear();
                row.unpack_into(&mut values);
                // Whatever is wrong with a row, the thread that reads it says so.
                values.len() != wanted.input_arity
                    || !matches!(wanted.eval_with(&values, |_| ()), Ok(None))
            });
        }
        updates
    }

    /// Hands updates of one source to the threads, by the hash of their rows.
    pub(crate) fn update(&mut self, source: SourceId, mut updates: Updates<Row>) {
        if updates.is_empty() || source.0 >= self.sources {
            return;
        }
        if !self.has_started() {
            updates.iter_mut().for_each(|(_, time, _)| *time = self.as_of.max(*time));
        }
        self.note_fed(latest(&updates));
        self.dataflow.queued.add(updates.len());
        self.unseen += updates.len();
        let workers = self.commands.len();
        if workers == 1 {
            self.send(0, Command::Update { source, updates });
        } else {
            let mut shares: Vec<Updates<Row>> = vec![Vec::new(); workers];
            for update in updates {
                shares[share_of(&update.0, workers)].push(update);
            }
            for (worker, updates) in shares.into_iter().enumerate() {
                if !updates.is_empty() {
                    self.send(worker, Command::Update { source, updates });
                }
            }
        }
        if self.unseen >= WAKE_EARLY {
            self.wake();
        }
    }

    /// Its start.
    pub(crate) fn as_of(&self) -> Time {
        self.as_of
    }

    /// Has the threads hand what they put out from now on to the threads of another dataflow, which was told of no time yet.
    pub(crate) fn connect(&self, above: &Running, input: &Input) {
        let (source, input) = (input.source, Arc::new(input.clone()));
        above.send_all(|| Command::PutOut {
            input: Arc::clone(&input),
            output: Arc::default(),
            frontier: input.as_of,
        });
        for (worker, commands) in above.commands.iter().enumerate() {
            let (commands, dataflow) = (commands.clone(), Arc::clone(&above.dataflow));
            let input = Arc::clone(&input);
            let take = move |output: &Arc<PutOut>, frontier| {
                dataflow.queued.add(output.updates.len());
                dataflow.handed.fetch_add(output.bytes, Ordering::Relaxed);
                let (input, output) = (Arc::clone(&input), Arc::clone(output));
                let is_there = commands.send(Command::PutOut { input, output, frontier }).is_ok();
                dataflow.unpark_workers();
                is_there && !dataflow.is_stopped()
            };
            let reader = Reader { input: (above.dataflow.instance, source), take: Box::new(take) };
            self.send(worker, Command::Connect(reader));
        }
        self.dataflow.unpark_workers();
    }

    /// Has a thread know that it has all that the dataflow beneath a source had put out before it knew of this one.
    pub(crate) fn catch_up(&self, worker: usize, source: SourceId) {
        self.send(worker, Command::CaughtUp { source });
        self.dataflow.unpark_workers();
    }

    /// What has been put out and not been told yet.
    pub(crate) fn untold(&self) -> &Updates<Row> {
        self.output.untold()
    }

    /// Has each thread write its state to a file under a path.
    pub(crate) fn save(&mut self, path: &Path) {
        self.saved = Some((self.commands.len(), Ok(0)));
        self.send_all(|| Command::Save { path: path.to_owned() });
        self.wake();
    }

    /// A thread has, or has not; answers what has become of all, if it was the last.
    pub(crate) fn note_saved(
        &mut self,
        outcome: Result<u64, String>,
    ) -> Option<Result<u64, String>> {
        let (left, sum) = self.saved.take()?;
        let sum = sum.and_then(|sum| outcome.map(|bytes| sum + bytes));
        if left > 1 {
            self.saved = Some((left - 1, sum));
            return None;
        }
        Some(sum)
    }

    fn wake(&mut self) {
        self.unseen = 0;
        self.dataflow.unpark_workers();
    }

    /// Retracts what a source holds before `time`.
    pub(crate) fn truncate(&mut self, source: SourceId, time: Time) {
        let time = self.as_of.max(time);
        if source.0 < self.sources {
            self.note_fed(Some(time));
            self.unseen += 1;
            self.send_all(|| Command::Truncate { source, time });
        }
    }

    /// Whether nothing comes any more that counts as of the start.
    fn has_started(&self) -> bool {
        self.fed_to > self.as_of
    }

    /// Promises that no further update has a time before `time`; answers whether the threads have anything to do
    /// about it.
    pub(crate) fn advance(&mut self, time: Time) -> bool {
        self.advanced = self.advanced.max(time);
        if self.fed_before.is_none() || self.is_told_of(time) {
            return false;
        }
        self.tell(time);
        // What comes from indexes may have come, and gone through, before it was told of.
        self.output.frontier() < time
    }

    /// Has the threads know that no further update has a time before `time`, also where nothing was fed before it.
    pub(crate) fn tell(&mut self, time: Time) {
        self.advanced = self.advanced.max(time);
        if self.is_told_of(time) {
            return;
        }
        // What was fed ahead of `time` is to be told of later advances.
        self.fed_before = self.fed_before.filter(|before| *before > time);
        self.fed_to = time;
        self.dataflow.set_fed_to(time);
        self.send_all(|| Command::Advance { time });
        if self.has_inputs || self.unseen > 0 {
            self.wake();
        }
    }

    /// Whether the threads know that no further update has a time before `time`.
    pub(crate) fn is_told_of(&self, time: Time) -> bool {
        self.fed_to >= time
    }

    /// Takes what a thread has put out.
    pub(crate) fn receive(
        &mut self,
        worker: usize,
        output: (Updates<Row>, Updates<DataError>),
        times: Vec<Time>,
        frontier: Time,
    ) {
        self.output.reach(worker, frontier);
        self.output.receive(output, times);
    }

    /// Responses about output that is complete and was not told yet.
    pub(crate) fn take_complete(&mut self, form: OutputForm) -> Vec<Response> {
        let frontier = self.complete_to();
        // Net updates are of all times up to some `advance`: none may be torn by a frontier.
        let is_whole = form == OutputForm::ByTime || frontier == self.advanced;
        if !is_whole {
            return Vec::new();
        }
        let is_net = form == OutputForm::Net && !self.dataflow.keeps_times();
        self.output.tell(frontier, is_net)
    }

    /// Updates with times up to `latest` were fed, to it or to what it reads; answers whether that was not known.
    pub(crate) fn note_fed(&mut self, latest: Option<Time>) -> bool {
        let before = latest.map(|latest| latest.saturating_add(1));
        let is_news = self.fed_before < before;
        self.fed_before = self.fed_before.max(before);
        is_news
    }

    /// Output is complete before this time, given that all updates before `advanced` were fed.
    fn complete_to(&self) -> Time {
        // Indexes may be ahead of what this dataflow was told.
        let done = self.output.frontier();
        if done >= self.fed_to {
            self.advanced
        } else {
            done
        }
    }

    /// The frontier told last.
    pub(crate) fn told(&self) -> Time {
        self.output.told()
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

impl Drop for Running {
    fn drop(&mut self) {
        self.dataflow.abandon();
    }
}

/// Which of so many workers a row is fed to. By the number of a worker, divided by how many each process has, one knows the process.
pub fn share_of(row: &Row, workers: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    row.hash(&mut hasher);
    hasher.finish() as usize % workers
}

/// The last of the updates' times.
pub(super) fn latest<D>(updates: &Updates<D>) -> Option<Time> {
    updates.iter().map(|(_, time, _)| *time).max()
}
