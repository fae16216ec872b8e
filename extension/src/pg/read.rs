//! A statement that is about to run: which materialized views it reads, and under which snapshot.

use crate::pg::ids::{RelationId, ViewId};
use crate::pg::snapshots::{self, Extent};
use crate::pg::versions::rights;
use crate::pg::xact;
use crate::pg::{catalog, lists, quiet};
use pgrx::pg_sys;
use std::ffi::c_int;

/// A statement about to run.
pub struct Read {
    query: *mut pg_sys::QueryDesc,
    /// The executor's flags for it.
    flags: c_int,
    is_fill: bool,
    /// Of a plan that was made for it now.
    memory: pg_sys::MemoryContext,
}

impl Read {
    /// The statement of a query, with the flags of the executor, and whether it fills an incremental view.
    ///
    /// # Safety
    /// The query, planned and not yet started, must outlive the value.
    pub unsafe fn of(query: *mut pg_sys::QueryDesc, flags: c_int, is_fill: bool) -> Read {
        Read { query, flags, is_fill, memory: std::ptr::null_mut() }
    }

    /// The statement as the executor knows it, for hooks.
    pub(crate) fn query(&self) -> *mut pg_sys::QueryDesc {
        self.query
    }

    /// The tables it reads, itself. Where it inserts it does not read.
    fn tables(&self) -> impl Iterator<Item = RelationId> + '_ {
        // SAFETY: the query outlives this.
        let (entries, targets) = unsafe {
            let plan = &*(*self.query).plannedstmt;
            let targets = match plan.commandType {
                pg_sys::CmdType::CMD_INSERT => lists::integers(plan.resultRelations),
                _ => Vec::new(),
            };
            (entries(plan).map(|entry| &*entry), targets)
        };
        let is_table = move |(entry, number): &(&pg_sys::RangeTblEntry, i32)| {
            entry.rtekind == pg_sys::RTEKind::RTE_RELATION
                && entry.relkind as u8 != pg_sys::RELKIND_MATVIEW
                && !targets.contains(number)
        };
        entries.zip(1..).filter(is_table).map(|(entry, _)| entry.relid.into())
    }

    /// Whether it reads tables, itself.
    pub fn reads_tables(&self) -> bool {
        self.tables().next().is_some()
    }

    /// Whether it reads one of these tables, itself.
    pub fn reads_any(&self, tables: &[RelationId]) -> bool {
        self.tables().any(|table| tables.contains(&table))
    }

    /// The materialized views it reads.
    pub fn materialized_views(&self) -> Vec<ViewId> {
        // SAFETY: the query outlives this.
        unsafe { materialized_views((*self.query).plannedstmt) }
    }

    /// The materialized views it reads, with the last column that it reads of each entry of its range table for one.
    pub fn last_columns(&self) -> impl Iterator<Item = (ViewId, u32)> + '_ {
        // SAFETY: the query outlives this.
        unsafe {
            let plan = (*self.query).plannedstmt;
            let views = entries(plan).filter(|entry| is_materialized_view(*entry));
            views.map(move |entry| {
                let relid = (*entry).relid;
                let last = rights::last_column(plan, entry);
                (relid.into(), last.unwrap_or_else(|| catalog::column_count(relid)))
            })
        }
    }

    /// Whether the user may run it at all; if not, PostgreSQL will say so.
    pub fn is_permitted(&self) -> bool {
        // SAFETY: a planned statement.
        quiet::check_rights(|| unsafe { rights::may_run((*self.query).plannedstmt) })
    }

    /// Whether it is to run, rather than to be shown only.
    pub fn runs(&self) -> bool {
        self.flags & pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int == 0
    }

    /// Whether it may have to go back to earlier rows, as a cursor does.
    pub fn goes_backward(&self) -> bool {
        self.flags & pg_sys::EXEC_FLAG_BACKWARD as c_int != 0
    }

    /// Notes the memory of the plan that it has got.
    pub(crate) fn set_memory_of_plan(&mut self, memory: pg_sys::MemoryContext) {
        self.memory = memory;
    }

    /// The memory of the plan that it has got; null if it has its own.
    pub(crate) fn memory_of_plan(&self) -> pg_sys::MemoryContext {
        self.memory
    }

    /// Whether it fills an incremental view.
    pub fn is_fill(&self) -> bool {
        self.is_fill
    }

    /// Whether the snapshot was taken for this very statement, rather than handed down by a
    /// statement that called it.
    pub fn has_own_snapshot(&self) -> bool {
        // SAFETY: statements that read tables have a registered snapshot.
        unsafe { !self.snapshot().is_null() && snapshots::is_own(self.snapshot()) }
    }

    pub(super) fn snapshot(&self) -> pg_sys::Snapshot {
        // SAFETY: the query outlives this.
        unsafe { (*self.query).snapshot }
    }

    /// What its snapshot sees.
    pub fn extent(&self) -> Extent {
        // SAFETY: null or registered.
        unsafe { Extent::of(self.snapshot()) }
    }

    /// Whether its snapshot sees what a committed transaction with this full number did; 0 is none.
    pub fn sees(&self, full_xid: u64) -> bool {
        let snapshot = self.snapshot();
        if snapshot.is_null() || full_xid == 0 {
            return true;
        }
        let xid = pg_sys::TransactionId::from(full_xid as u32);
        // SAFETY: a registered MVCC snapshot. Numbers come round: what is half a round ago is seen by all.
        unsafe {
            !pg_sys::XidInMVCCSnapshot(xid, snapshot)
                || xact::next_full_xid().saturating_sub(full_xid) > 1 << 30
        }
    }

    /// Runs `work` with its snapshot as the active one.
    pub fn with_snapshot<R>(&self, work: impl FnOnce() -> R) -> R {
        let snapshot = self.snapshot();
        if snapshot.is_null() {
            return work();
        }
        // SAFETY: a registered snapshot, pushed and popped in pairs, or popped by the transaction's abort.
        unsafe {
            pg_sys::PushActiveSnapshot(snapshot);
            let result = work();
            pg_sys::PopActiveSnapshot();
            result
        }
    }

    /// Gives it a snapshot taken now.
    pub fn renew_snapshot(&mut self) {
        // SAFETY: about to start, with its snapshot registered as CreateQueryDesc does.
        unsafe {
            let new = pg_sys::RegisterSnapshot(pg_sys::GetTransactionSnapshot());
            snapshots::replace(self.query, new);
        }
    }

    /// Gives the transaction, all of whose statements have one snapshot, another one, and the statement too. False
    /// if that cannot be. No other statement may have used the old one.
    pub fn renew_transaction_snapshot(&mut self) -> bool {
        let new = snapshots::renew_for_transaction();
        if let Some(new) = new {
            // SAFETY: as above.
            unsafe { snapshots::replace(self.query, new) };
        }
        new.is_some()
    }

    /// Takes a snapshot now, for this statement and others that are called under the same one.
    pub fn hold_new_snapshot(&mut self) {
        // SAFETY: its snapshot is registered.
        unsafe { snapshots::hold_new(self.snapshot()) }
    }

    /// Has it see what the snapshot that is held sees.
    pub fn use_held_snapshot(&mut self) {
        if let Some(held) = snapshots::held() {
            // SAFETY: as above.
            unsafe { snapshots::replace(self.query, pg_sys::RegisterSnapshot(held)) }
        }
    }
}

