//! Replacing the snapshot of a statement that is about to run, or of a transaction that has not used it yet.
//!
//! What others must not remove follows from the snapshots that are registered or active. So a new one
//! is registered before the old one is let go: with none left, this process would keep nobody from removing
//! rows, and would not do so again before it happens to take another snapshot.

use super::{guc, xact};
use pgrx::pg_sys::{self, Snapshot};
use std::cell::Cell;
use std::ffi::c_void;

/// What a snapshot sees: two snapshots of one process with equal extents see the same, as the first
/// number only grows and, while it stays, the second only shrinks. The third is the command of the
/// transaction itself up to which it sees that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent(u32, u32, u32);

impl Extent {
    /// No snapshot.
    pub const NONE: Extent = Extent(0, 0, 0);

    /// # Safety
    /// `snapshot` must be null or valid.
    pub(super) unsafe fn of(snapshot: Snapshot) -> Extent {
        // SAFETY: per contract.
        match unsafe { snapshot.as_ref() } {
            Some(it) => Extent(it.xmax.into_inner(), it.xcnt, it.curcid),
            None => Extent::NONE,
        }
    }

    /// Whether both see the same of other transactions.
    pub fn sees_as_much_as(self, other: Extent) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

thread_local! {
    /// Registered with the transaction until its end, or until another takes its place.
    static HELD: Cell<Snapshot> = const { Cell::new(std::ptr::null_mut()) };
}

/// Set-up at library load.
pub fn install() {
    // SAFETY: a callback that lives as long as the library.
    unsafe { pg_sys::RegisterXactCallback(Some(at_end), std::ptr::null_mut()) }
}

/// # Safety
/// For PostgreSQL to call, as this callback.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn at_end(event: pg_sys::XactEvent::Type, _argument: *mut c_void) {
    use pg_sys::XactEvent::*;
    match event {
        XACT_EVENT_PRE_COMMIT | XACT_EVENT_PRE_PREPARE => let_go(),
        // The transaction's resource owner lets go itself.
        XACT_EVENT_ABORT => HELD.set(std::ptr::null_mut()),
        _ => {}
    }
}

/// Lets go of the snapshot that is held, if one is.
fn let_go() {
    let held = HELD.replace(std::ptr::null_mut());
    if !held.is_null() {
        // SAFETY: registered by `hold_new` with the owner that lives until the end of the transaction.
        unsafe { pg_sys::UnregisterSnapshotFromOwner(held, pg_sys::TopTransactionResourceOwner) }
    }
}

/// Takes a snapshot now and holds it in place of the one held before. It sees of this transaction's own changes
/// what another does.
///
/// # Safety
/// `like` must be a valid snapshot.
pub(super) unsafe fn hold_new(like: Snapshot) {
    // SAFETY: as in `let_go`; a registered snapshot is a copy of our own, which may be changed.
    unsafe {
        let owner = pg_sys::TopTransactionResourceOwner;
        let new = pg_sys::RegisterSnapshotOnOwner(pg_sys::GetTransactionSnapshot(), owner);
        (*new).curcid = (*like).curcid;
        let_go();
        HELD.set(new);
    }
}

/// The snapshot that is held.
pub(super) fn held() -> Option<Snapshot> {
    Some(HELD.get()).filter(|held| !held.is_null())
}

/// Has the statement see what `new` sees, which is registered with the current resource owner, in place of
/// its own snapshot.
///
/// # Safety
/// The query must be about to start, and its snapshot registered with the current resource owner, as
/// CreateQueryDesc does.
pub(super) unsafe fn replace(query: *mut pg_sys::QueryDesc, new: Snapshot) {
    // SAFETY: per contract. The new snapshot is registered, so the old one may go.
    unsafe {
        let old = (*query).snapshot;
        if is_active_for(query) {
            pg_sys::PopActiveSnapshot();
            pg_sys::PushActiveSnapshot(new);
        } else {
            run_alone(query);
        }
        (*query).snapshot = new;
        pg_sys::UnregisterSnapshot(old);
    }
}

