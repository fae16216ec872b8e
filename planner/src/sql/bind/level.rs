//! A query around the one being bound, as the inner one sees it.

use super::bound_expr::BoundExpr;
use super::scope::Scope;
use super::virtual_columns::Grouping;
use crate::ir::Binding;
use plan::expr::{Expr, ParameterId};

/// A query around the one being bound.
pub(super) struct Level {
    pub(super) scope: Scope,
    /// The items of a FROM clause before the one being bound are seen by LATERAL items only.
    pub(super) is_visible: bool,
    /// The parameters that have been made of its columns.
    pub(super) bindings: Vec<Binding>,
    /// Its aggregates, where it may have some.
    pub(super) grouping: Option<Grouping>,
}

impl Level {
    /// The parameter that stands for a value of the query.
    pub(super) fn parameter(
        &mut self,
        scalar: BoundExpr,
        name: &str,
        parameters: &mut usize,
    ) -> BoundExpr {
        let known = self.bindings.iter().find(|binding| binding.value == scalar.expr);
        let id = known.map(|binding| binding.id).unwrap_or_else(|| {
            let id = ParameterId(*parameters);
            *parameters += 1;
            let (value, column) = (scalar.expr.clone(), scalar.column(name));
            self.bindings.push(Binding { id, value, column });
            id
        });
        BoundExpr { expr: Expr::Parameter(id, scalar.ty), ..scalar }
    }
}
