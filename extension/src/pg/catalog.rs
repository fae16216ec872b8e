//! Look-ups in PostgreSQL's catalogs for the launcher and the worker.

use pgrx::pg_sys;

/// OIDs of the databases that accept connections. Needs a transaction.
pub fn connectable_databases() -> Vec<u32> {
    let mut found = Vec::new();
    // SAFETY: a plain heap scan of a shared catalog; tuples are read only within the scan, and
    // their fixed part is a FormData_pg_database.
    unsafe {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        let relation = pg_sys::table_open(pg_sys::DatabaseRelationId, lock);
        let scan = pg_sys::table_beginscan_catalog(relation, 0, std::ptr::null_mut());
        loop {
            let tuple = pg_sys::heap_getnext(scan, pg_sys::ScanDirection::ForwardScanDirection);
            if tuple.is_null() {
                break;
            }
            let form = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_database>();
            if (*form).datallowconn {
                found.push((*form).oid.to_u32());
            }
        }
        pg_sys::table_endscan(scan);
        pg_sys::table_close(relation, lock);
    }
    found
}

/// A table and everything that inherits from it (its partitions), the table first.
pub fn descendants(table: u32) -> Vec<u32> {
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" {
        fn find_all_inheritors(
            parent: pg_sys::Oid,
            lock: pg_sys::LOCKMODE,
            counts: *mut *mut pg_sys::List,
        ) -> *mut pg_sys::List;
    }
    // SAFETY: without locks and counts; the list is one of OIDs.
    unsafe {
        let lock = pg_sys::NoLock as pg_sys::LOCKMODE;
        let oid = pg_sys::Oid::from(table);
        let oids = super::lists::oids(find_all_inheritors(oid, lock, std::ptr::null_mut()));
        oids.iter().map(|oid| oid.to_u32()).collect()
    }
}

/// `schema.name`, quoted as needed; the OID for a relation that is gone.
pub fn qualified_name(relid: u32) -> String {
    let oid = pg_sys::Oid::from(relid);
    // SAFETY: look-ups in the system caches; results are C strings or null.
    unsafe {
        let name = pg_sys::get_rel_name(oid);
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(oid));
        if name.is_null() || schema.is_null() {
            return relid.to_string();
        }
        let quoted = pg_sys::quote_qualified_identifier(schema, name);
        std::ffi::CStr::from_ptr(quoted).to_string_lossy().into_owned()
    }
}

/// OID of a relation of the extension; `None` without it.
pub fn extension_table(name: &std::ffi::CStr) -> Option<u32> {
    // SAFETY: look-ups in the system caches.
    let table = unsafe {
        let schema = pg_sys::get_namespace_oid(c"eddy".as_ptr(), true);
        pg_sys::get_relname_relid(name.as_ptr(), schema)
    };
    (table != pg_sys::InvalidOid && super::registry::is_own(table)).then_some(table.to_u32())
}

/// Whether the current user may read a relation; nobody may read one that is gone.
pub fn may_select(relid: u32) -> bool {
    // SAFETY: look-ups in the system caches; a missing relation is no error.
    unsafe {
        let (oid, user) = (pg_sys::Oid::from(relid), pg_sys::GetUserId());
        let mode = pg_sys::ACL_SELECT as pg_sys::AclMode;
        let mut is_missing = false;
        let result = pg_sys::pg_class_aclcheck_ext(oid, user, mode, &mut is_missing);
        !is_missing && result == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// The tables a view is made from, with their partitions and children, and the views in between.
pub fn tables_beneath(views: &[u32]) -> Vec<u32> {
    let list: Vec<String> = views.iter().map(u32::to_string).collect();
    let query = format!(
        "WITH RECURSIVE beneath(oid) AS (
             SELECT v FROM pg_catalog.unnest('{{{}}}'::pg_catalog.oid[]) v
             UNION
             SELECT n.oid FROM beneath b, LATERAL (
                 SELECT d.refobjid FROM pg_catalog.pg_rewrite r, pg_catalog.pg_depend d
                 WHERE r.ev_class OPERATOR(pg_catalog.=) b.oid
                 AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass
                 AND d.objid OPERATOR(pg_catalog.=) r.oid
                 AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
                 UNION ALL
                 SELECT i.inhrelid FROM pg_catalog.pg_inherits i
                 WHERE i.inhparent OPERATOR(pg_catalog.=) b.oid
             ) n(oid)
         )
         SELECT oid FROM beneath",
        list.join(",")
    );
    let found = pgrx::Spi::connect(|client| {
        let rows = client.select(&query, None, &[])?;
        rows.map(|row| row.get::<pg_sys::Oid>(1)).collect::<Result<Vec<_>, _>>()
    });
    found.unwrap_or_default().into_iter().flatten().map(|oid| oid.to_u32()).collect()
}
