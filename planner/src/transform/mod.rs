//! IR to IR: each transform in a file named after its effect. After each one the schema is checked,
//! and a transform that broke it is blamed by name.

mod check;
mod choose_recursion;
mod decorrelate;
mod derive_key;
mod drop_distincts;
mod drop_never_true;
mod factor_conditions;
mod flatten_joins;
mod inline_lets;
mod limit_windows;
mod monotone_steps;
mod order_joins;
mod prune_columns;
mod push_extremes;
mod push_filters;
mod seal_fences;
mod split_or_joins;

pub use check::check;
pub use derive_key::derive_key;
pub(crate) use split_or_joins::arms;

use crate::error::PlanError;
use crate::ir::{Query, MAX_DEPTH};
use crate::sql::too_deep;

/// A named rewrite of a query. It keeps the columns of the root.
#[derive(Clone, Copy)]
pub struct Transform {
    /// The name of its file.
    pub name: &'static str,
    /// The rewrite.
    pub apply: fn(Query) -> Result<Query, PlanError>,
}

/// All transforms in the order in which they are applied.
pub const PIPELINE: [Transform; 14] = [
    Transform { name: "drop_never_true", apply: drop_never_true::apply },
    Transform { name: "decorrelate", apply: decorrelate::apply },
    Transform { name: "factor_conditions", apply: factor_conditions::apply },
    Transform { name: "inline_lets", apply: inline_lets::apply },
    Transform { name: "flatten_joins", apply: flatten_joins::apply },
    Transform { name: "push_filters", apply: push_filters::apply },
    Transform { name: "limit_windows", apply: limit_windows::apply },
    Transform { name: "drop_distincts", apply: drop_distincts::apply },
    Transform { name: "order_joins", apply: order_joins::apply },
    Transform { name: "split_or_joins", apply: split_or_joins::apply },
    Transform { name: "push_extremes", apply: push_extremes::apply },
    Transform { name: "prune_columns", apply: prune_columns::apply },
    Transform { name: "choose_recursion", apply: choose_recursion::apply },
    Transform { name: "seal_fences", apply: seal_fences::apply },
];

/// Applies the whole pipeline.
pub fn transform(query: Query) -> Result<Query, PlanError> {
    transform_watched(query, &|| ())
}

/// The same, with `pause` called before each transform. It may unwind.
pub fn transform_watched(query: Query, pause: &dyn Fn()) -> Result<Query, PlanError> {
    refuse_depth(&query)?;
    check(&query).map_err(|broken| blame("bind", &broken))?;
    PIPELINE.iter().try_fold(query, |query, transform| {
        pause();
        apply(query, transform)
    })
}

/// Applies the transform of that name alone.
pub fn apply_alone(name: &str, query: Query) -> Option<Result<Query, PlanError>> {
    let transform = PIPELINE.iter().find(|transform| transform.name == name)?;
    Some(apply(query, transform))
}

fn apply(query: Query, transform: &Transform) -> Result<Query, PlanError> {
    let columns = query.root.columns.clone();
    let result = (transform.apply)(query)?;
    refuse_depth(&result)?;
    check(&result).map_err(|broken| blame(transform.name, &broken))?;
    if result.root.columns != columns {
        return Err(blame(transform.name, "the view's columns changed"));
    }
    Ok(result)
}

/// A transform may put into one another what was beside each other.
fn refuse_depth(query: &Query) -> Result<(), PlanError> {
    match query.is_too_deep() {
        true => Err(too_deep("levels of nested relations and expressions", MAX_DEPTH)),
        false => Ok(()),
    }
}

fn blame(name: &str, broken: &str) -> PlanError {
    crate::sql::invalid(format!("{name} left an inconsistent query: {broken}"))
}
