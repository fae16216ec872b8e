//! What an engine answers when it is polled.

use crate::core::questions::Evaluation;
use crate::core::updates::{DataflowId, Time, Updates};
use plan::error::DataError;
use plan::row::Row;
use serde::{Deserialize, Serialize};

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
    /// A dataflow was saved: to files of so many bytes, or why it was not.
    Saved { dataflow: DataflowId, outcome: Result<u64, String> },
    /// The engine, which is another process, has ended with all its dataflows. Nothing comes of it any more.
    Ended { reason: String },
}

/// Why a dataflow was stopped by the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// `max_recursion` was passed.
    RecursionLimit { iteration: u64 },
    /// The values that a recursion keeps the best of become better for ever.
    Endless { iteration: u64 },
    /// `memory_limit` was passed while this dataflow grew, or its owner had most of it.
    MemoryLimit { iteration: u64, bytes: usize },
    /// `memory_limit` was passed; created by [`crate::Engine::create_spilling_dataflow`] it may fit.
    OutgrewMemory { bytes: usize },
    /// [`crate::Spill::limit`] was passed while this dataflow grew.
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
    /// The engines over which it was spread are not connected to each other, or not any more.
    NotConnected { message: String },
    /// It was to start with what was saved, which cannot be had.
    NotRestored { message: String },
    /// An index that it was to read had been stopped before.
    IndexGone,
    /// The plan that makes an index raised an error. Readers that compute it for themselves can put it out.
    Raised(DataError),
}

/// Figures of one dataflow, for monitoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataflowStats {
    /// Bytes that its threads have allocated, for its state and what is on its way, and that of its state which is on
    /// disk would take in memory.
    pub state_bytes: usize,
    /// Bytes of its state that are on disk.
    pub spilled_bytes: usize,
    /// Highest iteration of any loop in the last round of work.
    pub iterations: u64,
}
