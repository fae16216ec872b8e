//! Whole-row references (`to_jsonb(t)`) as rows of columns.
//!
//! ```sql
//! SELECT to_jsonb(t) FROM t
//! SELECT to_jsonb(ROW(t.a, t.b)) FROM t
//!
//! SELECT to_jsonb(t) FROM s LEFT JOIN t ON …                     -- t.a is NOT NULL
//! SELECT to_jsonb(CASE WHEN t.a IS NOT NULL THEN ROW(t.a, t.b) END) FROM s LEFT JOIN t ON …
//!
//! SELECT to_jsonb(t) FROM s LEFT JOIN t ON …                     -- all columns of t may be NULL
//! SELECT to_jsonb(CASE WHEN t.is_there IS NOT NULL THEN ROW(t.a, t.b) END)
//!     FROM s LEFT JOIN (SELECT t.a, t.b, true AS is_there FROM t) t ON …
//! ```

use crate::pg::catalog::{self, Attribute};
use crate::pg::lists;
use crate::pg::versions::tree::expand_entry;
use crate::rewrite::marked_rows;
use crate::rewrite::nodes;
use crate::rewrite::parts;
use crate::rewrite::tree::{self, expression_tree_mutator, query_tree_mutator, Node, Place, Tree};
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{c_int, c_void, CStr};

/// The column of an entry that tells whether there is a row.
#[derive(Clone, Copy)]
struct Mark {
    number: i16,
    ty: Oid,
    typmod: i32,
    collation: Oid,
    /// Whether the entry is still to get it.
    is_new: bool,
}

/// The queries around, innermost last, which entries of which query may be NULL as a whole, and which of them are to get a
/// column that tells.
struct Rows {
    queries: Vec<*mut pg_sys::Query>,
    padded: HashMap<*const pg_sys::Query, BTreeMap<c_int, Option<Mark>>>,
    marked: HashMap<*const pg_sys::Query, BTreeSet<c_int>>,
}

impl Tree {
    /// A copy in which whole rows are made of their columns, but for those of joins that another join may make NULL.
    pub fn with_rows_of_columns(self) -> Tree {
        let padded = self.queries().into_iter().map(|query| {
            let mut padded = BTreeSet::new();
            parts::from(query).into_iter().for_each(|p| collect_padded(p, false, &mut padded));
            let entries = tree::range_table(query);
            let tells = |number: c_int| (number, tree::entry(&entries, number).and_then(mark_of));
            (std::ptr::from_ref(query), padded.into_iter().map(tells).collect())
        });
        let padded = padded.collect();
        let mut rows = Rows { queries: Vec::new(), padded, marked: HashMap::new() };
        let arg: *mut c_void = (&raw mut rows).cast();
        // SAFETY: the mutator copies what it walks over.
        unsafe {
            Tree::from_node(pg_sys::ffi::pg_guard_ffi_boundary(|| expand(self.as_node(), arg)))
        }
    }
}

/// The entries of a range table that outer joins may fill with NULLs.
fn collect_padded(place: Place<'_>, is_padded: bool, padded: &mut BTreeSet<c_int>) {
    use pg_sys::JoinType as Join;
    match place.node() {
        Node::FromExpr(from) => {
            let items = parts::items(from).into_iter();
            items.for_each(|place| collect_padded(place, is_padded, padded));
        }
        Node::JoinExpr(join) => {
            let left = matches!(join.jointype, Join::JOIN_RIGHT | Join::JOIN_FULL);
            let right = matches!(join.jointype, Join::JOIN_LEFT | Join::JOIN_FULL);
            for (side, pads) in [(parts::left_side(join), left), (parts::right_side(join), right)] {
                side.into_iter().for_each(|place| collect_padded(place, is_padded || pads, padded));
            }
            if is_padded || left || right {
                padded.insert(join.rtindex);
            }
        }
        Node::RangeTblRef(reference) if is_padded => {
            padded.insert(reference.rtindex);
        }
        _ => {}
    }
}

/// A column that is NULL nowhere but where there is no row.
fn mark_of(entry: &pg_sys::RangeTblEntry) -> Option<Mark> {
    if entry.rtekind == pg_sys::RTEKind::RTE_RELATION {
        let columns = catalog::describe_relation(entry.relid)?.attributes;
        if let Some(column) = columns.into_iter().find(|column| column.not_null) {
            let Attribute { number, type_oid: ty, typmod, collation, .. } = column;
            return Some(Mark { number, ty, typmod, collation, is_new: false });
        }
    }
    marked_rows::can_mark(entry).then(|| Mark {
        number: marked_rows::number_of_mark(entry),
        ty: pg_sys::BOOLOID,
        typmod: -1,
        collation: Oid::INVALID,
        is_new: true,
    })
}

