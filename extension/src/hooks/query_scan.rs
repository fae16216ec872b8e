//! A scan that computes an incremental view, in place of one of its stored rows: the query of the view runs when the first row is
//! asked for, and its rows are kept until the statement ends.
//!
//! `EXPLAIN` shows it as `Custom Scan (Incremental View Query)`.

use crate::pg::ids::{RelationId, ViewId};
use crate::pg::query::Store;
use crate::pg::{lists, memory, read, report};
use crate::rewrite::{nodes, tree};
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::cell::Cell;
use std::ffi::{c_int, CStr};
use std::sync::OnceLock;

/// Who knows views, and computes them.
#[derive(Clone, Copy)]
pub struct Handlers {
    /// Whether this is an incremental view.
    pub is_computed: fn(ViewId) -> bool,
    /// The tables beneath a view.
    pub tables: fn(ViewId) -> Vec<RelationId>,
    /// Raises what running the query of a view would raise before it began.
    pub check: fn(ViewId),
    /// Runs the query of a view under the active snapshot.
    pub compute: fn(ViewId, &Store),
}

static HANDLERS: OnceLock<Handlers> = OnceLock::new();
static NEXT_PATHS: OnceLock<pg_sys::set_rel_pathlist_hook_type> = OnceLock::new();
static NEXT_NEEDS: OnceLock<pg_sys::needs_fmgr_hook_type> = OnceLock::new();
static NEXT_INFO: OnceLock<pg_sys::get_relation_info_hook_type> = OnceLock::new();

thread_local! {
    /// The statement that is being planned to compute the views it reads. Functions that are called meanwhile may have
    /// others planned, whose plans are kept.
    static PLANNING: Cell<*mut pg_sys::Query> = const { Cell::new(std::ptr::null_mut()) };
}

/// What the node is called.
const NAME: &CStr = c"Incremental View Query";

/// Tables of functions, which the server has pointers to.
struct Shared<T>(T);
// SAFETY: constants.
unsafe impl<T> Sync for Shared<T> {}

static PATH: Shared<pg_sys::CustomPathMethods> = Shared(pg_sys::CustomPathMethods {
    CustomName: NAME.as_ptr(),
    PlanCustomPath: Some(plan_path),
    ReparameterizeCustomPathByChild: None,
});

static SCAN: Shared<pg_sys::CustomScanMethods> = Shared(pg_sys::CustomScanMethods {
    CustomName: NAME.as_ptr(),
    CreateCustomScanState: Some(create_state),
});

static EXECUTION: Shared<pg_sys::CustomExecMethods> = Shared(pg_sys::CustomExecMethods {
    CustomName: NAME.as_ptr(),
    BeginCustomScan: Some(begin),
    ExecCustomScan: Some(execute),
    EndCustomScan: Some(end),
    ReScanCustomScan: Some(rescan),
    MarkPosCustomScan: None,
    RestrPosCustomScan: None,
    EstimateDSMCustomScan: None,
    InitializeDSMCustomScan: None,
    ReInitializeDSMCustomScan: None,
    InitializeWorkerCustomScan: None,
    ShutdownCustomScan: None,
    ExplainCustomScan: None,
});

/// Puts the hooks in place, once per process.
pub(super) fn install(handlers: Handlers) {
    if HANDLERS.set(handlers).is_err() {
        return;
    }
    // SAFETY: hook variables are plain globals, set at library load by the only thread.
    unsafe {
        let _ = NEXT_PATHS.set(pg_sys::set_rel_pathlist_hook);
        pg_sys::set_rel_pathlist_hook = Some(set_paths);
        let _ = NEXT_INFO.set(pg_sys::get_relation_info_hook);
        pg_sys::get_relation_info_hook = Some(get_info);
        let _ = NEXT_NEEDS.set(pg_sys::needs_fmgr_hook);
        pg_sys::needs_fmgr_hook = Some(needs_hook);
        pg_sys::RegisterCustomScanMethods(&raw const SCAN.0);
    }
}

