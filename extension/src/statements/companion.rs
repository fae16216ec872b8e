//! What tables beside views have in common: those of their changes, and those that mirror them.

use crate::errors::Error;
use crate::pg::definition::{self, Column};
use crate::pg::heap::Projection;
use crate::pg::heap_writer::Writer;
use crate::pg::ids::RelationId;
use crate::pg::relation::{with_relation, Lock, RelationRef};
use crate::pg::{catalog, changes_table, companion, ddl, locks, mirror, scan, xact};
use pgrx::pg_sys::Oid;
use std::convert::Infallible;

/// Where a view is from whose table is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It has been created now.
    New,
    /// It is there, and the worker writes it.
    Altered,
    /// A dump has made it, which may have made the table, too.
    Dump,
}

/// Takes the tables beside a view that has been altered to the view's owner, schema and name.
pub fn follow(view: Oid) {
    let owner = |relation: RelationId| {
        with_relation(relation, Lock::AccessShare, |relation| relation.owner())
    };
    let Some(owner_of_view) = owner(view.into()) else { return };
    let (changes, mirror) = (changes_table::of(view.into()), mirror::of(view.into()));
    for (table, label) in [(changes, c"changes"), (mirror, c"table")] {
        let Some(table) = table else { continue };
        let alter = |change: String| {
            ddl::run(&format!("ALTER TABLE {} {change}", catalog::qualified_name(table)));
        };
        let schema = catalog::schema_of(view);
        if catalog::schema_of(table.into()) != schema {
            alter(format!("SET SCHEMA {}", catalog::quoted(&schema)));
        }
        // Dumps find it by its name.
        let name = catalog::name_with(&catalog::relation_name(view), label);
        if catalog::relation_name(table.into()) != name
            && catalog::find_beside(view, &name).is_none()
        {
            alter(format!("RENAME TO {}", catalog::quoted(&name)));
        }
        if owner(table) != Some(owner_of_view) {
            companion::give(table, Oid::from(owner_of_view));
        }
    }
}

/// Gives a table the columns that its view has got. Before those of the view it has `own` ones, which must fit; `option` is what makes
/// such a table.
pub fn add_columns(
    (view, table): (Oid, RelationId),
    (own, fits): (usize, impl Fn(&RelationRef<'_>) -> bool),
    added: &[Column],
    option: &str,
) -> Result<(), Error> {
    locks::against_all(table.into());
    let has_room = with_relation(table, Lock::AccessShare, |table| {
        with_relation(view, Lock::AccessShare, |view| {
            companion::lacks(&table, &view, own, added.len()) && fits(&table)
        })
    });
    if has_room.flatten() != Some(true) {
        let name = catalog::qualified_name(table);
        let message =
            format!("table {name} has, or had, columns of its own where those of the view go");
        let (option_name, _) = option.split_once(' ').unwrap_or((option, ""));
        return Err(Error::state(message).hint(format!(
            "Run ALTER INCREMENTAL VIEW ... RESET ({option_name}) first, and SET ({option}) then: that makes another table."
        )));
    }
    definition::add_columns(table.into(), added);
    Ok(())
}

/// The table of that name that a dump has made, which is of no view yet and fits this one.
pub fn find_dumped(
    view: Oid,
    name: &str,
    fits: impl Fn(&RelationRef<'_>, &RelationRef<'_>) -> bool,
) -> Option<Oid> {
    let table = catalog::find_beside(view, name)?;
    let is_it = with_relation(view, Lock::AccessShare, |view| {
        with_relation(table, Lock::AccessShare, |table| {
            fits(&table, &view) && table.owner() == view.owner() && !companion::is_tied(table.id())
        })
    });
    is_it.flatten().unwrap_or(false).then_some(table)
}

/// Removes all rows of such a table, as its owner and without triggers: it may be anybody's. Answers whether there were any.
pub fn empty(table: Oid) -> bool {
    let has_any = with_relation(table, Lock::RowExclusive, |table| {
        xact::as_user(Oid::from(table.owner()), || {
            xact::with_new_snapshot(|| {
                let mut places = Vec::new();
                let nothing = Projection { columns: Vec::new() };
                let Ok(()) = scan::scan(&table, &[&nothing], |_, _, place| {
                    places.push(place);
                    Ok::<(), Infallible>(())
                });
                let mut writer = Writer::of_table(&table, &[]);
                places.iter().for_each(|place| writer.delete(*place));
                writer.finish();
                !places.is_empty()
            })
        })
    });
    has_any == Some(true)
}
