//! `pg_eddy_engine`: the engine of a worker of pg_eddy, which starts it with a socket for its input and output.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// Allocations are counted, and charged to dataflows.
#[global_allocator]
static ALLOCATOR: engine::memory::CountingAllocator = engine::memory::CountingAllocator;

fn main() -> ExitCode {
    let socket = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    let served = socket.and_then(|socket| {
        // Of all processes this one is the first that the kernel should end for want of memory: it takes nobody with it.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        engine_process::serve(socket.try_clone()?, socket)
    });
    let Err(error) = served;
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
