//! The whole way from canonical SQL to a plan.

use crate::catalog::Catalog;
use crate::error::PlanError;
use crate::lower::lower;
use crate::sql::bind;
use crate::transform;
use plan::ViewPlan;

/// Plans a query given as canonical SQL.
pub fn plan_view(sql: &str, catalog: &dyn Catalog) -> Result<ViewPlan, PlanError> {
    let query = bind(sql, catalog)?;
    let query = transform::transform_watched(query, &|| catalog.check_interrupts())?;
    catalog.check_interrupts();
    lower(&query, &|code| catalog.host_extents(code))
}