/// # Safety
/// For PostgreSQL's mutators to call; `arg` is the [`Rows`].
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn expand(node: *mut pg_sys::Node, arg: *mut c_void) -> *mut pg_sys::Node {
    // SAFETY: `arg` is the `Rows`; tags decide types; null is a missing part of a node. No frame has destructors.
    unsafe {
        if node.is_null() {
            return node;
        }
        let rows = arg.cast::<Rows>();
        match (*node).type_ {
            NodeTag::T_Query => {
                (*rows).queries.push(node.cast());
                let copy = query_tree_mutator(node.cast(), expand, arg, 0);
                (*rows).queries.pop();
                let key: *const pg_sys::Query = node.cast();
                let marked = &mut (*rows).marked;
                for number in marked.remove(&key).unwrap_or_default() {
                    marked_rows::mark(copy, number);
                }
                copy.cast()
            }
            NodeTag::T_Var if (*node.cast::<pg_sys::Var>()).varattno == 0 => {
                row_of_columns(node.cast(), rows, true)
            }
            NodeTag::T_NullTest if is_whole_row((*node.cast::<pg_sys::NullTest>()).arg.cast()) => {
                let test = pg_sys::copyObjectImpl(node.cast()).cast::<pg_sys::NullTest>();
                (*test).arg = row_of_columns((*test).arg.cast(), rows, false).cast();
                test.cast()
            }
            _ => expression_tree_mutator(node, expand, arg),
        }
    }
}

/// Whether an expression is a whole row.
///
/// # Safety
/// An expression of an analysed tree.
unsafe fn is_whole_row(node: *mut pg_sys::Node) -> bool {
    // SAFETY: the tag decides the type.
    unsafe { (*node).type_ == NodeTag::T_Var && (*node.cast::<pg_sys::Var>()).varattno == 0 }
}

/// Names the columns that a view has got since the query that reads it was analysed: PostgreSQL's rewriter calls them all
/// `?column?`.
///
/// # Safety
/// An entry of a copy that nobody else looks at.
unsafe fn name_new_columns(entry: *mut pg_sys::RangeTblEntry) {
    // SAFETY: an entry of a tree of our own; a subquery's targets have names.
    unsafe {
        if (*entry).rtekind != pg_sys::RTEKind::RTE_SUBQUERY {
            return;
        }
        let targets = lists::pointers::<pg_sys::TargetEntry>((*(*entry).subquery).targetList);
        let shown = targets.into_iter().filter(|target| !(**target).resjunk);
        let names = lists::pointers::<pg_sys::String>((*(*entry).eref).colnames);
        for (target, name) in shown.zip(names) {
            if CStr::from_ptr((*name).sval) == c"?column?" {
                (*name).sval = (*target).resname;
            }
        }
    }
}

/// `ROW(t.a, t.b)` for `t`, where that may be NULL as a whole only if `t.a`, which is not otherwise, is there; `t` itself if
/// it can have no such column. A row of the table's type has the columns that were dropped, as NULL; one to be tested for NULL
/// must not have them.
///
/// # Safety
/// A variable of one of the queries around; `rows` is valid.
unsafe fn row_of_columns(
    var: *mut pg_sys::Var,
    rows: *mut Rows,
    with_dropped: bool,
) -> *mut pg_sys::Node {
    // SAFETY: a variable refers to an entry of the range table of one of the queries around.
    unsafe {
        let queries = &(*rows).queries;
        let level = queries.len().wrapping_sub((*var).varlevelsup as usize + 1);
        let Some(query) = queries.get(level).copied() else { return var.cast() };
        let Some(padded) = (*rows).padded.get(&query.cast_const()) else { return var.cast() };
        let padded = padded.get(&(*var).varno);
        if padded.is_some_and(Option::is_none) {
            return var.cast();
        }
        let entries = lists::pointers::<pg_sys::RangeTblEntry>((*query).rtable);
        let entry = entries[(*var).varno as usize - 1];
        let at = (*var).location;
        name_new_columns(entry);
        // A row without a type has none of them.
        let with_dropped = with_dropped && (*var).vartype != pg_sys::RECORDOID;
        let [names, columns] = expand_entry(entry, &*var, with_dropped);
        let ty = if with_dropped { (*var).vartype } else { pg_sys::RECORDOID };
        let row = nodes::row(columns, ty);
        (*row).row_format = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
        (*row).colnames = names;
        (*row).location = at;
        let Some(Some(mark)) = padded.copied() else { return row.cast() };
        if mark.is_new {
            let marked = &mut (*rows).marked;
            marked.entry(query.cast_const()).or_default().insert((*var).varno as _);
        }
        let Mark { number, ty, typmod, collation, .. } = mark;
        let (entry, level) = ((*var).varno as _, (*var).varlevelsup);
        let present = pg_sys::makeVar(entry, number, ty, typmod, collation, level);
        nodes::if_present(present.cast(), row.cast())
    }
}