/// Runs `work`, which plans a statement that computes the incremental views it reads.
pub(super) fn planning<R>(query: *mut pg_sys::Query, work: impl FnOnce() -> R) -> R {
    struct Restore(*mut pg_sys::Query);
    impl Drop for Restore {
        fn drop(&mut self) {
            PLANNING.set(self.0);
        }
    }
    let _restore = Restore(PLANNING.replace(query));
    work()
}

/// Whether that is the statement that computes views.
pub(super) fn plans(query: *mut pg_sys::Query) -> bool {
    !query.is_null() && PLANNING.get() == query
}

/// Whether what is being planned is a part of the statement that computes views.
///
/// # Safety
/// A planner's state.
unsafe fn is_planning(mut root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: the states of the queries around live as long.
    unsafe {
        while !(*root).parent_root.is_null() {
            root = (*root).parent_root;
        }
        plans((*root).parse)
    }
}

/// Whether a relation is an incremental view.
pub(super) fn is_computed(view: ViewId) -> bool {
    HANDLERS.get().is_some_and(|handlers| (handlers.is_computed)(view))
}

/// The hook for what is known of a relation: an index is of the stored rows, and what it says of them need not be so of
/// those that are computed.
/// Unguarded: what it calls of ours is guarded.
///
/// # Safety
/// For PostgreSQL to call, as this hook.
unsafe extern "C-unwind" fn get_info(
    root: *mut pg_sys::PlannerInfo,
    relation: Oid,
    is_parent: bool,
    rel: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: PostgreSQL's own arguments.
    unsafe {
        if let Some(next) = NEXT_INFO.get().copied().flatten() {
            next(root, relation, is_parent, rel);
        }
        if is_planning(root) && is_view(relation) {
            (*rel).indexlist = std::ptr::null_mut();
        }
    }
}

/// The hook that says which functions must be called, rather than replaced by their queries: all, in a statement that computes views,
/// as what stands in it has been prepared for that.
/// Unguarded: it hands on what PostgreSQL passes.
///
/// # Safety
/// For PostgreSQL to call, as this hook.
unsafe extern "C-unwind" fn needs_hook(function: Oid) -> bool {
    // SAFETY: PostgreSQL's own argument.
    !PLANNING.get().is_null()
        || NEXT_NEEDS.get().copied().flatten().is_some_and(|next| unsafe { next(function) })
}

/// Whether the relation that is being planned for is one of the views.
#[pgrx::pg_guard]
extern "C-unwind" fn is_view(relation: Oid) -> bool {
    is_computed(relation.into())
}

/// The hook for the ways to scan a relation.
/// Unguarded: what it calls of ours is guarded.
///
/// # Safety
/// For PostgreSQL to call, as this hook.
unsafe extern "C-unwind" fn set_paths(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    number: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: PostgreSQL's own arguments.
    unsafe {
        if let Some(next) = NEXT_PATHS.get().copied().flatten() {
            next(root, rel, number, entry);
        }
        // Where rows of the view are to be locked PostgreSQL refuses that when the statement starts.
        if is_planning(root)
            && read::is_materialized_view(entry)
            && is_view((*entry).relid)
            && !tree::locks(&*(*root).parse, number as c_int)
        {
            set_path(rel);
        }
    }
}

