//! The tables beneath views: whether a transaction has changed them itself.

use crate::pg::ids::{RelationId, ViewId};
use crate::pg::{catalog, inval, relation, xact};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The tables beneath views that were read together.
type Beneath = BTreeMap<Vec<ViewId>, Vec<RelationId>>;

thread_local! {
    /// What is beneath views, with the generation of the caches it is from.
    static BENEATH: RefCell<(u64, Beneath)> = const { RefCell::new((0, Beneath::new())) };
}

/// The tables that views are made from, with partitions and children, and the views in between.
pub fn tables_beneath(views: &[ViewId]) -> Vec<RelationId> {
    let generation = inval::generation();
    let known = BENEATH.with_borrow_mut(|(of, known)| {
        if *of != generation {
            known.clear();
            *of = generation;
        }
        known.get(views).cloned()
    });
    known.unwrap_or_else(|| {
        let tables = catalog::tables_beneath(views);
        BENEATH.with_borrow_mut(|(_, known)| known.insert(views.to_vec(), tables.clone()));
        tables
    })
}

/// A table beneath the views that this transaction has changed, or may have.
pub fn changed_by_me(views: &[ViewId]) -> Option<RelationId> {
    if !xact::has_xid() {
        return None;
    }
    // Whoever has created or refreshed a view has not changed what is beneath it.
    let is_view = |table: RelationId| {
        let kind = catalog::relation_kind(table.into());
        matches!(kind, Some(pg_sys::RELKIND_MATVIEW | pg_sys::RELKIND_VIEW))
    };
    let mut tables = tables_beneath(views).into_iter();
    tables.find(|table| relation::i_change(*table) && !is_view(*table))
}
