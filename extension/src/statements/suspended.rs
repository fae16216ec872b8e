//! `eddy.with_views_suspended`: a statement that PostgreSQL refuses because views read a table, run while they do not.

use crate::errors::{Error, ErrorKind};
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
/// and the views.
/// They get their queries again then, which have to be valid. Answers how many they are.
pub fn run(table: Oid, statement: &str) -> Result<i64, Error> {
    if catalog::relation_kind(table).is_none() {
        let message = format!("relation with OID {} does not exist", table.to_u32());
        return Err(Error::new(ErrorKind::UndefinedObject, message));
    }
    if !catalog::is_owned_by_user(table) {
        let message = format!("must be owner of table {}", catalog::relation_name(table));
        return Err(Error::new(ErrorKind::InsufficientPrivilege, message));
    }
    // Others that alter the table, or create views over it, come before or after.
    locks::against_changes(table);
    let views: Vec<Oid> = registry::all().into_iter().map(Oid::from).collect();
    let views: Vec<Oid> = views.into_iter().filter(|view| reads(*view, table)).collect();
    let suspended: Vec<Suspended> = views.iter().map(|view| suspend(*view)).collect();
    ddl::run(statement);
    for Suspended { name, query } in &suspended {
        plainly(|| replace(name, query));
    }
    Ok(i64::try_from(suspended.len()).unwrap_or(i64::MAX))
}

/// Whether a view reads a table by itself, and not by way of another view.
fn reads(view: Oid, table: Oid) -> bool {
    let query = format!(
        "SELECT FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_depend d ON d.objid OPERATOR(pg_catalog.=) r.oid
         WHERE r.ev_class OPERATOR(pg_catalog.=) {} AND d.refobjid OPERATOR(pg_catalog.=) {}
         AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass
         AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass LIMIT 1",
        view.to_u32(),
        table.to_u32()
    );
    let found =
        Spi::connect(|client| client.select(&query, Some(1), &[]).map(|rows| !rows.is_empty()));
    found.unwrap_or(false)
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
