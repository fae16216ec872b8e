//! Columns of subqueries that are compared (`x = ANY (SELECT …)`) as they are compared: what the comparison casts is
//! cast in the subquery, because the text of a query does not show such casts.
//!
//! ```sql
//! SELECT … WHERE a = ANY (SELECT b FROM t)            -- a is numeric, b integer: it is b::numeric, unseen
//! SELECT … WHERE a = ANY (SELECT b::numeric FROM (SELECT b FROM t) AS compared)
//! ```

use crate::pg::lists;
use crate::rewrite::nodes;
use crate::rewrite::tree::{expression_tree_mutator, query_tree_mutator, Node, Place, Tree};
use pgrx::pg_sys::{self, NodeTag};
use std::ffi::c_void;

impl Tree {
    /// A copy in which comparisons with subqueries compare their columns without casts.
    pub fn with_compared_columns(self) -> Tree {
        // SAFETY: the mutator copies what it walks over.
        unsafe {
            Tree::from_node(pg_sys::ffi::pg_guard_ffi_boundary(|| {
                walk(self.as_node(), std::ptr::null_mut())
            }))
        }
    }
}

/// # Safety
/// For PostgreSQL's mutator to call, with the argument that it was given: see the function that starts it.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn walk(node: *mut pg_sys::Node, arg: *mut c_void) -> *mut pg_sys::Node {
    // SAFETY: tags decide types; null is a missing part of a node.
    unsafe {
        if node.is_null() {
            return node;
        }
        match (*node).type_ {
            NodeTag::T_Query => query_tree_mutator(node.cast(), walk, arg, 0).cast(),
            NodeTag::T_SubLink => {
                let copy = expression_tree_mutator(node, walk, arg);
                move_casts(copy.cast());
                copy
            }
            _ => expression_tree_mutator(node, walk, arg),
        }
    }
}

/// Where a column of a subquery stands in a comparison, maybe in casts.
struct Side {
    cell: *mut pg_sys::ListCell,
    column: *mut pg_sys::Param,
}

/// Moves the casts of one comparison, which is a copy of our own, into its subquery.
///
/// # Safety
/// A complete sublink of a copy that nobody else looks at.
unsafe fn move_casts(link: *mut pg_sys::SubLink) {
    // SAFETY: nodes of one tree; new nodes live as long as the copy.
    unsafe {
        let mut sides = Vec::new();
        collect_sides((*link).testexpr, &mut sides);
        let is_cast = |side: &Side| (*side.cell).ptr_value != side.column.cast::<c_void>();
        if !sides.iter().any(is_cast) {
            return;
        }
        sides.sort_by_key(|side| (*side.column).paramid);
        let subquery: *mut pg_sys::Query = (*link).subselect.cast();
        pg_sys::IncrementVarSublevelsUp(subquery.cast(), 1, 1);
        let targets = lists::pointers::<pg_sys::TargetEntry>((*subquery).targetList);
        let (mut names, mut outputs) = (std::ptr::null_mut(), std::ptr::null_mut());
        let shown = targets.into_iter().filter(|target| !(**target).resjunk);
        for ((number, target), side) in (1..).zip(shown).zip(&sides) {
            let value: *mut pg_sys::Node = (*side.cell).ptr_value.cast();
            let output = as_output(value, std::ptr::null_mut());
            let entry = pg_sys::makeTargetEntry(output.cast(), number, (*target).resname, false);
            outputs = pg_sys::lappend(outputs, entry.cast());
            names = pg_sys::lappend(names, pg_sys::makeString((*target).resname).cast());
            let param = side.column;
            (*param).paramtype = pg_sys::exprType(value);
            (*param).paramtypmod = pg_sys::exprTypmod(value);
            (*param).paramcollid = pg_sys::exprCollation(value);
            (*side.cell).ptr_value = param.cast();
        }
        (*link).subselect = selecting(outputs, subquery, names).cast();
    }
}

/// The right sides of a comparison of values or rows.
///
/// # Safety
/// Null, or the comparison of a sublink of our own copy.
unsafe fn collect_sides(test: *mut pg_sys::Node, sides: &mut Vec<Side>) {
    // SAFETY: the tag decides the type.
    unsafe {
        if test.is_null() {
            return;
        }
        match (*test).type_ {
            NodeTag::T_OpExpr => {
                let args = (*test.cast::<pg_sys::OpExpr>()).args;
                sides.extend(side((*args).elements.add(1)));
            }
            NodeTag::T_BoolExpr => {
                let args = (*test.cast::<pg_sys::BoolExpr>()).args;
                let args = lists::pointers::<pg_sys::Node>(args);
                args.into_iter().for_each(|arg| collect_sides(arg, sides));
            }
            NodeTag::T_RowCompareExpr => {
                let args = (*test.cast::<pg_sys::RowCompareExpr>()).rargs;
                let count = usize::try_from((*args).length).unwrap_or(0);
                sides.extend((0..count).filter_map(|i| side((*args).elements.add(i))));
            }
            _ => {}
        }
    }
}

/// The right side of a comparison, if it is a column.
///
/// # Safety
/// A cell of a list of expressions of our own copy.
unsafe fn side(cell: *mut pg_sys::ListCell) -> Option<Side> {
    // SAFETY: the cell holds an expression.
    let place = unsafe { Place::of((*cell).ptr_value.cast()) };
    Some(Side { cell, column: column_of(place)? })
}

fn column_of(place: Place<'_>) -> Option<*mut pg_sys::Param> {
    match place.node() {
        Node::Param(_) => Some(place.0.cast()),
        _ => place.children().into_iter().find_map(column_of),
    }
}

/// The casts of a column as they stand above the subquery.
///
/// # Safety
/// A cast of a column, for PostgreSQL's mutator to call as well.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn as_output(
    node: *mut pg_sys::Node,
    arg: *mut c_void,
) -> *mut pg_sys::Node {
    // SAFETY: tags decide types; new nodes.
    unsafe {
        if node.is_null() || (*node).type_ != NodeTag::T_Param {
            return expression_tree_mutator(node, as_output, arg);
        }
        let param = &*node.cast::<pg_sys::Param>();
        let number = param.paramid as pg_sys::AttrNumber;
        let (ty, typmod, collation) = (param.paramtype, param.paramtypmod, param.paramcollid);
        pg_sys::makeVar(1, number, ty, typmod, collation, 0).cast()
    }
}

/// `SELECT outputs FROM (subquery)`
///
/// # Safety
/// The nodes must be complete, of one tree.
unsafe fn selecting(
    outputs: *mut pg_sys::List,
    subquery: *mut pg_sys::Query,
    names: *mut pg_sys::List,
) -> *mut pg_sys::Query {
    // SAFETY: new nodes.
    unsafe {
        let entry: *mut pg_sys::RangeTblEntry = nodes::new(NodeTag::T_RangeTblEntry);
        (*entry).rtekind = pg_sys::RTEKind::RTE_SUBQUERY;
        (*entry).subquery = subquery;
        (*entry).alias = pg_sys::makeAlias(c"compared".as_ptr(), std::ptr::null_mut());
        (*entry).eref = pg_sys::makeAlias(c"compared".as_ptr(), names);
        (*entry).inFromCl = true;
        nodes::selection(outputs, entry)
    }
}
