//! SQL functions about one view, and the trigger of `eddy.view_catalog`.

use crate::pg::registry;
use pgrx::prelude::*;

/// Trigger function of `eddy.view_catalog`.
#[pg_trigger]
fn eddy_announce_catalog_change<'a>(
    _trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgHeapTupleError> {
    registry::announce_change();
    Ok(None)
}