/// Leaves one way to scan a view.
///
/// # Safety
/// A relation that is being planned for.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn set_path(rel: *mut pg_sys::RelOptInfo) {
    // SAFETY: per contract; a new node.
    unsafe {
        let path: *mut pg_sys::CustomPath = nodes::new(NodeTag::T_CustomPath);
        (*path).path.pathtype = NodeTag::T_CustomScan;
        (*path).path.parent = rel;
        (*path).path.pathtarget = (*rel).reltarget;
        (*path).path.rows = (*rel).rows;
        // Whatever it costs, there is no other way: what counts is that it is costly to begin and cheap to repeat.
        (*path).path.startup_cost = (*rel).tuples.max(1.0) * pg_sys::cpu_tuple_cost;
        (*path).path.total_cost =
            (*path).path.startup_cost + (*rel).tuples.max(1.0) * pg_sys::cpu_operator_cost;
        (*path).flags = pg_sys::CUSTOMPATH_SUPPORT_PROJECTION;
        (*path).methods = &raw const PATH.0;
        (*rel).pathlist = std::ptr::null_mut();
        (*rel).partial_pathlist = std::ptr::null_mut();
        (*rel).consider_parallel = false;
        pg_sys::add_path(rel, path.cast());
    }
}

/// # Safety
/// For PostgreSQL to call, of a path from [`set_path`].
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn plan_path(
    _root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    targets: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    _plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: PostgreSQL's own arguments; new nodes, which can be copied.
    unsafe {
        let scan: *mut pg_sys::CustomScan = nodes::new(NodeTag::T_CustomScan);
        (*scan).scan.plan.targetlist = targets;
        (*scan).scan.plan.qual = pg_sys::extract_actual_clauses(clauses, false);
        (*scan).scan.scanrelid = (*rel).relid;
        (*scan).flags = (*path).flags;
        (*scan).methods = &raw const SCAN.0;
        scan.cast()
    }
}

/// A scan that runs.
#[repr(C)]
struct State {
    custom: pg_sys::CustomScanState,
    /// The computed rows; null before the first is asked for.
    store: *mut pg_sys::Tuplestorestate,
    /// The one that was read last.
    row: *mut pg_sys::TupleTableSlot,
    /// The tables beneath the view, open so that nobody takes away what is still to be read: a list.
    tables: *mut pg_sys::List,
}

/// # Safety
/// For PostgreSQL to call, of a plan from [`plan_path`].
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn create_state(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: a new node, larger than PostgreSQL's part of it.
    unsafe {
        let state: *mut State = nodes::new(NodeTag::T_CustomScanState);
        (*state).custom.methods = &raw const EXECUTION.0;
        state.cast()
    }
}

/// # Safety
/// For PostgreSQL to call, of a state from [`create_state`].
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn begin(
    node: *mut pg_sys::CustomScanState,
    estate: *mut pg_sys::EState,
    flags: c_int,
) {
    // SAFETY: PostgreSQL has opened the relation and made the slot for its rows; the executor ends the new one.
    unsafe {
        let view = (*(*node).ss.ss_currentRelation).rd_id;
        if flags & pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int == 0 {
            (*node.cast::<State>()).tables = open_tables(view);
        } else if let Some(handlers) = HANDLERS.get() {
            // A plan that cannot be run is none.
            (handlers.check)(view.into());
        }
        let descriptor = (*(*node).ss.ss_ScanTupleSlot).tts_tupleDescriptor;
        let ops = &raw const pg_sys::TTSOpsMinimalTuple;
        (*node.cast::<State>()).row = pg_sys::ExecInitExtraTupleSlot(estate, descriptor, ops);
    }
}

/// Opens the tables beneath a view, as scans of them would.
///
/// # Safety
/// For memory that lives as long as the statement.
unsafe fn open_tables(view: Oid) -> *mut pg_sys::List {
    let tables = HANDLERS.get().map_or_else(Vec::new, |handlers| (handlers.tables)(view.into()));
    // SAFETY: null for those that are gone meanwhile; the others are closed at the end, or by the abort.
    unsafe {
        let open = |table: RelationId| {
            pg_sys::try_relation_open(table.into(), pg_sys::AccessShareLock as pg_sys::LOCKMODE)
        };
        tables
            .into_iter()
            .map(open)
            .filter(|table| !table.is_null())
            .fold(std::ptr::null_mut(), |list, table| pg_sys::lappend(list, table.cast()))
    }
}

