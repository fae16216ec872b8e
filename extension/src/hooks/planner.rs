//! The planner hook. A plan that reads materialized views carries the query that it was made from. Should the rows that are stored in
//! incremental views not be what a statement has to see, it is planned anew as it starts, to compute them (`query_scan`).
//!
//! The query is an entry of the plan's range table that nothing refers to. So it is wherever the plan is: copies of plans, which the
//! server keeps for prepared statements and for functions, have copies of it, and it is gone when they are.

use crate::errors::Error;
use crate::hooks::explain;
use crate::hooks::query_scan::{self, Handlers};
use crate::pg::ids::ViewId;
use crate::pg::query::{Query, Store};
use crate::pg::read::{self, Read};
use crate::pg::relation::is_populated;
use crate::pg::versions::tree::{expression_tree_walker, query_tree_walker};
use crate::pg::{memory, process};
use crate::rewrite::computed_views::{self, ViewQuery};
use crate::rewrite::nodes;
use pgrx::pg_sys::{self, NodeTag, RTEKind};
use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::OnceLock;

static NEXT: OnceLock<pg_sys::planner_hook_type> = OnceLock::new();

/// What the entry of a plan that computes views is called. Entries of its kind have no name of users.
const COMPUTES: &CStr = c"computes incremental views";

/// Puts the hook in place, once per process.
pub fn install(handlers: Handlers) {
    // SAFETY: hook variables are plain globals, set at library load by the only thread.
    unsafe {
        if NEXT.set(pg_sys::planner_hook).is_ok() {
            pg_sys::planner_hook = Some(plan);
        }
    }
    query_scan::install(handlers);
}

/// The hook. Its frame has no destructors, so that errors of the server may jump over it.
/// Unguarded: what it calls of ours is guarded.
///
/// # Safety
/// For PostgreSQL to call, as this hook.
unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    params: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    extern "C-unwind" {
        #[link_name = "standard_planner"]
        fn standard(
            query: *mut pg_sys::Query,
            text: *const c_char,
            options: c_int,
            params: pg_sys::ParamListInfo,
        ) -> *mut pg_sys::PlannedStmt;
    }
    // SAFETY: PostgreSQL's own arguments are handed on; planning changes the query.
    unsafe {
        let computes = query_scan::plans(query);
        let is_kept =
            !computes && !process::is_ours() && may_read(query.cast(), std::ptr::null_mut());
        let kept = if is_kept { copy(query) } else { std::ptr::null_mut() };
        let plan = NEXT.get().copied().flatten().unwrap_or(standard)(query, text, options, params);
        if (computes || is_kept) && read::has_materialized_view(plan) {
            attach(plan, kept, options);
        }
        plan
    }
}

/// Whether a query, or one that a function of its range table is replaced by as it is planned, may read materialized views.
/// Unguarded: it calls the server alone.
///
/// # Safety
/// For PostgreSQL's walkers to call, or with a complete query.
unsafe extern "C-unwind" fn may_read(node: *mut pg_sys::Node, arg: *mut c_void) -> bool {
    // SAFETY: tags decide types; null is a missing part of a node.
    unsafe {
        if node.is_null() {
            return false;
        }
        match (*node).type_ {
            NodeTag::T_Query => {
                let flags = pg_sys::QTW_EXAMINE_RTES_BEFORE as c_int;
                query_tree_walker(node.cast(), may_read, arg, flags)
            }
            NodeTag::T_RangeTblEntry => {
                let entry = &*node.cast::<pg_sys::RangeTblEntry>();
                match entry.rtekind {
                    RTEKind::RTE_FUNCTION => may_be_replaced(entry),
                    _ => read::is_materialized_view(entry),
                }
            }
            _ => expression_tree_walker(node, may_read, arg),
        }
    }
}

/// Whether an entry calls a function of users alone.
///
/// # Safety
/// A complete entry for functions.
unsafe fn may_be_replaced(entry: &pg_sys::RangeTblEntry) -> bool {
    // SAFETY: the list holds at least one function of the range table; the tag decides what it calls.
    unsafe {
        let first = (*(*entry.functions).elements).ptr_value.cast::<pg_sys::RangeTblFunction>();
        let call = (*first).funcexpr.cast::<pg_sys::FuncExpr>();
        !call.is_null()
            && (*call).xpr.type_ == NodeTag::T_FuncExpr
            && (*call).funcid.to_u32() >= pg_sys::FirstNormalObjectId
    }
}

/// # Safety
/// A complete query.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn copy(query: *mut pg_sys::Query) -> *mut pg_sys::Query {
    // SAFETY: per contract; the query is only read.
    unsafe { pg_sys::copyObjectImpl(query.cast()).cast() }
}

