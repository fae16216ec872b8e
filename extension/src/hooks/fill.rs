//! The query that fills an incremental view when it is created or refreshed: limits, which it shares
//! with the one that a view is compared with, and whose its rows are.
//!
//! PostgreSQL runs these queries itself, and a recursion without end would run until the disk is full.
//! The recursive nodes of its plan get an execution function that counts rounds and rows, and
//! raises the errors a running view would end in.
//!
//! The rows that fill a view carry the origin that the worker's own writes carry (see `pg::origin`). What functions of the
//! query write does not. These run under the search path under which the worker runs them, so that a view is not filled
//! with what it will not be kept at.

use crate::errors::Error;
use crate::pg::versions::tree::planstate_tree_walker;
use crate::pg::{guc, origin};
use crate::rewrite::comparison::LIMITED;
use crate::settings;
use pgrx::pg_sys::{self, NodeTag};
use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_void};

/// Bytes of a stored row beside its columns.
const ROW_OVERHEAD: usize = 24;

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
    /// What stores the rows of a new relation, and what those of a refreshed one.
    static STORE_NEW: Cell<Receive> = const { Cell::new(None) };
    static STORE_REFRESHED: Cell<Receive> = const { Cell::new(None) };
    static RECURSIONS: RefCell<Vec<Recursion>> = const { RefCell::new(Vec::new()) };
}

/// What a destination does with a row.
type Receive = Option<
    unsafe extern "C-unwind" fn(*mut pg_sys::TupleTableSlot, *mut pg_sys::DestReceiver) -> bool,
>;

/// What is known of one recursive node of the running query.
struct Recursion {
    node: *mut pg_sys::PlanState,
    original: pg_sys::ExecProcNodeMtd,
    working_table: *mut pg_sys::Tuplestorestate,
    iterations: u64,
    bytes: usize,
    /// Whether the query serves to compare, rather than to fill.
    compares: bool,
}

/// Says whether the statement about to run fills an incremental view; returns what was said before,
/// to be said again after it: a trigger may run statements inside a statement. The utility hook
/// calls it for every one that can fill a relation, so what a failed one left behind never counts.
pub fn arm(fills_view: bool) -> bool {
    RECURSIONS.with_borrow_mut(Vec::clear);
    ARMED.replace(fills_view)
}

/// Whether the statement that runs may fill an incremental view.
pub fn is_armed() -> bool {
    ARMED.get()
}

/// Puts limits on a query that has just been started, if it fills an incremental view or asks for them.
///
/// # Safety
/// `query` must be a started query.
pub unsafe fn limit_recursion(query: *mut pg_sys::QueryDesc) {
    // SAFETY: a started query has its plan state.
    unsafe {
        let asks = is_marked((*query).sourceText);
        if (asks || is_fill(query)) && !(*query).planstate.is_null() {
            let mut compares = asks;
            visit((*query).planstate, (&raw mut compares).cast());
        }
    }
}

/// Whether the text of a query begins as one with limits does.
///
/// # Safety
/// Null, or a C string.
unsafe fn is_marked(text: *const c_char) -> bool {
    let mark = LIMITED.to_bytes().iter().enumerate();
    // SAFETY: a started query's text is a C string, or null; its end differs from all of the mark.
    !text.is_null() && unsafe { mark.into_iter().all(|(i, byte)| *text.add(i) as u8 == *byte) }
}

/// Whether a query fills an incremental view.
///
/// # Safety
/// `query` must be valid.
pub(super) unsafe fn is_fill(query: *mut pg_sys::QueryDesc) -> bool {
    use pg_sys::CommandDest;
    // SAFETY: a query's destination may be null.
    ARMED.get()
        && unsafe {
            let dest = (*query).dest;
            !dest.is_null()
                && [CommandDest::DestIntoRel, CommandDest::DestTransientRel]
                    .contains(&(*dest).mydest)
        }
}

/// A query is about to run. If it fills an incremental view its rows are marked as such, and names in its functions mean
/// what they mean in the worker, until [`end_run`], which gets the answer.
///
/// # Safety
/// `query` must be a started query.
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn begin_run(query: *mut pg_sys::QueryDesc) -> c_int {
    // SAFETY: per contract; a destination is its query's own.
    unsafe {
        if !is_fill(query) {
            return 0;
        }
        let dest = (*query).dest;
        let store = store_of((*dest).mydest);
        if (*dest).receiveSlot.map(|f| f as usize) != Some(receive as *const () as usize) {
            store.with(|store| store.set((*dest).receiveSlot));
            (*dest).receiveSlot = Some(receive);
        }
        let level = pg_sys::NewGUCNestLevel();
        guc::set_for_now(c"search_path", guc::SAFE_SEARCH_PATH);
        level
    }
}

