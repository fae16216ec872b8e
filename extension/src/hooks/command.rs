//! Transaction control and commands on whole databases, as owned data.

use crate::pg::versions::rights;
use crate::pg::{lists, process};
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::ffi::{c_char, CStr, CString};

/// Statements on a whole database, by name of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseCommand {
    /// CREATE DATABASE; the template, if named.
    Create { template: Option<String> },
    /// DROP DATABASE and ALTER DATABASE SET TABLESPACE.
    Exclusive { name: String },
    /// ALTER DATABASE RENAME.
    Rename { name: String },
}

impl DatabaseCommand {
    /// The database that the command needs for itself.
    pub fn database(&self) -> Option<u32> {
        database_oid(match self {
            Self::Create { template } => template.as_deref().unwrap_or("template1"),
            Self::Exclusive { name } | Self::Rename { name } => name,
        })
    }

    /// Whether PostgreSQL lets the current user run it on that database, by the same rules.
    pub fn is_permitted(&self, database: u32) -> bool {
        let is_own = owns_database(database);
        match self {
            Self::Create { .. } => may_create_databases() && (is_own || is_template(database)),
            Self::Exclusive { .. } => is_own,
            Self::Rename { .. } => is_own && may_create_databases(),
        }
    }

    /// Whether PostgreSQL runs it on that database where the statement stands: most cannot be part of a transaction, and
    /// none can be run in the database that it takes away.
    pub fn is_possible(&self, database: u32, is_top_level: bool) -> bool {
        // SAFETY: read backend-local state.
        let is_alone = unsafe { !pg_sys::IsTransactionBlock() && !pg_sys::IsSubTransaction() };
        let is_elsewhere = database != process::database();
        match self {
            Self::Create { .. } => is_top_level && is_alone,
            Self::Exclusive { .. } => is_top_level && is_alone && is_elsewhere,
            Self::Rename { .. } => is_elsewhere,
        }
    }
}

/// Whether a statement defines something anew, or no more, that queries may be made from. What it creates, none is made from yet.
///
/// # Safety
/// `node` must be the statement of a utility command.
pub unsafe fn redefines(node: *mut pg_sys::Node) -> bool {
    use NodeTag::*;
    // SAFETY: the tag decides the type.
    match unsafe { (*node).type_ } {
        T_AlterTableStmt | T_AlterDomainStmt | T_AlterEnumStmt | T_AlterFunctionStmt
        | T_AlterOperatorStmt | T_AlterPolicyStmt | T_AlterTypeStmt | T_CreateCastStmt
        | T_CreatePolicyStmt | T_DropOwnedStmt | T_RenameStmt => true,
        // Those with OR REPLACE.
        // SAFETY: as above.
        T_CreateFunctionStmt => unsafe { (*node.cast::<pg_sys::CreateFunctionStmt>()).replace },
        T_ViewStmt => unsafe { (*node.cast::<pg_sys::ViewStmt>()).replace },
        T_DefineStmt => unsafe { (*node.cast::<pg_sys::DefineStmt>()).replace },
        // SAFETY: as above.
        T_DropStmt => unsafe {
            use pg_sys::ObjectType::*;
            let kind = (*node.cast::<pg_sys::DropStmt>()).removeType;
            matches!(kind, OBJECT_TABLE | OBJECT_FOREIGN_TABLE | OBJECT_POLICY | OBJECT_CAST)
        },
        _ => false,
    }
}

/// Whether a statement changes rights on relations that it names.
///
/// # Safety
/// `node` must be the statement of a utility command.
pub unsafe fn grants_on_relations(node: *mut pg_sys::Node) -> bool {
    // SAFETY: casts follow the node tags.
    unsafe {
        let grant = node.cast::<pg_sys::GrantStmt>();
        (*node).type_ == NodeTag::T_GrantStmt
            && (*grant).objtype == pg_sys::ObjectType::OBJECT_TABLE
            && (*grant).targtype == pg_sys::GrantTargetType::ACL_TARGET_OBJECT
    }
}

/// The names of the relations.
///
/// # Safety
/// `node` must be a statement that passed [`grants_on_relations`].
pub unsafe fn granted_relations(node: *mut pg_sys::Node) -> Vec<*mut pg_sys::RangeVar> {
    // SAFETY: what is granted on relations has their names.
    unsafe { lists::pointers((*node.cast::<pg_sys::GrantStmt>()).objects) }
}

/// Whether a statement commits a prepared transaction.
///
/// # Safety
/// `node` must be the statement of a utility command.
pub unsafe fn commits_prepared(node: *mut pg_sys::Node) -> bool {
    // SAFETY: casts follow the node tags.
    unsafe {
        (*node).type_ == NodeTag::T_TransactionStmt
            && (*node.cast::<pg_sys::TransactionStmt>()).kind
                == pg_sys::TransactionStmtKind::TRANS_STMT_COMMIT_PREPARED
    }
}

