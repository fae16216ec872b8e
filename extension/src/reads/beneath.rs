//! The tables beneath views: whether a transaction has changed them itself.

use crate::pg::ids::{RelationId, ViewId};
use crate::pg::inval::Lookups;
use crate::pg::{catalog, relation, xact};
use pgrx::pg_sys;
use std::cell::Cell;

thread_local! {
    /// The transaction that has defined something, as `xact::local_id` has it.
    static DEFINES: Cell<u32> = const { Cell::new(0) };
    /// What is beneath views that were read together.
    static BENEATH: Lookups<Vec<ViewId>, Vec<RelationId>> = const { Lookups::new() };
}

/// A statement is about to run that defines something of what views may be made from.
pub fn note_definition() {
    DEFINES.set(xact::local_id());
}

/// The tables that views are made from, with partitions and children, and the views in between.
pub fn tables_beneath(views: &[ViewId]) -> Vec<RelationId> {
    BENEATH.with(|known| known.get(views, || catalog::tables_beneath(views)))
}

/// What this transaction has changed, or may have, of what views are made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Table(RelationId),
    /// It has defined something, anew or no more.
    Definition,
    /// It is for the leader of this parallel worker to know.
    Unknown,
}

/// A change of this transaction beneath the views, be it one that only may be.
pub fn changed_by_me(views: &[ViewId]) -> Option<Change> {
    if !xact::has_xid() {
        return None;
    }
    if xact::is_parallel_worker() {
        return Some(Change::Unknown);
    }
    if DEFINES.get() == xact::local_id() {
        return Some(Change::Definition);
    }
    // Whoever has created or refreshed a view has not changed what is beneath it.
    let is_view = |table: RelationId| {
        let kind = catalog::relation_kind(table.into());
        matches!(kind, Some(pg_sys::RELKIND_MATVIEW | pg_sys::RELKIND_VIEW))
    };
    let mut tables = tables_beneath(views).into_iter();
    let changed = tables.find(|table| relation::i_change(*table) && !is_view(*table));
    changed.map(Change::Table)
}
