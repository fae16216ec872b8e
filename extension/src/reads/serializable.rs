//! What serializable transactions must tell PostgreSQL about the views they read.
//!
//! PostgreSQL finds out about transactions that cannot have run one after the other by what each of them
//! has read and what others, running at the same time, wrote there. The worker's writes are nobody's
//! transaction in this sense. So whoever reads a view counts as having read the whole of each of its base tables:
//! - From the moment of the read on, whoever writes a base table finds this transaction's lock on the whole of it.
//! - Whoever wrote one before, and is not seen by the snapshot, had its number by then, and has a lock on the
//!   table as long as it runs. Of those that have ended since the snapshot, only that they wrote something is
//!   known, so each of them counts that is serializable.
//!
//! Both are more than the statement's own query would report, never less, because the view shows exactly what
//! the base tables do at the snapshot (`single`). What the query would see beyond that are the transaction's
//! own changes: whoever has changed a base table is refused.

use super::errors;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::read::Read;
use crate::pg::{catalog, inval, predicate, relation};
use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    /// What is beneath views, with the generation of the caches it is from.
    static BENEATH: RefCell<(u64, Beneath)> = const { RefCell::new((0, Beneath::new())) };
}

/// The tables beneath views that were read together.
type Beneath = BTreeMap<Vec<ViewId>, Vec<RelationId>>;

/// A statement is about to read views.
pub fn note_read(read: &Read, views: &[ViewId]) {
    let tables = tables_beneath(views);
    if let Some(table) = tables.iter().find(|table| relation::i_write(**table)) {
        errors::own_changes(views, *table).raise();
    }
    predicate::note_read_of(&tables, read);
}

fn tables_beneath(views: &[ViewId]) -> Vec<RelationId> {
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
