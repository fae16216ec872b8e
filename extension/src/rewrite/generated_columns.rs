//! Tables with columns that are computed when they are read, as subqueries that compute them: what is in the WAL are the others.
//!
//! ```sql
//! CREATE TABLE t (a int, b int GENERATED ALWAYS AS (a * 2) VIRTUAL)
//! SELECT … FROM s LEFT JOIN t USING (a)
//! SELECT … FROM s LEFT JOIN (SELECT t.a, t.a * 2 AS b FROM t) t USING (a)
//! ```

use crate::pg::lists;
use crate::pg::relation::{with_relation, Lock, RelationRef};
use crate::pg::strings::owned;
use crate::pg::versions::{rights, tuple};
use crate::rewrite::nodes;
use crate::rewrite::tree::Tree;
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::ffi::{c_int, CString};

impl Tree {
    /// Has subqueries compute the virtual columns of tables. The tree must be a copy of our own, without whole rows of such
    /// tables.
    pub fn with_generated_columns(self) -> Tree {
        for query in self.queries() {
            // SAFETY: a query of our own copy, and the entries of its range table.
            unsafe {
                for entry in lists::pointers::<pg_sys::RangeTblEntry>(query.rtable) {
                    if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
                        compute(query, entry);
                    }
                }
            }
        }
        self
    }
}

/// Makes a table with virtual columns a subquery that computes them; leaves others as they are.
///
/// # Safety
/// An entry of the query's range table, in a tree of our own.
unsafe fn compute(query: &pg_sys::Query, entry: *mut pg_sys::RangeTblEntry) {
    // SAFETY: per contract.
    let relation = unsafe { (*entry).relid };
    let outputs = with_relation(relation, Lock::AccessShare, |relation| outputs_of(&relation));
    let Some(outputs) = outputs.flatten() else { return };
    // SAFETY: new nodes in a tree of our own; the entry goes on in the subquery, as a copy.
    unsafe {
        let table: *mut pg_sys::RangeTblEntry = nodes::new(NodeTag::T_RangeTblEntry);
        std::ptr::copy_nonoverlapping(entry, table, 1);
        let names =
            outputs.iter().map(|(name, _)| pg_sys::makeString(pg_sys::pstrdup(name.as_ptr())));
        let names = nodes::list(names);
        let targets = outputs.iter().zip(1..).map(|((name, value), number)| {
            let name = pg_sys::pstrdup(name.as_ptr());
            pg_sys::makeTargetEntry((*value).cast(), number, name, false)
        });
        let subquery = nodes::selection(nodes::list(targets), table);
        rights::move_needs(query, table, subquery);
        nodes::become_subquery(entry, subquery);
        (*entry).eref = pg_sys::makeAlias((*(*entry).eref).aliasname, names);
    }
}

/// Names and values of all columns, dropped ones included, whose places the others keep; `None` if none is virtual.
fn outputs_of(relation: &RelationRef<'_>) -> Option<Vec<(CString, *mut pg_sys::Node)>> {
    // SAFETY: an open relation; its columns have names.
    unsafe {
        let columns = tuple::columns(relation.descriptor());
        if !columns.iter().any(tuple::is_virtual) {
            return None;
        }
        let output = |column: &pg_sys::FormData_pg_attribute| {
            let name = owned(column.attname.data.as_ptr());
            Some((CString::new(name).ok()?, value_of(relation, column)))
        };
        columns.iter().map(output).collect()
    }
}

/// What a column of the first entry of a range table is, or is computed from.
///
/// # Safety
/// A column of the relation.
unsafe fn value_of(
    relation: &RelationRef<'_>,
    column: &pg_sys::FormData_pg_attribute,
) -> *mut pg_sys::Node {
    let number = column.attnum;
    // SAFETY: per contract; new nodes.
    unsafe {
        if column.attisdropped {
            let null = pg_sys::Datum::from(0);
            return pg_sys::makeConst(pg_sys::INT4OID, -1, Oid::INVALID, 4, null, true, true)
                .cast();
        }
        if tuple::is_virtual(column) {
            return tuple::generation_expression(relation.as_raw(), c_int::from(number));
        }
        let (ty, typmod, collation) = (column.atttypid, column.atttypmod, column.attcollation);
        pg_sys::makeVar(1, number, ty, typmod, collation, 0).cast()
    }
}
