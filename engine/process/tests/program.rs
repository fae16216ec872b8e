//! The program at the other end of a socket: that it computes as the engine does in the host's own process, and how it ends.

#[path = "../../tests/common/plans.rs"]
#[allow(dead_code)]
mod plans;

use engine::{Config, DataflowId, Embedded, Engine, Form, OutputForm, Response, StopReason, Time};
use engine_process::Process;
use plan::row::Row;
use plan::{Diff, Recursion, SourceId, ViewPlan};
use plans::{reach, row, source, view};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest time that anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

const LOWER: DataflowId = DataflowId(1);
const UPPER: DataflowId = DataflowId(2);

fn config() -> Config {
    Config {
        workers: 1,
        max_recursion: 100,
        memory_limit: 0,
        spill: None,
        output: OutputForm::Net,
        waker: Arc::new(|| {}),
        thread_start: Arc::new(|_| {}),
    }
}

fn program() -> (Child, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_eddy_engine"));
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    (command.spawn().expect("the program is there"), ours)
}

fn process() -> Process {
    let (program, socket) = program();
    Process::start(program, socket, &config()).expect("the program answers")
}

/// What has come of an engine.
#[derive(Default)]
struct Outcome {
    rows: BTreeMap<(DataflowId, Row), Diff>,
    frontiers: BTreeMap<DataflowId, Time>,
    stopped: Vec<(DataflowId, StopReason)>,
    ended: Option<String>,
}

impl Outcome {
    fn take(&mut self, engine: &mut dyn Engine) {
        for response in engine.poll() {
            match response {
                Response::Deltas { dataflow, oks, .. } => {
                    for (row, _, diff) in oks {
                        *self.rows.entry((dataflow, row)).or_default() += diff;
                    }
                    self.rows.retain(|_, count| *count != 0);
                }
                Response::Frontier { dataflow, time } => {
                    self.frontiers.insert(dataflow, time);
                }
                Response::Stopped { dataflow, reason } => self.stopped.push((dataflow, reason)),
                Response::Evaluate(_) => panic!("nothing is to be asked"),
                Response::Ended { reason } => self.ended = Some(reason),
            }
        }
    }

