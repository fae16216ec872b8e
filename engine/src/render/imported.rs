//! What dataflows read of indexes, whatever their form.

use super::lookup::Index;
use plan::SourceId;
use std::any::Any;
use std::sync::Arc;

/// An index that a dataflow reads.
#[derive(Clone)]
pub(crate) struct Import {
    pub(crate) source: SourceId,
    /// None, if all rows are read.
    pub(crate) key: Vec<usize>,
    pub(crate) index: Index,
    /// Where the columns of the source are in those of the index.
    pub(crate) columns: Vec<usize>,
    pub(crate) traces: Traces,
}

/// What the workers of an index publish: a list, by worker, of its form.
pub(crate) type Exports = Arc<dyn Any + Send + Sync>;
/// What a reader's workers read: a list, by worker, of its form. From when it is made, the index keeps what was at its time.
pub(crate) type Traces = Arc<dyn Any + Send + Sync>;
