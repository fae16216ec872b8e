//! A snapshot that is used again in later transactions.
//!
//! Between them nothing of this process keeps rows from being removed that only the snapshot sees: its replication slot
//! does (`slots::hold_rows`), from before the transaction ends in which the snapshot was taken.

use super::xact;
use pgrx::pg_sys::{self, TransactionId};

/// Numbers below mean no transaction.
const FIRST_NORMAL: u32 = 3;

/// A snapshot as bytes, complete: what it says of subtransactions is in it, not to be looked up.
#[derive(Debug)]
pub struct HeldSnapshot {
    bytes: Vec<u8>,
    oldest: u32,
}

impl HeldSnapshot {
    /// The active snapshot.
    pub fn of_active() -> HeldSnapshot {
        // SAFETY: there is an active snapshot. The head is a copy whose arrays live until it has been serialized.
        unsafe {
            let active = pg_sys::GetActiveSnapshot();
            let mut head = *active;
            let mut members = Vec::new();
            if head.suboverflowed {
                members = members_of(active);
                head.subxip = members.as_mut_ptr();
                head.subxcnt = members.len() as i32;
                head.suboverflowed = false;
            }
            let mut bytes = vec![0; pg_sys::EstimateSnapshotSpace(&mut head)];
            pg_sys::SerializeSnapshot(&mut head, bytes.as_mut_ptr().cast());
            drop(members);
            HeldSnapshot { bytes, oldest: head.xmin.into_inner() }
        }
    }

    /// The first transaction that may not have ended for it.
    pub fn oldest(&self) -> u32 {
        self.oldest
    }

    /// Runs `work` with it as the active snapshot. Needs a transaction, and that the rows have been held since it was taken.
    pub fn with<R>(&self, work: impl FnOnce() -> R) -> R {
        // SAFETY: the bytes are of a snapshot; the restored one lives in the transaction's memory. Pushed and popped in
        // pairs; the transaction's abort pops after an error.
        unsafe {
            let start = self.bytes.as_ptr().cast_mut().cast();
            pg_sys::PushActiveSnapshot(pg_sys::RestoreSnapshot(start));
            let result = work();
            pg_sys::PopActiveSnapshot();
            result
        }
    }
}

/// The subtransactions of the transactions that have not ended for a snapshot which does not list them. Where they are
/// looked up is kept only as long as a transaction runs that is as old as the snapshot.
///
/// # Safety
/// The active snapshot.
unsafe fn members_of(snapshot: pg_sys::Snapshot) -> Vec<TransactionId> {
    // SAFETY: the active snapshot; the transactions between its ends are such that PostgreSQL may ask about them.
    unsafe {
        let running = xact::SnapshotCopy::of_active();
        let (mut xid, end) = ((*snapshot).xmin.into_inner(), (*snapshot).xmax.into_inner());
        let mut members = Vec::new();
        while xid != end {
            if xid >= FIRST_NORMAL && running.sees(xid) {
                let xid = TransactionId::from(xid);
                let top = pg_sys::SubTransGetTopmostTransaction(xid);
                // One that has just begun may not be known to be of another yet; it has not committed either.
                if !running.sees(top.into_inner()) || !pg_sys::TransactionIdDidCommit(xid) {
                    members.push(xid);
                }
            }
            xid = xid.wrapping_add(1);
            if xid.is_multiple_of(1 << 16) {
                super::process::check_interrupts();
            }
        }
        members
    }
}
