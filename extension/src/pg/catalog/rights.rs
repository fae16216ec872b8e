//! What the current user may do with a relation.

use super::quoted;
use crate::pg::ids::RelationId;
use crate::pg::quiet;
use crate::pg::strings::owned;
use crate::pg::versions::rights;
use pgrx::pg_sys::{self, Oid};
use std::ffi::c_int;

/// The user with whose rights statements run.
pub fn current_user() -> Oid {
    // SAFETY: reads a global.
    unsafe { pg_sys::GetUserId() }
}

/// Whether the current user may do anything.
pub fn is_superuser() -> bool {
    // SAFETY: a look-up.
    unsafe { pg_sys::superuser() }
}

/// Whether the current user owns a relation, or may act as its owner.
pub fn is_owned_by_user(relation: Oid) -> bool {
    rights::owns_relation(relation)
}

/// Whether the current user may refresh a materialized view.
pub fn may_refresh(view: Oid) -> bool {
    rights::may_refresh(view)
}

/// Whether the current user may read a relation; nobody may read one that is gone.
pub fn may_select(relation: impl Into<RelationId>) -> bool {
    // SAFETY: look-ups in the system caches; a missing relation is no error.
    unsafe {
        let (relation, user) = (Oid::from(relation.into()), pg_sys::GetUserId());
        let mode = pg_sys::ACL_SELECT as pg_sys::AclMode;
        let mut is_missing = false;
        let result = pg_sys::pg_class_aclcheck_ext(relation, user, mode, &mut is_missing);
        !is_missing && result == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// Whether the current user may keep others from writing a table, as LOCK TABLE sees it.
pub fn may_block_writes(relation: Oid) -> bool {
    let rights = pg_sys::ACL_UPDATE | pg_sys::ACL_DELETE | pg_sys::ACL_TRUNCATE;
    // SAFETY: look-ups.
    let result = unsafe {
        pg_sys::pg_class_aclcheck(relation, pg_sys::GetUserId(), rights as pg_sys::AclMode)
    };
    result == pg_sys::AclResult::ACLCHECK_OK
}

/// Whether what an entry of a query's range table reads may be read by who is to read it.
pub fn may_read(query: &pg_sys::Query, entry: &pg_sys::RangeTblEntry) -> bool {
    quiet::check_rights(|| rights::may_read(query, entry))
}

/// As whom an entry of a query's range table is read, quoted as needed.
pub fn reader(query: &pg_sys::Query, entry: &pg_sys::RangeTblEntry) -> String {
    let role = rights::reader(query, entry).unwrap_or_else(current_user);
    // SAFETY: a palloc'd name, or null for a role that is gone.
    let name = unsafe { pg_sys::GetUserNameFromId(role, true) };
    if name.is_null() {
        return role.to_u32().to_string();
    }
    // SAFETY: as above.
    quoted(&unsafe { owned(name) })
}

/// Whether policies restrict what the reader of an entry of a query's range table sees.
pub fn is_row_secured(query: &pg_sys::Query, entry: &pg_sys::RangeTblEntry) -> bool {
    entry.rtekind == pg_sys::RTEKind::RTE_RELATION && {
        let reader = rights::reader(query, entry).unwrap_or(Oid::INVALID);
        // SAFETY: look-ups; with the last argument nothing is raised.
        let status = unsafe { pg_sys::check_enable_rls(entry.relid, reader, true) };
        status == pg_sys::CheckEnableRlsResult::RLS_ENABLED as c_int
    }
}

/// Whether a user may act as another: as the same, as a member with its rights, or as a superuser.
pub fn may_act_as(user: Oid, owner: Oid) -> bool {
    // SAFETY: look-ups in the system caches.
    unsafe { pg_sys::has_privs_of_role(user, owner) }
}
