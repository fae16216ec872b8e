//! The program at the other end of a socket: that it computes as the engine does in the host's own process, and how it ends.

#[path = "common/computing.rs"]
mod computing;

use computing::plans::{self, row, source, view};
use computing::{config, create, run, Outcome, LOWER, UPPER};
use engine::{Embedded, Engine, StopReason};
use engine_process::Remote;
use plan::{Recursion, SourceId};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

fn program() -> (Child, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_eddy_engine"));
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    (command.spawn().expect("the program is there"), ours)
}

fn process() -> Remote {
    let (program, socket) = program();
    Remote::of_child(program, socket, &config()).expect("the program answers")
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
    let mut engine = Remote::of_child(program, socket, &config()).expect("the program answers");
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
