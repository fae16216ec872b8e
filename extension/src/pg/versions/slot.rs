//! Replication slots: 16 says why one was invalidated where 15 said at which position, 17 knows slots for failover.

use pgrx::pg_sys;
use std::ffi::CStr;

/// Takes a slot for logical decoding that goes with this process, or one that is dropped if it is given back before it is
/// made to last.
///
/// # Safety
/// In a transaction of a process that has no slot.
pub unsafe fn create(name: &CStr, may_last: bool) {
    let kind = match may_last {
        true => pg_sys::ReplicationSlotPersistency::RS_EPHEMERAL,
        false => pg_sys::ReplicationSlotPersistency::RS_TEMPORARY,
    };
    // SAFETY: per contract.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        pg_sys::ReplicationSlotCreate(name.as_ptr(), true, kind, false);
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        pg_sys::ReplicationSlotCreate(name.as_ptr(), true, kind, false, false, false);
    }
}

/// Takes a slot that is there. An error if somebody has it, or its WAL has been let go.
///
/// # Safety
/// In a transaction of a process that has no slot.
pub unsafe fn acquire(name: &CStr) {
    // SAFETY: per contract.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::ReplicationSlotAcquire(name.as_ptr(), true);
        #[cfg(feature = "pg18")]
        pg_sys::ReplicationSlotAcquire(name.as_ptr(), true, true);
    }
}

/// Whether the WAL that a slot held back has been let go.
pub fn is_invalidated(slot: &pg_sys::ReplicationSlot) -> bool {
    #[cfg(feature = "pg15")]
    return slot.data.invalidated_at != 0;
    #[cfg(not(feature = "pg15"))]
    return slot.data.invalidated != pg_sys::ReplicationSlotInvalidationCause::RS_INVAL_NONE;
}

/// Marks a slot as one whose WAL has been let go, in the fields that PostgreSQL sets.
pub fn invalidate(slot: &mut pg_sys::ReplicationSlot) {
    #[cfg(feature = "pg15")]
    {
        slot.data.invalidated_at = slot.data.restart_lsn;
    }
    #[cfg(not(feature = "pg15"))]
    {
        slot.data.invalidated = pg_sys::ReplicationSlotInvalidationCause::RS_INVAL_WAL_REMOVED;
    }
    slot.data.restart_lsn = 0;
}
