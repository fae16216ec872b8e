//! Functions that return sets or rows, as `unnest` (or `eddy.slices`) of arrays of what they return.
//!
//! ```sql
//! SELECT f(t.a) FROM t                          -- f returns a set
//! SELECT unnest(eddy.host_call(17, t.a)) FROM t
//!     -- 17: SELECT array_agg(v) FROM (SELECT f($1) AS v)
//!
//! SELECT … FROM t, g(t.a)                       -- g returns rows of two columns
//! SELECT … FROM t, ROWS FROM (unnest(eddy.host_call(18, t.a)), unnest(eddy.host_call(19, t.a)))
//!     -- 18: SELECT array_agg(c0) FROM g($1) AS t(c0, c1), 19: of c1
//! ```
//!
//! XMLTABLE and JSON_TABLE are such functions.

use crate::pg::lists;
use crate::rewrite::cuts::{cut_out, stand_in_call, Found, Rewrite, Treatment};
use crate::rewrite::nodes;
use crate::rewrite::returned::{columns_of, columns_of_document, Column, Rows};
use crate::rewrite::tree::Place;
use pgrx::pg_sys::{self, NodeTag, Oid, RTEKind};
use std::ffi::CString;

/// `unnest(…)` in place of a call that returns a set of single values, `eddy.slices(…)` if they are arrays.
///
/// # Safety
/// A call of the tree that is being rewritten; `rewrite` is valid.
pub(super) unsafe fn replace_set(
    call: *mut pg_sys::Node,
    rewrite: *mut Rewrite<'_>,
) -> *mut pg_sys::Node {
    // SAFETY: nodes of one tree.
    unsafe {
        let (element, collation) = (pg_sys::exprType(call), pg_sys::exprCollation(call));
        unnest(call, rewrite, |call| Rows { call, column: None, element, collation })
    }
}

/// An item of FROM with an `unnest` for each column in place of the functions that are to be replaced.
///
/// # Safety
/// Entries of the tree that is being rewritten, the second a copy of the first; `rewrite` is valid.
pub(super) unsafe fn replace_tables(
    old: *mut pg_sys::RangeTblEntry,
    new: *mut pg_sys::RangeTblEntry,
    rewrite: *mut Rewrite<'_>,
) {
    // SAFETY: lists of functions, of which the new one is a copy of the old one.
    unsafe {
        let is_table = |node: *mut pg_sys::Node| (*rewrite).is_table(Place::of(node));
        if (*old).rtekind == RTEKind::RTE_TABLEFUNC {
            let document = (*old).tablefunc;
            if is_table(document.cast()) {
                let columns = columns_of_document(document);
                nodes::become_functions(new, unnest_columns(document.cast(), &columns, rewrite));
            }
            return;
        }
        let functions = lists::pointers::<pg_sys::RangeTblFunction>((*old).functions);
        if !functions.iter().any(|function| is_table((**function).funcexpr)) {
            return;
        }
        let copies = lists::pointers::<pg_sys::RangeTblFunction>((*new).functions);
        let mut replaced = std::ptr::null_mut();
        for (function, copy) in functions.into_iter().zip(copies) {
            if !is_table((*function).funcexpr) {
                replaced = pg_sys::lappend(replaced, copy.cast());
                continue;
            }
            let columns = columns_of(function);
            let items = unnest_columns((*function).funcexpr, &columns, rewrite);
            replaced = pg_sys::list_concat(replaced, items);
        }
        (*new).functions = replaced;
        name_dropped_columns(new);
    }
}

/// An `unnest` for each column of what a call returns.
///
/// # Safety
/// A call, or what is made of a document, of the tree that is being rewritten; `rewrite` is valid.
unsafe fn unnest_columns(
    call: *mut pg_sys::Node,
    columns: &[Column],
    rewrite: *mut Rewrite<'_>,
) -> *mut pg_sys::List {
    let mut items = std::ptr::null_mut();
    for (index, column) in columns.iter().enumerate() {
        let Column { ty, collation, .. } = *column;
        let wanted = Some((index, columns.to_vec()));
        let rows = |call| Rows { call, column: wanted, element: ty, collation };
        // SAFETY: new nodes.
        unsafe {
            let item: *mut pg_sys::RangeTblFunction = nodes::new(NodeTag::T_RangeTblFunction);
            (*item).funcexpr = match column.is_dropped() {
                true => nothing(),
                false => unnest(call, rewrite, rows),
            };
            (*item).funccolcount = 1;
            items = pg_sys::lappend(items, item.cast());
        }
    }
    items
}

/// `unnest(NULL::int[])`, in the place of a column that is not there any more.
fn nothing() -> *mut pg_sys::Node {
    // SAFETY: new nodes.
    unsafe {
        let null = pg_sys::Datum::from(0);
        let ty = pg_sys::INT4ARRAYOID;
        let array = pg_sys::makeConst(ty, -1, Oid::INVALID, -1, null, true, false);
        let function = Oid::from(pg_sys::F_UNNEST_ANYARRAY);
        let result = (pg_sys::INT4OID, Oid::INVALID);
        let unnest = nodes::call_of_one(function, array.cast(), result);
        (*unnest).funcretset = true;
        unnest.cast()
    }
}

/// Gives columns that are not there any more names, as all columns of functions that return single values have.
///
/// # Safety
/// An entry of a tree of our own.
unsafe fn name_dropped_columns(entry: *mut pg_sys::RangeTblEntry) {
    // SAFETY: every entry has `eref`; the names in it are C strings; new nodes.
    unsafe {
        let names = lists::pointers::<pg_sys::String>((*(*entry).eref).colnames);
        let name = |(number, name): (usize, *mut pg_sys::String)| {
            if *(*name).sval != 0 {
                return name;
            }
            let new = CString::new(format!("dropped_{number}")).unwrap_or_default();
            pg_sys::makeString(pg_sys::pstrdup(new.as_ptr()))
        };
        let names = nodes::list(names.into_iter().enumerate().map(name));
        (*entry).eref = pg_sys::makeAlias((*(*entry).eref).aliasname, names);
    }
}

/// `unnest(…)` of an array of what a call returns.
///
/// # Safety
/// A call of the tree that is being rewritten; `rewrite` is valid.
unsafe fn unnest(
    call: *mut pg_sys::Node,
    rewrite: *mut Rewrite<'_>,
    rows: impl FnOnce(*mut pg_sys::Node) -> Rows,
) -> *mut pg_sys::Node {
    // SAFETY: new nodes.
    unsafe {
        let collation = match pg_sys::exprInputCollation(call) {
            pg_sys::DEFAULT_COLLATION_OID => Oid::INVALID,
            other => other,
        };
        (*rewrite).treats = Treatment { collation, ..Treatment::NONE };
        let (cut, args) = cut_out(call, rewrite);
        let rows = rows(cut);
        let (element, array, collation) = (rows.element, rows.array_type(), rows.collation);
        let index = (*rewrite).add(Found::Rows(rows));
        let stand_in = stand_in_call(index, args, (array, collation), rewrite);
        let function = match element == array {
            true => (*rewrite).stand_ins.slices,
            false => Oid::from(pg_sys::F_UNNEST_ANYARRAY),
        };
        let unnest = nodes::call_of_one(function, stand_in, (element, collation));
        (*unnest).funcretset = true;
        unnest.cast()
    }
}
