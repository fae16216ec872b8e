//! Rows of `eddy.view_catalog`, one for each incremental view.
//!
//! Accessed as system catalogs are: directly, with the latest snapshot, whoever the current user is.

use crate::errors::Error;
use pgrx::pg_sys::{self, Oid};
use pgrx::IntoDatum;

/// The catalog table, or `None` if the extension does not exist in this database (or is being
/// dropped).
pub fn table() -> Option<Oid> {
    // SAFETY: look-ups in the system caches.
    unsafe {
        let extension = pg_sys::get_extension_oid(c"pg_eddy".as_ptr(), true);
        if extension == Oid::INVALID {
            return None;
        }
        let schema = pg_sys::get_namespace_oid(c"eddy".as_ptr(), true);
        if schema == Oid::INVALID {
            return None;
        }
        let table = pg_sys::get_relname_relid(c"view_catalog".as_ptr(), schema);
        if table == Oid::INVALID {
            return None;
        }
        let owner = pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, table);
        (owner == extension).then_some(table)
    }
}

/// Whether a relation is an incremental view.
pub fn contains(view: Oid) -> bool {
    scan(view, false)
}

/// Forgets a view; its relation becomes, or was, a plain materialized view. Says whether it was known.
pub fn remove(view: Oid) -> bool {
    scan(view, true)
}

/// Registers a view.
pub fn insert(view: Oid, definition: &str) -> Result<(), Error> {
    let table = table().ok_or_else(|| Error::internal("eddy.view_catalog does not exist"))?;
    let values = [view.into_datum(), definition.into_datum()];
    let mut values = values.map(|v| v.unwrap_or(pg_sys::Datum::from(0)));
    let mut nulls = [false; 2];
    // SAFETY: the table has the two columns of the install script; the tuple is copied by the insert.
    // CatalogTupleInsert also maintains the indexes.
    unsafe {
        let relation = pg_sys::table_open(table, pg_sys::RowExclusiveLock as i32);
        let tuple =
            pg_sys::heap_form_tuple((*relation).rd_att, values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::CatalogTupleInsert(relation, tuple);
        pg_sys::CacheInvalidateRelcache(relation);
        pg_sys::table_close(relation, pg_sys::NoLock as i32);
        pg_sys::CommandCounterIncrement();
    }
    Ok(())
}

/// Tells all sessions and workers that the set of views has changed.
pub fn announce_change() {
    let Some(table) = table() else { return };
    // SAFETY: sends a message at commit; the relation exists.
    unsafe { pg_sys::CacheInvalidateRelcacheByRelid(table) }
}

fn scan(view: Oid, delete: bool) -> bool {
    let mut found = false;
    visit(Some(view), delete, |_| found = true);
    found
}

/// All incremental views of the database.
pub fn all() -> Vec<Oid> {
    let mut views = Vec::new();
    visit(None, false, |view| views.push(view));
    views
}

/// Visits the rows of one view or of all, and deletes them if asked to.
fn visit(view: Option<Oid>, delete: bool, mut see: impl FnMut(Oid)) {
    let Some(table) = table() else { return };
    let lock = if delete { pg_sys::RowExclusiveLock } else { pg_sys::AccessShareLock } as i32;
    // SAFETY: a system-table scan over an ordinary table with an OID as first column. Without an
    // index, because this also runs while the table's objects are being dropped.
    unsafe {
        let relation = pg_sys::table_open(table, lock);
        let mut key = pg_sys::ScanKeyData::default();
        let equal = pg_sys::BTEqualStrategyNumber as u16;
        let procedure = pg_sys::RegProcedure::from(pg_sys::F_OIDEQ);
        let wanted = pg_sys::Datum::from(view.unwrap_or(Oid::INVALID));
        pg_sys::ScanKeyInit(&mut key, 1, equal, procedure, wanted);
        let keys = i32::from(view.is_some());
        let none = std::ptr::null_mut();
        let scan = pg_sys::systable_beginscan(relation, Oid::INVALID, false, none, keys, &mut key);
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let mut is_null = false;
            let value = pg_sys::heap_getattr(tuple, 1, (*relation).rd_att, &mut is_null);
            see(Oid::from(value.value() as u32));
            if delete {
                pg_sys::CatalogTupleDelete(relation, &mut (*tuple).t_self);
                pg_sys::CacheInvalidateRelcache(relation);
            }
        }
        pg_sys::systable_endscan(scan);
        let keep = if delete { pg_sys::NoLock as i32 } else { lock };
        pg_sys::table_close(relation, keep);
    }
}
