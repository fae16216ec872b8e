//! What may be read as whom. From 16 on the entry of a range table has what it needs of rights in a list beside it.

use pgrx::pg_sys::{self, Oid};

/// Whether the current user owns a relation, or may act as its owner.
pub fn owns_relation(relation: Oid) -> bool {
    // SAFETY: look-ups.
    unsafe {
        let user = pg_sys::GetUserId();
        #[cfg(feature = "pg15")]
        return pg_sys::pg_class_ownercheck(relation, user);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::RelationRelationId, relation, user);
    }
}

/// Whether the current user may refresh a materialized view. From 17 on others may, too, whom the owner lets.
pub fn may_refresh(relation: Oid) -> bool {
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    {
        let maintain = pg_sys::ACL_MAINTAIN as pg_sys::AclMode;
        // SAFETY: look-ups.
        let result = unsafe { pg_sys::pg_class_aclcheck(relation, pg_sys::GetUserId(), maintain) };
        result == pg_sys::AclResult::ACLCHECK_OK
    }
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    owns_relation(relation)
}

/// Whether the current user owns a database, or may act as its owner.
pub fn owns_database(database: Oid) -> bool {
    // SAFETY: look-ups.
    unsafe {
        let user = pg_sys::GetUserId();
        #[cfg(feature = "pg15")]
        return pg_sys::pg_database_ownercheck(database, user);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::DatabaseRelationId, database, user);
    }
}

/// Whether all may be read that a planned statement reads.
///
/// # Safety
/// A planned statement.
pub unsafe fn may_run(statement: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: per contract; violations are returned, not raised.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::ExecCheckRTPerms((*statement).rtable, false);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::ExecCheckPermissions((*statement).rtable, (*statement).permInfos, false);
    }
}

/// Whether what an entry of a query's range table reads may be read by who is to read it.
pub fn may_read(query: &pg_sys::Query, entry: &pg_sys::RangeTblEntry) -> bool {
    let entry: *const pg_sys::RangeTblEntry = entry;
    // SAFETY: lists of one element; violations are returned, not raised.
    unsafe {
        let entries = pg_sys::lappend(std::ptr::null_mut(), entry.cast_mut().cast());
        #[cfg(feature = "pg15")]
        {
            let _ = query;
            pg_sys::ExecCheckRTPerms(entries, false)
        }
        #[cfg(not(feature = "pg15"))]
        {
            let Some(needs) = needs(query, &*entry) else { return true };
            let needs = pg_sys::lappend(std::ptr::null_mut(), needs.cast());
            pg_sys::ExecCheckPermissions(entries, needs, false)
        }
    }
}

/// As whom an entry of a query's range table is read, if not as the current user.
pub fn reader(query: &pg_sys::Query, entry: &pg_sys::RangeTblEntry) -> Option<Oid> {
    #[cfg(feature = "pg15")]
    let reader = {
        let _ = query;
        entry.checkAsUser
    };
    #[cfg(not(feature = "pg15"))]
    // SAFETY: an element of the query's own list.
    let reader = unsafe { (*needs(query, entry)?).checkAsUser };
    (reader != Oid::INVALID).then_some(reader)
}

/// Whether a query asks for a system column of what an entry of its range table reads.
pub fn reads_system_columns(query: &pg_sys::Query, entry: &pg_sys::RangeTblEntry) -> bool {
    #[cfg(feature = "pg15")]
    let columns = {
        let _ = query;
        entry.selectedCols
    };
    #[cfg(not(feature = "pg15"))]
    let columns = match needs(query, entry) {
        // SAFETY: an element of the query's own list.
        Some(needs) => unsafe { (*needs).selectedCols },
        None => std::ptr::null_mut(),
    };
    // SAFETY: null or a set, whose least member says what kind of column it is.
    let least = unsafe { pg_sys::bms_next_member(columns, -1) };
    (0..-pg_sys::FirstLowInvalidHeapAttributeNumber).contains(&least)
}

/// Number of the last column that a plan reads of what an entry of its range table stands for, 0 for none; `None` if
/// it reads whole rows.
///
/// # Safety
/// A plan and an entry of its range table.
pub unsafe fn last_column(
    plan: *const pg_sys::PlannedStmt,
    entry: *const pg_sys::RangeTblEntry,
) -> Option<u32> {
    // SAFETY: per contract; a set or null, whose members count from the first system column on.
    unsafe {
        #[cfg(feature = "pg15")]
        let columns = {
            let _ = plan;
            (*entry).selectedCols
        };
        #[cfg(not(feature = "pg15"))]
        let columns = match (*entry).perminfoindex {
            0 => std::ptr::null_mut(),
            _ => (*pg_sys::getRTEPermissionInfo((*plan).permInfos, entry.cast_mut())).selectedCols,
        };
        let whole_row = -pg_sys::FirstLowInvalidHeapAttributeNumber;
        match pg_sys::bms_is_member(whole_row, columns) {
            true => None,
            false => {
                Some(u32::try_from(pg_sys::bms_prev_member(columns, -1) - whole_row).unwrap_or(0))
            }
        }
    }
}

/// Has the only entry of `to`, a copy of one of a query's range table, need the same rights there.
///
/// # Safety
/// A query of our own.
pub unsafe fn move_needs(
    query: &pg_sys::Query,
    entry: *mut pg_sys::RangeTblEntry,
    to: *mut pg_sys::Query,
) {
    #[cfg(feature = "pg15")]
    let _ = (query, entry, to);
    #[cfg(not(feature = "pg15"))]
    // SAFETY: per contract.
    unsafe {
        let Some(needs) = needs(query, &*entry) else { return };
        (*to).rteperminfos = pg_sys::lappend(std::ptr::null_mut(), needs.cast());
        (*entry).perminfoindex = 1;
    }
}

/// What an entry of a query's range table needs of rights.
#[cfg(not(feature = "pg15"))]
fn needs(
    query: &pg_sys::Query,
    entry: &pg_sys::RangeTblEntry,
) -> Option<*mut pg_sys::RTEPermissionInfo> {
    if entry.perminfoindex == 0 {
        return None;
    }
    let entry: *const pg_sys::RangeTblEntry = entry;
    // SAFETY: an entry of this query, which is only read.
    Some(unsafe { pg_sys::getRTEPermissionInfo(query.rteperminfos, entry.cast_mut()) })
}
