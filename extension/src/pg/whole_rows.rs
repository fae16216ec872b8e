//! Whole-row references (`to_jsonb(t)`) as rows of columns.

use crate::pg::tree::{self, expression_tree_mutator, query_tree_mutator, Node, Place, Tree};
use crate::pg::{lists, nodes};
use pgrx::pg_sys::{self, NodeTag};
use std::collections::{BTreeSet, HashMap};
use std::ffi::{c_int, c_void};

/// The queries around, innermost last, and which entries of which query may be NULL as a whole.
struct Rows {
    queries: Vec<*mut pg_sys::Query>,
    padded: HashMap<*const pg_sys::Query, BTreeSet<c_int>>,
}

impl Tree {
    /// A copy in which whole rows are made of their columns, but for those that an outer join may make NULL.
    pub fn with_rows_of_columns(self) -> Tree {
        let padded = self.queries().into_iter().map(|query| {
            let mut padded = BTreeSet::new();
            tree::place(query.jointree)
                .into_iter()
                .for_each(|p| collect_padded(p, false, &mut padded));
            (std::ptr::from_ref(query), padded)
        });
        let mut rows = Rows { queries: Vec::new(), padded: padded.collect() };
        let arg: *mut c_void = (&raw mut rows).cast();
        // SAFETY: the mutator copies what it walks over.
        unsafe {
            Tree::from_node(pg_sys::ffi::pg_guard_ffi_boundary(|| expand(self.as_node(), arg)))
        }
    }
}

/// The entries of a range table that outer joins may fill with NULLs.
fn collect_padded(place: Place, is_padded: bool, padded: &mut BTreeSet<c_int>) {
    use pg_sys::JoinType as Join;
    match place.node() {
        Node::FromExpr(from) => {
            let items = tree::places(from.fromlist).into_iter();
            items.for_each(|place| collect_padded(place, is_padded, padded));
        }
        Node::JoinExpr(join) => {
            let left = matches!(join.jointype, Join::JOIN_RIGHT | Join::JOIN_FULL);
            let right = matches!(join.jointype, Join::JOIN_LEFT | Join::JOIN_FULL);
            for (side, pads) in [(join.larg, left), (join.rarg, right)] {
                let side = tree::place(side).into_iter();
                side.for_each(|place| collect_padded(place, is_padded || pads, padded));
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
                copy.cast()
            }
            NodeTag::T_Var if (*node.cast::<pg_sys::Var>()).varattno == 0 => {
                row_of_columns(node.cast(), rows)
            }
            _ => expression_tree_mutator(node, expand, arg),
        }
    }
}

/// `ROW(t.a, t.b)` for `t`; `t` itself if it may be NULL as a whole.
unsafe fn row_of_columns(var: *mut pg_sys::Var, rows: *mut Rows) -> *mut pg_sys::Node {
    // SAFETY: a variable refers to an entry of the range table of one of the queries around.
    unsafe {
        let queries = &(*rows).queries;
        let level = queries.len().wrapping_sub((*var).varlevelsup as usize + 1);
        let Some(query) = queries.get(level).copied() else { return var.cast() };
        let is_padded =
            (*rows).padded.get(&query.cast_const()).is_none_or(|p| p.contains(&(*var).varno));
        if is_padded {
            return var.cast();
        }
        let entries = lists::pointers::<pg_sys::RangeTblEntry>((*query).rtable);
        let entry = entries[(*var).varno as usize - 1];
        let (mut names, mut columns) = (std::ptr::null_mut(), std::ptr::null_mut());
        let level = (*var).varlevelsup as c_int;
        let at = (*var).location;
        pg_sys::expandRTE(entry, (*var).varno, level, at, true, &mut names, &mut columns);
        let row = nodes::row(columns, (*var).vartype);
        (*row).row_format = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
        (*row).colnames = names;
        (*row).location = at;
        row.cast()
    }
}
