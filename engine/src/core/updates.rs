//! Which dataflow, at what time: what updates are told by as they enter and leave the engine.

use plan::Diff;
use serde::{Deserialize, Serialize};

/// Dense number of a source transaction in commit order.
pub type Time = u64;

/// The caller's name for a dataflow (one per view).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DataflowId(pub u64);

/// Updates of one source at one or more times.
pub type Updates<D> = Vec<(D, Time, Diff)>;

/// The frontier of a dataflow whose inputs are closed.
pub(crate) const CLOSED: Time = Time::MAX;

/// Gives all updates the last of the times; answers whether some had another one.
pub(crate) fn move_to_last<D, R>(updates: &mut [(D, Time, R)], times: &[Time]) -> bool {
    let Some(last) = times.last() else { return false };
    let is_mixed = updates.iter().any(|(_, time, _)| time != last);
    updates.iter_mut().for_each(|(_, time, _)| *time = *last);
    is_mixed
}
