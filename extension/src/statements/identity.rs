//! Gives base tables the replica identity a view needs.

use crate::compile::{self, SourceTable};
use crate::errors::Error;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::relation::{numbers_in_child, try_lock, Lock, TABLE_OID};
use crate::pg::{catalog, registry, replica_identity, report};
use pgrx::pg_sys::Oid;
use std::collections::{BTreeMap, BTreeSet};

/// Sets REPLICA IDENTITY FULL on tables that lack what is needed and that the user owns; refuses,
/// before changing any, if there is one that somebody else owns. Writers then wait to the end of the transaction.
pub fn provide(sources: &[SourceTable]) -> Result<(), Error> {
    lacking(sources)?.into_iter().for_each(set_full);
    Ok(())
}

/// Refuses what [`provide`] will.
pub fn check(sources: &[SourceTable]) -> Result<(), Error> {
    lacking(sources).map(drop)
}

fn lacking(sources: &[SourceTable]) -> Result<Vec<Oid>, Error> {
    let tables = in_order(sources.iter().flat_map(compile::lacking_identity));
    match tables.iter().find(|table| !catalog::is_owned_by_user(**table)) {
        Some(foreign) => {
            Err(compile::identity_error(*foreign)
                .detail("Only the owner of the table can change it."))
        }
        None => Ok(tables),
    }
}

/// Each once, in the order in which all sessions lock them.
fn in_order(tables: impl Iterator<Item = Oid>) -> Vec<Oid> {
    let mut tables: Vec<Oid> = tables.collect();
    tables.sort_by_key(|oid| oid.to_u32());
    tables.dedup();
    tables
}

/// Does the same for a table that has just become a partition, or inherits, below a base table.
/// Views that cannot be planned at the moment are left to the worker, which tells about them.
pub fn adopt(child: Oid) -> Result<(), Error> {
    let reads_child = |view: &ViewId| catalog::tables_beneath(&[*view]).contains(&child.into());
    let views: Vec<ViewId> = registry::all().into_iter().filter(reads_child).collect();
    if views.is_empty() {
        return Ok(());
    }
    let family = catalog::with_descendants(child);
    let compiled = views.into_iter().filter_map(|view| compile::compile_view(view).ok());
    let sources = compiled.flat_map(|view| view.query.sources);
    let mut tables = in_order(sources.flat_map(|s| compile::lacking_identity(&s)));
    tables.retain(|table| family.contains(table) && catalog::is_owned_by_user(*table));
    tables.into_iter().for_each(set_full);
    Ok(())
}

/// The views that can be looked at now, whose locks are taken.
pub fn free_views() -> impl Iterator<Item = ViewId> {
    let is_free = |view: &ViewId| {
        let tables = catalog::tables_beneath(&[*view]);
        [(*view).into()].into_iter().chain(tables).all(|oid| try_lock(oid, Lock::AccessShare))
    };
    registry::all().into_iter().filter(is_free)
}

/// The tables that views read, and the numbers of the columns of which these need old values. Views that cannot be planned
/// at the moment are left out, and so are those with a lock in the way: who looks after a server must not wait for one.
pub fn needed_columns() -> BTreeMap<RelationId, BTreeSet<i16>> {
    let compiled = free_views().filter_map(|view| compile::compile_view(view).ok());
    let sources = compiled.flat_map(|view| view.query.sources);
    let sources = sources.filter(|source| !source.is_clock() && !source.is_view);
    let mut needed = BTreeMap::<RelationId, BTreeSet<i16>>::new();
    for source in sources {
        // A descendant may number its columns differently.
        if let Some(relation) = catalog::describe_relation(source.table.into()) {
            let parent = &relation.attributes;
            for table in source.tables() {
                let Some(child) = catalog::describe_relation(table) else { continue };
                let numbers = source.attnums.iter().copied();
                let numbers = numbers_in_child(numbers, parent, &child.attributes);
                let numbers = numbers.unwrap_or_default().into_iter();
                let numbers = numbers.filter(|number| *number != TABLE_OID);
                needed.entry(table.into()).or_default().extend(numbers);
            }
        }
    }
    needed
}

fn set_full(table: Oid) {
    replica_identity::set_full(table);
    let message =
        format!("replica identity of table \"{}\" is now FULL", catalog::relation_name(table));
    let detail = "Its updates and deletes write whole old rows to the WAL from now on.";
    report::tell(report::notice(message).set_detail(detail));
}
