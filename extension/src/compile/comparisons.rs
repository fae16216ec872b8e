//! Whose functions compare the values of a plan.
//!
//! A view that reads another one compares, as its own owner, what that one compares. Reading must not make anybody run the
//! functions of another view's owner, so such views are refused.

use super::CompiledView;
use crate::errors::Error;
use crate::pg::value::type_oid;
use crate::pg::{catalog, types};
use pgrx::pg_sys::Oid;
use plan::expr::Expr;
use plan::host::HostWork;
use plan::types::Type;
use plan::{Mfp, Plan, Recursion};

/// Refuses a view, which the current user's view reads, if it compares values with functions of others.
pub(super) fn check(view: &CompiledView) -> Result<(), Error> {
    let user = catalog::current_user();
    if view.owner == user {
        return Ok(());
    }
    let mut compared = Vec::new();
    collect(&view.query.plan.root, &mut compared);
    let mut types = compared.into_iter().map(|ty| Oid::from(type_oid(ty)));
    if !types.any(|ty| types::is_compared_by_others(ty, user)) {
        return Ok(());
    }
    let name = catalog::relation_name(view.relid.into());
    let message =
        format!("incremental view \"{name}\" compares values with functions of other users");
    Err(Error::unsupported(message)
        .detail("It belongs to another owner, as whom these functions would not run.")
        .hint("Read its base tables instead, or let one owner have both views."))
}

/// The types of values that PostgreSQL compares for a plan.
fn collect(plan: &Plan, types: &mut Vec<Type>) {
    for expr in expressions(plan) {
        collect_of(expr, types);
    }
    plan.children().into_iter().for_each(|child| collect(child, types));
}

fn collect_of(expr: &Expr, types: &mut Vec<Type>) {
    if let Expr::Host { call, .. } = expr {
        if let HostWork::SortKey { of, .. } = call.work {
            if !types.contains(&of) {
                types.push(of);
            }
        }
    }
    expr.children().into_iter().for_each(|child| collect_of(child, types));
}

/// The expressions of one node.
fn expressions(plan: &Plan) -> Vec<&Expr> {
    match plan {
        Plan::LetRec { recursion: Recursion::WorkingTableDistinct { key }, .. } => {
            key.iter().collect()
        }
        Plan::Mfp { mfp, .. } => of_mfp(mfp).collect(),
        Plan::TableFunction { table_function, closure, .. } => {
            let args = table_function.calls.iter().flat_map(|call| &call.args);
            args.chain(of_mfp(closure)).collect()
        }
        Plan::Join { left_key, right_key, closure, .. } => {
            left_key.iter().chain(right_key).chain(of_mfp(closure)).collect()
        }
        Plan::Reduce { key, aggregates, .. } => {
            let args = aggregates.iter().filter_map(|aggregate| aggregate.arg.as_ref());
            key.iter().chain(args).collect()
        }
        Plan::Partition { key, .. } => key.iter().collect(),
        Plan::LetRec { .. }
        | Plan::Let { .. }
        | Plan::Constant { .. }
        | Plan::Source(_)
        | Plan::Get(_)
        | Plan::Distinct { .. }
        | Plan::Temporal { .. }
        | Plan::Union { .. }
        | Plan::Negate { .. }
        | Plan::Repeat { .. } => Vec::new(),
    }
}

fn of_mfp(mfp: &Mfp) -> impl Iterator<Item = &Expr> {
    mfp.maps.iter().chain(&mfp.filter)
}
