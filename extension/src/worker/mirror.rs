//! Writing the mirror of a view, in the transaction that writes the view.
//!
//! It is an ordinary table of its owner's: what is written carries no origin, so that it is published like what anybody writes.
//! Triggers that are ALWAYS enabled run, and constraints other than unique ones are not heeded, as where a subscription writes.

use super::stored::Changes;
use super::write::{write_rows, Outcome, Replaced};
use crate::errors::Error;
use crate::pg::decoding::own_writes;
use crate::pg::heap::Tid;
use crate::pg::heap_writer::Writer;
use crate::pg::key_scan::{self, Place};
use crate::pg::mirror::{self, Mirror};
use crate::pg::relation::{with_relation, Lock, RelationRef};
use crate::pg::row_triggers::{self, Written};
use crate::pg::{catalog, xact};
use pgrx::pg_sys::Oid;
use plan::row::Row;
use plan::types::Type;

/// Where the rows are that go from a mirror with those of its view.
pub struct Gone {
    deleted: Vec<Tid>,
    replaced: Vec<Tid>,
}

/// Finds the rows of a mirror that are to be deleted and replaced, by the keys of those that are `gone` from the view. The caller has
/// locked it. A row that another transaction has locked is as good as a locked table.
pub fn find(
    view: &RelationRef<'_>,
    mirror: &Mirror,
    types: &[Type],
    (changes, gone): (&Changes, &[Row]),
) -> Outcome<Gone> {
    if catalog::relation_kind(mirror.index.into()).is_none() {
        // Whoever has dropped it was faster than the message about it.
        return Outcome::Locked;
    }
    let found = with_relation(mirror.table, Lock::RowExclusive, |table| {
        if !mirror::is_of(&table, view) {
            Error::mirror_altered(&table.name()).raise();
        }
        mirror::require_identity(&table, !changes.deletes.is_empty(), !changes.updates.is_empty());
        let find = || key_scan::find(&table, mirror.index, types, gone);
        let owner = Oid::from(table.owner());
        let found = xact::as_user(owner, || xact::with_new_snapshot(find));
        let found: Option<Vec<Place>> = found.into_iter().collect();
        found.unwrap_or_else(|| Error::mirror_written(&table.name()).raise())
    });
    let Some(found) = found else { return Outcome::Foreign };
    // A row that is replaced may have to be deleted: see the writer.
    if found.iter().any(|place| place.is_locked) {
        return Outcome::Locked;
    }
    let (deleted, updated) = found.split_at(changes.deletes.len());
    let places = |of: &[Place]| of.iter().map(|place| place.tid).collect();
    Outcome::Done(Gone { deleted: places(deleted), replaced: places(updated) })
}

/// Writes changes of a view into its mirror.
pub fn write(mirror: &Mirror, types: &[Type], changes: &Changes, gone: Gone, replaced: Replaced) {
    with_relation(mirror.table, Lock::RowExclusive, |table| {
        xact::as_user(Oid::from(table.owner()), || {
            let mut writer = Writer::of_table(&table, types);
            let places =
                write_rows(&mut writer, (gone.deleted.clone(), &gone.replaced), changes, replaced);
            writer.finish();
            own_writes::note(&table);
            row_triggers::fire(&table, written(&gone, &places));
        });
    });
}

/// What has become of the rows of a mirror; `places` are those of the rows that replace others, and then of new ones.
fn written<'a>(gone: &'a Gone, places: &'a [Tid]) -> impl Iterator<Item = Written> + 'a {
    let (new, inserted) = places.split_at(gone.replaced.len());
    let deleted = gone.deleted.iter().map(|old| Written::Deleted(*old));
    let replaced = gone.replaced.iter().zip(new);
    let replaced = replaced.map(|(old, new)| Written::Replaced(*old, *new));
    let inserted = inserted.iter().map(|new| Written::Inserted(*new));
    deleted.chain(replaced).chain(inserted)
}
