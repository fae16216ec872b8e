//! WHERE and ON: what can be tested as it stands, and what needs subqueries.

use super::scalar::{chain, Scalar, ScalarBinder};
use super::scope::Scope;
use super::subquery::{Subqueries, VIRTUAL};
use super::Binder;
use crate::error::PlanError;
use crate::expr::Expr;
use crate::exprs;
use crate::ir::{ApplyKind, Binding, Predicate, Rel};
use sqlparser::ast::{self, BinaryOperator};
use std::collections::BTreeMap;

/// A condition over the rows of a relation.
#[derive(Default)]
pub(super) struct Conditions {
    plain: Vec<Predicate>,
    subqueries: Subqueries,
    /// What reads results of the subqueries.
    tested: Vec<Predicate>,
}

impl Binder<'_> {
    pub(super) fn bind_conditions(
        &mut self,
        scope: &Scope,
        condition: &ast::Expr,
    ) -> Result<Conditions, PlanError> {
        let mut binder = ScalarBinder::new(self, scope);
        let mut conditions = Conditions::default();
        for conjunct in chain(condition, &BinaryOperator::And) {
            if let Some(rest) = binder.bind_partners(conjunct)? {
                conditions.tested.extend(rest);
                continue;
            }
            let before = binder.subqueries.len();
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
    pub(super) fn apply(self, rel: Rel) -> Rel {
        let arity = rel.arity();
        let (rel, places) = self.subqueries.attach(rel.filter(self.plain));
        let tested = self.tested.iter().map(|p| p.map_exprs(&|expr| places.resolve(expr)));
        let rel = rel.filter(tested.collect());
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
            let value = Scalar::of_column(position, column);
            let (parameter, binding) = binder.new_parameter(value, &column.name);
            own.insert(position, parameter.expr);
            bindings.push(binding);
        }
        let place = |expr: &Expr| {
            exprs::substitute(expr, &|column| match own.get(&column) {
                Some(parameter) => parameter.clone(),
                None if column < VIRTUAL => Expr::Column(column - split),
                None => Expr::Column(column),
            })
        };
        let inner = self.map_exprs(&place).apply(right);
        Rel::apply(ApplyKind::Left, bindings, left, inner)
    }

    /// The conditions over other columns.
    pub(super) fn map_exprs(self, f: &dyn Fn(&Expr) -> Expr) -> Conditions {
        let mapped = |predicates: &[Predicate]| -> Vec<Predicate> {
            predicates.iter().map(|predicate| predicate.map_exprs(f)).collect()
        };
        Conditions {
            plain: mapped(&self.plain),
            tested: mapped(&self.tested),
            subqueries: self.subqueries.map_bindings(f),
        }
    }
}
