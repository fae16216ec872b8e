//! What an engine is started with.

use crate::core::updates::DataflowId;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputForm {
    /// Each has the time of the input updates that caused it.
    ByTime,
    /// They are added up, for callers that only want to know what has changed from one frontier to the next.
    /// Of the times, the last is told; frontiers come no finer than [`crate::Engine::advance`] is called.
    Net,
}

/// Where state may go that outgrows memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spill {
    /// A directory of the engine's own, created when needed. Files in it are unlinked at once.
    pub directory: PathBuf,
    /// Bytes in use by the process from which state of dataflows that may spill is written.
    pub above: usize,
    /// Bytes that all dataflows together may have on disk.
    pub limit: u64,
}
