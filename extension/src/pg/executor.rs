//! The executor hooks: which materialized views a statement reads, and under which snapshot; and that
//! the rows that fill an incremental view are marked as ours.

use super::{fill, origin, report, xact};
use pgrx::pg_sys;
use std::ffi::c_int;
use std::sync::OnceLock;

/// Called when a statement that reads materialized views is about to run.
pub type BeforeRead = fn(&mut Read);

static BEFORE_READ: OnceLock<BeforeRead> = OnceLock::new();
static NEXT: OnceLock<pg_sys::ExecutorStart_hook_type> = OnceLock::new();
static NEXT_RUN: OnceLock<pg_sys::ExecutorRun_hook_type> = OnceLock::new();

/// Puts the hooks in place, once per process.
pub fn install(handler: BeforeRead) {
    if BEFORE_READ.set(handler).is_err() {
        return;
    }
    // SAFETY: hook variables are plain globals, set at library load by the only thread.
    unsafe {
        let _ = NEXT.set(pg_sys::ExecutorStart_hook);
        pg_sys::ExecutorStart_hook = Some(executor_start);
        let _ = NEXT_RUN.set(pg_sys::ExecutorRun_hook);
        pg_sys::ExecutorRun_hook = Some(executor_run);
    }
    origin::install();
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
            let mut frame = report::completing_frame(std::ptr::null());
            frame.previous = pg_sys::error_context_stack;
            pg_sys::error_context_stack = &mut frame;
            before_read(query);
            pg_sys::error_context_stack = frame.previous;
        }
        NEXT.get().copied().flatten().unwrap_or(standard)(query, flags);
        fill::limit_recursion(query);
    }
}

/// As above: no destructors.
unsafe extern "C-unwind" fn executor_run(
    query: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    execute_once: bool,
) {
    extern "C-unwind" {
        #[link_name = "standard_ExecutorRun"]
        fn standard(
            query: *mut pg_sys::QueryDesc,
            direction: pg_sys::ScanDirection::Type,
            count: u64,
            execute_once: bool,
        );
    }
    // SAFETY: PostgreSQL's own arguments are handed on.
    unsafe {
        let next = NEXT_RUN.get().copied().flatten().unwrap_or(standard);
        let level = if fill::is_armed() { fill::begin_run(query) } else { 0 };
        next(query, direction, count, execute_once);
        if level > 0 {
            fill::end_run(level);
        }
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
    if let Some(handler) = BEFORE_READ.get() {
        handler(&mut Read { query });
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

    /// Gives it a snapshot taken now, and makes that the active one if the old one was.
    pub fn renew_snapshot(&mut self) {
        // SAFETY: the query's snapshot is registered with the current resource owner, as
        // CreateQueryDesc does; the active snapshot is replaced only if it is the same one. The new
        // one is registered first: with none left, this process would not keep others from removing
        // rows, and would not do so again before it happens to take another snapshot.
        unsafe {
            let old = self.snapshot();
            let new = pg_sys::RegisterSnapshot(match xact::uses_one_snapshot() {
                true => pg_sys::GetLatestSnapshot(),
                false => pg_sys::GetTransactionSnapshot(),
            });
            if pg_sys::ActiveSnapshotSet() && pg_sys::GetActiveSnapshot() == old {
                pg_sys::PopActiveSnapshot();
                pg_sys::PushActiveSnapshot(new);
            }
            (*self.query).snapshot = new;
            pg_sys::UnregisterSnapshot(old);
        }
    }
}
