//! What expressions that PostgreSQL evaluates convert from text and to it.

use crate::pg::versions::tree::is_json;
use crate::pg::{catalog, types};
use crate::rewrite::tree::{Node, Place};
use pgrx::pg_sys::Oid;

/// Functions that make rows of JSON.
const RECORDS: [&str; 8] = [
    "json_populate_record",
    "json_populate_recordset",
    "json_to_record",
    "json_to_recordset",
    "jsonb_populate_record",
    "jsonb_populate_recordset",
    "jsonb_to_record",
    "jsonb_to_recordset",
];

/// Whether a function is one of PostgreSQL's own that make rows of JSON, by the rules for text.
pub fn makes_rows(function: Oid) -> bool {
    let (name, is_builtin) = catalog::function_name(function);
    is_builtin && RECORDS.contains(&name.as_str())
}

/// Whether an expression, of which a function in FROM may make columns of these types, makes dates and times of texts. Words
/// such as `now` mean the present one.
pub(super) fn reads_times(place: Place<'_>, columns: &[Oid]) -> bool {
    let reads = match place.node() {
        Node::CoerceViaIO(cast) => types::has_time(cast.resulttype),
        Node::FuncExpr(call) if makes_rows(call.funcid) => {
            columns.iter().any(|ty| types::has_time(*ty)) || types::has_time(call.funcresulttype)
        }
        Node::Expr(tag) if is_json(tag) => types::has_time(place.expr_type()),
        _ => false,
    };
    reads || place.children().into_iter().any(|child| reads_times(child, &[]))
}

/// Adds the types of users that occur in an expression.
pub(super) fn collect_types(place: Place<'_>, found: &mut Vec<Oid>) {
    let is_typed = !matches!(place.node(), Node::Container);
    let ty = if is_typed { place.expr_type() } else { Oid::INVALID };
    // What a JSON expression does in case of an error may have no type.
    if ty != Oid::INVALID {
        let ty = types::innermost(ty);
        if !catalog::is_builtin(ty) && !found.contains(&ty) {
            found.push(ty);
        }
    }
    place.children().into_iter().for_each(|child| collect_types(child, found));
}
