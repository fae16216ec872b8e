//! ORDER BY where it decides which rows a view has: under LIMIT and DISTINCT ON, in windows, in aggregates such as array_agg, and
//! in subqueries whose rows come to one of these in their order.
//!
//! There the order has to be that of the type's own operators, and that of text the order of its bytes.

use super::text_rules;
use super::unsupported::unsupported;
use crate::errors::Error;
use crate::pg::catalog;
use crate::pg::types;
use crate::rewrite::parts::{self, Call};
use crate::rewrite::tree::{self, Node, Place};
use crate::rewrite::windows;
use pgrx::pg_sys::{self, NodeTag, Oid};
use plan::aggregate::SUMMING;

/// Expressions that are sorted as collations say.
pub type Collated<'t> = Vec<(Place<'t>, Oid)>;

/// Whether a query, at whose own order somebody may look, looks at that of the rows of its FROM, or hands it on.
pub fn looks_at_rows(query: &pg_sys::Query, is_wanted: bool) -> bool {
    let is_grouped = query.hasAggs || !query.groupClause.is_null();
    is_limited(query)
        || query.hasDistinctOn
        || query.hasWindowFuncs
        || (is_wanted && !is_grouped)
        || (query.hasAggs && has_listing(query))
}

/// Whether a query has aggregates whose results may depend on the order of the rows.
fn has_listing(query: &pg_sys::Query) -> bool {
    has_node(query, |node| matches!(node, Node::Aggref(aggregate) if is_listing(aggregate)))
}

/// Whether a query has `ARRAY(SELECT …)`.
pub fn has_array(query: &pg_sys::Query) -> bool {
    let kind = pg_sys::SubLinkType::ARRAY_SUBLINK;
    has_node(query, |node| matches!(node, Node::SubLink(link) if link.subLinkType == kind))
}

/// Whether a node is in the expressions of a query, not of those in it.
fn has_node(query: &pg_sys::Query, is_it: impl Fn(Node<'_>) -> bool) -> bool {
    let mut next = tree::expressions(query);
    while let Some(place) = next.pop() {
        match place.node() {
            Node::Query(_) => {}
            node if is_it(node) => return true,
            _ => next.extend(place.children()),
        }
    }
    false
}

fn is_listing(aggregate: &pg_sys::Aggref) -> bool {
    let (name, is_builtin) = catalog::function_name(aggregate.aggfnoid);
    aggregate.aggkind as u8 == b'n' && !(is_builtin && SUMMING.contains(&name.as_str()))
}

fn is_limited(query: &pg_sys::Query) -> bool {
    !query.limitCount.is_null() || !query.limitOffset.is_null()
}

/// Checks the orders, limits and windows of one query, not those of its subqueries. `is_wanted`: somebody may look at
/// the order of its rows.
pub fn check(query: &pg_sys::Query, is_wanted: bool) -> Result<Collated<'_>, Error> {
    let mut collated = Collated::new();
    if is_wanted || is_limited(query) || query.hasDistinctOn {
        collated.extend(check_sorted(query)?);
    }
    check_groups(windows::groups_of(query))?;
    check_groups(windows::distinct_of(query))?;
    for window in windows::of(query) {
        check_groups(windows::partition_of(query, window))?;
        collated.extend(check_order(windows::order_of_window(query, window))?);
        for offset in parts::frame_offsets(window) {
            check_offset(query, window, offset)?;
        }
    }
    Ok(collated)
}

/// Checks the ORDER BY of a query whose rows are wanted in order.
pub fn check_sorted(query: &pg_sys::Query) -> Result<Collated<'_>, Error> {
    for (place, _) in windows::order_of(query) {
        if windows::is_captured(query, place) {
            let construct = "ORDER BY a merged column whose name another output has";
            return Err(
                unsupported(construct, place.location()).hint("Give the output another name.")
            );
        }
    }
    let collated = check_order(windows::order_of(query))?;
    match collated.first() {
        // Nothing but a column can be named there.
        Some((place, collation)) if !query.setOperations.is_null() => {
            let name = catalog::collation_name(*collation);
            let construct = format!("ORDER BY of a set operation with collation \"{name}\"");
            Err(unsupported(construct, place.location())
                .hint("Let the set operation be a subquery of the query that sorts."))
        }
        _ => Ok(collated),
    }
}

