//! The definition of a materialized view: its columns and its rule, which PostgreSQL itself changes for plain views only.

use super::versions::tuple;
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::ffi::{c_char, c_int, CStr, CString};

extern "C-unwind" {
    /// Exported by the server, missing in the bindings.
    #[link_name = "StoreViewQuery"]
    fn raw_store_view_query(view: Oid, query: *mut pg_sys::Query, replace: bool);
}

/// A column of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
}

impl Column {
    /// Whether all relations have one of that name.
    pub fn is_system(&self) -> bool {
        let name = CString::new(self.name.as_str()).unwrap_or_default();
        // SAFETY: looks the name up in a fixed table.
        unsafe { !pg_sys::SystemAttributeByName(name.as_ptr()).is_null() }
    }

    /// Whether it needs a collation and has none.
    pub fn lacks_collation(&self) -> bool {
        // SAFETY: a look-up in the system cache.
        self.collation == Oid::INVALID && unsafe { pg_sys::type_is_collatable(self.ty) }
    }
}

/// The columns of a view that this session has a lock on.
pub fn columns(view: Oid) -> Vec<Column> {
    // SAFETY: an open relation, whose description is copied.
    unsafe {
        let relation = pg_sys::relation_open(view, NO_LOCK);
        let columns = tuple::columns((*relation).rd_att).iter().map(|column| Column {
            name: column.name().to_owned(),
            ty: column.atttypid,
            typmod: column.atttypmod,
            collation: column.attcollation,
        });
        let columns = columns.collect();
        pg_sys::relation_close(relation, NO_LOCK);
        columns
    }
}

const NO_LOCK: pg_sys::LOCKMODE = pg_sys::NoLock as pg_sys::LOCKMODE;
const ROW_EXCLUSIVE: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;

/// Fails if this session itself is using a view, in words that name the statement.
pub fn require_unused(view: Oid, statement: &CStr) {
    // SAFETY: an open relation that is locked.
    unsafe {
        let relation = pg_sys::relation_open(view, NO_LOCK);
        pg_sys::CheckTableNotInUse(relation, statement.as_ptr());
        pg_sys::relation_close(relation, NO_LOCK);
    }
}

/// Gives a view that is locked against all further columns, which are NULL in the rows that it has. PostgreSQL adds columns to tables
/// only, so that the view is one meanwhile.
pub fn add_columns(view: Oid, columns: &[Column]) {
    if columns.is_empty() {
        return;
    }
    set_kind(view, pg_sys::RELKIND_RELATION);
    alter(view, columns.iter().map(|column| (pg_sys::AlterTableType::AT_AddColumn, column.node())));
    set_kind(view, pg_sys::RELKIND_MATVIEW);
}

impl Column {
    fn node(&self) -> *mut pg_sys::Node {
        let name = CString::new(self.name.as_str()).unwrap_or_default();
        // SAFETY: a new node, which has a copy of the name.
        unsafe {
            let (ty, typmod, collation) = (self.ty, self.typmod, self.collation);
            pg_sys::makeColumnDef(name.as_ptr(), ty, typmod, collation).cast()
        }
    }
}

/// Changes a relation's entry in `pg_class`.
fn set_kind(view: Oid, kind: u8) {
    let [first, rest] = [view.into(), pg_sys::Datum::from(0)];
    // SAFETY: the catalog is opened and closed; the copy of the entry of a relation that is there is ours to change.
    unsafe {
        let classes = pg_sys::table_open(pg_sys::RelationRelationId, ROW_EXCLUSIVE);
        let cache = pg_sys::SysCacheIdentifier::RELOID as c_int;
        let entry = pg_sys::SearchSysCacheCopy(cache, first, rest, rest, rest);
        let class = pg_sys::GETSTRUCT(entry).cast::<pg_sys::FormData_pg_class>();
        (*class).relkind = kind as c_char;
        pg_sys::CatalogTupleUpdate(classes, &mut (*entry).t_self, entry);
        pg_sys::heap_freetuple(entry);
        pg_sys::table_close(classes, ROW_EXCLUSIVE);
        pg_sys::CommandCounterIncrement();
    }
}

/// Gives a view, which is locked against all and has the columns of it, another query.
///
/// # Safety
/// An analysed query, which is left as it is.
pub unsafe fn store_query(view: Oid, query: *const pg_sys::Query) {
    // SAFETY: per contract; PostgreSQL gets a copy.
    unsafe {
        let query = pg_sys::copyObjectImpl(query.cast()).cast();
        pg_sys::ffi::pg_guard_ffi_boundary(|| raw_store_view_query(view, query, true));
        pg_sys::CommandCounterIncrement();
    }
}

/// Sets storage parameters of a view.
///
/// # Safety
/// A list of `DefElem`.
pub unsafe fn set_options(view: Oid, options: *mut pg_sys::List) {
    alter(view, [(pg_sys::AlterTableType::AT_SetRelOptions, options.cast())]);
}

/// Alters a relation by commands of `ALTER TABLE`.
fn alter(
    relation: Oid,
    commands: impl IntoIterator<Item = (pg_sys::AlterTableType::Type, *mut pg_sys::Node)>,
) {
    // SAFETY: new nodes, all zero but for what is set; the list of them.
    unsafe {
        let mut list = std::ptr::null_mut();
        for (kind, definition) in commands {
            let command = pg_sys::palloc0(size_of::<pg_sys::AlterTableCmd>());
            let command = command.cast::<pg_sys::AlterTableCmd>();
            (*command).type_ = NodeTag::T_AlterTableCmd;
            (*command).subtype = kind;
            (*command).def = definition;
            list = pg_sys::lappend(list, command.cast());
        }
        pg_sys::AlterTableInternal(relation, list, false);
        pg_sys::CommandCounterIncrement();
    }
}

/// Runs `work`, which changes a view as a statement says, between the event triggers of that statement.
///
/// # Safety
/// The statement that is being run.
pub unsafe fn between_event_triggers<R>(
    statement: *mut pg_sys::Node,
    view: Oid,
    work: impl FnOnce() -> R + std::panic::UnwindSafe,
) -> R {
    // SAFETY: begun and ended in pairs, after an error, too.
    unsafe {
        let is_begun = pg_sys::EventTriggerBeginCompleteQuery();
        pg_sys::PgTryBuilder::new(move || {
            pg_sys::EventTriggerDDLCommandStart(statement);
            let result = work();
            let none = pg_sys::ObjectAddress::default();
            pg_sys::EventTriggerCollectSimpleCommand(address(view, 0), none, statement);
            pg_sys::EventTriggerDDLCommandEnd(statement);
            result
        })
        .finally(move || {
            if is_begun {
                pg_sys::EventTriggerEndCompleteQuery();
            }
        })
        .execute()
    }
}

fn address(view: Oid, column: i32) -> pg_sys::ObjectAddress {
    pg_sys::ObjectAddress {
        classId: pg_sys::RelationRelationId,
        objectId: view,
        objectSubId: column,
    }
}
