//! Writing the table of a view's changes, in the transaction that writes the view.
//!
//! It is an ordinary table of its owner's: what is written carries no origin, so that it is published like what anybody writes, and
//! functions of its indexes run as its owner.

use super::changelog::{own_values, Entries, Entry};
use super::stored::Changes;
use super::write::{Outcome, Target};
use crate::errors::Error;
use crate::pg::decoding::own_writes;
use crate::pg::heap::Projection;
use crate::pg::heap_writer::Writer;
use crate::pg::ids::RelationId;
use crate::pg::relation::{with_relation, Lock, RelationRef};
use crate::pg::{changes_table, scan, xact};
use pgrx::pg_sys::Oid;
use plan::row::Row;
use plan::types::Type;

/// The rows that are going to be gone from a view: those deleted, then those replaced. None if no table beside it has to know them.
pub fn rows_gone(view: &RelationRef<'_>, target: &Target, changes: &Changes) -> Vec<Row> {
    if target.mirror.is_none() && !matches!(changes.entries, Entries::All(_)) {
        return Vec::new();
    }
    let types = &target.types;
    let deleted = changes.deletes.iter().map(|(_, tid)| *tid);
    let replaced = changes.updates.iter().map(|(_, tid, _)| *tid);
    let columns = (1..).zip(types.iter().copied()).collect();
    scan::fetch(view, &Projection { columns }, deleted.chain(replaced))
}

/// Writes the entries of changes of a view into their table. The caller has locked it.
pub fn write(
    view: &RelationRef<'_>,
    table: RelationId,
    types: &[Type],
    (changes, gone): (&Changes, &[Row]),
) -> Outcome<()> {
    let written = with_relation(table, Lock::RowExclusive, |relation| {
        if !changes_table::is_of(&relation, view) {
            Error::changes_table_altered(&relation.name()).raise();
        }
        xact::as_user(Oid::from(relation.owner()), || {
            let mut writer = Writer::of_table(&relation, types).summarizing();
            match &changes.entries {
                Entries::None => {}
                Entries::Rows(entries) => {
                    let own = |entry: &Entry| own_values(entry.moment, entry.diff);
                    writer.insert_behind(entries.iter().map(|entry| (own(entry), &entry.row)));
                }
                Entries::All(moment) => {
                    let (lost, got) = (own_values(*moment, -1), own_values(*moment, 1));
                    let gone = gone.iter().map(|row| (lost, row));
                    writer.insert_behind(gone.chain(changes.new_rows().map(|row| (got, row))));
                }
            }
            writer.finish();
            own_writes::note(&relation);
        });
    });
    written.map_or(Outcome::Foreign, Outcome::Done)
}
