//! The replication origin of the rows that are written into views: decoding drops them at sight.
//!
//! They are no changes of a base table, and collecting them, on disk if they are many, would only serve to throw them
//! away. Nothing else may carry it, above all nothing that functions write while a view is computed or one of its indexes
//! maintained: that is a change like any other. So it is set around the writing of a row and for no longer; the
//! transaction's commit does not carry it.

use super::xact;
use pgrx::pg_sys;
use std::cell::Cell;

/// "Do not replicate".
pub(super) const OF_VIEWS: pg_sys::RepOriginId = 0xffff;

thread_local! {
    /// While a row of a view is written: the origin of what the process writes otherwise.
    static OUTER: Cell<Option<pg_sys::RepOriginId>> = const { Cell::new(None) };
}

/// Set-up at library load.
pub fn install() {
    // Writing does not come back from an error; its (sub)transaction is aborted.
    xact::at_abort(end);
}

/// A row of a view is about to be written.
pub fn begin() {
    if OUTER.get().is_none() {
        OUTER.set(Some(set(OF_VIEWS)));
    }
}

/// The row is written: what comes next is a change like any other.
pub fn end() {
    if let Some(outer) = OUTER.take() {
        set(outer);
    }
}

/// Writes rows of a view.
pub(super) fn of_views<R>(write: impl FnOnce() -> R) -> R {
    begin();
    let result = write();
    end();
    result
}

fn set(origin: pg_sys::RepOriginId) -> pg_sys::RepOriginId {
    // SAFETY: a plain global.
    unsafe { (&raw mut pg_sys::replorigin_session_origin).replace(origin) }
}
