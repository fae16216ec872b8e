//! What sessions put on record of views when they make them.

use super::ids::ViewId;
use super::{changes_table, creations, mirror, view_statistics};

/// A view goes, or is incremental no more. Needs a transaction.
pub fn forget(view: ViewId) {
    changes_table::forget(view);
    mirror::forget(view);
    creations::forget(view);
    view_statistics::forget(view);
}
