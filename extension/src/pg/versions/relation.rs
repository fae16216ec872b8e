//! Open relations and the locks on them.

use pgrx::pg_sys::{self, Oid};

/// Whether this transaction has made the relation, or the file that holds its rows.
///
/// # Safety
/// An open relation.
pub unsafe fn is_file_of_this_transaction(relation: pg_sys::Relation) -> bool {
    // SAFETY: per contract.
    let subtransactions = unsafe {
        #[cfg(feature = "pg15")]
        let file = (*relation).rd_firstRelfilenodeSubid;
        #[cfg(not(feature = "pg15"))]
        let file = (*relation).rd_firstRelfilelocatorSubid;
        [(*relation).rd_createSubid, file]
    };
    subtransactions.iter().any(|id| *id != 0)
}

/// Whether this process holds a lock in this mode.
pub fn is_lock_held(tag: &pg_sys::LOCKTAG, mode: pg_sys::LOCKMODE) -> bool {
    // SAFETY: looks into this process's own table of locks.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return pg_sys::LockHeldByMe(tag, mode);
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        return pg_sys::LockHeldByMe(tag, mode, false);
    }
}

/// The index of the primary key, 0 if there is none or it is deferrable.
///
/// # Safety
/// An open relation.
pub unsafe fn primary_key(relation: pg_sys::Relation) -> Oid {
    // SAFETY: per contract.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return pg_sys::RelationGetPrimaryKeyIndex(relation);
        #[cfg(feature = "pg18")]
        return pg_sys::RelationGetPrimaryKeyIndex(relation, false);
    }
}

/// Begins to scan a table by an index, with so many keys, as the active snapshot sees it. 18 counts what scans read.
///
/// # Safety
/// An open table and an index of its.
pub unsafe fn begin_index_scan(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    keys: std::ffi::c_int,
) -> pg_sys::IndexScanDesc {
    // SAFETY: per contract.
    unsafe {
        let snapshot = pg_sys::GetActiveSnapshot();
        #[cfg(not(feature = "pg18"))]
        return pg_sys::index_beginscan(table, index, snapshot, keys, 0);
        #[cfg(feature = "pg18")]
        pg_sys::index_beginscan(table, index, snapshot, std::ptr::null_mut(), keys, 0)
    }
}
