//! The executor hooks: which materialized views a statement reads, and under which snapshot; and that
//! the rows that fill an incremental view are marked as ours.

use crate::hooks::{fill, planner};
use crate::pg::read::{reads_materialized_view, Read};
use crate::pg::snapshots;
use crate::pg::versions::executor::{self, Run};
use crate::pg::{origin, query, report, xact};
use pgrx::pg_sys;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::OnceLock;

/// Called when a statement is about to run.
pub type Handler = fn(&mut Read);

static BEFORE_READ: OnceLock<Handler> = OnceLock::new();
static BEFORE_OTHER: OnceLock<Handler> = OnceLock::new();
static NEXT: OnceLock<pg_sys::ExecutorStart_hook_type> = OnceLock::new();

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
    }
    executor::install_run(executor_run);
    query::start_with(start_own);
    origin::install();
    snapshots::install();
}

/// The hook. Its frame has no destructors, so that errors of the server may jump over it.
/// Unguarded: what it calls of ours is guarded.
///
/// # Safety
/// For PostgreSQL to call, as this hook.
unsafe extern "C-unwind" fn executor_start(query: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: PostgreSQL's own arguments are handed on.
    unsafe { start(query, flags, NEXT.get().copied().flatten().unwrap_or(standard_start)) }
}

/// A query of our own, which the hooks of others are not told of.
/// Unguarded: as above.
///
/// # Safety
/// A query about to start.
unsafe extern "C-unwind" fn start_own(query: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: per contract.
    unsafe { start(query, flags, standard_start) }
}

extern "C-unwind" {
    #[link_name = "standard_ExecutorStart"]
    fn standard_start(query: *mut pg_sys::QueryDesc, flags: c_int);
}

/// As above: no destructors.
///
/// # Safety
/// A query about to start, and what starts it.
unsafe fn start(
    query: *mut pg_sys::QueryDesc,
    flags: c_int,
    next: unsafe extern "C-unwind" fn(*mut pg_sys::QueryDesc, c_int),
) {
    // SAFETY: per contract.
    unsafe {
        let (mut memory, mut flags) = (std::ptr::null_mut(), flags);
        if !is_leaders_query() {
            report::completing(std::ptr::null(), || {
                let runs = flags & pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int == 0;
                if reads_materialized_view(query) {
                    memory = before(query, flags, &BEFORE_READ);
                    flags |= planner::flags_of(query);
                } else if runs && xact::uses_one_snapshot() {
                    before(query, flags, &BEFORE_OTHER);
                }
            });
        }
        next(query, flags);
        if !memory.is_null() {
            // A plan of our own is gone with what runs it.
            give(memory, query);
        }
        fill::limit_recursion(query);
    }
}

/// As above: no destructors.
///
/// # Safety
/// For the hook of runs to call, with what PostgreSQL has passed to it.
unsafe fn executor_run(query: *mut pg_sys::QueryDesc, run: Run) {
    // SAFETY: PostgreSQL's own arguments are handed on.
    unsafe {
        let level = if fill::is_armed() { fill::begin_run(query) } else { 0 };
        run.go(query);
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

/// # Safety
/// A query that has started, and memory that lives longer.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn give(memory: pg_sys::MemoryContext, query: *mut pg_sys::QueryDesc) {
    // SAFETY: per contract.
    unsafe { pg_sys::MemoryContextSetParent(memory, (*(*query).estate).es_query_cxt) }
}

/// Answers with the memory of the plan that the query has got, if it has got one.
///
/// # Safety
/// A query about to start.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn before(
    query: *mut pg_sys::QueryDesc,
    flags: c_int,
    handler: &OnceLock<Handler>,
) -> pg_sys::MemoryContext {
    let Some(handler) = handler.get() else { return std::ptr::null_mut() };
    // SAFETY: valid for the length of the hook, in which the handler runs.
    let mut read = unsafe { Read::of(query, flags, fill::is_fill(query)) };
    handler(&mut read);
    read.memory_of_plan()
}
