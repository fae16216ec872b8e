//! A column that tells whether there is a row, for what an outer join may fill with NULLs.
//!
//! ```sql
//! … LEFT JOIN t ON …
//! … LEFT JOIN (SELECT t.a, t.b, true AS is_there FROM t) t ON …
//! ```

use crate::pg::lists;
use crate::rewrite::wrapped;
use pgrx::pg_sys::{self, RTEKind};
use std::ffi::{c_int, CStr};

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
    unsafe {
        wrapped::wrap(query, number, Some((NAME, pg_sys::makeBoolConst(true, false).cast())))
    };
}
