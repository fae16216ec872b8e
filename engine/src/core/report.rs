//! What worker threads tell the engine.

use crate::core::questions::Evaluation;
use crate::core::response::StopReason;
use crate::core::updates::{Time, Updates};
use plan::error::DataError;
use plan::row::Row;
use plan::SourceId;

/// What worker threads tell the engine.
pub(crate) enum Report {
    /// All updates of a worker with times before `frontier` that were not reported yet.
    Output {
        instance: u64,
        worker: usize,
        oks: Updates<Row>,
        errs: Updates<DataError>,
        /// When rows changed, ascending.
        times: Vec<Time>,
        frontier: Time,
    },
    /// A worker hands what it puts out from now on to a source of another instance.
    Connected { instance: u64, worker: usize, reader: (u64, SourceId) },
    /// A dataflow was stopped.
    Stopped { instance: u64, reason: StopReason },
    /// A worker has written its share of the state to a file of so many bytes, or why it has not.
    Saved { instance: u64, outcome: Result<u64, String> },
    /// A thread waits for values that only the host can compute.
    Evaluate { instance: u64, evaluation: Evaluation },
}

impl Report {
    /// That a worker has nothing to put out before a time.
    pub(crate) fn nothing(instance: u64, worker: usize, frontier: Time) -> Report {
        let (oks, errs, times) = (Vec::new(), Vec::new(), Vec::new());
        Report::Output { instance, worker, oks, errs, times, frontier }
    }
}
