//! The mirror of a view: `WITH (storage = table)`, an ordinary table with its rows and its key.
//!
//! The worker writes it together with the view ([`crate::worker`]); others are kept from that by a trigger, which whoever
//! writes as the worker does passes by. What a session writes into a view itself it writes here, too.

use super::companion::{self, Origin};
use crate::compile::{self, Known};
use crate::errors::{Error, ErrorKind};
use crate::pg::companion as tables;
use crate::pg::definition::Column;
use crate::pg::heap_writer::Writer;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::relation::{with_relation, Lock, RelationRef};
use crate::pg::{catalog, ddl, locks, mirror, registry, relation, xact};
use crate::reads;
use pgrx::pg_sys::Oid;
use plan::ViewPlan;
use rules::security_label::{Label, Storage};
use rules::view_settings::ViewSettings;

/// The trigger that keeps others from writing.
const TRIGGER: &str = "eddy_refuses_writes";

/// Makes the mirror of a view that is to have one now, or drops the one that it had.
pub fn change(
    (view, settings): (Oid, &ViewSettings),
    (before, now): (Storage, Storage),
    origin: Origin,
) -> Result<(), Error> {
    match (before, now) {
        (Storage::View, Storage::Table) => {
            require_rows(view, origin)?;
            begin(view, settings, origin)
        }
        (Storage::Table, Storage::View) => {
            end(view);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The rows of a view go into its mirror as they are, so they must be those of its query.
fn require_rows(view: Oid, origin: Origin) -> Result<(), Error> {
    if origin != Origin::Altered {
        return Ok(());
    }
    // What this transaction has replaced nobody else computes.
    if registry::is_labelled_now(view.into()) {
        let name = catalog::relation_name(view);
        let message = format!(
            "incremental view \"{name}\" has been replaced, and has the rows of its former query"
        );
        return Err(Error::state(message).hint(
            "Run ALTER INCREMENTAL VIEW ... SET (storage = table) in a transaction of its own.",
        ));
    }
    reads::wait_for_rows(view.into()).map(|_| ())
}

/// Makes the mirror of a view that lacks it, because it comes from a dump.
pub fn provide(view: Oid) -> Result<(), Error> {
    let Label { settings, options } = registry::label(view)?;
    match options.storage {
        Storage::Table if mirror::of(view.into()).is_none() => begin(view, &settings, Origin::Dump),
        _ => Ok(()),
    }
}

/// Fills the mirror of a view anew, if it has one, because the view has been.
pub fn refill(view: Oid) {
    let Some(table) = mirror::of(view.into()) else { return };
    require_fit(view.into(), table);
    companion::empty(table.into());
    fill(view.into(), table);
}

/// Gives the mirror of a view the columns that the view has got.
pub fn add_columns(view: Oid, added: &[Column]) -> Result<(), Error> {
    let table = mirror::of(view.into());
    let Some(table) = table.filter(|_| !added.is_empty()) else { return Ok(()) };
    companion::add_columns((view, table), (0, |_| true), added, "storage = table")
}

fn begin(view: Oid, settings: &ViewSettings, origin: Origin) -> Result<(), Error> {
    // Nobody writes it until the worker knows of the table.
    locks::against_writes(view);
    let Some(described) = catalog::describe_relation(view) else { return Ok(()) };
    let plan = compile::compile_view_with(view.into(), settings, Known::Now)?.query.plan;
    let key = compile::key_of(&plan).ok_or_else(|| Error::no_key(&described.name))?;
    let name = catalog::name_with(&described.name, c"table");
    let find_dumped = || companion::find_dumped(view, &name, is_mirror);
    match (origin == Origin::Dump).then(find_dumped).flatten() {
        Some(dumped) => {
            companion::empty(dumped);
        }
        None => {
            let table = catalog::qualified_beside(view, &name);
            let qualified = catalog::qualified_name(view);
            ddl::run(&format!("CREATE TABLE {table} (LIKE {qualified})"));
            ddl::run(&format!(
                "CREATE TRIGGER {TRIGGER} BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION eddy.refuse_write()"
            ));
        }
    }
    let table = catalog::find_beside(view, &name);
    let table = table.ok_or_else(|| Error::internal("the table just created cannot be found"))?;
    // A dump has made its index, too.
    if mirror::with_key(table.into(), &key).is_none() {
        add_key(table.into(), &plan, &key);
    }
    tables::tie(table.into(), view.into(), described.owner);
    mirror::note(view.into(), table.into());
    fill(view.into(), table.into());
    Ok(())
}

/// Whether a table is one that has been made as the mirror of such a view: others have their rows for themselves.
fn is_mirror(table: &RelationRef<'_>, view: &RelationRef<'_>) -> bool {
    mirror::is_of(table, view) && table.has_trigger(TRIGGER)
}

/// Makes the key of a mirror what tells its rows apart, for itself and for who subscribes to it.
fn add_key(table: RelationId, plan: &ViewPlan, key: &[usize]) {
    let Some(described) = catalog::describe_relation(table.into()) else { return };
    let names = key.iter().map(|place| catalog::quoted(&described.attributes[*place].name));
    let names = names.collect::<Vec<_>>().join(", ");
    let table = catalog::qualified_name(table);
    match key.iter().any(|place| plan.columns[*place].nullable) {
        false => ddl::run(&format!("ALTER TABLE {table} ADD PRIMARY KEY ({names})")),
        true => {
            ddl::run(&format!("ALTER TABLE {table} ADD UNIQUE NULLS NOT DISTINCT ({names})"));
            ddl::run(&format!("ALTER TABLE {table} REPLICA IDENTITY FULL"));
        }
    }
}

fn end(view: Oid) {
    if let Some(table) = mirror::of(view.into()) {
        mirror::forget(view.into());
        tables::drop(table);
    }
}

/// An error if the mirror is not what it was made as.
fn require_fit(view: ViewId, table: RelationId) {
    with_relation(table, Lock::RowExclusive, |table| {
        with_relation(view, Lock::AccessShare, |view| {
            if !mirror::is_of(&table, &view) {
                Error::mirror_altered(&table.name()).raise();
            }
        });
    });
}

/// Copies what is in the heap of a view, whatever should be, into its empty mirror.
fn fill(view: ViewId, table: RelationId) {
    if !relation::is_populated(view) {
        return;
    }
    require_fit(view, table);
    with_relation(table, Lock::RowExclusive, |table| {
        with_relation(view, Lock::AccessShare, |view| {
            xact::as_user(Oid::from(table.owner()), || {
                xact::with_new_snapshot(|| {
                    let mut writer = Writer::of_table(&table, &[]);
                    writer.copy(&[], &view);
                    writer.finish();
                });
            });
        })
    });
}

/// What the trigger says.
pub fn refuse_write(table: Option<&str>) -> Error {
    let message = match table {
        Some(table) => format!("cannot change table \"{table}\""),
        None => "eddy.refuse_write() is called by triggers only".to_owned(),
    };
    Error::new(ErrorKind::WrongObjectType, message)
        .detail("It has the rows of an incremental view, and changes with that.")
}
