//! References to queries of WITH RECURSIVE that PostgreSQL's parser does not take: `eddy.recursive('name') AS alias(column
//! type, …)`. PostgreSQL sees a function that returns rows; what it cannot know of it is checked here.

use super::unsupported::unsupported;
use crate::errors::{Error, ErrorKind};
use crate::pg::types;
use crate::rewrite::parts;
use crate::rewrite::recursive_references::{is_reference, FUNCTION};
use crate::rewrite::returned;
use crate::rewrite::tree;
use pgrx::pg_sys::{self, Oid};
use plan::types::Type;

/// Checks an item of FROM if it is such a reference; answers whether it is. `around` are the queries around it, the
/// innermost last.
pub(super) fn check(
    entry: &pg_sys::RangeTblEntry,
    around: &[&pg_sys::Query],
) -> Result<bool, Error> {
    let functions = returned::functions(entry);
    let Some((place, columns)) = functions.iter().find(|(place, _)| is_reference(*place)) else {
        return Ok(false);
    };
    let at = place.location();
    if functions.len() > 1 || entry.funcordinality {
        let construct = format!("{FUNCTION}() beside other functions, or WITH ORDINALITY,");
        return Err(unsupported(construct, at).hint("Make it an item of FROM of its own."));
    }
    let argument = place.operands().first().copied().and_then(parts::text_of_constant);
    let Some(name) = argument else {
        let message =
            format!("the argument of {FUNCTION}() must be a constant, the name of a query");
        return Err(Error::new(ErrorKind::InvalidParameter, message).at(at));
    };
    let lists = around.iter().rev().filter(|query| query.hasRecursive);
    let found =
        lists.flat_map(|query| tree::ctes(query)).find(|cte| parts::name_of_cte(cte) == name);
    let Some(cte) = found else {
        let message = format!("there is no query \"{name}\" in WITH RECURSIVE");
        return Err(Error::new(ErrorKind::UndefinedObject, message).at(at).hint(format!(
            "{FUNCTION}() refers by name to a query of the WITH RECURSIVE that it is in.",
        )));
    };
    let known = parts::columns_of_cte(cte);
    if known.iter().map(|(_, ty)| *ty).ne(columns.iter().copied()) {
        let message = format!("query \"{name}\" has other columns than the reference to it says");
        let columns: Vec<String> = known
            .iter()
            .map(|(column, ty)| format!("{column} {}", types::type_name(*ty)))
            .collect();
        let hint = format!("Write {FUNCTION}('{name}') AS alias({}).", columns.join(", "));
        return Err(Error::new(ErrorKind::DatatypeMismatch, message).at(at).hint(hint));
    }
    let Some(ty) = columns.iter().find(|ty| !is_known(**ty)) else {
        return match returned::has_own_collations(entry) {
            true => Err(unsupported(format!("{FUNCTION}() with COLLATE"), at)
                .hint("Write COLLATE where the column is used.")),
            false => Ok(true),
        };
    };
    let ty = types::type_name(*ty);
    Err(unsupported(format!("{FUNCTION}() with a column of type {ty}"), at)
        .hint("Let the query have the value as text."))
}

/// Whether the planner knows the name of a type.
fn is_known(ty: Oid) -> bool {
    let is_native = |ty: Type| !ty.is_host();
    types::base_type(ty) == ty && types::planner_type(ty, Oid::INVALID).is_some_and(is_native)
}
