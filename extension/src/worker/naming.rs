//! Names of dataflows: a number each, and the view that it is of.

use crate::pg::ids::ViewId;
use engine::DataflowId;

/// The next name of a dataflow of a view, or of an index that is made for it.
pub(super) fn dataflow_of(relid: ViewId, next: &mut u64) -> DataflowId {
    let id = DataflowId(*next << 32 | u64::from(relid.to_u32()));
    *next += 1;
    id
}

/// The view whose dataflow it is, or for which the index was made.
pub(super) fn relid_of(dataflow: DataflowId) -> ViewId {
    ViewId::new(dataflow.0 as u32)
}