/// Whether a statement reads a materialized view. Cheap: it is asked of every statement.
///
/// # Safety
/// A planned statement.
pub unsafe fn reads_materialized_view(query: *mut pg_sys::QueryDesc) -> bool {
    // SAFETY: a planned statement.
    unsafe { has_materialized_view((*query).plannedstmt) }
}

/// Whether a plan reads a materialized view.
///
/// # Safety
/// A plan.
pub unsafe fn has_materialized_view(plan: *const pg_sys::PlannedStmt) -> bool {
    // SAFETY: a plan with its range table.
    unsafe { entries(plan).any(|entry| is_materialized_view(entry)) }
}

/// The materialized views that a plan reads.
///
/// # Safety
/// A plan.
pub unsafe fn materialized_views(plan: *const pg_sys::PlannedStmt) -> Vec<ViewId> {
    // SAFETY: a plan with its range table.
    unsafe {
        let views = entries(plan).filter(|entry| is_materialized_view(*entry));
        views.map(|entry| (*entry).relid.into()).collect()
    }
}

/// The range table of a plan.
///
/// # Safety
/// The plan must outlive the iterator.
unsafe fn entries(
    plan: *const pg_sys::PlannedStmt,
) -> impl Iterator<Item = *const pg_sys::RangeTblEntry> {
    // SAFETY: the list's cells are range table entries; null is the empty list.
    unsafe {
        let list = (*plan).rtable;
        let count = if list.is_null() { 0 } else { (*list).length as usize };
        (0..count).map(move |index| (*(*list).elements.add(index)).ptr_value.cast_const().cast())
    }
}

/// Whether an entry of a range table stands for a materialized view.
///
/// # Safety
/// An entry of a range table.
pub unsafe fn is_materialized_view(entry: *const pg_sys::RangeTblEntry) -> bool {
    // SAFETY: an entry of a range table.
    unsafe {
        (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION
            && (*entry).relkind as u8 == pg_sys::RELKIND_MATVIEW
    }
}
