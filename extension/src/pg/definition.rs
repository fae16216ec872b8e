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
/// only, so that the view is one meanwhile, in which no code of users may run.
pub fn add_columns_to_view(view: Oid, columns: &[Column]) {
    if !columns.is_empty() {
        set_kind(view, pg_sys::RELKIND_RELATION);
        add_columns(view, columns);
        set_kind(view, pg_sys::RELKIND_MATVIEW);
    }
}

/// The same for a table. Its rows are neither looked at nor written anew, whatever the domain of a column says: the column is added
/// with the type below its domains, and gets its own then.
pub fn add_columns(table: Oid, columns: &[Column]) {
    if columns.is_empty() {
        return;
    }
    alter(
        table,
        columns.iter().map(|column| (pg_sys::AlterTableType::AT_AddColumn, column.base())),
    );
    for column in columns.iter().filter(|column| column.is_domain()) {
        set_type(table, column);
    }
}

impl Column {
    /// It without domains.
    fn base(&self) -> *mut pg_sys::Node {
        let name = CString::new(self.name.as_str()).unwrap_or_default();
        let mut typmod = self.typmod;
        // SAFETY: a look-up; a new node, which has a copy of the name.
        unsafe {
            let ty = pg_sys::getBaseTypeAndTypmod(self.ty, &mut typmod);
            pg_sys::makeColumnDef(name.as_ptr(), ty, typmod, self.collation).cast()
        }
    }

    fn is_domain(&self) -> bool {
        // SAFETY: a look-up.
        unsafe { pg_sys::getBaseType(self.ty) != self.ty }
    }
}

/// Gives the column of that name of a relation its type, whose values are stored as those of the type that it has are.
fn set_type(relation: Oid, column: &Column) {
    let name = CString::new(column.name.as_str()).unwrap_or_default();
    let number = change_entry::<pg_sys::FormData_pg_attribute, _>(
        pg_sys::AttributeRelationId,
        // SAFETY: a look-up; the copy of the entry of a column that is there is ours to change.
        || unsafe { pg_sys::SearchSysCacheCopyAttName(relation, name.as_ptr()) },
        |entry| {
            entry.atttypid = column.ty;
            entry.atttypmod = column.typmod;
            entry.attnum
        },
    );
    let on = pg_sys::ObjectAddress {
        classId: pg_sys::TypeRelationId,
        objectId: column.ty,
        objectSubId: 0,
    };
    // SAFETY: objects that are there.
    unsafe {
        let column = address(relation, number.into());
        pg_sys::recordDependencyOn(&column, &on, pg_sys::DependencyType::DEPENDENCY_NORMAL);
        pg_sys::CommandCounterIncrement();
    }
}

/// Changes a copy of an entry of a catalog, of the form that its entries have, and stores it.
fn change_entry<T, R>(
    catalog: Oid,
    find: impl FnOnce() -> pg_sys::HeapTuple,
    change: impl FnOnce(&mut T) -> R,
) -> R {
    // SAFETY: the catalog is opened and closed; what is found is a copy of one of its entries.
    unsafe {
        let catalog = pg_sys::table_open(catalog, ROW_EXCLUSIVE);
        let entry = find();
        let result = change(&mut *pg_sys::GETSTRUCT(entry).cast::<T>());
        pg_sys::CatalogTupleUpdate(catalog, &mut (*entry).t_self, entry);
        pg_sys::heap_freetuple(entry);
        pg_sys::table_close(catalog, ROW_EXCLUSIVE);
        pg_sys::CommandCounterIncrement();
        result
    }
}

/// Changes a relation's entry in `pg_class`.
fn set_kind(view: Oid, kind: u8) {
    let [first, rest] = [view.into(), pg_sys::Datum::from(0)];
    let cache = pg_sys::SysCacheIdentifier::RELOID as c_int;
    change_entry::<pg_sys::FormData_pg_class, _>(
        pg_sys::RelationRelationId,
        // SAFETY: a look-up of a relation that is there.
        || unsafe { pg_sys::SearchSysCacheCopy(cache, first, rest, rest, rest) },
        |entry| entry.relkind = kind as c_char,
    );
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
