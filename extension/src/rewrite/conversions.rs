//! What expressions that PostgreSQL evaluates convert from text and to it, and what that depends on beside settings.

use crate::pg::catalog::Volatility;
use crate::pg::code::Times;
use crate::pg::relation::TABLE_OID;
use crate::pg::versions::tree::is_json;
use crate::pg::{catalog, types};
use crate::rewrite::parts::{self, Call};
use crate::rewrite::tree::{self, Node, Place, Tree};
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::collections::BTreeSet;

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

/// The types of names of objects that an expression writes.
pub(super) fn names_written(place: Place<'_>) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    collect_names(place, false, &mut found);
    found
}

/// Adds such types; all that occur in what is written. What a query in an argument computes is computed elsewhere.
fn collect_names(place: Place<'_>, is_written: bool, found: &mut BTreeSet<u32>) {
    if matches!(place.node(), Node::Query(_)) {
        return;
    }
    let ty = match place.node() {
        Node::Container => Oid::INVALID,
        _ => place.expr_type(),
    };
    if is_written && ty != Oid::INVALID {
        types::collect_names(ty, found);
    }
    if names_collation(place) {
        found.insert(pg_sys::REGCOLLATIONOID.to_u32());
    }
    let is_written = is_written || writes(place);
    place.children().into_iter().for_each(|child| collect_names(child, is_written, found));
}

/// Whether an expression is `COLLATION FOR`.
fn names_collation(place: Place<'_>) -> bool {
    matches!(place.node(), Node::FuncExpr(call) if is_among(call.funcid, &["pg_collation_for"]))
}

/// Whether an expression makes text or JSON of what it is given, or may do so.
fn writes(place: Place<'_>) -> bool {
    let is_stable = |function| catalog::volatility(function) != Volatility::Immutable;
    match place.node() {
        Node::CoerceViaIO(_) | Node::Expr(NodeTag::T_XmlExpr) => true,
        Node::Expr(tag) => is_json(tag),
        Node::OpExpr(call) => is_stable(catalog::operator(call.opno).1),
        Node::FuncExpr(call) => is_stable(call.funcid),
        Node::Aggref(call) => {
            catalog::aggregate_functions(call.aggfnoid).into_iter().any(is_stable)
        }
        Node::WindowFunc(call) if call.winagg => {
            catalog::aggregate_functions(call.winfnoid).into_iter().any(is_stable)
        }
        _ => false,
    }
}

/// Whether the names of objects that a query writes are those of the tables that it reads, by their `tableoid`, and no others.
pub fn names_tables(tree: &Tree) -> bool {
    tree.queries().into_iter().all(|query| {
        let entries = tree::range_table(query);
        let is_table = |operand: Place<'_>| is_table_oid(operand, &entries);
        tree::expressions(query).into_iter().all(|place| all_named(place, &is_table))
    })
}

/// Whether all names of objects that an expression writes are such that `is_known`.
fn all_named(place: Place<'_>, is_known: &dyn Fn(Place<'_>) -> bool) -> bool {
    if matches!(place.node(), Node::Query(_)) {
        return true;
    }
    if !writes(place) {
        return place.children().into_iter().all(|child| all_named(child, is_known));
    }
    let is_harmless = |operand: Place<'_>| {
        let mut found = BTreeSet::new();
        collect_names(operand, true, &mut found);
        found.is_empty() && all_named(operand, is_known)
    };
    let mut operands = place.operands().into_iter();
    !names_collation(place) && operands.all(|operand| is_known(operand) || is_harmless(operand))
}

/// Whether an expression is the `tableoid` of a table of its query, as a `regclass`.
fn is_table_oid(place: Place<'_>, entries: &[&pg_sys::RangeTblEntry]) -> bool {
    let Node::Expr(NodeTag::T_RelabelType) = place.node() else { return false };
    let [operand] = place.operands()[..] else { return false };
    let Node::Var(var) = operand.node() else { return false };
    let is_table = |entry: &pg_sys::RangeTblEntry| entry.rtekind == pg_sys::RTEKind::RTE_RELATION;
    place.expr_type() == pg_sys::REGCLASSOID
        && var.varattno == TABLE_OID
        && var.varlevelsup == 0
        && tree::entry(entries, var.varno).is_some_and(is_table)
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