/// Whether the active snapshot is the statement's, and was made active for it, in the present
/// subtransaction: whoever did that will take away whatever is in its place.
///
/// # Safety
/// A query about to start.
unsafe fn is_active_for(query: *mut pg_sys::QueryDesc) -> bool {
    // SAFETY: a query about to start has a registered snapshot; the portal that is being started is valid.
    unsafe {
        let snapshot = (*query).snapshot;
        let is_active = pg_sys::ActiveSnapshotSet()
            && pg_sys::GetActiveSnapshot() == snapshot
            && is_own(snapshot);
        // A portal makes it active as it starts; in other cases a statement around this one may have, from
        // outside of the subtransaction, whose abort must not take it away.
        let portal = pg_sys::ActivePortal;
        let is_starting =
            !portal.is_null() && (*portal).status == pg_sys::PortalStatus::PORTAL_DEFINED;
        is_active && (is_starting || pg_sys::GetCurrentTransactionNestLevel() == 1)
    }
}

/// Whether a query's snapshot was taken for it, rather than handed down by a statement that
/// called it: then nothing but the query and its portal refer to it.
///
/// # Safety
/// `snapshot` must be a registered snapshot.
pub(super) unsafe fn is_own(snapshot: Snapshot) -> bool {
    // SAFETY: per contract.
    unsafe { (*snapshot).regd_count <= 2 }
}

/// Parallel workers see what the active snapshot sees: a query that sees something else gets none.
///
/// # Safety
/// A query about to start.
unsafe fn run_alone(query: *mut pg_sys::QueryDesc) {
    // SAFETY: the plan may be in use elsewhere, so its head is copied, into the memory in which the query is
    // being started.
    unsafe {
        let plan = (*query).plannedstmt;
        if (*plan).parallelModeNeeded {
            let size = std::mem::size_of::<pg_sys::PlannedStmt>();
            let copy = pg_sys::palloc(size).cast::<pg_sys::PlannedStmt>();
            std::ptr::copy_nonoverlapping(plan, copy, 1);
            (*copy).parallelModeNeeded = false;
            (*query).plannedstmt = copy;
        }
    }
}

/// PostgreSQL's functions that pgrx does not know.
mod raw {
    #![allow(non_snake_case)]
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" {
        pub fn ReleasePredicateLocks(is_commit: bool, is_read_only_safe: bool);
    }
}

/// Gives the transaction, whose statements share one snapshot, a new one, registered with the current resource
/// owner. `None` if that cannot be: nobody may have used the old one, which the caller knows.
pub(super) fn renew_for_transaction() -> Option<Snapshot> {
    // SAFETY: `FirstSnapshotSet` is what makes PostgreSQL take the transaction's snapshot, once. The old one is
    // registered here while the new one takes its place, then loses the reference by which
    // PostgreSQL kept it. A serializable transaction without a number has left no trace in
    // PostgreSQL's book of conflicts but its place there, which it gives back as if it were aborted. If an error
    // strikes in between, the old snapshot is still in place, and the transaction's abort lets go of it.
    unsafe {
        if pg_sys::IsInParallelMode() || checks_assertions() {
            return None;
        }
        if xact::is_serializable() {
            if xact::has_xid() {
                return None;
            }
            raw::ReleasePredicateLocks(false, false);
        }
        let old = pg_sys::RegisterSnapshot(pg_sys::GetTransactionSnapshot());
        pg_sys::FirstSnapshotSet = false;
        // A copy: the transaction's own moves on with each of its commands.
        pg_sys::PushCopiedSnapshot(pg_sys::GetTransactionSnapshot());
        let new = pg_sys::RegisterSnapshot(pg_sys::GetActiveSnapshot());
        pg_sys::PopActiveSnapshot();
        (*old).regd_count -= 1;
        pg_sys::UnregisterSnapshot(old);
        Some(new)
    }
}

/// A server built to check itself ends where a transaction takes its first snapshot twice.
fn checks_assertions() -> bool {
    guc::get(c"debug_assertions") == "on"
}
