//! Replication slots: how much WAL those of other processes hold back, and letting it go; and going on with this process's own.
//!
//! PostgreSQL has the owner of a slot give it up: it sends SIGTERM and waits. A process that stands still never does,
//! and a checkpoint that finds its slot beyond `max_slot_wal_keep_size` waits for it without end. So the slot is
//! marked here as PostgreSQL marks those it has invalidated, whatever its owner does, and those who wait are woken. An
//! owner that goes on is told to end by a signal; before it looks, it can only read WAL whose pages say that they are the
//! right ones, or fail.

use crate::pg::versions::slot;
use pgrx::pg_sys;
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// Places in the array of PostgreSQL's own locks (lwlocknames.h, lwlocklist.h; the same from 13 to 18).
const REPLICATION_SLOT_CONTROL_LOCK: usize = 37;

#[cfg(target_arch = "x86_64")]
type SpinByte = std::sync::atomic::AtomicU8;
#[cfg(not(target_arch = "x86_64"))]
type SpinByte = std::sync::atomic::AtomicI32;

/// Start of the WAL that the slot of a process holds back; `None` if it has no slot, or one that holds nothing.
pub fn held_from(pid: i32) -> Option<u64> {
    with_slot_of(pid, |slot| {
        // SAFETY: its mutex is held.
        unsafe { (*slot).data.restart_lsn }
    })
    .filter(|start| *start != 0)
}

/// Lets go of the WAL that the slot of a process holds back, and of the catalog rows. The process can use it no more.
pub fn let_go(pid: i32) {
    let invalidated = with_slot_of(pid, |slot| {
        // SAFETY: its mutex is held. These are the fields that PostgreSQL sets.
        unsafe {
            slot::invalidate(&mut *slot);
            (*slot).candidate_restart_lsn = 0;
            (*slot).candidate_restart_valid = 0;
            (*slot).candidate_xmin_lsn = 0;
        }
        slot
    });
    let Some(slot) = invalidated else { return };
    // SAFETY: outside of the mutex and of locks, as these functions take some of their own; slots are never unmapped.
    unsafe {
        pg_sys::ReplicationSlotsComputeRequiredXmin(false);
        pg_sys::ReplicationSlotsComputeRequiredLSN();
        pg_sys::ConditionVariableBroadcast(&raw mut (*slot).active_cv);
    }
}

/// Lets the server remove what this process's slot held back for transactions that ended before `position`. PostgreSQL's own
/// function for it does the same and writes the slot to disk, each time under a lock that checkpoints need: a
/// process that is stopped there keeps them waiting. What is on disk of a temporary slot is of no use to anybody.
pub fn confirm(position: u64) {
    // SAFETY: the slot belongs to this process; its mutex is held while it changes, as others read it.
    let (rows, wal) = unsafe {
        let slot = pg_sys::MyReplicationSlot;
        if slot.is_null() {
            return;
        }
        under_mutex(slot, || {
            let is_let_go = slot::is_invalidated(&*slot);
            (*slot).data.confirmed_flush = (*slot).data.confirmed_flush.max(position);
            let has_passed = |lsn: u64| !is_let_go && lsn != 0 && lsn <= position;
            let rows = has_passed((*slot).candidate_xmin_lsn);
            if rows {
                (*slot).data.catalog_xmin = (*slot).candidate_catalog_xmin;
                (*slot).effective_catalog_xmin = (*slot).candidate_catalog_xmin;
                (*slot).candidate_catalog_xmin = pg_sys::InvalidTransactionId;
                (*slot).candidate_xmin_lsn = 0;
            }
            let wal = has_passed((*slot).candidate_restart_valid);
            if wal {
                (*slot).data.restart_lsn = (*slot).candidate_restart_lsn;
                (*slot).candidate_restart_lsn = 0;
                (*slot).candidate_restart_valid = 0;
            }
            (rows, wal)
        })
    };
    // SAFETY: both take locks of their own and need none.
    unsafe {
        if rows {
            pg_sys::ReplicationSlotsComputeRequiredXmin(false);
        }
        if wal {
            pg_sys::ReplicationSlotsComputeRequiredLSN();
        }
    }
}

