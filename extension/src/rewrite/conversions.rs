//! What expressions that PostgreSQL evaluates convert from text and to it, and what that depends on beside settings.

use crate::pg::code::Times;
use crate::pg::versions::tree::is_json;
use crate::pg::{catalog, types};
use crate::rewrite::parts::{self, Call};
use crate::rewrite::tree::{Node, Place};
use pgrx::pg_sys::{self, NodeTag, Oid};

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

/// Functions that use configurations of text search.
const SEARCHES: [&str; 10] = [
    "json_to_tsvector",
    "jsonb_to_tsvector",
    "phraseto_tsquery",
    "plainto_tsquery",
    "to_tsquery",
    "to_tsvector",
    "ts_headline",
    "ts_match_tq",
    "ts_match_tt",
    "websearch_to_tsquery",
];

/// Functions whose text is a part of that of their first argument, as it is there.
const PARTS_OF_TEXT: [&str; 14] = [
    "btrim",
    "jsonb_array_element_text",
    "jsonb_extract_path_text",
    "jsonb_object_field_text",
    "left",
    "lower",
    "ltrim",
    "right",
    "rtrim",
    "split_part",
    "substr",
    "substring",
    "upper",
    "varchar",
];

/// Whether a function is one of PostgreSQL's own that make rows of JSON, by the rules for text.
pub fn makes_rows(function: Oid) -> bool {
    is_among(function, &RECORDS)
}

/// Whether a function is one of PostgreSQL's own that use a configuration of text search.
pub fn is_search(function: Oid) -> bool {
    is_among(function, &SEARCHES)
}

/// Whether an expression uses a configuration of text search.
pub(super) fn searches(place: Place<'_>) -> bool {
    let function = match place.node() {
        Node::FuncExpr(call) => Some(call.funcid),
        Node::OpExpr(call) => Some(catalog::operator(call.opno).1),
        _ => None,
    };
    function.is_some_and(is_search) || place.children().into_iter().any(searches)
}

fn is_among(function: Oid, names: &[&str]) -> bool {
    let (name, is_builtin) = catalog::function_name(function);
    is_builtin && names.contains(&name.as_str())
}

/// How an expression, of which a function in FROM may make columns of these types, makes dates and times of texts. Words
/// such as `now` mean the present one.
pub(super) fn read_times(place: Place<'_>, columns: &[Oid]) -> Times {
    let own = match place.node() {
        Node::CoerceViaIO(cast) if types::has_time(cast.resulttype) => {
            match parts::operand(cast).is_some_and(is_part_of_argument) {
                true => Times::OfArguments,
                false => Times::OfTexts,
            }
        }
        Node::FuncExpr(call) if makes_rows(call.funcid) => {
            let mut types = columns.iter().copied().chain([call.funcresulttype]);
            match types.any(types::has_time) {
                true => Times::OfTexts,
                false => Times::None,
            }
        }
        Node::Expr(tag) if is_json(tag) && types::has_time(place.expr_type()) => Times::OfTexts,
        // What makes rows of a document.
        Node::Container if columns.iter().copied().any(types::has_time) => Times::OfTexts,
        _ => Times::None,
    };
    let below = place.children().into_iter().map(|child| read_times(child, &[]));
    below.fold(own, Times::max)
}

/// Whether a text is a part of an argument's, as it is there.
fn is_part_of_argument(text: Place<'_>) -> bool {
    let first = |args: Vec<Place<'_>>| args.first().copied().is_some_and(is_part_of_argument);
    match text.node() {
        Node::Param(_) => types::is_text(text.expr_type()) || text.expr_type() == pg_sys::JSONBOID,
        Node::FuncExpr(call) => is_among(call.funcid, &PARTS_OF_TEXT) && first(call.arguments()),
        Node::OpExpr(call) => {
            is_among(catalog::operator(call.opno).1, &PARTS_OF_TEXT) && first(call.arguments())
        }
        Node::Expr(NodeTag::T_RelabelType) => first(text.children()),
        _ => false,
    }
}

/// Adds the types of users that occur in an expression, beneath arrays and domains.
pub(super) fn collect_types(place: Place<'_>, found: &mut Vec<Oid>) {
    // What a query in an argument computes is computed elsewhere.
    let ty = match place.node() {
        Node::Query(_) => return,
        Node::Container => Oid::INVALID,
        _ => place.expr_type(),
    };
    add_type(ty, found);
    place.children().into_iter().for_each(|child| collect_types(child, found));
}

/// Adds a type if it is one of users. What a JSON expression does in case of an error may have none.
pub(super) fn add_type(ty: Oid, found: &mut Vec<Oid>) {
    if ty == Oid::INVALID {
        return;
    }
    let ty = types::innermost(ty);
    if !catalog::is_builtin(ty) && !found.contains(&ty) {
        found.push(ty);
    }
}
