//! The other side: a program written by hand against differential dataflow, driven as the engine is.
//!
//! It gets its own threads, commands over channels, and hands back each time's consolidated delta
//! when the time is complete: what any maintained view has to do, so that the comparison is fair.

use std::ops::Range;
use std::sync::mpsc::{channel, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;
use std::time::Instant;

use anyhow::{anyhow, ensure, Context, Result};
use differential_dataflow::consolidation::consolidate_updates;
use differential_dataflow::{Data, VecCollection};
use timely::communication::WorkerGuards;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::execute::execute;
use timely::worker::Worker;

use crate::checksum::{Checksums, RowHash};
use crate::signal::Signal;
use crate::sql_side::PATIENCE;
use crate::workload::{Base, History, Side, Time, Workload, FIRST_SWAP, LOAD_TIME};

const WAKE_EARLY: usize = 4096;

type Updates<D> = Vec<(D, Time, isize)>;

enum Command<B> {
    Update(Updates<B>),
    Advance(Time),
}

/// What a worker has output before `frontier` since its last report.
struct Report<O> {
    worker: usize,
    updates: Updates<O>,
    frontier: Time,
}

/// A timely computation with the hand-written program in it.
pub struct HandSide<W: Workload> {
    workload: Arc<W>,
    commands: Vec<Sender<Command<Base<W>>>>,
    threads: Vec<Thread>,
    reports: Receiver<Report<W::Out>>,
    signal: Signal,
    /// Per worker.
    ready: Vec<Updates<Base<W>>>,
    frontiers: Vec<Time>,
    output: Updates<W::Out>,
    /// Dropped last: joins the threads, which end when their commands do.
    _guards: WorkerGuards<()>,
}

/// What one worker thread starts with.
type Start<B> = (Receiver<Command<B>>, Sender<(usize, Thread)>);

impl<W: Workload> HandSide<W> {
    pub fn start(workload: Arc<W>, workers: usize) -> Result<HandSide<W>> {
        let (commands, receivers): (Vec<_>, Vec<_>) = (0..workers).map(|_| channel()).unzip();
        let (thread_sender, thread_receiver) = channel();
        let starts: Vec<_> =
            receivers.into_iter().map(|r| Some((r, thread_sender.clone()))).collect();
        let starts: Mutex<Vec<Option<Start<Base<W>>>>> = Mutex::new(starts);
        let (sender, reports) = channel();
        let signal = Signal::default();
        let (program, waker) = (Arc::clone(&workload), signal.clone());
        let guards = execute(timely::Config::process(workers), move |worker| {
            let start =
                starts.lock().unwrap_or_else(PoisonError::into_inner)[worker.index()].take();
            let (commands, threads) = start.expect("each worker starts once");
            // The host waits for all threads before it goes on, so the receiver is there.
            let _ = threads.send((worker.index(), std::thread::current()));
            run_worker(worker, program.as_ref(), commands, sender.clone(), waker.clone());
        });
        let guards = guards.map_err(|error| anyhow!("starting workers: {error}"))?;
        drop(thread_sender);
        let mut threads = Vec::new();
        for _ in 0..workers {
            threads.push(thread_receiver.recv().context("a worker did not start")?);
        }
        threads.sort_by_key(|(index, _)| *index);
        Ok(HandSide {
            workload,
            commands,
            threads: threads.into_iter().map(|(_, thread)| thread).collect(),
            reports,
            signal,
            ready: (0..workers).map(|_| Vec::new()).collect(),
            frontiers: vec![0; workers],
            output: Vec::new(),
            _guards: guards,
        })
    }

    fn prepare(&mut self, number: u64, base: Base<W>, time: Time, diff: isize) {
        let worker = (number % self.ready.len() as u64) as usize;
        self.ready[worker].push((base, time, diff));
    }

    fn unpark(&self) {
        self.threads.iter().for_each(Thread::unpark);
    }

    fn receive(&mut self) {
        while let Ok(report) = self.reports.try_recv() {
            self.frontiers[report.worker] = report.frontier;
            self.output.extend(report.updates);
        }
    }
}

fn run_worker<W: Workload>(
    worker: &mut Worker,
    workload: &W,
    commands: Receiver<Command<Base<W>>>,
    reports: Sender<Report<W::Out>>,
    waker: Signal,
) {
    let index = worker.index();
    let mut inputs = worker.dataflow(|scope| {
        let built = workload.build(scope);
        report_deltas(built.output, index, reports, waker);
        built.inputs
    });
    loop {
        match commands.try_recv() {
            Ok(Command::Update(updates)) => inputs.update(updates),
            Ok(Command::Advance(time)) => inputs.advance(time),
            Err(TryRecvError::Empty) => {
                worker.step_or_park(None);
            }
            Err(TryRecvError::Disconnected) => return,
        }
    }
}

/// Sends each time's delta when it is complete.
fn report_deltas<D: Data>(
    collection: VecCollection<'_, Time, D, isize>,
    worker: usize,
    reports: Sender<Report<D>>,
    waker: Signal,
) {
    let mut pending: Updates<D> = Vec::new();
    let mut reported = 0;
    collection.inner.unary_frontier::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
        Pipeline,
        "Report",
        move |_capability, _info| {
            move |(input, frontier), _output| {
                input.for_each(|_, data| pending.append(data));
                let frontier = frontier.frontier().iter().copied().min().unwrap_or(Time::MAX);
                if frontier > reported {
                    reported = frontier;
                    let (mut updates, later): (Vec<_>, Vec<_>) =
                        pending.drain(..).partition(|(_, time, _)| *time < frontier);
                    pending = later;
                    consolidate_updates(&mut updates);
                    // The host may be gone already; then nobody wants it.
                    let _ = reports.send(Report { worker, updates, frontier });
                    waker.raise();
                }
            }
        },
    );
}

impl<W: Workload> Side for HandSide<W> {
    fn prepare_load(&mut self, rows: Range<u64>) {
        for index in rows {
            self.prepare(index, self.workload.history().loaded(index), LOAD_TIME, 1);
        }
    }

    fn prepare_swaps(&mut self, swaps: Range<u64>) {
        for k in swaps {
            let (removed, inserted) = self.workload.history().swap(k);
            self.prepare(k, removed, FIRST_SWAP + k, -1);
            self.prepare(k, inserted, FIRST_SWAP + k, 1);
        }
    }

    fn feed(&mut self) {
        // As the engine does: a large share is worked on before its time is complete.
        let wake = self.ready.iter().any(|ready| ready.len() >= WAKE_EARLY);
        for (commands, ready) in self.commands.iter().zip(&mut self.ready) {
            if !ready.is_empty() {
                // A worker that is gone is noticed in `wait`.
                let _ = commands.send(Command::Update(std::mem::take(ready)));
            }
        }
        if wake {
            self.unpark();
        }
    }

    fn advance(&mut self, time: Time) {
        for commands in &self.commands {
            let _ = commands.send(Command::Advance(time));
        }
        self.unpark();
    }

    fn wait(&mut self, time: Time) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.receive();
            if self.frontiers.iter().all(|frontier| *frontier >= time) {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            ensure!(self.signal.wait(left), "no output at frontiers {:?}", self.frontiers);
        }
    }

    fn collect(&mut self, checksums: &mut Checksums) -> Result<()> {
        for (row, time, diff) in self.output.drain(..) {
            checksums.add(RowHash::of(&row), time, diff as i64);
        }
        Ok(())
    }
}

impl<W: Workload> Drop for HandSide<W> {
    fn drop(&mut self) {
        self.commands.clear();
        self.unpark();
    }
}
