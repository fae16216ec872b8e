//! Outer joins and anti joins, from inner ones: the rows with partners, and the others padded with NULLs.
//!
//! Whether a row has a partner depends only on the columns that the condition reads. So the rows without
//! are all rows, minus those whose values of these columns are among the values that have partners.
//! Under equalities alone these are the other side's keys, and no join is needed to find them.

use super::range_join::{by_cells, CellJoin};
use super::{with_names, Condition, Lowerer};
use crate::error::PlanError;
use crate::ir::{Predicate, Preserved, Rel};
use crate::transform;
use plan::expr::MfpBuilder;
use plan::expr::{self, Expr};
use plan::types::{Column, Type};
use plan::value::Datum;
use plan::{Local, LocalId, Mfp, Plan};
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

/// Both sides and what of the condition is no key.
struct Sides<'r> {
    left: Side<'r>,
    right: Side<'r>,
    rest: Vec<Expr>,
    /// The conditions as those of joins that have no pair in common, where only the arms of an OR have keys.
    arms: Vec<Vec<Predicate>>,
    /// How the sides are joined if nothing of them is equal and the condition is of intervals.
    cells: Option<CellJoin>,
    /// The values the sides' rows are the names of.
    names: Vec<(LocalId, Plan)>,
}

impl Lowerer<'_> {
    /// The plan of an outer join, whose output are the columns of both sides.
    pub(super) fn lower_outer_join(
        &mut self,
        preserved: Preserved,
        sides: (&Rel, &Rel),
        predicates: &[Predicate],
    ) -> Result<Plan, PlanError> {
        let sides = self.lower_sides(sides, predicates)?;
        let Sides { left, right, .. } = &sides;
        let split = left.columns.len();
        let all: Vec<Expr> = (0..split + right.columns.len()).map(Expr::Column).collect();
        let mut inputs = vec![sides.join(&all)];
        let partners = left.partners(&sides, right, 0);
        inputs.push(left.without(partners, [left.own(), right.nulls()].concat()));
        if preserved == Preserved::Both {
            let partners = right.partners(&sides, left, split);
            inputs.push(right.without(partners, [left.nulls(), right.own()].concat()));
        }
        Ok(with_names(Plan::Union { inputs }, sides.names))
    }

    /// The plan of an anti join, whose output are the columns of the left side.
    pub(super) fn lower_anti_join(
        &mut self,
        sides: (&Rel, &Rel),
        predicates: &[Predicate],
    ) -> Result<Plan, PlanError> {
        let sides = self.lower_sides(sides, predicates)?;
        let left = &sides.left;
        let plan = left.without(left.partners(&sides, &sides.right, 0), left.own());
        Ok(with_names(plan, sides.names))
    }

    fn lower_sides<'r>(
        &mut self,
        (left, right): (&'r Rel, &'r Rel),
        predicates: &[Predicate],
    ) -> Result<Sides<'r>, PlanError> {
        let split = left.arity();
        let Condition { left_key, right_key, rest } = Condition::of(predicates, split);
        let tested: BTreeSet<usize> = rest.iter().flat_map(expr::columns_of).collect();
        let columns = left.columns.iter().chain(&right.columns);
        let types: Vec<Type> = columns.map(|column| column.ty).collect();
        let arms = transform::arms(predicates, &types, split).unwrap_or_default();
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
        let mut cells = None;
        if left.key.is_empty() && arms.is_empty() {
            let inputs = [&left, &right].map(|side| (side.rows.clone(), side.columns));
            let context = (&mut self.locals, self.extents);
            cells = by_cells((&inputs[0], &inputs[1]), &rest, true, context);
            names.extend(cells.iter_mut().flat_map(|cells| cells.names.drain(..)));
        }
        Ok(Sides { left, right, rest, arms, cells, names })
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

impl Sides<'_> {
    /// The rows of both sides that fit, as expressions over their columns.
    fn join(&self, outputs: &[Expr]) -> Plan {
        let Sides { left, right, rest, arms, .. } = self;
        if arms.is_empty() {
            let sides = (left.rows.clone(), right.rows.clone());
            return self.join_on(sides, (&left.key, &right.key, rest), outputs);
        }
        Plan::Union { inputs: arms.iter().map(|arm| self.join_arm(arm, outputs)).collect() }
    }

    /// The rows that fit by one arm of an OR.
    fn join_arm(&self, predicates: &[Predicate], outputs: &[Expr]) -> Plan {
        let split = self.left.columns.len();
        let reads_only = |predicate: &Predicate, is_own: &dyn Fn(usize) -> bool| {
            let columns = predicate.columns();
            !columns.is_empty() && columns.into_iter().all(is_own)
        };
        let (mut of_left, mut of_right, mut of_both) = (vec![], vec![], vec![]);
        for predicate in predicates {
            if reads_only(predicate, &|column| column < split) {
                of_left.push(predicate.clone());
            } else if reads_only(predicate, &|column| column >= split) {
                of_right.push(predicate.renumber(&|column| column - split));
            } else {
                of_both.push(predicate.clone());
            }
        }
        let Condition { left_key, right_key, rest } = Condition::of(&of_both, split);
        let sides = (self.left.meeting(&of_left), self.right.meeting(&of_right));
        self.join_on(sides, (&left_key, &right_key, &rest), outputs)
    }

    fn join_on(
        &self,
        (left, right): (Plan, Plan),
        (left_key, right_key, rest): (&[Expr], &[Expr], &[Expr]),
        outputs: &[Expr],
    ) -> Plan {
        let mut closure = MfpBuilder::new(self.left.columns.len() + self.right.columns.len());
        rest.iter().for_each(|condition| closure.filter(condition));
        closure.map(outputs);
        let closure = closure.finish();
        if let Some(cells) = &self.cells {
            return cells.with_closure(&closure);
        }
        Plan::Join {
            left: Box::new(left),
            right: Box::new(right),
            left_key: left_key.to_vec(),
            right_key: right_key.to_vec(),
            closure,
        }
    }
}

impl Side<'_> {
    fn own(&self) -> Vec<Expr> {
        (0..self.columns.len()).map(Expr::Column).collect()
    }

    /// The rows that meet conditions.
    fn meeting(&self, predicates: &[Predicate]) -> Plan {
        let mut filter = MfpBuilder::new(self.columns.len());
        predicates.iter().for_each(|predicate| filter.filter(&predicate.to_expr()));
        super::apply_mfp(self.rows.clone(), filter.finish())
    }

    fn nulls(&self) -> Vec<Expr> {
        self.columns.iter().map(|column| Expr::Literal(Datum::Null, column.ty)).collect()
    }

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

    /// What rows with a partner have of [`Self::deciding`], each once. `start` is where this side's columns
    /// begin in the joined row.
    fn partners(&self, sides: &Sides<'_>, other: &Side<'_>, start: usize) -> Plan {
        let values = if sides.rest.is_empty() {
            project(other.rows.clone(), other.columns.len(), &other.key)
        } else {
            let deciding = self.deciding();
            let shift = |expr| expr::renumber(expr, &|column| column + start);
            sides.join(&deciding.iter().map(shift).collect::<Vec<_>>())
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
