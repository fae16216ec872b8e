//! Gives base tables the replica identity a view needs.

use crate::compile::{self, SourceTable};
use crate::errors::Error;
use crate::pg::{catalogs, registry};
use pgrx::pg_sys::Oid;
use pgrx::{PgLogLevel, PgSqlErrorCode, Spi};

/// Sets REPLICA IDENTITY FULL on tables that lack what is needed and that the user owns; refuses,
/// before changing any, if there is one that somebody else owns.
pub fn provide(sources: &[SourceTable]) -> Result<(), Error> {
    let mut tables: Vec<Oid> = sources.iter().flat_map(compile::lacking_identity).collect();
    tables.sort_by_key(|oid| oid.to_u32());
    tables.dedup();
    if let Some(foreign) = tables.iter().find(|t| !catalogs::is_owned_by_user(**t)) {
        return Err(
            compile::identity_error(*foreign).detail("Only the owner of the table can change it.")
        );
    }
    tables.into_iter().try_for_each(set_full)
}

/// Does the same for a table that has just become a partition, or inherits, below a base table.
/// Views that cannot be planned at the moment are left to the worker, which tells about them.
pub fn adopt(child: Oid) -> Result<(), Error> {
    let views = registry::all();
    if views.is_empty() {
        return Ok(());
    }
    let family = catalogs::with_descendants(child);
    let compiled = views.into_iter().filter_map(|view| compile::compile_view(view).ok());
    let sources = compiled.flat_map(|view| view.sources);
    let mut tables: Vec<Oid> = sources.flat_map(|s| compile::lacking_identity(&s)).collect();
    tables.retain(|table| family.contains(table) && catalogs::is_owned_by_user(*table));
    tables.sort_by_key(|oid| oid.to_u32());
    tables.dedup();
    tables.into_iter().try_for_each(set_full)
}

fn set_full(table: Oid) -> Result<(), Error> {
    let name = catalogs::qualified_name(table);
    Spi::run(&format!("ALTER TABLE ONLY {name} REPLICA IDENTITY FULL"))
        .map_err(|e| Error::internal(format!("replica identity of {name} cannot be set: {e}")))?;
    pgrx::pg_sys::panic::ErrorReport::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("replica identity of table \"{}\" is now FULL", catalogs::relation_name(table)),
        "pg_eddy",
    )
    .set_detail("Its updates and deletes write whole old rows to the WAL from now on.")
    .report(PgLogLevel::NOTICE);
    Ok(())
}