    fn wait(&mut self, engine: &mut dyn Engine, is_there: impl Fn(&Outcome) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_there(self) {
            assert!(Instant::now() < until, "waited for too long");
            self.take(engine);
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn create(engine: &mut dyn Engine, id: DataflowId, plan: &ViewPlan) {
    engine.create_reading(id, (plan, Form::of(plan)), &[], 1);
}

/// Random changes of a graph, what can be reached in it, and a view over that, which comes later.
fn run(engine: &mut dyn Engine) -> Vec<BTreeMap<(DataflowId, Row), Diff>> {
    let lower = reach(Recursion::FixpointDistinct);
    let mut outcome = Outcome::default();
    create(engine, LOWER, &lower);
    engine.update(LOWER, SourceId(1), vec![(row(&[0]), 1, 1)]);
    let mut number = 1_u64;
    let mut next = |below: u64| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (number >> 33) % below
    };
    let mut edges: Vec<[i64; 2]> = Vec::new();
    let mut all = Vec::new();
    for time in 2..60 {
        let mut updates = Vec::new();
        for _ in 0..20 {
            match next(3) {
                0 if !edges.is_empty() => {
                    let gone = edges.swap_remove(next(edges.len() as u64) as usize);
                    updates.push((row(&gone), time, -1));
                }
                _ => {
                    edges.push([next(30) as i64, next(30) as i64]);
                    updates.push((row(&edges[edges.len() - 1]), time, 1));
                }
            }
        }
        engine.update(LOWER, SourceId(0), updates);
        engine.advance(time + 1);
        if time == 30 {
            // What the lower one has put out is on its way, or not polled.
            let upper = view(&[1], source(0), 1);
            engine.create_reading(UPPER, (&upper, Form::of(&upper)), &[], time + 1);
            let seen = outcome.rows.iter().filter(|((of, _), _)| *of == LOWER);
            let seen = seen.map(|((_, row), count)| (row.clone(), time, *count)).collect();
            engine.connect(LOWER, (UPPER, SourceId(0)), vec![0], &seen);
            engine.advance(time + 1);
        }
        if time % 7 == 0 || time > 50 {
            let is_through = |id, of: &Outcome| of.frontiers.get(&id) == Some(&(time + 1));
            outcome
                .wait(engine, |of| is_through(LOWER, of) && (time < 30 || is_through(UPPER, of)));
            all.push(outcome.rows.clone());
        }
    }
    all
}

#[test]
fn it_computes_as_the_engine_of_the_host_does() {
    let embedded = run(&mut Embedded::start(config()));
    let process = run(&mut process());
    assert!(embedded.last().is_some_and(|rows| rows.len() > 20), "{embedded:?}");
    for (step, (expected, found)) in embedded.iter().zip(&process).enumerate() {
        assert_eq!(expected, found, "at step {step}");
    }
    let of = |id| {
        embedded[embedded.len() - 1].keys().filter(move |(of, _)| *of == id).map(|(_, row)| row)
    };
    assert!(of(LOWER).eq(of(UPPER)), "the upper one is not what the lower one is");
}

#[test]
fn a_dataflow_that_is_stopped_says_why() {
    let mut engine = process();
    let plan = plans::reach(Recursion::FixpointDistinct);
    create(&mut engine, LOWER, &plan);
    let chain = (0..200).map(|node| (row(&[node, node + 1]), 1, 1)).collect();
    engine.update(LOWER, SourceId(0), chain);
    engine.update(LOWER, SourceId(1), vec![(row(&[0]), 1, 1)]);
    engine.advance(2);
    let mut outcome = Outcome::default();
    outcome.wait(&mut engine, |of| !of.stopped.is_empty());
    assert!(
        matches!(outcome.stopped[0], (LOWER, StopReason::RecursionLimit { .. })),
        "{:?}",
        outcome.stopped
    );
}

#[test]
fn who_has_it_is_told_that_it_has_ended_and_how() {
    let (mut program, socket) = program();
    let id = program.id();
    assert!(program.try_wait().expect("a child").is_none());
    let mut engine = Process::start(program, socket, &config()).expect("the program answers");
    create(&mut engine, LOWER, &view(&[1], source(0), 1));
    Command::new("sh").args(["-c", &format!("kill -9 {id}")]).status().expect("it is killed");
    let mut outcome = Outcome::default();
    outcome.wait(&mut engine, |of| of.ended.is_some());
    assert!(
        outcome.ended.as_ref().is_some_and(|reason| reason.contains("signal: 9")),
        "{:?}",
        outcome.ended
    );
    // Nothing comes of what it is told, and that once.
    engine.update(LOWER, SourceId(0), vec![(row(&[1]), 1, 1)]);
    engine.advance(2);
    assert!(engine.poll().is_empty());
}

/// What the program says, and whether it has ended well.
fn talk(words: &[u8]) -> (Vec<u8>, bool) {
    let (mut program, mut socket) = program();
    socket.write_all(words).expect("it listens");
    socket.shutdown(std::net::Shutdown::Write).expect("a socket");
    let mut said = Vec::new();
    // It may end before all has been read.
    let _ = socket.read_to_end(&mut said);
    (said, program.wait().expect("it ends").success())
}

#[test]
fn it_serves_nobody_of_another_build() {
    let greeting = engine_process::frame::GREETING;
    assert_eq!(talk(greeting), (greeting.to_vec(), true));
    let other = vec![b'x'; greeting.len()];
    assert_eq!(talk(&other), (greeting.to_vec(), false));
}

#[test]
fn a_frame_that_is_cut_short_or_no_frame_ends_it() {
    let start = engine_process::message::Start::from(&config());
    let start = engine_process::frame::encode(&engine_process::message::Command::Start(start))
        .expect("a frame");
    let greeting = engine_process::frame::GREETING;
    for end in [1, 8, start.len() - 1] {
        assert!(talk(&[greeting, &start[..end]].concat()).1, "cut at {end}");
    }
    for odd in [&[0xff_u8; 64][..], &[3, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9]] {
        assert!(!talk(&[greeting, &start, odd].concat()).1, "{odd:?}");
    }
}
