//! What bodies of functions name has to be found where views call them.

use crate::compile::CompiledView;
use crate::errors::Error;
use crate::pg::sqlstate::SqlState;
use crate::pg::{bodies, catalog, xact};
use pgrx::pg_sys::Oid;

/// Errors that say that there is nothing of a name.
const NOT_FOUND: [SqlState; 4] = [
    SqlState::UNDEFINED_FUNCTION,
    SqlState::UNDEFINED_OBJECT,
    SqlState::UNDEFINED_TABLE,
    SqlState::INVALID_SCHEMA_NAME,
];

/// Refuses a view that calls a function which could run for no row.
pub(super) fn check(view: &CompiledView) -> Result<(), Error> {
    let functions = view.functions.keys().map(|function| Oid::from(*function));
    for function in functions.filter(|function| bodies::follows_search_path(*function)) {
        let Err(caught) = xact::in_subtransaction(|| bodies::check(function)) else { continue };
        if NOT_FOUND.contains(&caught.sqlstate) {
            let signature = catalog::function_signature(function);
            let message = format!("function {signature} does not find what its body names");
            let alter = format!(
                "ALTER FUNCTION {} SET search_path = {}, pg_temp",
                catalog::qualified_signature(function),
                catalog::schema_of_function(function)
            );
            return Err(Error::unsupported(message)
                .detail(format!("With search_path = pg_catalog, pg_temp: {}.", caught.message))
                .hint(format!("Write the names with their schemas, or run {alter}.")));
        }
    }
    Ok(())
}
