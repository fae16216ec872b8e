//! Sets REPLICA IDENTITY FULL without keeping readers of the table out.
//!
//! ALTER TABLE locks readers out as well, to the end of the transaction. Only writers look at a table's replica identity, so
//! it is enough to lock those out: whoever writes afterwards tells the WAL whole old rows.

use super::lists;
use pgrx::pg_sys::SysCacheIdentifier::{self, INDEXRELID, RELOID};
use pgrx::pg_sys::{self, Oid};

/// Has updates and deletes of a table write whole old rows to the WAL. The caller has seen to it that the user may do
/// so. Writers wait from here to the end of the transaction.
pub fn set_full(table: Oid) {
    // SAFETY: under this lock, which is kept, nobody else changes what the catalogs say of the table's identity; the
    // relation cache knows what they say once the lock is there.
    unsafe {
        let relation = pg_sys::table_open(table, pg_sys::ShareRowExclusiveLock as i32);
        if (*(*relation).rd_rel).relreplident as u8 != b'f' {
            for index in lists::oids(pg_sys::RelationGetIndexList(relation)) {
                let release = |form: &mut pg_sys::FormData_pg_index| {
                    std::mem::replace(&mut form.indisreplident, false)
                };
                change(pg_sys::IndexRelationId, INDEXRELID, index, release);
            }
            let mark = |form: &mut pg_sys::FormData_pg_class| {
                form.relreplident = b'f' as _;
                true
            };
            change(pg_sys::RelationRelationId, RELOID, table, mark);
            pg_sys::CacheInvalidateRelcache(relation);
        }
        pg_sys::table_close(relation, pg_sys::NoLock as i32);
        pg_sys::CommandCounterIncrement();
    }
}

/// Changes a row of a catalog where `edit` says that it has.
///
/// # Safety
/// `T` must be the fixed part of the rows of the catalog, whose cache by number is `cache`.
unsafe fn change<T>(
    catalog: Oid,
    cache: SysCacheIdentifier::Type,
    object: Oid,
    edit: impl FnOnce(&mut T) -> bool,
) {
    // SAFETY: per contract; the row is a copy of our own, and is found in the catalog by its place.
    unsafe {
        let none = pg_sys::Datum::from(0);
        let key = pg_sys::Datum::from(object);
        let row = pg_sys::SearchSysCacheCopy(cache as i32, key, none, none, none);
        if row.is_null() {
            return;
        }
        if edit(&mut *pg_sys::GETSTRUCT(row).cast::<T>()) {
            let relation = pg_sys::table_open(catalog, pg_sys::RowExclusiveLock as i32);
            pg_sys::CatalogTupleUpdate(relation, &mut (*row).t_self, row);
            pg_sys::table_close(relation, pg_sys::RowExclusiveLock as i32);
        }
        pg_sys::heap_freetuple(row);
    }
}
