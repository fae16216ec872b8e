//! `tableoid` of what has become a subquery, and of incremental views.
//!
//! ```sql
//! SELECT t.tableoid, to_json(t) FROM s LEFT JOIN (SELECT t.a, t.b, true AS is_there FROM t) t ON …
//! SELECT t.tableoid, to_json(t) FROM s LEFT JOIN (SELECT t.a, t.b, true AS is_there, t.tableoid FROM t) t ON …
//!
//! SELECT v.tableoid FROM v
//! SELECT v.tableoid FROM (SELECT v.a, v.b, 16400 AS tableoid FROM v) v
//! ```

use crate::pg::catalog;
use crate::pg::lists;
use crate::pg::relation::TABLE_OID;
use crate::rewrite::marked_rows;
use crate::rewrite::tree::{expression_tree_mutator, query_tree_mutator, Tree};
use crate::rewrite::wrapped;
use pgrx::pg_sys::{self, NodeTag, Oid, RTEKind};
use std::collections::{BTreeSet, HashMap};
use std::ffi::{c_int, c_void};

/// The queries around, innermost last, and the entries of which that are to get the column.
struct Wanted {
    queries: Vec<*mut pg_sys::Query>,
    entries: HashMap<*const pg_sys::Query, BTreeSet<c_int>>,
}

impl Tree {
    /// A copy in which `tableoid` is a column of a table, or of a subquery that has it.
    pub fn with_table_oids(self) -> Tree {
        let mut wanted = Wanted { queries: Vec::new(), entries: HashMap::new() };
        let arg: *mut c_void = (&raw mut wanted).cast();
        // SAFETY: the mutator copies what it walks over.
        unsafe {
            Tree::from_node(pg_sys::ffi::pg_guard_ffi_boundary(|| replace(self.as_node(), arg)))
        }
    }
}

/// # Safety
/// For PostgreSQL's mutators to call; `arg` is the [`Wanted`].
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn replace(
    node: *mut pg_sys::Node,
    arg: *mut c_void,
) -> *mut pg_sys::Node {
    // SAFETY: `arg` is the `Wanted`; tags decide types; null is a missing part of a node.
    unsafe {
        if node.is_null() {
            return node;
        }
        let wanted = arg.cast::<Wanted>();
        match (*node).type_ {
            NodeTag::T_Query => {
                (*wanted).queries.push(node.cast());
                let copy = query_tree_mutator(node.cast(), replace, arg, 0);
                (*wanted).queries.pop();
                let key: *const pg_sys::Query = node.cast();
                let entries = &mut (*wanted).entries;
                for number in entries.remove(&key).unwrap_or_default() {
                    add_column(copy, number);
                }
                copy.cast()
            }
            NodeTag::T_Var if (*node.cast::<pg_sys::Var>()).varattno == TABLE_OID => {
                let copy = pg_sys::copyObjectImpl(node.cast()).cast::<pg_sys::Var>();
                (*copy).varattno = number_of(&*copy, wanted);
                // By that its text goes.
                (*copy).varattnosyn = (*copy).varattno;
                copy.cast()
            }
            _ => expression_tree_mutator(node, replace, arg),
        }
    }
}

/// The number of the column for a variable; it is noted if the column is still to be made.
///
/// # Safety
/// A variable of one of the queries around; `wanted` is valid.
unsafe fn number_of(var: &pg_sys::Var, wanted: *mut Wanted) -> i16 {
    // SAFETY: a variable refers to an entry of the range table of one of the queries around.
    unsafe {
        let queries = &(*wanted).queries;
        let level = queries.len().wrapping_sub(var.varlevelsup as usize + 1);
        let Some(query) = queries.get(level).copied() else { return TABLE_OID };
        let entry = entry_of(query, var.varno as c_int);
        if !is_without(&*entry) {
            return TABLE_OID;
        }
        let entries = &mut (*wanted).entries;
        entries.entry(query.cast_const()).or_default().insert(var.varno as c_int);
        marked_rows::number_of_mark(&*entry)
    }
}

/// Whether an entry has no such column of its own.
fn is_without(entry: &pg_sys::RangeTblEntry) -> bool {
    entry.rtekind == RTEKind::RTE_SUBQUERY || is_view(entry)
}

fn is_view(entry: &pg_sys::RangeTblEntry) -> bool {
    entry.rtekind == RTEKind::RTE_RELATION
        && catalog::relation_kind(entry.relid) == Some(pg_sys::RELKIND_MATVIEW)
}

/// # Safety
/// A query with such an entry.
unsafe fn entry_of(query: *mut pg_sys::Query, number: c_int) -> *mut pg_sys::RangeTblEntry {
    // SAFETY: per contract.
    unsafe { lists::pointers::<pg_sys::RangeTblEntry>((*query).rtable)[number as usize - 1] }
}

/// Adds the column behind the others of a subquery that was made of a table, or of a view, which becomes a subquery.
///
/// # Safety
/// A query of a copy that nobody else looks at, with such an entry.
unsafe fn add_column(query: *mut pg_sys::Query, number: c_int) -> i16 {
    // SAFETY: per contract; a subquery that was made of a table has one entry, and so it may be within another such.
    unsafe {
        let entry = entry_of(query, number);
        let column = marked_rows::number_of_mark(&*entry);
        if is_view(&*entry) {
            let value = oid((*entry).relid);
            wrapped::wrap(query, number, Some((c"tableoid", value.cast())));
            return column;
        }
        let subquery = (*entry).subquery;
        let inner = match is_without(&*entry_of(subquery, 1)) {
            true => add_column(subquery, 1),
            false => TABLE_OID,
        };
        let value = pg_sys::makeVar(1, inner, pg_sys::OIDOID, -1, Oid::INVALID, 0);
        let name = pg_sys::pstrdup(c"tableoid".as_ptr());
        let place = pg_sys::list_length((*subquery).targetList) as i16 + 1;
        let target = pg_sys::makeTargetEntry(value.cast(), place, name, false);
        (*subquery).targetList = pg_sys::lappend((*subquery).targetList, target.cast());
        let eref = (*entry).eref;
        (*eref).colnames = pg_sys::lappend((*eref).colnames, pg_sys::makeString(name).cast());
        column
    }
}

/// A constant of type oid.
fn oid(value: Oid) -> *mut pg_sys::Const {
    // SAFETY: a new node.
    unsafe {
        let value = pg_sys::Datum::from(value);
        pg_sys::makeConst(pg_sys::OIDOID, -1, Oid::INVALID, 4, value, false, true)
    }
}
