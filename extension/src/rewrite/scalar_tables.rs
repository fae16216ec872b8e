//! Single values in FROM as subqueries that compute them.
//!
//! ```sql
//! SELECT … FROM t, CAST(t.a AS bigint) AS b
//! SELECT … FROM t, LATERAL (SELECT CAST(t.a AS bigint) AS b) AS b
//!
//! SELECT … FROM t, upper(t.a) WITH ORDINALITY AS b
//! SELECT … FROM t, LATERAL (SELECT upper(t.a) AS b, 1 AS ordinality) AS b
//! ```

use crate::pg::lists;
use crate::rewrite::nodes;
use crate::rewrite::returned;
use crate::rewrite::tree::{Node, Tree};
use pgrx::pg_sys::{self, RTEKind};

impl Tree {
    /// Makes subqueries of items of FROM that are an expression with one value, be it a constant by now. The tree must be a
    /// copy of our own.
    pub fn with_scalar_tables(self) -> Tree {
        for query in self.queries() {
            // SAFETY: entries of a copy of our own.
            unsafe {
                for entry in lists::pointers::<pg_sys::RangeTblEntry>(query.rtable) {
                    if is_scalar(&*entry) {
                        select(entry);
                    }
                }
            }
        }
        self
    }
}

fn is_scalar(entry: &pg_sys::RangeTblEntry) -> bool {
    if entry.rtekind != RTEKind::RTE_FUNCTION {
        return false;
    }
    match returned::functions(entry).as_slice() {
        [(place, columns)] => {
            let is_set = matches!(place.node(), Node::FuncExpr(call) if call.funcretset);
            columns.is_empty() && !is_set && !returned::is_row(*place)
        }
        _ => false,
    }
}

/// # Safety
/// An entry of a copy that nobody else looks at, with one function.
unsafe fn select(entry: *mut pg_sys::RangeTblEntry) {
    // SAFETY: per contract; new nodes.
    unsafe {
        let functions = lists::pointers::<pg_sys::RangeTblFunction>((*entry).functions);
        let Some(value) = functions.first().map(|function| (**function).funcexpr) else { return };
        // What it refers to is one level further up now.
        pg_sys::IncrementVarSublevelsUp(value, 1, 0);
        let names = lists::pointers::<pg_sys::String>((*(*entry).eref).colnames);
        let ordinality = (*entry).funcordinality.then(|| nodes::bigint(1).cast());
        let values = [value.cast()].into_iter().chain(ordinality);
        let targets = (1..).zip(values).zip(names);
        let targets = targets.map(|((number, value), name)| {
            pg_sys::makeTargetEntry(value, number, (*name).sval, false)
        });
        let subquery = nodes::query();
        (*subquery).targetList = nodes::list(targets);
        (*subquery).jointree = pg_sys::makeFromExpr(std::ptr::null_mut(), std::ptr::null_mut());
        (*subquery).hasSubLinks = pg_sys::checkExprHasSubLink(value);
        nodes::become_subquery(entry, subquery);
    }
}
