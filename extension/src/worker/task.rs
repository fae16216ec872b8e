//! Work of a worker that takes long and needs nothing of PostgreSQL: on a thread, while the main thread goes on.

use crate::pg::process;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{channel, Receiver, TryRecvError};

/// Set when the process ends: engine threads must not touch shared memory any more.
pub static STOPPING: AtomicBool = AtomicBool::new(false);

/// Work on a thread of its own.
pub struct Task<T>(Receiver<T>);

/// The thread could not start, or was lost by a panic.
#[derive(Debug)]
pub struct Lost;

impl<T: Send + 'static> Task<T> {
    /// Starts a thread, which wakes this process when the work is done. The work must not call PostgreSQL. If there can be
    /// no thread, it is lost.
    pub fn start(work: impl FnOnce() -> T + Send + 'static) -> Task<T> {
        let (sender, receiver) = channel();
        let wake = process::waker();
        let run = move || {
            // Whoever does not want to know the result any more has let go of the other end.
            let _ = sender.send(work());
            if !STOPPING.load(SeqCst) {
                wake();
            }
        };
        let spawn = || std::thread::Builder::new().name("task".into()).spawn(run);
        if let Err(error) = process::with_signals_blocked(spawn) {
            pgrx::log!("pg_eddy: no thread for work of the worker: {error}");
        }
        Task(receiver)
    }

    /// What came of it, if it is done.
    pub fn take(&self) -> Option<Result<T, Lost>> {
        match self.0.try_recv() {
            Ok(result) => Some(Ok(result)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(Lost)),
        }
    }
}