/// The query has run. After an error the abort does the same.
///
/// # Safety
/// The level that [`begin_run`] answered, which is still open.
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn end_run(level: c_int) {
    // SAFETY: the level that `begin_run` opened.
    unsafe { pg_sys::AtEOXact_GUC(true, level) }
}

fn store_of(dest: pg_sys::CommandDest::Type) -> &'static std::thread::LocalKey<Cell<Receive>> {
    match dest {
        pg_sys::CommandDest::DestIntoRel => &STORE_NEW,
        _ => &STORE_REFRESHED,
    }
}

/// Stores a row that fills a view. No destructors: errors of the server jump over it.
/// Unguarded: it calls the server alone.
///
/// # Safety
/// For the executor to call, of a destination that got this function from [`begin_run`].
unsafe extern "C-unwind" fn receive(
    slot: *mut pg_sys::TupleTableSlot,
    dest: *mut pg_sys::DestReceiver,
) -> bool {
    // SAFETY: the destination got this function in place of the one that is called.
    unsafe {
        let Some(store) = store_of((*dest).mydest).with(Cell::get) else { return false };
        origin::begin();
        let goes_on = store(slot, dest);
        origin::end();
        goes_on
    }
}

/// Unguarded: it calls the server alone.
///
/// # Safety
/// The nodes of a started query; `context` points to a `bool`.
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::PlanState, context: *mut c_void) -> bool {
    // SAFETY: plan states of a started query; casts follow the node tag. Setting the function anew
    // keeps the stack check and the instrumentation that PostgreSQL puts around it.
    unsafe {
        if (*node).type_ == NodeTag::T_RecursiveUnionState {
            let original = (*node).ExecProcNodeReal;
            let working_table = (*node.cast::<pg_sys::RecursiveUnionState>()).working_table;
            let compares = *context.cast::<bool>();
            let recursion =
                Recursion { node, original, working_table, iterations: 0, bytes: 0, compares };
            RECURSIONS.with_borrow_mut(|all| {
                // A failed query may have left one behind with this address.
                all.retain(|other| other.node != node);
                all.push(recursion);
            });
            pg_sys::ExecSetExecProcNode(node, Some(next_row));
        }
        planstate_tree_walker(node, visit, context)
    }
}

/// The execution function of a limited node. No destructors: errors of the server jump over it.
/// Unguarded: what it calls of ours is guarded.
///
/// # Safety
/// For the executor to call, of a node that [`visit`] has registered.
unsafe extern "C-unwind" fn next_row(node: *mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the node was registered when it got this function, and the original one is its own.
    unsafe {
        let Some(function) = original(node) else { return unregistered() };
        let slot = function(node);
        check(node, !slot.is_null());
        slot
    }
}

fn original(node: *mut pg_sys::PlanState) -> pg_sys::ExecProcNodeMtd {
    RECURSIONS.with_borrow(|all| all.iter().find(|r| r.node == node).and_then(|r| r.original))
}

/// An end of the rows here would be a wrong result.
#[pgrx::pg_guard]
extern "C-unwind" fn unregistered() -> *mut pg_sys::TupleTableSlot {
    Error::internal("the limits of a running recursion are gone").raise()
}

/// # Safety
/// A node that [`visit`] has registered.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn check(node: *mut pg_sys::PlanState, has_row: bool) {
    // SAFETY: a RecursiveUnionState, as its registration checked, with its plan.
    let (working_table, width) = unsafe {
        let table = (*node.cast::<pg_sys::RecursiveUnionState>()).working_table;
        (table, usize::try_from((*(*node).plan).plan_width).unwrap_or(0))
    };
    let passed = RECURSIONS.with_borrow_mut(|all| {
        let recursion = all.iter_mut().find(|recursion| recursion.node == node)?;
        // Every round begins with another working table.
        if recursion.working_table != working_table {
            recursion.working_table = working_table;
            recursion.iterations += 1;
        }
        if has_row {
            recursion.bytes += width + ROW_OVERHEAD;
        }
        passed_limit(recursion)
    });
    if let Some(error) = passed {
        error.raise();
    }
}

fn passed_limit(recursion: &Recursion) -> Option<Error> {
    // Called for each row.
    let (max_recursion, memory_limit) = (settings::max_recursion(), settings::memory_limit());
    let is_beyond_memory = |bytes| memory_limit > 0 && bytes > memory_limit;
    let Recursion { iterations, bytes, compares, .. } = *recursion;
    let error = if iterations > max_recursion {
        Error::recursion_limit(max_recursion)
    } else if is_beyond_memory(bytes) && bytes > settings::engine().fill_limit() {
        Error::memory_limit(iterations, bytes)
    } else {
        return None;
    };
    Some(match compares {
        true => error.detail(
            "The query as written takes more than the view does where the view keeps only the best rows of a \
             recursion.",
        ),
        false => error,
    })
}
