//! A column that tells whether there is a row, for what an outer join may fill with NULLs.
//!
//! ```sql
//! … LEFT JOIN t ON …
//! … LEFT JOIN (SELECT t.a, t.b, true AS is_there FROM t) t ON …
//! ```

use crate::pg::lists;
use crate::pg::versions::rights;
use crate::pg::versions::tree::expand_entry;
use crate::rewrite::nodes;
use pgrx::pg_sys::{self, Oid, RTEKind};
use std::ffi::{c_char, c_int, CStr, CString};

/// Name of the column.
const NAME: &CStr = c"is_there";

/// Whether an entry can have one.
pub(super) fn can_mark(entry: &pg_sys::RangeTblEntry) -> bool {
    matches!(
        entry.rtekind,
        RTEKind::RTE_RELATION
            | RTEKind::RTE_SUBQUERY
            | RTEKind::RTE_FUNCTION
            | RTEKind::RTE_TABLEFUNC
            | RTEKind::RTE_VALUES
            | RTEKind::RTE_CTE
    )
}

/// The number that the column has.
pub(super) fn number_of_mark(entry: &pg_sys::RangeTblEntry) -> i16 {
    // SAFETY: an entry of an analysed tree has the names of its columns.
    let names = unsafe { lists::pointers::<pg_sys::String>((*entry.eref).colnames) };
    names.len() as i16 + 1
}

/// Makes entry `number` of a query's range table a subquery with all its columns and that one.
///
/// # Safety
/// A query of a copy that nobody else looks at, with such an entry.
pub(super) unsafe fn mark(query: *mut pg_sys::Query, number: c_int) {
    // SAFETY: per contract.
    unsafe { add(query, number, pg_sys::makeBoolConst(true, false).cast(), NAME) }
}

/// Makes entry `number` of a query's range table a subquery with all its columns and a constant.
///
/// # Safety
/// A query of a copy that nobody else looks at, with such an entry.
pub(super) unsafe fn add(
    query: *mut pg_sys::Query,
    number: c_int,
    value: *mut pg_sys::Expr,
    name: &CStr,
) {
    // SAFETY: per contract; new nodes.
    unsafe {
        let entries = lists::pointers::<pg_sys::RangeTblEntry>((*query).rtable);
        let entry = entries[number as usize - 1];
        let inner = pg_sys::palloc(size_of::<pg_sys::RangeTblEntry>()).cast();
        std::ptr::copy_nonoverlapping(entry, inner, 1);
        let var = pg_sys::makeVar(1, 1, Oid::INVALID, -1, Oid::INVALID, 0);
        let [_, columns] = expand_entry(inner, &*var, true);
        let columns = lists::pointers::<pg_sys::Expr>(columns);
        let names = lists::pointers::<pg_sys::String>((*(*inner).eref).colnames);
        let (mut targets, mut all) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut add = |value: *mut pg_sys::Expr, name: *mut c_char| {
            let number = lists::pointers::<pg_sys::TargetEntry>(targets).len() as i16 + 1;
            let target = pg_sys::makeTargetEntry(value, number, name, false);
            targets = pg_sys::lappend(targets, target.cast());
            all = pg_sys::lappend(all, pg_sys::makeString(name).cast());
        };
        for (index, (column, name)) in columns.into_iter().zip(names).enumerate() {
            let is_dropped = *(*name).sval == 0;
            let name = match is_dropped {
                true => copy(&CString::new(format!("dropped_{index}")).unwrap_or_default()),
                false => (*name).sval,
            };
            add(column, name);
        }
        add(value, copy(name));
        let name = (*(*inner).eref).aliasname;
        let list = pg_sys::lappend(std::ptr::null_mut(), inner.cast());
        // What it refers to beside itself is one level further up now.
        pg_sys::IncrementVarSublevelsUp_rtable(list, 1, 0);
        let subquery = nodes::selection(targets, inner);
        rights::move_needs(&*query, inner, subquery);
        nodes::become_subquery(entry, subquery);
        (*entry).eref = pg_sys::makeAlias(name, all);
    }
}

/// # Safety
/// The copy lives as long as the memory context.
unsafe fn copy(name: &CStr) -> *mut c_char {
    // SAFETY: a C string.
    unsafe { pg_sys::pstrdup(name.as_ptr()) }
}
