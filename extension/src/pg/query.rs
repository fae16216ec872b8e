//! Queries run by PostgreSQL's executor from trees, whose names nobody looks up again.

use crate::pg::quiet;
use pgrx::pg_sys;
use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

/// Starts a query as the server does, with what this extension adds, and without what others have in its hook: they watch
/// what users do.
pub type Start = unsafe extern "C-unwind" fn(*mut pg_sys::QueryDesc, c_int);

static START: OnceLock<Start> = OnceLock::new();

/// Sets what starts queries, once per process.
pub fn start_with(start: Start) {
    let _ = START.set(start);
}

// Not the bindings' own names, under which hooks are called.
extern "C-unwind" {
    fn standard_ExecutorFinish(query: *mut pg_sys::QueryDesc);
    fn standard_ExecutorEnd(query: *mut pg_sys::QueryDesc);
}

/// A query ready to run. `text` is what hooks and messages show, and outlives the plan.
pub struct Query {
    plan: *mut pg_sys::PlannedStmt,
    text: *const c_char,
}

impl Query {
    /// Plans a query that returns rows. The tree, rewritten if need be, is the caller's and is changed.
    ///
    /// # Safety
    /// A complete SELECT of our own, and a C string.
    pub unsafe fn plan(tree: *mut pg_sys::Query, text: *const c_char) -> Query {
        // SAFETY: per contract; parameters are known when it runs.
        let plan = unsafe { pg_sys::pg_plan_query(tree, text, 0, std::ptr::null_mut()) };
        Query { plan, text }
    }

    /// Runs it under the active snapshot and hands its value to `read`; `None` for NULL.
    ///
    /// # Safety
    /// Parameters as the tree has them.
    pub unsafe fn value<R>(
        &self,
        params: pg_sys::ParamListInfo,
        read: impl FnOnce(Option<pg_sys::Datum>) -> R,
    ) -> R {
        // SAFETY: the row is read before the executor's memory goes.
        unsafe {
            self.run(params, |query| {
                let outer = pg_sys::MemoryContextSwitchTo((*(*query).estate).es_query_cxt);
                let mut value = None;
                if let Some(slot) = next_row((*query).planstate) {
                    pg_sys::slot_getallattrs(slot);
                    value = (!*(*slot).tts_isnull).then(|| *(*slot).tts_values);
                }
                pg_sys::MemoryContextSwitchTo(outer);
                read(value)
            })
        }
    }

    /// Runs it under the active snapshot, without parameters, and keeps its rows.
    pub fn keep_rows(&self, store: &Store) {
        // SAFETY: a query without parameters; the filter leaves out columns that it only sorts by.
        unsafe {
            self.run(std::ptr::null_mut(), |query| {
                let estate = (*query).estate;
                let outer = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
                while let Some(mut slot) = next_row((*query).planstate) {
                    if !(*estate).es_junkFilter.is_null() {
                        slot = pg_sys::ExecFilterJunk((*estate).es_junkFilter, slot);
                    }
                    pg_sys::tuplestore_puttupleslot(store.0, slot);
                }
                pg_sys::MemoryContextSwitchTo(outer);
            });
        }
    }

    /// # Safety
    /// Parameters as the tree has them.
    unsafe fn run<R>(
        &self,
        params: pg_sys::ParamListInfo,
        work: impl FnOnce(*mut pg_sys::QueryDesc) -> R,
    ) -> R {
        // SAFETY: started, run, and ended in this order, as PostgreSQL does, or left to the abort of the
        // (sub)transaction.
        unsafe {
            let query = pg_sys::CreateQueryDesc(
                self.plan,
                self.text,
                pg_sys::GetActiveSnapshot(),
                std::ptr::null_mut(),
                pg_sys::None_Receiver,
                params,
                std::ptr::null_mut(),
                0,
            );
            // Who is told of a check of rights takes it for one of a statement that the hooks have seen begin.
            quiet::check_rights(|| {
                pg_sys::ffi::pg_guard_ffi_boundary(|| match START.get() {
                    Some(start) => start(query, 0),
                    None => pg_sys::standard_ExecutorStart(query, 0),
                })
            });
            let result = work(query);
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                standard_ExecutorFinish(query);
                standard_ExecutorEnd(query);
            });
            pg_sys::FreeQueryDesc(query);
            result
        }
    }
}

/// Rows that the executor keeps: in memory up to `work_mem`, in a temporary file beyond.
pub struct Store(*mut pg_sys::Tuplestorestate);

impl Store {
    /// # Safety
    /// A store that outlives the value.
    pub unsafe fn of(store: *mut pg_sys::Tuplestorestate) -> Store {
        Store(store)
    }
}

/// The next row of a plan; `None` at the end.
///
/// # Safety
/// A node of a started query.
unsafe fn next_row(node: *mut pg_sys::PlanState) -> Option<*mut pg_sys::TupleTableSlot> {
    // SAFETY: a started node has its function.
    unsafe {
        let slot = pg_sys::ffi::pg_guard_ffi_boundary(|| match (*node).ExecProcNode {
            Some(function) => function(node),
            None => std::ptr::null_mut(),
        });
        let is_empty = slot.is_null() || (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0;
        (!is_empty).then_some(slot)
    }
}
