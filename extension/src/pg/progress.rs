//! The one row of `eddy.progress`: how far the views of this database have come.

use pgrx::pg_sys;

/// Replaces the row, or makes it. Needs a transaction with an active snapshot.
pub fn write(table: u32, lsn: u64) {
    // SAFETY: the table has the two columns of the install script and no index. The scan finds the
    // row and, on its way, clears old versions from the page.
    unsafe {
        let lock = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
        let relation = pg_sys::table_open(pg_sys::Oid::from(table), lock);
        let values = [pg_sys::Datum::from(lsn), pg_sys::Datum::from(super::xact::now())];
        let mut nulls = [false; 2];
        let mut values = values;
        let new =
            pg_sys::heap_form_tuple((*relation).rd_att, values.as_mut_ptr(), nulls.as_mut_ptr());
        let snapshot = pg_sys::GetActiveSnapshot();
        let scan = pg_sys::table_beginscan(relation, snapshot, 0, std::ptr::null_mut());
        let old = pg_sys::heap_getnext(scan, pg_sys::ScanDirection::ForwardScanDirection);
        if old.is_null() {
            pg_sys::simple_heap_insert(relation, new);
        } else {
            pg_sys::simple_heap_update(relation, &mut (*old).t_self, new);
        }
        pg_sys::table_endscan(scan);
        pg_sys::table_close(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
    }
}
