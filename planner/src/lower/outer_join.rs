//! Outer joins, from inner ones: the rows with partners, and the others padded with NULLs.
//!
//! Whether a row has a partner depends only on the columns that the condition reads. So the rows without
//! are all rows, minus those whose values of these columns are among the values that have partners.
//! Under equalities alone these are the other side's keys, and no join is needed to find them.

use super::{Condition, Lowerer};
use crate::error::PlanError;
use crate::expr::Expr;
use crate::exprs;
use crate::ir::{Predicate, Preserved, Rel};
use crate::mfp_builder::MfpBuilder;
use crate::plan::{Local, LocalId, Mfp, Plan};
use crate::types::{Column, Type};
use crate::value::Datum;
use std::collections::BTreeSet;

/// One side of the join.
struct Side<'r> {
    /// Its rows, by name.
    rows: Plan,
    columns: &'r [Column],
    /// What equalities compare with the other side, in key form.
    key: Vec<Expr>,
    /// The columns that the rest of the condition reads.
    tested: BTreeSet<usize>,
}

impl Lowerer {
    /// The plan of an outer join, whose output are the columns of both sides.
    pub(super) fn lower_outer_join(
        &mut self,
        preserved: Preserved,
        (left, right): (&Rel, &Rel),
        predicates: &[Predicate],
    ) -> Result<Plan, PlanError> {
        let split = left.arity();
        let Condition { left_key, right_key, rest } = Condition::of(predicates, split);
        let tested: BTreeSet<usize> = rest.iter().flat_map(exprs::columns_of).collect();
        let mut names = Vec::new();
        let left = Side {
            rows: self.name(left, "left side", &mut names)?,
            columns: &left.columns,
            key: left_key,
            tested: tested.range(..split).copied().collect(),
        };
        let right = Side {
            rows: self.name(right, "right side", &mut names)?,
            columns: &right.columns,
            key: right_key,
            tested: tested.range(split..).map(|column| column - split).collect(),
        };
        let all: Vec<Expr> = (0..split + right.columns.len()).map(Expr::Column).collect();
        let mut inputs = vec![join(&left, &right, &rest, &all)];
        let null = |column: &Column| Expr::Literal(Datum::Null, column.ty);
        let own = |side: &Side<'_>| (0..side.columns.len()).map(Expr::Column).collect::<Vec<_>>();
        let nulls = |side: &Side<'_>| side.columns.iter().map(null).collect::<Vec<_>>();
        let partners = left.partners(&rest, &right, |of| join(&left, &right, &rest, &of(0)));
        inputs.push(left.without(partners, [own(&left), nulls(&right)].concat()));
        if preserved == Preserved::Both {
            let partners =
                right.partners(&rest, &left, |of| join(&left, &right, &rest, &of(split)));
            inputs.push(right.without(partners, [nulls(&left), own(&right)].concat()));
        }
        let union = Plan::Union { inputs };
        Ok(names.into_iter().rev().fold(union, |body, (id, value)| Plan::Let {
            id,
            value: Box::new(value),
            body: Box::new(body),
        }))
    }

    /// A name for a relation's rows, which are referred to several times, unless they have one.
    fn name(
        &mut self,
        rel: &Rel,
        name: &str,
        names: &mut Vec<(LocalId, Plan)>,
    ) -> Result<Plan, PlanError> {
        let plan = self.lower_rel(rel)?;
        if matches!(plan, Plan::Source(_) | Plan::Get(_)) {
            return Ok(plan);
        }
        let id = LocalId(self.locals.len());
        let columns = rel.columns.iter().map(|column| column.name.clone()).collect();
        self.locals.push(Local { name: name.to_owned(), columns, note: None });
        names.push((id, plan));
        Ok(Plan::Get(id))
    }
}

/// The rows of both sides that fit, as expressions over their columns.
fn join(left: &Side<'_>, right: &Side<'_>, rest: &[Expr], outputs: &[Expr]) -> Plan {
    let mut closure = MfpBuilder::new(left.columns.len() + right.columns.len());
    rest.iter().for_each(|condition| closure.filter(condition));
    closure.map(outputs);
    Plan::Join {
        left: Box::new(left.rows.clone()),
        right: Box::new(right.rows.clone()),
        left_key: left.key.clone(),
        right_key: right.key.clone(),
        closure: closure.finish(),
    }
}

impl Side<'_> {
    /// What decides whether a row has a partner: equal bytes if and only if it is the same, and never NULL
    /// but for the key, where NULL has no partner.
    fn deciding(&self) -> Vec<Expr> {
        let identity = |&column: &usize| {
            let expr = Expr::Column(column);
            match self.columns[column] {
                Column { nullable: false, .. } => vec![expr],
                Column { ty: Type::Scalar(_), .. } => vec![Expr::Array(vec![expr])],
                Column { ty: ty @ Type::Array(_), .. } => {
                    let none = Expr::Literal(Datum::array(vec![]), ty);
                    let is_null = Expr::IsNull(Box::new(expr.clone()));
                    vec![is_null, Expr::Coalesce(vec![expr, none])]
                }
            }
        };
        self.key.iter().cloned().chain(self.tested.iter().flat_map(identity)).collect()
    }

    /// What rows with a partner have of [`Self::deciding`], each once. `joined` makes the join with outputs that
    /// it gets from its argument, given where this side's columns begin.
    fn partners(
        &self,
        rest: &[Expr],
        other: &Side<'_>,
        joined: impl FnOnce(&dyn Fn(usize) -> Vec<Expr>) -> Plan,
    ) -> Plan {
        let values = if rest.is_empty() {
            project(other.rows.clone(), other.columns.len(), &other.key)
        } else {
            let shifted = |offset: usize| {
                let deciding = self.deciding();
                deciding.iter().map(|e| exprs::renumber(e, &|column| column + offset)).collect()
            };
            joined(&shifted)
        };
        Plan::Distinct { input: Box::new(values) }
    }

    /// The rows without partners.
    fn without(&self, partners: Plan, outputs: Vec<Expr>) -> Plan {
        let arity = self.columns.len();
        let key = self.deciding();
        let right_key = (0..key.len()).map(Expr::Column).collect();
        let closure = MfpBuilder::new(arity + key.len());
        let with_partners = Plan::Join {
            left: Box::new(self.rows.clone()),
            right: Box::new(partners),
            left_key: key,
            right_key,
            closure: first_columns(closure, arity),
        };
        let negated = Plan::Negate { input: Box::new(with_partners) };
        let without = Plan::Union { inputs: vec![self.rows.clone(), negated] };
        project(without, arity, &outputs)
    }
}

fn first_columns(mut builder: MfpBuilder, count: usize) -> Mfp {
    builder.map(&(0..count).map(Expr::Column).collect::<Vec<_>>());
    builder.finish()
}

fn project(input: Plan, arity: usize, outputs: &[Expr]) -> Plan {
    let mut mfp = MfpBuilder::new(arity);
    mfp.map(outputs);
    super::apply_mfp(input, mfp.finish())
}