/// Unguarded: what it calls of ours is guarded.
///
/// # Safety
/// For PostgreSQL to call, of a state from [`create_state`].
unsafe extern "C-unwind" fn execute(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // Not the bindings' own, which would catch errors of the server.
    extern "C-unwind" {
        fn ExecScan(
            node: *mut pg_sys::ScanState,
            access: pg_sys::ExecScanAccessMtd,
            recheck: pg_sys::ExecScanRecheckMtd,
        ) -> *mut pg_sys::TupleTableSlot;
    }
    let mut row = std::ptr::null_mut();
    // SAFETY: a running scan. Errors of the query that it runs have lost their codes, if they are of users, and get them back.
    unsafe {
        report::completing(std::ptr::null(), || {
            row = ExecScan(&raw mut (*node).ss, Some(next_row), Some(recheck));
        });
    }
    row
}

/// The next row, in the slot of the scan.
///
/// # Safety
/// For the executor to call, of a running scan.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn next_row(node: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a running scan of ours; both slots have the columns of the view.
    unsafe {
        let state = node.cast::<State>();
        if (*state).store.is_null() {
            (*state).store = compute(node);
        }
        let (row, slot) = ((*state).row, (*node).ss_ScanTupleSlot);
        pg_sys::ExecClearTuple(slot);
        if pg_sys::tuplestore_gettupleslot((*state).store, true, false, row) {
            pg_sys::slot_getallattrs(row);
            let count = (*(*slot).tts_tupleDescriptor).natts as usize;
            std::ptr::copy_nonoverlapping((*row).tts_values, (*slot).tts_values, count);
            std::ptr::copy_nonoverlapping((*row).tts_isnull, (*slot).tts_isnull, count);
            pg_sys::ExecStoreVirtualTuple(slot);
        }
        slot
    }
}

/// Runs the view's query under the snapshot of the statement.
///
/// # Safety
/// A running scan.
unsafe fn compute(node: *mut pg_sys::ScanState) -> *mut pg_sys::Tuplestorestate {
    // SAFETY: per contract. The rows live as long as the statement; what else it takes is gone afterwards.
    unsafe {
        let estate = (*node).ps.state;
        let outer = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
        let store = pg_sys::tuplestore_begin_heap(false, false, pg_sys::work_mem);
        let memory = memory::new_context((*estate).es_query_cxt, NAME);
        pg_sys::MemoryContextSwitchTo(memory);
        pg_sys::PushActiveSnapshot((*estate).es_snapshot);
        let view = (*(*node).ss_currentRelation).rd_id;
        if let Some(handlers) = HANDLERS.get() {
            (handlers.compute)(view.into(), &Store::of(store));
        }
        pg_sys::PopActiveSnapshot();
        pg_sys::MemoryContextSwitchTo(outer);
        pg_sys::MemoryContextDelete(memory);
        store
    }
}

/// A row that another session has changed meanwhile is none of these.
/// Unguarded: it does nothing.
///
/// # Safety
/// For the executor to call, of a running scan.
unsafe extern "C-unwind" fn recheck(
    _node: *mut pg_sys::ScanState,
    _slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    true
}

/// # Safety
/// For PostgreSQL to call, of a state from [`create_state`].
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a scan that has run, or not.
    unsafe {
        let store = std::mem::replace(&mut (*node.cast::<State>()).store, std::ptr::null_mut());
        if !store.is_null() {
            pg_sys::tuplestore_end(store);
        }
        let tables = std::mem::replace(&mut (*node.cast::<State>()).tables, std::ptr::null_mut());
        for table in lists::pointers::<pg_sys::RelationData>(tables) {
            pg_sys::relation_close(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        }
    }
}

/// # Safety
/// For PostgreSQL to call, of a state from [`create_state`].
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a scan that has run, or not.
    unsafe {
        let store = (*node.cast::<State>()).store;
        if !store.is_null() {
            pg_sys::tuplestore_rescan(store);
        }
        pg_sys::ExecScanReScan(&raw mut (*node).ss);
    }
}
