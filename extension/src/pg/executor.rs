//! The executor hooks: which materialized views a statement reads, and under which snapshot; and that
//! the rows that fill an incremental view are marked as ours.

use super::ids::ViewId;
use super::snapshots::{self, Extent};
use super::{fill, origin, report, xact};
use pgrx::pg_sys;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::OnceLock;

/// Called when a statement is about to run.
pub type Handler = fn(&mut Read);

static BEFORE_READ: OnceLock<Handler> = OnceLock::new();
static BEFORE_OTHER: OnceLock<Handler> = OnceLock::new();
static NEXT: OnceLock<pg_sys::ExecutorStart_hook_type> = OnceLock::new();
static NEXT_RUN: OnceLock<pg_sys::ExecutorRun_hook_type> = OnceLock::new();

/// Puts the hooks in place, once per process: for statements that read materialized views, and for all others of
/// transactions whose statements share one snapshot.
pub fn install(before_read: Handler, before_other: Handler) {
    if BEFORE_READ.set(before_read).is_err() || BEFORE_OTHER.set(before_other).is_err() {
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
    snapshots::install();
}

/// The hook. Its frame has no destructors, so that errors of the server may jump over it.
/// Unguarded: what it calls of ours is guarded.
unsafe extern "C-unwind" fn executor_start(query: *mut pg_sys::QueryDesc, flags: c_int) {
    extern "C-unwind" {
        #[link_name = "standard_ExecutorStart"]
        fn standard(query: *mut pg_sys::QueryDesc, flags: c_int);
    }
    // SAFETY: PostgreSQL's own arguments are handed on.
    unsafe {
        let explain_only = pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int;
        if flags & explain_only == 0 && !is_leaders_query() {
            let mut frame = report::completing_frame(std::ptr::null());
            frame.previous = pg_sys::error_context_stack;
            pg_sys::error_context_stack = &mut frame;
            if reads_materialized_view(query) {
                before(query, &BEFORE_READ);
            } else if xact::uses_one_snapshot() {
                before(query, &BEFORE_OTHER);
            }
            pg_sys::error_context_stack = frame.previous;
        }
        NEXT.get().copied().flatten().unwrap_or(standard)(query, flags);
        fill::limit_recursion(query);
    }
}

/// As above: no destructors.
/// Unguarded: what it calls of ours is guarded.
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

/// Whether this is the query in which this process, a parallel worker, helps its leader, who has seen to all: the
/// first that it starts. Others are those of functions called in it.
fn is_leaders_query() -> bool {
    static HAS_STARTED: AtomicBool = AtomicBool::new(false);
    xact::is_parallel_worker() && !HAS_STARTED.swap(true, Relaxed)
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
unsafe extern "C-unwind" fn before(query: *mut pg_sys::QueryDesc, handler: &OnceLock<Handler>) {
    if let Some(handler) = handler.get() {
        handler(&mut Read { query });
    }
}

/// A statement about to run.
pub struct Read {
    query: *mut pg_sys::QueryDesc,
}

impl Read {
    /// The materialized views it reads.
    pub fn materialized_views(&self) -> Vec<ViewId> {
        // SAFETY: the query is valid during the hook.
        unsafe {
            let views = entries(self.query).filter(|entry| is_materialized_view(*entry));
            views.map(|entry| (*entry).relid.into()).collect()
        }
    }

    /// Whether the user may run it at all; if not, PostgreSQL will say so.
    pub fn is_permitted(&self) -> bool {
        // SAFETY: the range table of a planned statement; violations are returned, not raised.
        unsafe { pg_sys::ExecCheckRTPerms((*(*self.query).plannedstmt).rtable, false) }
    }

    /// Whether it fills an incremental view.
    pub fn is_fill(&self) -> bool {
        // SAFETY: the query is valid during the hook.
        unsafe { fill::is_fill(self.query) }
    }

    /// Whether the snapshot was taken for this very statement, rather than handed down by a
    /// statement that called it.
    pub fn has_own_snapshot(&self) -> bool {
        // SAFETY: statements that read tables have a registered snapshot.
        unsafe { !self.snapshot().is_null() && snapshots::is_own(self.snapshot()) }
    }

    pub(super) fn snapshot(&self) -> pg_sys::Snapshot {
        // SAFETY: the query is valid during the hook.
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
