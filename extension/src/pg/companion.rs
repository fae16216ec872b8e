//! Tables beside views: those of their changes, and those that mirror them.
//!
//! Such a table is part of its view: it goes with the view, and by itself it cannot be dropped. Dumps carry both, but not what
//! ties them.

use super::ids::{RelationId, ViewId};
use super::own_rows::{self, Field};
use super::relation::RelationRef;
use super::{catalog, changes_table, mirror, xact};
use crate::pg::versions::tuple;
use pgrx::pg_sys::{self, Oid};

/// How a table depends on its view.
const INTERNAL: pg_sys::DependencyType::Type = pg_sys::DependencyType::DEPENDENCY_INTERNAL;

/// Whether a table is one of a view that is there.
pub fn is_tied(table: RelationId) -> bool {
    let is_in = |records| {
        let rows = xact::with_new_snapshot(|| own_rows::read(records, None));
        rows.iter().any(|row| row.get(1) == Some(&Field::Oid(table.to_u32())))
    };
    [changes_table::TABLE, mirror::TABLE].into_iter().any(is_in)
}

/// Whether a table, which may have had others, lacks the last columns of a view and nothing else; `own` are those before them.
pub fn lacks(table: &RelationRef<'_>, view: &RelationRef<'_>, own: usize, last: usize) -> bool {
    // SAFETY: descriptors of open relations.
    let count = |relation: &RelationRef<'_>| unsafe { tuple::columns(relation.descriptor()).len() };
    count(table) + last == own + count(view)
}

/// Ties a table to its view, and gives it to the owner of the view.
pub fn tie(table: RelationId, view: ViewId, owner: Oid) {
    give(table, owner);
    let (address, view) = (address(table), address(view.into()));
    // SAFETY: relations that exist and are locked by who made or alters them.
    unsafe {
        pg_sys::recordDependencyOn(&address, &view, INTERNAL);
        pg_sys::CommandCounterIncrement();
    }
}

/// Gives a table to an owner, whoever asks for it.
pub fn give(table: RelationId, owner: Oid) {
    extern "C-unwind" {
        #[link_name = "ATExecChangeOwner"]
        fn change_owner(table: Oid, owner: Oid, recursing: bool, lock: pg_sys::LOCKMODE);
    }
    let lock = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: a relation that exists; one that has that owner is left alone.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| change_owner(table.into(), owner, true, lock));
    }
}

/// Drops the table; an error if something else depends on it.
pub fn drop(table: RelationId) {
    if catalog::relation_kind(table.into()).is_none() {
        return;
    }
    // SAFETY: a relation that exists; its lock is taken by the deletion.
    unsafe {
        pg_sys::deleteDependencyRecordsForClass(
            pg_sys::RelationRelationId,
            table.into(),
            pg_sys::RelationRelationId,
            INTERNAL as std::ffi::c_char,
        );
        pg_sys::CommandCounterIncrement();
        pg_sys::performDeletion(&address(table), pg_sys::DropBehavior::DROP_RESTRICT, 0);
    }
}

fn address(relation: RelationId) -> pg_sys::ObjectAddress {
    pg_sys::ObjectAddress {
        classId: pg_sys::RelationRelationId,
        objectId: relation.into(),
        objectSubId: 0,
    }
}