/// Keeps rows in the tables that a snapshot with this as its oldest running transaction sees, as PostgreSQL does for a slot from
/// which a snapshot is exported; or no longer. To be called while such a snapshot is still registered.
pub fn hold_rows(oldest: Option<u32>) {
    thread_local! {
        static HELD: Cell<Option<u32>> = const { Cell::new(None) };
    }
    if HELD.replace(oldest) == oldest {
        return;
    }
    let xid = oldest.map_or(pg_sys::InvalidTransactionId, pg_sys::TransactionId::from);
    // SAFETY: the slot belongs to this process; its mutex is held while it changes. The other takes locks of its own.
    unsafe {
        let slot = pg_sys::MyReplicationSlot;
        if slot.is_null() {
            return;
        }
        under_mutex(slot, || {
            (*slot).data.xmin = xid;
            (*slot).effective_xmin = xid;
        });
        pg_sys::ReplicationSlotsComputeRequiredXmin(false);
    }
}

/// What a predecessor has held for a snapshot of its own is of no use to anybody.
pub fn hold_no_rows() {
    // SAFETY: as above.
    unsafe {
        let slot = pg_sys::MyReplicationSlot;
        under_mutex(slot, || {
            (*slot).data.xmin = pg_sys::InvalidTransactionId;
            (*slot).effective_xmin = pg_sys::InvalidTransactionId;
        });
        pg_sys::ReplicationSlotsComputeRequiredXmin(false);
    }
}

/// Forgets to where this process's slot could be moved on: one is remembered at a time, and it may be old. What is decoded next of the
/// transactions that run says it anew.
pub fn forget_candidates() {
    // SAFETY: as above.
    unsafe {
        let slot = pg_sys::MyReplicationSlot;
        under_mutex(slot, || {
            (*slot).candidate_restart_lsn = 0;
            (*slot).candidate_restart_valid = 0;
            (*slot).candidate_catalog_xmin = pg_sys::InvalidTransactionId;
            (*slot).candidate_xmin_lsn = 0;
        });
    }
}

/// Whether rows are kept for a snapshot with this as its oldest running transaction: nobody has let the slot go, nor has another
/// process, which had added up the slots before this one's was set, put its sum in place of the one with it.
pub fn keeps(oldest: u32) -> bool {
    // SAFETY: as above; the function takes a lock of its own.
    unsafe {
        let slot = pg_sys::MyReplicationSlot;
        if slot.is_null() || under_mutex(slot, || slot::is_invalidated(&*slot)) {
            return false;
        }
        let mut kept = pg_sys::InvalidTransactionId;
        pg_sys::ProcArrayGetReplicationSlotXmin(&mut kept, std::ptr::null_mut());
        let kept = kept.into_inner();
        kept != 0 && (kept.wrapping_sub(oldest) as i32) <= 0
    }
}

/// Calls `work`, which must be short and not call PostgreSQL, under the mutex of a slot.
///
/// # Safety
/// `slot` is a place of the array of slots.
unsafe fn under_mutex<R>(slot: *mut pg_sys::ReplicationSlot, work: impl FnOnce() -> R) -> R {
    // SAFETY: per contract; PostgreSQL takes and gives back its mutexes in the same way.
    unsafe {
        let mutex = &raw mut (*slot).mutex;
        pg_sys::s_lock(mutex, c"slots.rs".as_ptr(), 0, c"under_mutex".as_ptr());
        let result = work();
        (*mutex.cast::<SpinByte>()).store(0, Ordering::Release);
        result
    }
}

/// Calls `work`, which must be short and not call PostgreSQL, with the slot in use by a process, under its mutex.
fn with_slot_of<R>(pid: i32, work: impl FnOnce(*mut pg_sys::ReplicationSlot) -> R) -> Option<R> {
    // SAFETY: the lock keeps slots in use as they are; the array has `max_replication_slots` places; each one's
    // mutex guards what `work` sees.
    unsafe {
        let control = pg_sys::ReplicationSlotCtl;
        if control.is_null() {
            return None;
        }
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(REPLICATION_SLOT_CONTROL_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_SHARED);
        let first = (&raw mut (*control).replication_slots).cast::<pg_sys::ReplicationSlot>();
        let places = usize::try_from(pg_sys::max_replication_slots).unwrap_or(0);
        let mut slots = (0..places).map(|place| first.add(place));
        let slot = slots.find(|slot| (**slot).in_use && (**slot).active_pid == pid);
        let result = slot.map(|slot| under_mutex(slot, || work(slot)));
        pg_sys::LWLockRelease(lock);
        result
    }
}

/// Bytes of WAL beyond which PostgreSQL itself takes slots away, at a checkpoint.
pub fn server_limit() -> Option<u64> {
    // SAFETY: plain globals.
    let (megabytes, segment) =
        unsafe { (pg_sys::max_slot_wal_keep_size_mb, pg_sys::wal_segment_size) };
    let segment = u64::try_from(segment).unwrap_or(0);
    u64::try_from(megabytes).ok().map(|megabytes| (megabytes << 20).saturating_sub(segment))
}
