//! How far a step has come that has been computed and not been written.

use crate::pg::ids::ViewId;
use engine::DataflowId;

/// A point of commit order to which all was decoded, and who has come to it.
pub struct Finished {
    /// Everything before it was decoded.
    pub position: u64,
    /// The present time that the views were told.
    pub now: i64,
    /// Views that are to be written as of it, with their dataflows: one that has another since is at another point.
    pub present: Vec<(ViewId, DataflowId)>,
    /// Source transactions that were decoded for it.
    pub commits: usize,
}
