//! `EXPLAIN` says why a statement computes the views that it reads, where it does. `EXPLAIN ANALYZE` says how long a statement has waited
//! for them, itself and in the functions that it calls: a line before the execution time, left out where that is.

use crate::pg::versions::explain;
use crate::pg::xact;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::ffi::{c_char, c_int, CStr};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

static NEXT: OnceLock<pg_sys::ExplainOneQuery_hook_type> = OnceLock::new();
static NEXT_END: OnceLock<pg_sys::ExecutorEnd_hook_type> = OnceLock::new();

/// A query that is being explained.
#[derive(Clone, Copy)]
struct Explained {
    state: *mut pg_sys::ExplainState,
    /// Its text, by which it is told from the statements of functions.
    text: *const c_char,
    /// The depth of the (sub)transaction with whose abort it is over.
    depth: i32,
    /// How long it has waited; `None` as long as it has read no view.
    waited: Option<Duration>,
    /// Why it computes views, if it does.
    computes: Option<&'static CStr>,
}

thread_local! {
    /// Those that are being explained: a function may explain a query while it is explained itself.
    static CURRENT: RefCell<Vec<Explained>> = const { RefCell::new(Vec::new()) };
}

/// Puts the hooks in place, once per process.
pub fn install() {
    // SAFETY: hook variables are plain globals, set at library load by the only thread.
    unsafe {
        if NEXT.set(pg_sys::ExplainOneQuery_hook).is_err() {
            return;
        }
        pg_sys::ExplainOneQuery_hook = Some(explain_one_query);
        let _ = NEXT_END.set(pg_sys::ExecutorEnd_hook);
        pg_sys::ExecutorEnd_hook = Some(executor_end);
    }
    xact::at_abort(forget);
}

/// Runs `work`, which waits for views; if a query is being explained, it will say for how long.
pub fn timed<R>(work: impl FnOnce() -> R) -> R {
    if CURRENT.with_borrow(Vec::is_empty) {
        return work();
    }
    let began = Instant::now();
    let result = work();
    let waited = began.elapsed();
    CURRENT.with_borrow_mut(|all| {
        all.iter_mut().for_each(|explained| *explained.waited.get_or_insert_default() += waited)
    });
    result
}

/// A statement with that text computes the views that it reads, for this reason.
pub fn note_computed(text: *const c_char, reason: &'static CStr) {
    CURRENT.with_borrow_mut(|all| {
        let last = all.last_mut().filter(|explained| explained.text == text);
        last.into_iter().for_each(|explained| explained.computes = Some(reason));
    });
}

/// What was explained in a (sub)transaction that aborts is explained no more.
fn forget() {
    let depth = xact::depth();
    CURRENT.with_borrow_mut(|all| all.retain(|explained| explained.depth < depth));
}

/// The hook. Its frame has no destructors, so that errors of the server may jump over it: see [`forget`].
/// Unguarded: it hands on what PostgreSQL passes.
///
/// # Safety
/// For PostgreSQL to call, as this hook.
unsafe extern "C-unwind" fn explain_one_query(
    query: *mut pg_sys::Query,
    options: c_int,
    into: *mut pg_sys::IntoClause,
    state: *mut pg_sys::ExplainState,
    text: *const c_char,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
) {
    let explained = Explained { state, text, depth: xact::depth(), waited: None, computes: None };
    CURRENT.with_borrow_mut(|all| all.push(explained));
    let next = NEXT.get().copied().flatten().unwrap_or(explain::one_query);
    // SAFETY: PostgreSQL's own arguments are handed on.
    unsafe { next(query, options, into, state, text, params, environment) };
    CURRENT.with_borrow_mut(Vec::pop);
}

/// As above: no destructors.
/// Unguarded: what it calls of ours is guarded.
///
/// # Safety
/// For PostgreSQL to call, as this hook.
unsafe extern "C-unwind" fn executor_end(query: *mut pg_sys::QueryDesc) {
    extern "C-unwind" {
        #[link_name = "standard_ExecutorEnd"]
        fn standard(query: *mut pg_sys::QueryDesc);
    }
    // SAFETY: PostgreSQL's own argument.
    unsafe {
        tell((*query).sourceText);
        NEXT_END.get().copied().flatten().unwrap_or(standard)(query);
    }
}

/// Adds both to what EXPLAIN is about to show.
#[pgrx::pg_guard]
extern "C-unwind" fn tell(text: *const c_char) {
    let last = CURRENT.with_borrow(|all| all.last().copied());
    let Some(explained) = last.filter(|explained| explained.text == text) else { return };
    let state = explained.state;
    // SAFETY: EXPLAIN's own state, which lives until its hook returns; between the plan and the execution time, properties
    // are those of the query.
    unsafe {
        if let Some(reason) = explained.computes {
            let name = c"Incremental View Query".as_ptr();
            pg_sys::ExplainPropertyText(name, reason.as_ptr(), state);
        }
        if let Some(waited) = explained.waited.filter(|_| (*state).analyze && (*state).summary) {
            let (name, unit) = (c"Incremental View Wait".as_ptr(), c"ms".as_ptr());
            let milliseconds = waited.as_secs_f64() * 1e3;
            pg_sys::ExplainPropertyFloat(name, unit, milliseconds, 3, state);
        }
    }
}