/// Whether a statement reads nothing, whatever snapshot PostgreSQL takes for it.
///
/// # Safety
/// `node` must be the statement of a utility command.
pub unsafe fn reads_nothing(node: *mut pg_sys::Node) -> bool {
    // SAFETY: a node has a tag.
    matches!(unsafe { (*node).type_ }, NodeTag::T_PrepareStmt | NodeTag::T_DeallocateStmt)
}

/// Cheap test whether [`database_command`] can find one.
///
/// # Safety
/// `node` must be the statement of a utility command.
pub unsafe fn is_database_command(node: *mut pg_sys::Node) -> bool {
    use NodeTag::*;
    // SAFETY: casts follow the node tags.
    unsafe {
        match (*node).type_ {
            T_CreatedbStmt | T_DropdbStmt | T_AlterDatabaseStmt => true,
            T_RenameStmt => {
                (*node.cast::<pg_sys::RenameStmt>()).renameType
                    == pg_sys::ObjectType::OBJECT_DATABASE
            }
            _ => false,
        }
    }
}

/// The command on a database that a statement is, if it needs the database for itself.
///
/// # Safety
/// `node` must be a statement that passed [`is_database_command`].
pub unsafe fn database_command(node: *mut pg_sys::Node) -> Option<DatabaseCommand> {
    use NodeTag::*;
    // SAFETY: casts follow the node tags; names are C strings.
    unsafe {
        Some(match (*node).type_ {
            T_CreatedbStmt => {
                let options = (*node.cast::<pg_sys::CreatedbStmt>()).options;
                DatabaseCommand::Create { template: option_text(options, "template") }
            }
            T_DropdbStmt => {
                let name = text((*node.cast::<pg_sys::DropdbStmt>()).dbname);
                DatabaseCommand::Exclusive { name }
            }
            T_AlterDatabaseStmt => {
                let alter = node.cast::<pg_sys::AlterDatabaseStmt>();
                option_text((*alter).options, "tablespace")?;
                DatabaseCommand::Exclusive { name: text((*alter).dbname) }
            }
            _ => {
                let name = text((*node.cast::<pg_sys::RenameStmt>()).subname);
                DatabaseCommand::Rename { name }
            }
        })
    }
}

/// The value of the option of a name.
///
/// # Safety
/// A list of `DefElem` nodes of the statement.
unsafe fn option_text(options: *mut pg_sys::List, name: &str) -> Option<String> {
    // SAFETY: a list of DefElem nodes.
    unsafe {
        let mut options = lists::pointers::<pg_sys::DefElem>(options).into_iter();
        let option = options.find(|option| text((**option).defname) == name)?;
        (!(*option).arg.is_null()).then(|| text(pg_sys::defGetString(option)))
    }
}

/// A copy of a name.
///
/// # Safety
/// A C string.
unsafe fn text(name: *const c_char) -> String {
    // SAFETY: a C string of the parse tree.
    unsafe { CStr::from_ptr(name).to_string_lossy().into_owned() }
}

/// Whether the current user owns a database, or may act as its owner.
fn owns_database(oid: u32) -> bool {
    rights::owns_database(Oid::from(oid))
}

/// Whether the current user may create databases at all.
fn may_create_databases() -> bool {
    use pg_sys::SysCacheIdentifier::AUTHOID;
    let may = |role: &pg_sys::FormData_pg_authid| role.rolcreatedb;
    // SAFETY: rows of that cache are those of roles.
    unsafe { pg_sys::superuser() || look_up(AUTHOID, pg_sys::GetUserId(), may).unwrap_or(false) }
}

/// Whether whoever may create databases may copy this one.
fn is_template(database: u32) -> bool {
    use pg_sys::SysCacheIdentifier::DATABASEOID;
    let is = |row: &pg_sys::FormData_pg_database| row.datistemplate;
    // SAFETY: rows of that cache are those of databases.
    unsafe { look_up(DATABASEOID, Oid::from(database), is).unwrap_or(false) }
}

/// What a row of a system cache says.
///
/// # Safety
/// `T` must be the fixed part of the rows of the cache.
unsafe fn look_up<T, R>(
    cache: pg_sys::SysCacheIdentifier::Type,
    key: Oid,
    read: impl FnOnce(&T) -> R,
) -> Option<R> {
    // SAFETY: per contract; the row is released after it was read.
    unsafe {
        let row = pg_sys::SearchSysCache1(cache as i32, pg_sys::Datum::from(key));
        if row.is_null() {
            return None;
        }
        let result = read(&*pg_sys::GETSTRUCT(row).cast::<T>());
        pg_sys::ReleaseSysCache(row);
        Some(result)
    }
}

/// OID of a database; `None` if it does not exist.
fn database_oid(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: a look-up in a shared catalog.
    let oid = unsafe { pg_sys::get_database_oid(name.as_ptr(), true) };
    (oid != Oid::INVALID).then_some(oid.to_u32())
}
