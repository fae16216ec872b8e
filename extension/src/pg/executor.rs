//! The executor and utility hooks of fresh reads: which materialized views a statement reads, and
//! under which snapshot.

use super::{fill, xact};
use crate::pg::lists;
use pgrx::pg_sys::{self, Oid};
use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

/// What fresh reads do at their occasions.
#[derive(Clone, Copy)]
pub struct Handler {
    /// A statement that reads materialized views is about to run.
    pub before_read: fn(&mut Read),
    /// A transaction statement or `SET` has run.
    pub after_transaction_statement: fn(TransactionStatement),
    /// A statement is about to run that needs a database for itself.
    pub before_database_command: fn(&DatabaseCommand),
}

/// Statements after which something has to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum TransactionStatement {
    /// BEGIN, or SET that may have changed the isolation level.
    Begin,
    /// COMMIT PREPARED.
    CommitPrepared,
}

/// Statements on a whole database, by name of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseCommand {
    /// CREATE DATABASE; the template, if named.
    Create { template: Option<String> },
    /// DROP DATABASE, ALTER DATABASE RENAME and SET TABLESPACE.
    Exclusive { name: String },
}

static HANDLER: OnceLock<Handler> = OnceLock::new();
static NEXT_START: OnceLock<pg_sys::ExecutorStart_hook_type> = OnceLock::new();
static NEXT_UTILITY: OnceLock<pg_sys::ProcessUtility_hook_type> = OnceLock::new();

/// Puts the hooks in place, once per process.
pub fn install(handler: Handler) {
    if HANDLER.set(handler).is_err() {
        return;
    }
    // SAFETY: hook variables are plain globals, set at library load by the only thread.
    unsafe {
        let _ = NEXT_START.set(pg_sys::ExecutorStart_hook);
        pg_sys::ExecutorStart_hook = Some(executor_start);
        let _ = NEXT_UTILITY.set(pg_sys::ProcessUtility_hook);
        pg_sys::ProcessUtility_hook = Some(process_utility);
    }
}

/// The hook. Its frame has no destructors, so that errors of the server may jump over it.
unsafe extern "C-unwind" fn executor_start(query: *mut pg_sys::QueryDesc, flags: c_int) {
    extern "C-unwind" {
        #[link_name = "standard_ExecutorStart"]
        fn standard(query: *mut pg_sys::QueryDesc, flags: c_int);
    }
    // SAFETY: PostgreSQL's own arguments are handed on.
    unsafe {
        let explain_only = pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int;
        if flags & explain_only == 0 && reads_materialized_view(query) {
            before_read(query);
        }
        NEXT_START.get().copied().flatten().unwrap_or(standard)(query, flags);
        fill::limit_recursion(query);
    }
}

/// Cheap test, done for every statement.
unsafe fn reads_materialized_view(query: *mut pg_sys::QueryDesc) -> bool {
    // SAFETY: a planned statement with its range table.
    unsafe { entries(query).any(|entry| is_materialized_view(entry)) }
}

unsafe fn entries(
    query: *mut pg_sys::QueryDesc,
) -> impl Iterator<Item = *const pg_sys::RangeTblEntry> {
    // SAFETY: the list's cells are range table entries; null is the empty list.
    unsafe {
        let list = (*(*query).plannedstmt).rtable;
        let count = if list.is_null() { 0 } else { (*list).length as usize };
        (0..count).map(move |index| (*(*list).elements.add(index)).ptr_value.cast_const().cast())
    }
}