/// Checks the ORDER BY of an aggregate that is made of its values in an order.
pub fn check_aggregate(aggregate: &pg_sys::Aggref) -> Result<Collated<'_>, Error> {
    check_groups(windows::distinct_of_aggregate(aggregate))?;
    let mut collated = check_order(windows::order_of_aggregate(aggregate))?;
    let (name, _) = catalog::function_name(aggregate.aggfnoid);
    if let ("min" | "max", [arg]) = (name.as_str(), aggregate.arguments().as_slice()) {
        collated.extend(text_rules::order_of(*arg).map(|collation| (*arg, collation)));
    }
    Ok(collated)
}

/// Whether an aggregate shows the order of its values, which is that of collations.
pub fn shows_collations(aggregate: &pg_sys::Aggref) -> bool {
    let (name, _) = catalog::function_name(aggregate.aggfnoid);
    let is_collated = |arg: &Place<'_>| text_rules::order_of(*arg).is_some();
    !SUMMING.contains(&name.as_str()) && aggregate.arguments().iter().any(is_collated)
}

fn check_order(items: Vec<(Place<'_>, Oid)>) -> Result<Collated<'_>, Error> {
    let mut collated = Collated::new();
    for (place, operator) in items {
        if !types::is_default_order(operator, types::base_type(place.expr_type())) {
            let (name, _) = catalog::operator(operator);
            return Err(unsupported(format!("ORDER BY … USING {name}"), place.location()));
        }
        collated.extend(text_rules::order_of(place).map(|collation| (place, collation)));
    }
    Ok(collated)
}

/// What is grouped is so by the types' own equalities: ORDER BY … USING brings others.
fn check_groups(items: Vec<(Place<'_>, Oid)>) -> Result<(), Error> {
    for (place, operator) in items {
        if !types::is_default_equality(operator, types::base_type(place.expr_type())) {
            let name = types::type_name(place.expr_type());
            let construct = format!("another equality than that of type {name} itself");
            return Err(unsupported(construct, place.location())
                .hint("Leave out the operator that ORDER BY uses."));
        }
    }
    Ok(())
}

/// An offset of a frame.
fn check_offset(
    query: &pg_sys::Query,
    window: &pg_sys::WindowClause,
    place: Place<'_>,
) -> Result<(), Error> {
    let is_range = window.frameOptions as u32 & pg_sys::FRAMEOPTION_RANGE != 0;
    if !is_range || windows::is_reach(place) {
        return Ok(());
    }
    let ty = place.expr_type();
    let refuse =
        |construct: &str, hint: &str| Err(unsupported(construct, place.location()).hint(hint));
    let sorted = windows::order_of_window(query, window);
    let sorted =
        sorted.first().map_or(Oid::INVALID, |(place, _)| types::base_type(place.expr_type()));
    match (ty, sorted) {
        (pg_sys::INTERVALOID, _)
            if matches!(place.node(), Node::Expr(NodeTag::T_Const))
                && windows::microseconds(place, windows::DAY).is_none() =>
        {
            return refuse("a negative frame offset", "Swap PRECEDING and FOLLOWING.");
        }
        (pg_sys::INTERVALOID, pg_sys::DATEOID | pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID) => {}
        _ if types::native_type(ty).is_none() => {
            let construct = format!("a frame offset of type {}", types::type_name(ty));
            return refuse(&construct, "Use ROWS or GROUPS.");
        }
        _ => return Ok(()),
    }
    check_constant(place)
}

/// An offset of RANGE that is an interval: how long that is may depend on the row.
fn check_constant(place: Place<'_>) -> Result<(), Error> {
    let mut next = vec![place];
    while let Some(place) = next.pop() {
        match place.node() {
            // What PostgreSQL's own functions make of constants has been computed.
            Node::Var(_)
            | Node::Param(_)
            | Node::SubLink(_)
            | Node::SQLValueFunction(_)
            | Node::FuncExpr(_)
            | Node::OpExpr(_) => {
                let construct = "an offset of RANGE that is an interval and no constant";
                return Err(unsupported(construct, place.location()).hint(
                    "Use a constant, or order by a number, such as extract(epoch FROM at).",
                ));
            }
            _ => next.extend(place.children()),
        }
    }
    Ok(())
}