/// Adds the entry that carries the query, or with null the one that says that the plan computes views.
///
/// # Safety
/// A plan of this moment, and a complete query.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn attach(
    plan: *mut pg_sys::PlannedStmt,
    query: *mut pg_sys::Query,
    options: c_int,
) {
    // SAFETY: a new node. What belongs to the plan is made where the plan was made.
    unsafe {
        let entry: *mut pg_sys::RangeTblEntry = nodes::new(NodeTag::T_RangeTblEntry);
        (*entry).eref = pg_sys::makeAlias(COMPUTES.as_ptr(), std::ptr::null_mut());
        (*entry).rtekind = match query.is_null() {
            true => RTEKind::RTE_RESULT,
            false => RTEKind::RTE_SUBQUERY,
        };
        (*entry).subquery = query;
        // Nothing else is said there of a subquery.
        (*entry).ctelevelsup = options as pg_sys::Index;
        (*plan).rtable = pg_sys::lappend((*plan).rtable, entry.cast());
    }
}

/// The entry that [`attach`] has added last, if any.
fn attached(read: &Read) -> Option<&pg_sys::RangeTblEntry> {
    // SAFETY: the plan lives as long.
    unsafe { attached_to((*read.query()).plannedstmt) }
}

/// The same of a plan.
///
/// # Safety
/// A plan that lives as long as the entry is used.
unsafe fn attached_to<'p>(plan: *mut pg_sys::PlannedStmt) -> Option<&'p pg_sys::RangeTblEntry> {
    // SAFETY: entries live as long as the plan. Of other subqueries nothing is left in a plan.
    unsafe {
        let count = pg_sys::list_length((*plan).rtable);
        let last = pg_sys::list_nth((*plan).rtable, count - 1).cast::<pg_sys::RangeTblEntry>();
        let is_ours = match (*last).rtekind {
            RTEKind::RTE_RESULT => {
                let name = (*last).eref;
                !name.is_null() && CStr::from_ptr((*name).aliasname) == COMPUTES
            }
            RTEKind::RTE_SUBQUERY => !(*last).subquery.is_null(),
            _ => false,
        };
        is_ours.then(|| &*last)
    }
}

/// What the executor is to be told beside of a statement: that views need not have been filled, if it computes all of them that
/// have not. Of those that it does not compute PostgreSQL says that they have not been populated.
///
/// # Safety
/// A statement that is about to start.
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn flags_of(query: *mut pg_sys::QueryDesc) -> c_int {
    // SAFETY: per contract.
    let views = unsafe {
        let plan = (*query).plannedstmt;
        if !attached_to(plan).is_some_and(|entry| entry.subquery.is_null()) {
            return 0;
        }
        read::materialized_views(plan)
    };
    let is_fit = |view: &ViewId| query_scan::is_computed(*view) || is_populated(*view);
    match views.iter().all(is_fit) {
        true => pg_sys::EXEC_FLAG_WITH_NO_DATA as c_int,
        false => 0,
    }
}

/// Whether a statement computes the incremental views that it reads.
pub fn computes_views(read: &Read) -> bool {
    attached(read).is_some_and(|entry| entry.subquery.is_null())
}

/// Plans a statement anew that is about to start, so that it computes the incremental views it reads. False if its plan does not
/// carry its query. An error if the statement asks for what computed rows have not.
pub fn compute_views(read: &mut Read, reason: &'static CStr) -> Result<bool, Error> {
    let Some(entry) = attached(read).filter(|entry| !entry.subquery.is_null()) else {
        return Ok(false);
    };
    // Its snapshot need not be what parallel workers would see.
    let mut options = entry.ctelevelsup as c_int & !(pg_sys::CURSOR_OPT_PARALLEL_OK as c_int);
    if read.goes_backward() {
        options |= pg_sys::CURSOR_OPT_SCROLL as c_int;
    }
    let desc = read.query();
    // SAFETY: a copy, which planning may change; text and parameters are those of the statement.
    unsafe {
        let memory = memory::new_context(pg_sys::CurrentMemoryContext, COMPUTES);
        let outer = pg_sys::MemoryContextSwitchTo(memory);
        let query = copy(entry.subquery);
        computed_views::prepare(query, query_scan::is_computed)?;
        let (text, params) = ((*desc).sourceText, (*desc).params);
        let plan = || pg_sys::planner(query, text, options, params);
        (*desc).plannedstmt = query_scan::planning(query, || read.with_snapshot(plan));
        pg_sys::MemoryContextSwitchTo(outer);
        read.set_memory_of_plan(memory);
        explain::note_computed(text, reason);
    }
    Ok(true)
}

/// Runs the query of a view, which computes those that it reads in turn, and keeps its rows.
pub fn keep_rows(query: ViewQuery, store: &Store) {
    let (tree, text) = query.into_parts();
    // SAFETY: a complete query that is planned once, and a text that outlives the plan.
    let plan = || unsafe { Query::plan(tree, text.as_ptr()) };
    query_scan::planning(tree, plan).keep_rows(store);
}
