//! A host for tests: feeds an engine and waits for its output.
#![allow(dead_code)] // Every test file uses its own part of it.

pub mod expected;
pub mod generate;
pub mod history;
pub mod plans;
#[path = "../../../planner/plan/tests/common/random.rs"]
mod random;

use engine::{
    Answer, Config, DataflowId, Embedded, Engine, OutputForm, Question, Response, Spill,
    StopReason, Time,
};
use plan::error::DataError;
use plan::host::HostCall;
use plan::row::Row;
use plan::value::Datum;
use plan::{Diff, SourceId, ViewPlan};
pub use random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Longest time any test waits for output before it gives up.
pub const PATIENCE: Duration = Duration::from_secs(100);

/// Updates of one time.
pub type Delta<D> = BTreeMap<D, Diff>;

/// What a dataflow has output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    pub oks: BTreeMap<Time, Delta<Row>>,
    pub errs: BTreeMap<Time, Delta<DataError>>,
    /// When rows changed, as reported.
    pub times: BTreeSet<Time>,
}

impl Output {
    /// Contents after all updates up to and including `time`.
    pub fn at(&self, time: Time) -> (Delta<Row>, Delta<DataError>) {
        (accumulate(&self.oks, time), accumulate(&self.errs, time))
    }
}

fn accumulate<D: Ord + Clone>(deltas: &BTreeMap<Time, Delta<D>>, time: Time) -> Delta<D> {
    let mut sum = Delta::new();
    for (data, diff) in deltas.range(..=time).flat_map(|(_, delta)| delta) {
        let entry = sum.entry(data.clone()).or_insert(0);
        *entry += diff;
        if *entry == 0 {
            sum.remove(data);
        }
    }
    sum
}

/// An engine of which the host knows how far all its output is complete.
pub trait Tested: Engine {
    fn frontier(&self) -> Time;
}

impl Tested for Embedded {
    fn frontier(&self) -> Time {
        Embedded::frontier(self)
    }
}

/// An engine with its output so far.
pub struct Host<E = Embedded> {
    pub engine: E,
    pub outputs: BTreeMap<DataflowId, Output>,
    pub frontier: Time,
    pub stopped: BTreeMap<DataflowId, StopReason>,
    /// What became of saving dataflows.
    pub saved: BTreeMap<DataflowId, Result<u64, String>>,
    /// Per dataflow, what is complete.
    pub frontiers: BTreeMap<DataflowId, Time>,
    /// What answers the engine's questions, and how many it was asked together.
    pub evaluate: fn(&HostCall, &[Datum]) -> Answer,
    pub asked: Vec<usize>,
    signal: Arc<(Mutex<bool>, Condvar)>,
}

/// The seeds of a random test: so many, unless the environment says which.
pub fn seeds(count: u64) -> Range<u64> {
    match number("ENGINE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ENGINE_SEEDS").unwrap_or(count),
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().expect("a number"))
}

/// All that could be on disk is there, in a directory of that name.
pub fn nothing_in_memory(name: &str) -> Spill {
    Spill { directory: std::env::temp_dir().join(name), above: 0, limit: u64::MAX }
}

pub fn config(workers: usize) -> Config {
    Config {
        workers,
        max_recursion: 1000,
        memory_limit: 0,
        spill: None,
        output: OutputForm::ByTime,
        waker: Arc::new(|| ()),
        thread_start: Arc::new(|_| ()),
    }
}

impl Host {
    pub fn new(workers: usize) -> Host {
        Host::with(config(workers))
    }

    pub fn with(config: Config) -> Host {
        Host::of(config, Embedded::start)
    }

    pub fn create(&mut self, id: u64, plan: &ViewPlan, as_of: Time) {
        self.engine.create_dataflow(DataflowId(id), plan, as_of);
    }
}

