//! `pg_eddy_engine`: the engine of a worker of pg_eddy, which starts it with a socket for its input and output; or an engine of a
//! cluster, which listens for workers.

use clap::Parser;
use engine_process::{listen, Listening, Secret};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;

/// Allocations are counted, and charged to dataflows.
#[global_allocator]
static ALLOCATOR: engine::memory::CountingAllocator = engine::memory::CountingAllocator;

/// The engine of pg_eddy as a process. Without --listen it is started by the worker whose engine it is.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Address and port at which it listens for workers and for other engines, as 10.0.0.7:7101
    #[arg(long, value_name = "ADDRESS:PORT", requires = "secret_file")]
    listen: Option<String>,
    /// File with the secret that all of them have, which its owner alone may read
    #[arg(long, value_name = "FILE", requires = "listen")]
    secret_file: Option<PathBuf>,
    /// Where state may go that outgrows memory; without it such views are stopped
    #[arg(long, value_name = "DIRECTORY", requires = "listen")]
    spill_directory: Option<PathBuf>,
    /// What it is for, for those who list processes
    #[arg(hide = true)]
    purpose: Option<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = match (&arguments.listen, &arguments.secret_file) {
        (Some(address), Some(secret)) => run_listening(address, secret.clone(), &arguments),
        _ => serve_input(),
    };
    let Err(error) = ended;
    match error.kind() {
        // The worker has ended, or wants another engine.
        ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("pg_eddy_engine: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves the worker at the other end of the input.
fn serve_input() -> io::Result<Infallible> {
    let socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    // Of all processes this one is the first that the kernel should end for want of memory: it takes nobody with it.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    engine_process::serve(socket.try_clone()?, socket)
}

/// Threads of timely panic when what they read from or write to is gone, as it is when another engine stops a dataflow. Whoever waits
/// for them is told by the dataflow.
fn keep_quiet_of_lost_connections() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        let is_of_timely = thread.name().is_some_and(|name| name.starts_with("timely:"));
        let is_of_channel =
            panic.payload_as_str().is_some_and(|text| text.starts_with("MergeQueue"));
        if !is_of_timely && !is_of_channel {
            told(panic);
        }
    }));
}

/// Each dataflow has connections of its own: as many files as the process may open at all.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // What cannot be had is missed, and said, when it is needed.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn run_listening(address: &str, secret: PathBuf, arguments: &Arguments) -> io::Result<Infallible> {
    let secret = Secret::read(&secret)?;
    let listener = TcpListener::bind(address)
        .map_err(|error| io::Error::other(format!("cannot listen at {address}: {error}")))?;
    keep_quiet_of_lost_connections();
    allow_many_files();
    println!("pg_eddy_engine: listening at {}", listener.local_addr()?);
    listen(&listener, Listening { secret, spill_directory: arguments.spill_directory.clone() })
}
