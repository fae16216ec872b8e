//! The threads of a dataflow: started at once, or once they are connected to those of other processes.

use super::state::State;
use super::watched_stream::WatchedStream;
use super::worker::{self, Command, Work};
use crate::core::monitor::{Dataflow, Shared};
use crate::core::peers::Peers;
use crate::core::response::StopReason;
use crate::core::updates::{DataflowId, Time};
use std::io;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread::Builder;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::ProcessBuilder;
use timely::communication::{Allocator, Hooks};

/// Stack of a worker thread: plans are rendered, and expressions evaluated, by recursion.
const STACK_BYTES: usize = 64 << 20;

/// Makes a worker's channels to the others, in its thread.
pub(super) type Build = Box<dyn FnOnce() -> Allocator + Send>;

/// What the threads of a dataflow start with.
#[derive(Clone)]
pub(super) struct Start {
    pub(super) shared: Arc<Shared>,
    pub(super) dataflow: Arc<Dataflow>,
    pub(super) work: Work,
    /// Of one that can be saved.
    pub(super) state: Option<State>,
    pub(super) as_of: Time,
    pub(super) thread_start: Arc<dyn Fn(DataflowId) + Send + Sync>,
}

/// Starts the threads of the dataflow that was created as the n-th; answers how each is told what to do, already while it is not
/// there yet. Where one cannot be started, that is why the dataflow stops.
pub(super) fn start(start: Start, number: u64) -> Vec<Sender<Command>> {
    let (commands, receivers) = (0..start.shared.workers).map(|_| channel()).unzip();
    match start.shared.peers.clone() {
        None => {
            let build = |builder: ProcessBuilder| -> Build {
                Box::new(|| Allocator::Process(builder.build()))
            };
            let builds = of_this_process(&start.shared).into_iter().map(build);
            spawn_all(&start, builds.collect(), receivers);
        }
        Some(peers) => {
            let connecting = start.clone();
            let spawned = Builder::new()
                .name("engine-connect".into())
                .spawn(move || spawn_connected(&connecting, &*peers, number, receivers));
            if let Err(error) = spawned {
                give_up(&start, no_thread(&error));
            }
        }
    }
    commands
}

fn of_this_process(shared: &Shared) -> Vec<ProcessBuilder> {
    let Hooks { refill, spill, .. } = Hooks::default();
    ProcessBuilder::new_typed_vector(shared.workers, refill, spill)
}

fn spawn_connected(
    start: &Start,
    peers: &dyn Peers,
    number: u64,
    commands: Vec<Receiver<Command>>,
) {
    // As long as this lives the thread counts as one that may hold memory.
    let _alive = start.shared.alive();
    (start.thread_start)(start.dataflow.id);
    match connect(start, peers, number) {
        Ok(builds) => spawn_all(start, builds, commands),
        Err(error) => give_up(start, StopReason::NotConnected { message: error.to_string() }),
    }
}

fn connect(start: &Start, peers: &dyn Peers, number: u64) -> io::Result<Vec<Build>> {
    let watched = |stream| {
        let (shared, dataflow) = (Arc::clone(&start.shared), Arc::clone(&start.dataflow));
        WatchedStream { stream, shared, dataflow }
    };
    let streams = peers.connect(number)?.into_iter().map(|stream| stream.map(watched)).collect();
    let (process, workers) = (peers.process(), start.shared.workers);
    let of_this = of_this_process(&start.shared);
    let (builders, guard) =
        initialize_networking_from_sockets(of_this, streams, process, workers, Hooks::default())?;
    // It would wait for the threads that send and receive, which end by themselves, and fail if one has failed.
    std::mem::forget(guard);
    Ok(builders.into_iter().map(|b| -> Build { Box::new(|| Allocator::Tcp(b.build())) }).collect())
}

fn spawn_all(start: &Start, builds: Vec<Build>, commands: Vec<Receiver<Command>>) {
    let mut threads = Vec::with_capacity(builds.len());
    for (index, (build, commands)) in builds.into_iter().zip(commands).enumerate() {
        let of_thread = start.clone();
        let thread = Builder::new()
            .name(format!("engine-{index}"))
            .stack_size(STACK_BYTES)
            .spawn(move || worker::run(build, commands, of_thread));
        match thread {
            Ok(thread) => threads.push(thread.thread().clone()),
            Err(error) => {
                start.shared.stop(&start.dataflow, no_thread(&error));
            }
        }
    }
    start.dataflow.set_threads(threads);
}

fn no_thread(error: &io::Error) -> StopReason {
    StopReason::Failed { message: format!("could not start a thread: {error}") }
}

/// There will be no threads.
fn give_up(start: &Start, reason: StopReason) {
    start.shared.stop(&start.dataflow, reason);
    (0..start.shared.workers).for_each(|_| start.dataflow.set_removed());
}
