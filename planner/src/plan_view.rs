//! The whole way from canonical SQL to a plan.

use crate::catalog::Catalog;
use crate::error::{PlanError, PlanErrorKind};
use crate::plan::ViewPlan;

/// Plans a query given as canonical SQL.
pub fn plan_view(sql: &str, catalog: &dyn Catalog) -> Result<ViewPlan, PlanError> {
    let _ = (sql, catalog);
    let message = "planning is not complete".to_string();
    Err(PlanError { kind: PlanErrorKind::Invalid, message, hint: None })
}

/// A plan as indented text, one node per line.
pub fn explain(plan: &ViewPlan) -> String {
    format!("{plan:#?}")
}
