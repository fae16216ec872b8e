//! WHERE and ON: what can be tested as it stands, and what needs subqueries.

use super::binder::Binder;
use super::bound_expr::BoundExpr;
use super::expr_binder::ExprBinder;
use super::gate::{self, Gate};
use super::scope::Scope;
use super::syntax::chain;
use super::virtual_columns::{Subqueries, SUBQUERIES};
use crate::error::PlanError;
use crate::ir::{ApplyKind, Binding, Predicate, Rel, TimeBound};
use plan::expr::{self, Expr};
use sqlparser::ast::{self, BinaryOperator};
use std::collections::BTreeMap;

/// A condition over the rows of a relation.
#[derive(Default)]
pub(super) struct Conditions {
    plain: Vec<Predicate>,
    /// In a WHERE: what the present time has to keep.
    bounds: Vec<TimeBound>,
    subqueries: Subqueries,
    /// What reads results of the subqueries.
    tested: Vec<Predicate>,
    /// Bounds on the present time that read such results.
    late_bounds: Vec<TimeBound>,
}

/// Where a condition stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
    Where,
    On,
}

impl Binder<'_> {
    pub(super) fn bind_conditions(
        &mut self,
        scope: &Scope,
        clause: Clause,
        condition: &ast::Expr,
    ) -> Result<Conditions, PlanError> {
        let mut binder = ExprBinder::new(self, scope);
        let mut conditions = Conditions::default();
        for conjunct in chain(condition, &BinaryOperator::And) {
            if let Some(rest) = binder.bind_partners(conjunct)? {
                conditions.tested.extend(rest);
                continue;
            }
            let before = binder.subqueries.len();
            if clause == Clause::Where {
                if let Some(bound) = binder.bind_temporal(conjunct)? {
                    let is_plain = binder.subqueries.len() == before;
                    let bounds = match is_plain {
                        true => &mut conditions.bounds,
                        false => &mut conditions.late_bounds,
                    };
                    bounds.push(bound);
                    continue;
                }
            }
            let predicate = binder.bind_predicate(conjunct)?;
            if binder.subqueries.len() == before {
                conditions.plain.push(predicate);
            } else {
                conditions.tested.push(predicate);
            }
        }
        conditions.subqueries = binder.subqueries;
        Ok(conditions)
    }
}

impl Conditions {
    pub(super) fn from_predicates(plain: Vec<Predicate>) -> Conditions {
        Conditions { plain, ..Conditions::default() }
    }

    pub(super) fn has_subqueries(&self) -> bool {
        self.subqueries.len() > 0
    }

    /// The predicates, of conditions without subqueries.
    pub(super) fn into_predicates(self) -> Vec<Predicate> {
        self.plain
    }

    /// The rows that meet the conditions.
    pub(super) fn apply(mut self, binder: &mut Binder<'_>, rel: Rel) -> Rel {
        match self.take_gate(binder, &rel) {
            None => self.test(rel),
            Some(gate) => {
                let rel = self.test(gate.before(rel));
                gate.around(rel)
            }
        }
    }

    /// Takes out the conditions that depend on no row, if something else may fail.
    fn take_gate(&mut self, binder: &mut Binder<'_>, rel: &Rel) -> Option<Gate> {
        let bounds = self.bounds.iter().chain(&self.late_bounds);
        let may_fail = rel.may_fail()
            || bounds.clone().any(|bound| expr::may_fail(&bound.at))
            || gate::any_fails(&self.plain);
        let read = bounds.flat_map(|bound| expr::columns_of(&bound.at)).collect();
        // What no subquery decides, but the host, stands among the plain conditions.
        let (own, plain): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.plain).into_iter().partition(gate::is_of_host_alone);
        self.plain = plain;
        self.tested.splice(0..0, own);
        let others = |tested: &[Predicate]| (may_fail || gate::any_fails(tested), read);
        Gate::take(binder, &mut self.subqueries, &mut self.tested, others)
    }

    fn test(mut self, rel: Rel) -> Rel {
        let arity = rel.arity();
        // In a subquery, what is the same for all of its rows is tested before what may fail for one.
        let of_outer_rows = |predicate: &Predicate| gate::reads_parameters_only(predicate);
        let (first, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.plain).into_iter().partition(of_outer_rows);
        let rel = match !first.is_empty() && gate::any_fails(&rest) {
            true => rel.filter(first).fenced().temporal(self.bounds).filter(rest),
            false => rel.temporal(self.bounds).filter([first, rest].concat()),
        };
        let (rel, places) = self.subqueries.attach(rel);
        let place = |expr: &Expr| places.resolve(expr);
        let bounds = self.late_bounds.iter().map(|bound| bound.map_expr(&place));
        let tested = self.tested.iter().map(|predicate| predicate.map_exprs(&place));
        let rel = rel.temporal(bounds.collect()).filter(tested.collect());
        if rel.arity() == arity {
            return rel;
        }
        rel.project(&(0..arity).collect::<Vec<_>>())
    }

    /// `left LEFT JOIN right ON` the conditions, where `right` may have parameters that are bound by rows of `left`
    /// and the conditions may have subqueries: the rows of `right` that meet them, for each row of `left`.
    pub(super) fn left_join_each(
        self,
        binder: &mut Binder<'_>,
        (left, right): (Rel, Rel),
        mut bindings: Vec<Binding>,
    ) -> Rel {
        let split = left.arity();
        let mut own: BTreeMap<usize, Expr> = BTreeMap::new();
        for (position, column) in left.columns.iter().enumerate() {
            let value = BoundExpr::of_column(position, column);
            let (parameter, binding) = binder.new_parameter(value, &column.name);
            own.insert(position, parameter.expr);
            bindings.push(binding);
        }
        let place = |expr: &Expr| {
            expr::substitute(expr, &|column| match own.get(&column) {
                Some(parameter) => parameter.clone(),
                None if column < SUBQUERIES => Expr::Column(column - split),
                None => Expr::Column(column),
            })
        };
        let inner = self.map_exprs(&place).apply(binder, right);
        Rel::apply(ApplyKind::Left, bindings, left, inner)
    }

    /// The conditions over other columns.
    pub(super) fn map_exprs(self, f: &dyn Fn(&Expr) -> Expr) -> Conditions {
        let mapped = |predicates: &[Predicate]| -> Vec<Predicate> {
            predicates.iter().map(|predicate| predicate.map_exprs(f)).collect()
        };
        let mapped_bounds = |bounds: &[TimeBound]| -> Vec<TimeBound> {
            bounds.iter().map(|bound| bound.map_expr(f)).collect()
        };
        Conditions {
            plain: mapped(&self.plain),
            bounds: mapped_bounds(&self.bounds),
            tested: mapped(&self.tested),
            late_bounds: mapped_bounds(&self.late_bounds),
            subqueries: self.subqueries.map_bindings(f),
        }
    }
}
