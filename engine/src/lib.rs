//! Runs view plans as timely/differential dataflows on worker threads of its own.
//!
//! The host (the extension, or a test) owns an [`Engine`], feeds it updates, and polls it for output.
//! The engine knows nothing of SQL text, tables or transactions: only plans, rows, times and diffs.

mod contents;
mod diff;
mod evaluation;
mod host;
mod hosted;
mod input;
mod kernel;
mod layout;
pub mod machine;
pub mod memory;
mod monitor;
mod output;
mod render;
mod room;
mod scalar;
pub mod spill;
mod stamp;
mod tidy;
mod worker;

pub use evaluation::{Answer, Evaluation, Question};
pub use host::Engine;

use plan::error::DataError;
use plan::row::Row;
use plan::Diff;
use std::path::PathBuf;
use std::sync::Arc;

/// Dense number of a source transaction in commit order.
pub type Time = u64;

/// The host's name for a dataflow (one per view).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataflowId(pub u64);

/// What an engine is started with.
#[derive(Clone)]
pub struct Config {
    /// Number of timely workers of each dataflow, at least 1; one thread each.
    pub workers: usize,
    /// Iterations a recursion may take before its dataflow is stopped.
    pub max_recursion: u64,
    /// Bytes the engine may hold before the dataflow that grows is stopped; 0 for no limit.
    pub memory_limit: usize,
    /// Where state may go that outgrows memory; `None` to stop such dataflows.
    pub spill: Option<Spill>,
    /// What becomes of output updates that differ in nothing but their times.
    pub output: OutputForm,
    /// Called from engine threads when there is something to poll. Must not block.
    pub waker: Arc<dyn Fn() + Send + Sync>,
    /// Called once at the start of each thread of a dataflow, and of the engine's own with the number 0 (the extension
    /// blocks signals there).
    pub thread_start: Arc<dyn Fn(DataflowId) + Send + Sync>,
}

/// What becomes of output updates that differ in nothing but their times. Within the dataflows each
/// update keeps its own in either form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputForm {
    /// Each has the time of the input updates that caused it.
    ByTime,
    /// They are added up, for hosts that only want to know what has changed from one frontier to the next.
    /// Of the times, the last is told; frontiers come no finer than [`Engine::advance`] is called.
    Net,
}

/// Where state may go that outgrows memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spill {
    /// A directory of the engine's own, created when needed. Files in it are unlinked at once.
    pub directory: PathBuf,
    /// Bytes in use by the process from which state of dataflows that may spill is written.
    pub above: usize,
    /// Bytes that all dataflows together may have on disk.
    pub limit: u64,
}

/// Updates of one source at one or more times.
pub type Updates<D> = Vec<(D, Time, Diff)>;

/// What the engine reports.
#[derive(Debug)]
pub enum Response {
    /// Consolidated output updates with times before the frontier reported last. Per dataflow the
    /// updates of one time arrive together. `times`, ascending, are those at which rows changed.
    Deltas { dataflow: DataflowId, oks: Updates<Row>, errs: Updates<DataError>, times: Vec<Time> },
    /// The dataflow has output everything before this time.
    Frontier { dataflow: DataflowId, time: Time },
    /// A dataflow was stopped and removed.
    Stopped { dataflow: DataflowId, reason: StopReason },
    /// A thread of a dataflow waits for values that only the host can compute: it is to answer soon.
    Evaluate(Evaluation),
}

/// Why a dataflow was stopped by the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// `max_recursion` was passed.
    RecursionLimit { iteration: u64 },
    /// The values that a recursion keeps the best of become better for ever.
    Endless { iteration: u64 },
    /// `memory_limit` was passed while this dataflow grew, or its owner had most of it.
    MemoryLimit { iteration: u64, bytes: usize },
    /// `memory_limit` was passed; created by [`Engine::create_spilling_dataflow`] it may fit.
    OutgrewMemory { bytes: usize },
    /// [`Spill::limit`] was passed while this dataflow grew.
    SpillLimit { bytes: u64 },
    /// State could not be written to disk or read from it.
    SpillFailed { message: String },
    /// A row got a multiplicity that takes just one number here, but no memory can hold as rows.
    TooManyCopies { iteration: u64, copies: u64 },
    /// A thread panicked, which is our bug, or could not be started.
    Failed { message: String },
    /// A base row is not as the plan describes its table: NULL in a column declared NOT NULL, or a
    /// value of another type. The plan is out of date.
    UnexpectedRow(DataError),
}

/// Figures of one dataflow, for monitoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataflowStats {
    /// Bytes that its threads have allocated, for its state and what is on its way, and that of its state which is on
    /// disk would take in memory.
    pub state_bytes: usize,
    /// Bytes of its state that are on disk.
    pub spilled_bytes: usize,
    /// Highest iteration of any loop in the last round of work.
    pub iterations: u64,
}