unsafe fn is_materialized_view(entry: *const pg_sys::RangeTblEntry) -> bool {
    // SAFETY: an entry of a range table.
    unsafe {
        (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION
            && (*entry).relkind as u8 == pg_sys::RELKIND_MATVIEW
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn before_read(query: *mut pg_sys::QueryDesc) {
    if let Some(handler) = HANDLER.get() {
        (handler.before_read)(&mut Read { query });
    }
}

/// A statement about to run.
pub struct Read {
    query: *mut pg_sys::QueryDesc,
}

impl Read {
    /// The materialized views it reads.
    pub fn materialized_views(&self) -> Vec<u32> {
        // SAFETY: the query is valid during the hook.
        unsafe {
            let views = entries(self.query).filter(|entry| is_materialized_view(*entry));
            views.map(|entry| (*entry).relid.to_u32()).collect()
        }
    }

    /// Whether the user may run it at all; if not, PostgreSQL will say so.
    pub fn is_permitted(&self) -> bool {
        // SAFETY: the range table of a planned statement; violations are returned, not raised.
        unsafe { pg_sys::ExecCheckRTPerms((*(*self.query).plannedstmt).rtable, false) }
    }

    /// Whether the snapshot was taken for this very statement, rather than handed down by a
    /// statement that called it: then nothing but this statement and its portal refer to it.
    pub fn has_own_snapshot(&self) -> bool {
        // SAFETY: statements that read tables have a registered snapshot.
        unsafe { !self.snapshot().is_null() && (*self.snapshot()).regd_count <= 2 }
    }

    fn snapshot(&self) -> pg_sys::Snapshot {
        // SAFETY: the query is valid during the hook.
        unsafe { (*self.query).snapshot }
    }

    /// What its snapshot sees: two snapshots of one process with equal results see the same, as
    /// the first number only grows and, while it stays, the second only shrinks.
    pub fn snapshot_extent(&self) -> (u32, u32) {
        let snapshot = self.snapshot();
        if snapshot.is_null() {
            return (0, 0);
        }
        // SAFETY: a registered snapshot.
        unsafe { ((*snapshot).xmax.into_inner(), (*snapshot).xcnt) }
    }

    /// Whether its snapshot sees a committed transaction.
    pub fn sees(&self, xid: u32) -> bool {
        let snapshot = self.snapshot();
        // SAFETY: a registered MVCC snapshot.
        snapshot.is_null()
            || unsafe { !pg_sys::XidInMVCCSnapshot(pg_sys::TransactionId::from(xid), snapshot) }
    }

    /// Gives it a snapshot taken now, and makes that the active one if the old one was.
    pub fn renew_snapshot(&mut self) {
        // SAFETY: the query's snapshot is registered with the current resource owner, as
        // CreateQueryDesc does; the active snapshot is replaced only if it is the same one.
        unsafe {
            let old = self.snapshot();
            let was_active = pg_sys::ActiveSnapshotSet() && pg_sys::GetActiveSnapshot() == old;
            let new = match xact::uses_one_snapshot() {
                true => pg_sys::GetLatestSnapshot(),
                false => pg_sys::GetTransactionSnapshot(),
            };
            pg_sys::UnregisterSnapshot(old);
            if was_active {
                pg_sys::PopActiveSnapshot();
                pg_sys::PushActiveSnapshot(new);
                (*self.query).snapshot = pg_sys::RegisterSnapshot(pg_sys::GetActiveSnapshot());
            } else {
                (*self.query).snapshot = pg_sys::RegisterSnapshot(new);
            }
        }
    }
}

/// The hook for transaction control and commands on databases.
#[allow(clippy::too_many_arguments)]
unsafe extern "C-unwind" fn process_utility(
    pstmt: *mut pg_sys::PlannedStmt,
    source: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    env: *mut pg_sys::QueryEnvironment,
    dest: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    extern "C-unwind" {
        #[link_name = "standard_ProcessUtility"]
        fn standard(
            pstmt: *mut pg_sys::PlannedStmt,
            source: *const c_char,
            read_only_tree: bool,
            context: pg_sys::ProcessUtilityContext::Type,
            params: pg_sys::ParamListInfo,
            env: *mut pg_sys::QueryEnvironment,
            dest: *mut pg_sys::DestReceiver,
            completion: *mut pg_sys::QueryCompletion,
        );
    }
    // SAFETY: PostgreSQL's own arguments are handed on. What is needed afterwards is found out
    // before, because the statement may be gone with its transaction's memory.
    unsafe {
        let node = (*pstmt).utilityStmt;
        let after = transaction_statement(node);
        if is_database_command(node) {
            before_database_command(node);
        }
        let next = NEXT_UTILITY.get().copied().flatten().unwrap_or(standard);
        next(pstmt, source, read_only_tree, context, params, env, dest, completion);
        if let Some(statement) = after {
            after_transaction_statement(statement);
        }
    }
}

unsafe fn transaction_statement(node: *mut pg_sys::Node) -> Option<TransactionStatement> {
    use pg_sys::TransactionStmtKind::*;
    // SAFETY: casts follow the node tags.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_TransactionStmt => {
                match (*node.cast::<pg_sys::TransactionStmt>()).kind {
                    TRANS_STMT_BEGIN | TRANS_STMT_START => Some(TransactionStatement::Begin),
                    TRANS_STMT_COMMIT_PREPARED => Some(TransactionStatement::CommitPrepared),
                    _ => None,
                }
            }
            pg_sys::NodeTag::T_VariableSetStmt => Some(TransactionStatement::Begin),
            _ => None,
        }
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn after_transaction_statement(statement: TransactionStatement) {
    if let Some(handler) = HANDLER.get() {
        (handler.after_transaction_statement)(statement);
    }
}

unsafe fn is_database_command(node: *mut pg_sys::Node) -> bool {
    use pg_sys::NodeTag::*;
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

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn before_database_command(node: *mut pg_sys::Node) {
    // SAFETY: the caller checked the tag.
    let command = unsafe { database_command(node) };
    if let (Some(handler), Some(command)) = (HANDLER.get(), command) {
        (handler.before_database_command)(&command);
    }
}

unsafe fn database_command(node: *mut pg_sys::Node) -> Option<DatabaseCommand> {
    use pg_sys::NodeTag::*;
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
                DatabaseCommand::Exclusive { name }
            }
        })
    }
}

unsafe fn option_text(options: *mut pg_sys::List, name: &str) -> Option<String> {
    // SAFETY: a list of DefElem nodes.
    unsafe {
        let mut options = lists::pointers::<pg_sys::DefElem>(options).into_iter();
        let option = options.find(|option| text((**option).defname) == name)?;
        (!(*option).arg.is_null()).then(|| text(pg_sys::defGetString(option)))
    }
}

unsafe fn text(name: *const c_char) -> String {
    // SAFETY: a C string of the parse tree.
    unsafe { std::ffi::CStr::from_ptr(name).to_string_lossy().into_owned() }
}

/// Whether the current user owns a database, or may act as its owner.
pub fn owns_database(oid: u32) -> bool {
    // SAFETY: look-ups in shared catalogs.
    unsafe { pg_sys::pg_database_ownercheck(Oid::from(oid), pg_sys::GetUserId()) }
}

/// OID of a database; `None` if it does not exist.
pub fn database_oid(name: &str) -> Option<u32> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: a look-up in a shared catalog.
    let oid = unsafe { pg_sys::get_database_oid(name.as_ptr(), true) };
    (oid != Oid::INVALID).then_some(oid.to_u32())
}
