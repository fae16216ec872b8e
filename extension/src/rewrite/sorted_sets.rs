//! Set-returning functions that only ORDER BY has: they make rows all the same, in a subquery.
//!
//! ```sql
//! SELECT t.a FROM t ORDER BY unnest(t.b) LIMIT 3
//! SELECT s.a FROM (SELECT t.a, unnest(t.b) AS sorted2 FROM t) AS s ORDER BY s.sorted2 LIMIT 3
//! ```

use crate::pg::lists;
use crate::rewrite::nodes;
use crate::rewrite::parts;
use crate::rewrite::tree::{self, Node, Place, Tree};
use pgrx::pg_sys::{self, NodeTag, RTEKind};
use std::ffi::CString;

impl Tree {
    /// Has subqueries call what only ORDER BY calls. The tree must be a copy of our own.
    pub fn with_sorted_sets(self) -> Tree {
        for query in self.queries() {
            if has_hidden_set(query) {
                // SAFETY: a query of our own copy.
                unsafe { select_from(std::ptr::from_ref(query).cast_mut()) };
            }
        }
        self
    }
}

/// Whether a set-returning function is called that neither an output nor a grouping key has.
fn has_hidden_set(query: &pg_sys::Query) -> bool {
    let keys = tree::group_references(query);
    let is_key = |reference: u32| reference != 0 && keys.contains(&reference);
    tree::targets(query).into_iter().any(|target| {
        let is_hidden = target.resjunk && !is_key(target.ressortgroupref);
        is_hidden && parts::expression(target).is_some_and(has_set)
    })
}

/// Whether a set-returning function is called, but for queries within.
fn has_set(place: Place<'_>) -> bool {
    match place.node() {
        Node::Query(_) => false,
        node => tree::is_set(node) || place.children().into_iter().any(has_set),
    }
}

/// Makes a query a subquery, with all that it computes, of one that sorts and takes of the rows what it did.
///
/// # Safety
/// A complete query of a copy that nobody else looks at, without set operations.
unsafe fn select_from(query: *mut pg_sys::Query) {
    // SAFETY: per contract; new nodes. What is moved has one owner.
    unsafe {
        let inner: *mut pg_sys::Query = nodes::new(NodeTag::T_Query);
        std::ptr::copy_nonoverlapping(query, inner, 1);
        let (mut outputs, mut names) = (std::ptr::null_mut(), std::ptr::null_mut());
        for (number, target) in
            (1..).zip(lists::pointers::<pg_sys::TargetEntry>((*inner).targetList))
        {
            let name = match (*target).resjunk || (*target).resname.is_null() {
                true => {
                    let name = CString::new(format!("sorted{number}")).unwrap_or_default();
                    pg_sys::pstrdup(name.as_ptr())
                }
                false => (*target).resname,
            };
            let value = (*target).expr.cast();
            let (ty, typmod) = (pg_sys::exprType(value), pg_sys::exprTypmod(value));
            let var = pg_sys::makeVar(1, number, ty, typmod, pg_sys::exprCollation(value), 0);
            let output = pg_sys::makeTargetEntry(var.cast(), number, name, (*target).resjunk);
            (*output).ressortgroupref = (*target).ressortgroupref;
            (*output).resorigtbl = (*target).resorigtbl;
            (*output).resorigcol = (*target).resorigcol;
            outputs = pg_sys::lappend(outputs, output.cast());
            names = pg_sys::lappend(names, pg_sys::makeString(name).cast());
            (*target).resname = name;
            (*target).resjunk = false;
        }
        let none = std::ptr::null_mut();
        ((*inner).sortClause, (*inner).distinctClause) = (none, none);
        ((*inner).limitCount, (*inner).limitOffset) = (none.cast(), none.cast());
        (*inner).limitOption = pg_sys::LimitOption::LIMIT_OPTION_COUNT;
        (*inner).hasDistinctOn = false;
        pg_sys::IncrementVarSublevelsUp(inner.cast(), 1, 1);
        let entry: *mut pg_sys::RangeTblEntry = nodes::new(NodeTag::T_RangeTblEntry);
        (*entry).rtekind = RTEKind::RTE_SUBQUERY;
        (*entry).subquery = inner;
        (*entry).alias = pg_sys::makeAlias(c"s".as_ptr(), none);
        (*entry).eref = pg_sys::makeAlias(c"s".as_ptr(), names);
        (*entry).inFromCl = true;
        let outer = nodes::selection(outputs, entry);
        (*outer).sortClause = (*query).sortClause;
        (*outer).distinctClause = (*query).distinctClause;
        (*outer).hasDistinctOn = (*query).hasDistinctOn;
        (*outer).limitCount = (*query).limitCount;
        (*outer).limitOffset = (*query).limitOffset;
        (*outer).limitOption = (*query).limitOption;
        (*outer).hasSubLinks = (*query).hasSubLinks;
        std::ptr::copy_nonoverlapping(outer, query, 1);
    }
}
