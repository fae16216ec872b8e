//! The table of a view's changes: `WITH (changes = '1 day')`.
//!
//! The worker writes it together with the view ([`crate::worker`]). What a session writes into a view itself, because it creates,
//! alters or refreshes it, it adds here.

use super::companion::{self, Origin};
use crate::errors::{Error, ErrorKind};
use crate::pg::changes_table::{self, COLUMNS};
use crate::pg::companion as tables;
use crate::pg::definition::Column;
use crate::pg::heap_writer::Writer;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::relation::{with_relation, Lock, RelationRef};
use crate::pg::summaries::PAGES_PER_RANGE;
use crate::pg::{catalog, ddl, locks, registry, relation, report, states, wal, xact};
use pgrx::pg_sys::Oid;
use rules::security_label::Retention;
use std::cell::Cell;

/// Makes the table of a view that is to have one now, or drops the one that it had.
pub fn change(
    view: Oid,
    (before, now): (Option<Retention>, Option<Retention>),
    origin: Origin,
) -> Result<(), Error> {
    match (before, now) {
        (None, Some(_)) => begin(view, origin),
        (Some(_), None) => {
            end(view);
            Ok(())
        }
        _ => Ok(()),
    }
}

thread_local! {
    /// The view that is being refreshed, and the position of what is entered for that.
    static GOING: Cell<(ViewId, u64)> = const { Cell::new((ViewId::new(0), 0)) };
}

/// Which rows of a view are entered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// They come.
    Come,
    /// They go.
    Go,
}

/// Makes the table of a view that lacks it, because it comes from a dump.
pub fn provide(view: Oid) -> Result<(), Error> {
    match registry::label(view)?.options.changes {
        Some(_) if changes_table::of(view.into()).is_none() => begin(view, Origin::Dump),
        _ => Ok(()),
    }
}

/// Enters all rows of a view into the table of its changes, if it has both, before or after a REFRESH.
pub fn enter(view: Oid, rows: Rows) {
    let Some(table) = changes_table::of(view.into()) else { return };
    if rows == Rows::Go {
        if !catalog::may_refresh(view) {
            // PostgreSQL has the message.
            return;
        }
        locks::against_all(view);
        GOING.set((view.into(), wal::insert_lsn()));
    }
    if relation::is_populated(view.into()) {
        // What comes has come when the other was gone.
        let (going, lsn) = GOING.get();
        let lsn = if going == view.into() { lsn } else { wal::insert_lsn() };
        insert(view.into(), table, lsn, rows);
    }
}

/// The position of which the rows of a view are that nobody writes now. Those of a new one are of now.
fn position_of(view: ViewId, origin: Origin) -> u64 {
    let recorded = || xact::with_new_snapshot(|| states::position_of(view));
    let recorded = (origin == Origin::Altered).then(recorded).flatten();
    recorded.unwrap_or_else(wal::insert_lsn)
}

/// Gives the table of a view the columns that the view has got.
pub fn add_columns(view: Oid, added: &[Column]) -> Result<(), Error> {
    let table = changes_table::of(view.into());
    let Some(table) = table.filter(|_| !added.is_empty()) else { return Ok(()) };
    require_free_names(added.iter().map(|column| &*column.name))?;
    let fits = |table: &RelationRef<'_>| changes_table::has_own_columns(table);
    companion::add_columns((view, table), (COLUMNS.len(), fits), added, "changes = ...")
}

/// Refuses columns of a view of which the table of its changes has others of the same name.
fn require_free_names<'a>(mut names: impl Iterator<Item = &'a str>) -> Result<(), Error> {
    let is_taken = |name: &&str| COLUMNS.iter().any(|column| column.name == *name);
    match names.find(is_taken) {
        None => Ok(()),
        Some(name) => {
            let message = format!("column \"{name}\" is one of the table of changes, too");
            Err(Error::new(ErrorKind::InvalidParameter, message)
                .hint("Give the column of the view another name."))
        }
    }
}

fn begin(view: Oid, origin: Origin) -> Result<(), Error> {
    // Nobody writes it until the worker knows of the table.
    locks::against_writes(view);
    let Some(described) = catalog::describe_relation(view) else { return Ok(()) };
    require_free_names(described.attributes.iter().map(|column| &*column.name))?;
    let qualified = catalog::qualified_name(view);
    let name = catalog::name_with(&described.name, c"changes");
    let table = catalog::qualified_beside(view, &name);
    let find_dumped = || companion::find_dumped(view, &name, changes_table::is_of);
    match (origin == Origin::Dump).then(find_dumped).flatten() {
        Some(dumped) if companion::empty(dumped) => tell_emptied(&name),
        Some(_) => {}
        None => {
            let columns = COLUMNS.iter().map(|c| format!("{} {}", c.name, c.declared));
            let columns = columns.collect::<Vec<_>>().join(", ");
            ddl::run(&format!("CREATE TABLE {table} ({columns}, LIKE {qualified})"));
            // Rows lie in commit order: summaries of blocks find them, at next to no cost for who writes.
            ddl::run(&format!(
                "CREATE INDEX ON {table} USING brin (lsn) WITH (pages_per_range = {PAGES_PER_RANGE}, autosummarize)"
            ));
            // What is gone from it would be missing without a word.
            ddl::run(&format!(
                "REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON {table} FROM CURRENT_USER"
            ));
        }
    }
    let oid = catalog::find_beside(view, &name);
    let oid = oid.ok_or_else(|| Error::internal("the table just created cannot be found"))?;
    tables::tie(oid.into(), view.into(), described.owner);
    let since = position_of(view.into(), origin);
    changes_table::note(view.into(), oid.into(), since, xact::now());
    if relation::is_populated(view.into()) {
        insert(view.into(), oid.into(), since, Rows::Come);
    }
    Ok(())
}

fn tell_emptied(table: &str) {
    let message =
        format!("table \"{table}\" is emptied: its positions are those of another server");
    report::tell(report::notice(message));
}

fn end(view: Oid) {
    if let Some(table) = changes_table::of(view.into()) {
        changes_table::forget(view.into());
        tables::drop(table);
    }
}

/// Enters what is in the heap of a view, whatever should be.
fn insert(view: ViewId, table: RelationId, lsn: u64, rows: Rows) {
    let diff: i64 = if rows == Rows::Come { 1 } else { -1 };
    let own = [Some(lsn), None, Some(xact::start_of_statement() as u64), Some(diff as u64)];
    let write = |table: RelationRef<'_>, view: RelationRef<'_>| {
        if !changes_table::is_of(&table, &view) {
            Error::changes_table_altered(&table.name()).raise();
        }
        xact::as_user(Oid::from(table.owner()), || {
            xact::with_new_snapshot(|| {
                let mut writer = Writer::of_table(&table, &[]).summarizing();
                writer.copy(&own, &view);
                writer.finish();
            });
        });
    };
    with_relation(table, Lock::RowExclusive, |table| {
        with_relation(view, Lock::AccessShare, |view| write(table, view))
    });
}