impl<E: Tested> Host<E> {
    pub fn of(mut config: Config, start: impl FnOnce(Config) -> E) -> Host<E> {
        let signal = Arc::new((Mutex::new(false), Condvar::new()));
        let waker_signal = Arc::clone(&signal);
        config.waker = Arc::new(move || {
            *waker_signal.0.lock().unwrap() = true;
            waker_signal.1.notify_one();
        });
        Host {
            engine: start(config),
            outputs: BTreeMap::new(),
            frontier: 0,
            stopped: BTreeMap::new(),
            saved: BTreeMap::new(),
            frontiers: BTreeMap::new(),
            evaluate: |_, _| Err(DataError::new("XX000", "nobody answers")),
            asked: Vec::new(),
            signal,
        }
    }

    pub fn update(&mut self, id: u64, source: usize, updates: Vec<(Row, Time, Diff)>) {
        self.engine.update(DataflowId(id), SourceId(source), updates);
    }

    pub fn output(&self, id: u64) -> Output {
        self.outputs.get(&DataflowId(id)).cloned().unwrap_or_default()
    }

    /// Rows of a dataflow after everything received so far.
    pub fn rows(&self, id: u64) -> Delta<Row> {
        self.output(id).at(Time::MAX).0
    }

    /// Advances to `time` and waits until all output before it has arrived.
    pub fn advance(&mut self, time: Time) {
        self.engine.advance(time);
        self.wait(|host| host.frontier >= time);
    }

    /// Waits for a condition on what was polled.
    pub fn wait(&mut self, condition: impl Fn(&Host<E>) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        self.poll();
        while !condition(self) {
            let guard = self.signal.0.lock().unwrap();
            let left = deadline.saturating_duration_since(Instant::now());
            let (mut woken, timeout) =
                self.signal.1.wait_timeout_while(guard, left, |woken| !*woken).unwrap();
            assert!(!timeout.timed_out(), "no output at frontier {}", self.frontier);
            *woken = false;
            drop(woken);
            self.poll();
        }
    }

    /// Waits for a condition that no response announces.
    pub fn wait_until(&mut self, condition: impl Fn(&Host<E>) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !condition(self) {
            assert!(Instant::now() < deadline, "condition not met");
            self.wait_a_moment();
        }
    }

    /// Polls once, after the engine signals or a millisecond has passed.
    pub fn wait_a_moment(&mut self) {
        let woken = self.signal.0.lock().unwrap();
        let wait = self.signal.1.wait_timeout(woken, Duration::from_millis(1));
        drop(wait.unwrap());
        self.poll();
    }

    fn poll(&mut self) {
        for response in self.engine.poll() {
            match response {
                Response::Deltas { dataflow, oks, errs, times } => {
                    let output = self.outputs.entry(dataflow).or_default();
                    let frontier = self.frontiers.get(&dataflow).copied().unwrap_or_default();
                    output.times.extend(times);
                    record(&mut output.oks, oks, frontier);
                    record(&mut output.errs, errs, frontier);
                }
                Response::Frontier { dataflow, time } => {
                    let former = self.frontiers.insert(dataflow, time);
                    assert!(former.is_none_or(|former| time > former), "frontier went back");
                }
                Response::Stopped { dataflow, reason } => {
                    self.stopped.insert(dataflow, reason);
                }
                Response::Saved { dataflow, outcome } => {
                    self.saved.insert(dataflow, outcome);
                }
                Response::Evaluate(evaluation) => {
                    let answer = |question: &Question| -> Vec<Answer> {
                        let rows = question.rows.iter();
                        rows.map(|row| (self.evaluate)(&question.call, &row.unpack())).collect()
                    };
                    let answers: Vec<Vec<Answer>> =
                        evaluation.questions.iter().map(answer).collect();
                    self.asked.push(answers.iter().map(Vec::len).sum());
                    evaluation.answer(answers);
                }
                Response::Ended { reason } => panic!("the engine has ended: {reason}"),
            }
        }
        self.frontier = self.engine.frontier();
    }
}

fn record<D: Ord>(
    deltas: &mut BTreeMap<Time, Delta<D>>,
    updates: Vec<(D, Time, Diff)>,
    frontier: Time,
) {
    for (data, time, diff) in updates {
        assert!(time >= frontier, "update before the frontier");
        assert_ne!(diff, 0);
        let previous = deltas.entry(time).or_default().insert(data, diff);
        assert!(previous.is_none(), "updates of one time are consolidated");
    }
}
