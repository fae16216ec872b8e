//! Entries of relations in `pg_class`: GRANT changes one without a lock on its relation, and so does who fills a view. Of two
//! that do at once one is told that a tuple was concurrently updated. So GRANT on a view that is not filled takes the lock
//! that writers respect.

use super::ids::RelationId;
use super::{wal, xact};
use pgrx::pg_sys::{self, Oid};

/// Whether an entry could be changed without waiting for another transaction, or an error.
pub fn is_free(relation: impl Into<RelationId>) -> bool {
    let [first, rest] = [Oid::from(relation.into()).into(), pg_sys::Datum::from(0)];
    // SAFETY: a copy of the entry tells its place; a snapshot of this kind needs no more than its name, and tells who
    // deletes what it sees.
    unsafe {
        let entry = pg_sys::SearchSysCacheCopy(CACHE, first, rest, rest, rest);
        if entry.is_null() {
            return false;
        }
        let mut snapshot: pg_sys::SnapshotData = std::mem::zeroed();
        snapshot.snapshot_type = pg_sys::SnapshotType::SNAPSHOT_DIRTY;
        let mut place = pg_sys::HeapTupleData { t_self: (*entry).t_self, ..Default::default() };
        pg_sys::heap_freetuple(entry);
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        let class = pg_sys::table_open(pg_sys::RelationRelationId, lock);
        let (place, mut buffer) = (&raw mut place, 0);
        let is_there = pg_sys::heap_fetch(class, &raw mut snapshot, place, &raw mut buffer, false);
        if is_there {
            pg_sys::ReleaseBuffer(buffer);
        }
        pg_sys::table_close(class, lock);
        is_there && snapshot.xmax == pg_sys::InvalidTransactionId
    }
}

/// Whether this transaction has changed an entry, so that nobody else can before it ends.
pub fn is_changed_by_me(relation: impl Into<RelationId>) -> bool {
    let [first, rest] = [Oid::from(relation.into()).into(), pg_sys::Datum::from(0)];
    // SAFETY: a copy of an entry, which has a header.
    xact::has_xid()
        && unsafe {
            let entry = pg_sys::SearchSysCacheCopy(CACHE, first, rest, rest, rest);
            !entry.is_null()
                && pg_sys::TransactionIdIsCurrentTransactionId(
                    (*(*entry).t_data).t_choice.t_heap.t_xmin,
                )
        }
}

/// The transaction that has changed an entry last; `None` if that is long ago, or there is no entry.
pub fn changed_by(relation: impl Into<RelationId>) -> Option<u32> {
    let [first, rest] = [Oid::from(relation.into()).into(), pg_sys::Datum::from(0)];
    // SAFETY: a copy of an entry, which has a header.
    unsafe {
        let entry = pg_sys::SearchSysCacheCopy(CACHE, first, rest, rest, rest);
        if entry.is_null() {
            return None;
        }
        let header = (*entry).t_data;
        let is_frozen = pg_sys::HEAP_XMIN_FROZEN as u16;
        let is_old = (*header).t_infomask & is_frozen == is_frozen;
        let xid = u32::from((*header).t_choice.t_heap.t_xmin);
        pg_sys::heap_freetuple(entry);
        (!is_old && xid >= pg_sys::FirstNormalTransactionId.into_inner()).then_some(xid)
    }
}

/// Waits for who is filling a view, and keeps it from being filled until the end of this transaction. What has a name and is
/// no view, or is filled, is waited for by nobody.
///
/// # Safety
/// A name in the statement being run.
pub unsafe fn keep_from_filling(name: *const pg_sys::RangeVar) {
    // SAFETY: a look-up without a lock, which tolerates absence; then of the cached entry, and a lock on what may be gone.
    unsafe {
        let flags = pg_sys::RVROption::RVR_MISSING_OK;
        let relation = pg_sys::RangeVarGetRelidExtended(name, 0, flags, None, std::ptr::null_mut());
        if is_empty_view(relation) && !wal::in_recovery() {
            pg_sys::LockRelationOid(relation, pg_sys::ShareLock as pg_sys::LOCKMODE);
        }
    }
}

fn is_empty_view(relation: Oid) -> bool {
    let [first, rest] = [relation.into(), pg_sys::Datum::from(0)];
    // SAFETY: a copy of an entry, of the form that entries have.
    unsafe {
        let entry = pg_sys::SearchSysCacheCopy(CACHE, first, rest, rest, rest);
        if entry.is_null() {
            return false;
        }
        let class = pg_sys::GETSTRUCT(entry).cast::<pg_sys::FormData_pg_class>();
        let is_view = (*class).relkind as u8 == pg_sys::RELKIND_MATVIEW;
        let is_empty_view = is_view && !(*class).relispopulated;
        pg_sys::heap_freetuple(entry);
        is_empty_view
    }
}

const CACHE: i32 = pg_sys::SysCacheIdentifier::RELOID as i32;
