//! `eddy.with_views_suspended`: a statement that PostgreSQL refuses because views read a table, run while they do not.

use crate::errors::Error;
use crate::pg::definition::{self, Column};
use crate::pg::{catalog, ddl, guc, locks, registry, types, view_settings};
use pgrx::pg_sys::Oid;
use pgrx::Spi;

/// A view that is to be what it was.
struct Suspended {
    name: String,
    query: String,
}

/// Runs a statement while the incremental views over a table have no query that reads it, as the current user, who must own the table
/// and the views. They get their queries again then, which have to be valid. Answers how many they are.
pub fn run(table: Oid, statement: &str) -> Result<i64, Error> {
    if catalog::relation_kind(table).is_none() {
        return Err(Error::no_relation(table.to_u32()));
    }
    if !catalog::is_owned_by_user(table) {
        return Err(Error::not_owner("table", &catalog::relation_name(table)));
    }
    // Others that alter the table, or create views over it, come before or after.
    locks::against_changes(table);
    let views = catalog::views_right_above(table).into_iter().map(Oid::from);
    let suspended: Vec<Suspended> =
        views.filter(|view| registry::contains(*view)).map(suspend).collect();
    ddl::run(statement);
    for Suspended { name, query } in &suspended {
        plainly(|| replace(name, query));
    }
    Ok(i64::try_from(suspended.len()).unwrap_or(i64::MAX))
}

/// Gives a view a query without tables.
fn suspend(view: Oid) -> Suspended {
    let name = catalog::qualified_name(view);
    let query = plainly(|| {
        let query = format!("SELECT pg_catalog.pg_get_viewdef({})", view.to_u32());
        let query =
            Spi::connect(|client| client.select(&query, Some(1), &[])?.first().get_one::<String>());
        query.ok().flatten().unwrap_or_default()
    });
    let nothing = |column: &Column| {
        let ty = types::qualified_type(column.ty, column.typmod);
        let collation = catalog::collate_clause(column.collation);
        format!("NULL::{ty}{collation} AS {}", catalog::quoted(&column.name))
    };
    let columns: Vec<String> = definition::columns(view).iter().map(nothing).collect();
    plainly(|| replace(&name, &format!("SELECT {} WHERE false", columns.join(", "))));
    Suspended { name, query }
}

fn replace(view: &str, query: &str) {
    ddl::run(&format!("CREATE OR REPLACE VIEW {view} WITH (incremental) AS {query}"));
}

/// Does something to which names mean what they always mean.
fn plainly<R>(work: impl FnOnce() -> R) -> R {
    let level = view_settings::begin();
    guc::set_for_now(c"search_path", guc::SAFE_SEARCH_PATH);
    let result = work();
    view_settings::end(level);
    result
}
