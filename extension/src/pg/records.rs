//! What sessions put on record of views when they make them.

use super::ids::ViewId;
use super::{creations, view_statistics};

/// A view goes, or is incremental no more. Needs a transaction.
pub fn forget(view: ViewId) {
    creations::forget(view);
    view_statistics::forget(view);
}
