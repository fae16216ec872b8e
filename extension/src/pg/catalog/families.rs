//! Which relations belong together: tables with what inherits from them, views with what is beneath them; and the databases of
//! the server.

use crate::pg::ids::{RelationId, ViewId};
use crate::pg::{lists, quiet};
use pgrx::pg_sys::{self, Oid};
use std::ffi::c_int;

/// A table and everything that inherits from it or is a partition of it, the table first. Takes the locks a reader takes.
pub fn with_descendants(relation: Oid) -> Vec<Oid> {
    inheritors(relation, pg_sys::AccessShareLock as c_int)
}

fn inheritors(relation: Oid, lock: c_int) -> Vec<Oid> {
    extern "C-unwind" {
        fn find_all_inheritors(
            parent: Oid,
            lock: c_int,
            numparents: *mut *mut pg_sys::List,
        ) -> *mut pg_sys::List;
    }
    let none = std::ptr::null_mut();
    // SAFETY: an exported function of the server, guarded because it may raise an error.
    unsafe {
        let list = pg_sys::ffi::pg_guard_ffi_boundary(|| find_all_inheritors(relation, lock, none));
        lists::oids(list)
    }
}

/// The same, without locks: the caller takes them and looks again.
pub fn descendants(table: RelationId) -> Vec<RelationId> {
    let tables = inheritors(table.into(), pg_sys::NoLock as c_int);
    tables.into_iter().map(RelationId::from).collect()
}

/// The tables a view is made from, with their partitions and children, and the views in between.
pub fn tables_beneath(views: &[ViewId]) -> Vec<RelationId> {
    let list: Vec<String> = views.iter().map(ViewId::to_string).collect();
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
    relations_of(&query)
}

/// The views and materialized views whose queries name a table.
pub fn views_right_above(table: Oid) -> Vec<RelationId> {
    relations_of(&format!(
        "SELECT DISTINCT r.ev_class FROM pg_catalog.pg_rewrite r, pg_catalog.pg_depend d
         WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass
         AND d.objid OPERATOR(pg_catalog.=) r.oid
         AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
         AND d.refobjid OPERATOR(pg_catalog.=) {} ORDER BY r.ev_class",
        table.to_u32()
    ))
}

/// The relations whose numbers a query of the catalogs answers.
fn relations_of(query: &str) -> Vec<RelationId> {
    let found = quiet::look_up(|| {
        pgrx::Spi::connect(|client| {
            let rows = client.select(query, None, &[])?;
            rows.map(|row| row.get::<pg_sys::Oid>(1)).collect::<Result<Vec<_>, _>>()
        })
    });
    found.unwrap_or_default().into_iter().flatten().map(RelationId::from).collect()
}

/// Whether tables, or what is beneath them, have code of users for the planner: in expressions and conditions of indexes, checks,
/// generated columns, statistics.
pub fn have_code(tables: &[Oid]) -> bool {
    let list: Vec<String> = tables.iter().map(|table| table.to_u32().to_string()).collect();
    let query = format!(
        "WITH RECURSIVE beneath(oid) AS (
             SELECT t FROM pg_catalog.unnest('{{{}}}'::pg_catalog.oid[]) t
             UNION
             SELECT i.inhrelid FROM beneath b, pg_catalog.pg_inherits i
             WHERE i.inhparent OPERATOR(pg_catalog.=) b.oid
         ), part(classid, objid) AS (
             SELECT d.classid, d.objid FROM beneath b, pg_catalog.pg_depend d
             WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
             AND d.refobjid OPERATOR(pg_catalog.=) b.oid
             AND d.classid OPERATOR(pg_catalog.=) ANY (ARRAY['pg_catalog.pg_class'::pg_catalog.regclass,
                 'pg_catalog.pg_constraint'::pg_catalog.regclass, 'pg_catalog.pg_attrdef'::pg_catalog.regclass,
                 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass]::pg_catalog.oid[])
             UNION SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, b.oid FROM beneath b
         )
         SELECT EXISTS (
             SELECT FROM part p JOIN pg_catalog.pg_depend d
             ON d.classid OPERATOR(pg_catalog.=) p.classid AND d.objid OPERATOR(pg_catalog.=) p.objid
             WHERE d.refobjid::pg_catalog.int8 OPERATOR(pg_catalog.>=) {}
             AND d.refclassid OPERATOR(pg_catalog.=) ANY (ARRAY['pg_catalog.pg_proc'::pg_catalog.regclass,
                 'pg_catalog.pg_operator'::pg_catalog.regclass, 'pg_catalog.pg_opclass'::pg_catalog.regclass,
                 'pg_catalog.pg_opfamily'::pg_catalog.regclass]::pg_catalog.oid[]))",
        list.join(","),
        pg_sys::FirstNormalObjectId
    );
    quiet::first_row(&query, |row| row.get_one::<bool>()).flatten().unwrap_or(true)
}

/// OID of a relation of the extension; `None` without it.
pub fn extension_table(name: &std::ffi::CStr) -> Option<RelationId> {
    // SAFETY: look-ups in the system caches.
    let table = unsafe {
        let schema = pg_sys::get_namespace_oid(c"eddy".as_ptr(), true);
        pg_sys::get_relname_relid(name.as_ptr(), schema)
    };
    (table != pg_sys::InvalidOid && crate::pg::registry::is_own(table)).then_some(table.into())
}

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
