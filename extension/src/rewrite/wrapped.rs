//! An entry of a range table as a subquery with all its columns.
//!
//! ```sql
//! … FROM t …
//! … FROM (SELECT t.a, t.b FROM t) t …
//! ```

use crate::pg::lists;
use crate::pg::versions::rights;
use crate::pg::versions::tree::expand_entry;
use crate::rewrite::nodes;
use pgrx::pg_sys::{self, Oid};
use std::ffi::{c_char, c_int, CStr, CString};

/// Makes entry `number` of a query's range table a subquery with all its columns, and a constant of that name behind them if there is
/// one. Answers with the entry.
///
/// # Safety
/// A query of a copy that nobody else looks at, with such an entry.
pub(super) unsafe fn wrap(
    query: *mut pg_sys::Query,
    number: c_int,
    constant: Option<(&CStr, *mut pg_sys::Expr)>,
) -> *mut pg_sys::RangeTblEntry {
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
        if let Some((name, value)) = constant {
            add(value, copy(name));
        }
        let name = (*(*inner).eref).aliasname;
        let list = pg_sys::lappend(std::ptr::null_mut(), inner.cast());
        // What it refers to beside itself is one level further up now.
        pg_sys::IncrementVarSublevelsUp_rtable(list, 1, 0);
        let subquery = nodes::selection(targets, inner);
        rights::move_needs(&*query, inner, subquery);
        nodes::become_subquery(entry, subquery);
        (*entry).eref = pg_sys::makeAlias(name, all);
        entry
    }
}

/// # Safety
/// The copy lives as long as the memory context.
unsafe fn copy(name: &CStr) -> *mut c_char {
    // SAFETY: a C string.
    unsafe { pg_sys::pstrdup(name.as_ptr()) }
}
