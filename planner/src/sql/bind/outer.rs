//! Names of the queries around a subquery: a column of one of them is a parameter of the subquery.

use super::scalar::Scalar;
use super::scope::Scope;
use super::Binder;
use crate::error::PlanError;
use crate::expr::{Expr, ParameterId};
use crate::ir::Binding;

/// A query around the one being bound.
pub(super) struct Level {
    scope: Scope,
    /// The items of a FROM clause before the one being bound are seen by LATERAL items only.
    is_visible: bool,
    /// The parameters that have been made of its columns.
    bindings: Vec<Binding>,
}

impl Binder<'_> {
    /// Binds something within a query whose names are seen there; with the parameters it takes from that.
    pub(super) fn within<T>(
        &mut self,
        scope: &Scope,
        bind: impl FnOnce(&mut Self) -> Result<T, PlanError>,
    ) -> Result<(T, Vec<Binding>), PlanError> {
        self.at_level(scope, true, bind)
    }

    /// Binds an item of FROM to the right of others, whose names it sees where it is LATERAL.
    pub(super) fn beside<T>(
        &mut self,
        left: &Scope,
        bind: impl FnOnce(&mut Self) -> Result<T, PlanError>,
    ) -> Result<(T, Vec<Binding>), PlanError> {
        self.at_level(left, false, bind)
    }

    fn at_level<T>(
        &mut self,
        scope: &Scope,
        is_visible: bool,
        bind: impl FnOnce(&mut Self) -> Result<T, PlanError>,
    ) -> Result<(T, Vec<Binding>), PlanError> {
        let depth = self.levels.len();
        self.levels.push(Level { scope: scope.clone(), is_visible, bindings: vec![] });
        let bound = bind(self);
        let bindings = self.levels.drain(depth..).flat_map(|level| level.bindings).collect();
        Ok((bound?, bindings))
    }

    /// Binds a LATERAL item: it sees those before it.
    pub(super) fn laterally<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> T {
        let siblings = self.siblings_from..self.levels.len();
        self.levels[siblings.clone()].iter_mut().for_each(|level| level.is_visible = true);
        let bound = bind(self);
        self.levels[siblings].iter_mut().for_each(|level| level.is_visible = false);
        bound
    }

    /// Binds what sees only the names of the outermost `depth` queries.
    pub(super) fn outside<T>(&mut self, depth: usize, bind: impl FnOnce(&mut Self) -> T) -> T {
        let inner = self.levels.split_off(depth);
        let siblings_from = std::mem::replace(&mut self.siblings_from, depth);
        let bound = bind(self);
        self.siblings_from = siblings_from;
        self.levels.extend(inner);
        bound
    }

    /// A column of a query around, the nearest that has it.
    pub(super) fn outer_column(
        &mut self,
        table: Option<&str>,
        name: &str,
    ) -> Result<Option<Scalar>, PlanError> {
        for level in self.levels.iter_mut().rev().filter(|level| level.is_visible) {
            let Some(scalar) = level.scope.find(table, name)? else { continue };
            let known = level.bindings.iter().find(|binding| binding.value == scalar.expr);
            let id = known.map(|binding| binding.id).unwrap_or_else(|| {
                let id = ParameterId(self.parameters);
                self.parameters += 1;
                let (value, column) = (scalar.expr.clone(), scalar.column(name));
                level.bindings.push(Binding { id, value, column });
                id
            });
            return Ok(Some(Scalar { expr: Expr::Parameter(id, scalar.ty), ..scalar }));
        }
        Ok(None)
    }

    /// A parameter with a value of its own.
    pub(super) fn new_parameter(&mut self, value: Scalar, name: &str) -> (Scalar, Binding) {
        let id = ParameterId(self.parameters);
        self.parameters += 1;
        let column = value.column(name);
        let parameter = Scalar { expr: Expr::Parameter(id, value.ty), ..value.clone() };
        (parameter, Binding { id, value: value.expr, column })
    }
}
