//! Names of the queries around a subquery: a column of one of them is a parameter of the subquery.

use super::super::refuse::invalid;
use super::binder::Binder;
use super::bound_expr::BoundExpr;
use super::level::Level;
use super::row_order::RowOrder;
use super::scope::Scope;
use super::virtual_columns::{Call, Grouping};
use crate::error::PlanError;
use crate::ir::Binding;
use plan::expr::{self, Expr, ParameterId};
use plan::types::Type;
use std::collections::BTreeSet;

impl Binder<'_> {
    /// Binds something within a query whose names, and aggregates if it may have some, are seen there; with the
    /// parameters it takes from that.
    pub(super) fn within<T>(
        &mut self,
        scope: &Scope,
        grouping: Option<&mut Grouping>,
        bind: impl FnOnce(&mut Self) -> Result<T, PlanError>,
    ) -> Result<(T, Vec<Binding>), PlanError> {
        let lent = grouping.as_deref().cloned();
        let (bound, level) = self.at_level(scope, true, lent, bind)?;
        if let (Some(grouping), Some(lent)) = (grouping, level.grouping) {
            *grouping = lent;
        }
        Ok((bound, level.bindings))
    }

    /// Binds an item of FROM to the right of others, whose names it sees where it is LATERAL.
    pub(super) fn beside<T>(
        &mut self,
        left: &Scope,
        bind: impl FnOnce(&mut Self) -> Result<T, PlanError>,
    ) -> Result<(T, Vec<Binding>), PlanError> {
        let (bound, level) = self.at_level(left, false, None, bind)?;
        Ok((bound, level.bindings))
    }

    fn at_level<T>(
        &mut self,
        scope: &Scope,
        is_visible: bool,
        grouping: Option<Grouping>,
        bind: impl FnOnce(&mut Self) -> Result<T, PlanError>,
    ) -> Result<(T, Level), PlanError> {
        let depth = self.levels.len();
        let level = Level { scope: scope.clone(), is_visible, bindings: vec![], grouping };
        self.levels.push(level);
        let bound = bind(self);
        let level = self.levels.drain(depth..).next();
        let level = level.ok_or_else(|| invalid("a query around a subquery is lost"))?;
        Ok((bound?, level))
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
    ) -> Result<Option<BoundExpr>, PlanError> {
        for level in self.levels.iter_mut().rev().filter(|level| level.is_visible) {
            let Some(scalar) = level.scope.find(table, name)? else { continue };
            return Ok(Some(level.parameter(scalar, name, &mut self.parameters)));
        }
        Ok(None)
    }

    /// What is left of the order of the rows of the queries around.
    pub(super) fn outer_row_order(&self) -> RowOrder {
        let mut orders = self
            .levels
            .iter()
            .map(|level| level.scope.order().clone().lost(level.scope.first_table(), "a subquery"));
        orders.find(|order| !order.is_any()).unwrap_or_default()
    }

    /// How many parameters each query around has given.
    pub(super) fn given(&self) -> Vec<usize> {
        self.levels.iter().map(|level| level.bindings.len()).collect()
    }

    /// An aggregate of the query around that gives the parameters it reads, as a parameter; what that query gave since
    /// `before` was for it alone. `None` if several queries do, or the query may have no aggregates there.
    pub(super) fn outer_aggregate(
        &mut self,
        name: &str,
        (mut call, ty): (Call, Type),
        read: &BTreeSet<ParameterId>,
        before: &[usize],
    ) -> Option<BoundExpr> {
        let arg = call.arg.as_mut().filter(|arg| expr::columns_of(&arg.expr).is_empty())?;
        let gives = |level: &Level, id: &ParameterId| {
            level.bindings.iter().any(|binding| binding.id == *id)
        };
        let is_read = |level: &Level| read.iter().any(|id| gives(level, id));
        let number = self.levels.iter().rposition(is_read)?;
        let level = &mut self.levels[number];
        if !read.iter().all(|id| gives(level, id)) {
            return None;
        }
        let grouping = level.grouping.as_mut()?;
        let value = |id| Some(level.bindings.iter().find(|b| b.id == id)?.value.clone());
        arg.expr = expr::with_parameters(&arg.expr, &value);
        level.bindings.truncate(*before.get(number)?);
        let aggregate = grouping.add(name, call, ty);
        Some(level.parameter(aggregate, name, &mut self.parameters))
    }

    /// `GROUPING(…)` of keys of a query around, as a parameter; what that query gave since `before` was for it alone.
    pub(super) fn outer_indicator(&mut self, args: &[Expr], before: &[usize]) -> Option<BoundExpr> {
        let of_keys = |level: &Level| {
            let value = |id| Some(level.bindings.iter().find(|b| b.id == id)?.value.clone());
            let grouping = level.grouping.as_ref()?;
            let key = |arg| grouping.position(&expr::with_parameters(arg, &value));
            args.iter().map(key).collect::<Option<Vec<usize>>>()
        };
        let found = self.levels.iter().enumerate().rev();
        let (number, keys) =
            found.into_iter().find_map(|(number, level)| Some((number, of_keys(level)?)))?;
        let level = &mut self.levels[number];
        level.bindings.truncate(*before.get(number)?);
        let indicator = level.grouping.as_mut()?.add_indicator(keys);
        Some(level.parameter(indicator, "grouping", &mut self.parameters))
    }

    /// A parameter with a value of its own.
    pub(super) fn new_parameter(&mut self, value: BoundExpr, name: &str) -> (BoundExpr, Binding) {
        let id = ParameterId(self.parameters);
        self.parameters += 1;
        let column = value.column(name);
        let parameter = BoundExpr { expr: Expr::Parameter(id, value.ty), ..value.clone() };
        (parameter, Binding { id, value: value.expr, column })
    }
}
