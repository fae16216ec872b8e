//! The ORDER BY and WINDOW clauses of analysed queries and aggregates.

use crate::pg::lists;
use crate::pg::tree::{self, Node, Place};
use pgrx::pg_sys::{self, Oid};

/// The windows of a query.
pub fn of(query: &pg_sys::Query) -> Vec<&pg_sys::WindowClause> {
    // SAFETY: the list holds window clauses, valid as long as the tree.
    unsafe {
        let list = lists::pointers::<pg_sys::WindowClause>(query.windowClause);
        list.into_iter().map(|window| &*window).collect()
    }
}

/// Whether the text of an ORDER BY would mean another output than the expression it is: the merged column of a
/// FULL JOIN has no qualified name, and another output may have its name.
pub fn is_captured(query: &pg_sys::Query, place: Place) -> bool {
    let Node::Var(var) = place.node() else { return false };
    let entries = tree::range_table(query);
    let entry = usize::try_from(var.varno)
        .ok()
        .and_then(|number| entries.get(number.checked_sub(1)?).copied());
    let Some(entry) = entry.filter(|entry| entry.rtekind == pg_sys::RTEKind::RTE_JOIN) else {
        return false;
    };
    // SAFETY: the lists are of the query and its entry; names are C strings.
    unsafe {
        let names = lists::pointers::<pg_sys::String>((*entry.eref).colnames);
        let number = usize::try_from(var.varattno).ok().and_then(|number| number.checked_sub(1));
        let Some(name) = number.and_then(|number| names.get(number)) else { return false };
        let name = tree::name((**name).sval);
        let targets = lists::pointers::<pg_sys::TargetEntry>(query.targetList);
        targets.into_iter().any(|target| {
            let is_other = !pg_sys::equal((*target).expr.cast(), std::ptr::from_ref(var).cast());
            !(*target).resjunk && tree::name((*target).resname) == name && is_other
        })
    }
}

/// The expressions among `targets` that a clause sorts by, each with its operator.
pub fn sort_items(targets: *mut pg_sys::List, clause: *mut pg_sys::List) -> Vec<(Place, Oid)> {
    // SAFETY: the lists are of one query or aggregate; each sort clause refers to a target.
    unsafe {
        let list = lists::pointers::<pg_sys::SortGroupClause>(clause);
        let item = |sort: *mut pg_sys::SortGroupClause| {
            let target = pg_sys::get_sortgroupclause_tle(sort, targets);
            Some((tree::place((*target).expr)?, (*sort).sortop))
        };
        list.into_iter().filter_map(item).collect()
    }
}
