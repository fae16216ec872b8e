//! Replaces subqueries, which are evaluated for each row of the query around them, by joins.
//!
//! A subquery is *lifted*: rewritten to yield its rows for all values of its parameters at once, with the values in
//! front ([`lift`]), and joined with the rows that have these values. The values come from equalities of the subquery
//! itself where it has some (`WHERE inner.x = outer.y` groups by `inner.x`, whatever the outer rows are), else from
//! the distinct values of the outer rows. Subqueries of exactly one row, a projection or an aggregate without GROUP
//! BY, plain joins, and rows from set-returning functions need less ([`single_row`], [`direct`], [`table_function`]).
//!
//! After it no [`Apply`] and no parameter is left. Idempotent.
//!
//! ```text
//! Apply Scalar ($0 = a.id)           becomes   OuterJoin preserving Left [a.id = e.src]
//!   Source accounts a (id)                       Source accounts a (id)
//!   Reduce by () to (Max of w)                   Reduce by (e.src) to (Max of w)
//!     Filter [e.src = $0]                          Source edges e (src, w)
//!       Source edges e (src, w)
//! ```

mod direct;
mod lift;
mod same_types;
mod single_row;
mod table_function;

use super::derive_key;
use super::flatten_joins::flatten;
use crate::error::PlanError;
use crate::ir::{Apply, ApplyKind, Binding, Input, Node, Predicate, Preserved, Query, Rel};
use lift::Lift;
use plan::expr::Expr;
use plan::func::{Blanks, Comparison, Func};
use plan::types::{Column, Scalar, Type};
use plan::{Aggregate, AggregateFunc, Local, LocalId};

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    let Query { inputs, locals, root } = query;
    let parameters = bound_parameters(&root);
    let mut decorrelator = Decorrelator { inputs: &inputs, locals, parameters, error: None };
    let root = decorrelator.decorrelate(root);
    let Decorrelator { locals, error, .. } = decorrelator;
    match error {
        None => Ok(Query { inputs, locals, root }),
        Some(error) => Err(error),
    }
}

struct Decorrelator<'q> {
    inputs: &'q [Input],
    locals: Vec<Local>,
    /// How many numbers of parameters are taken.
    parameters: usize,
    error: Option<PlanError>,
}

/// One more than the greatest number of a parameter.
fn bound_parameters(rel: &Rel) -> usize {
    let own = match &rel.node {
        Node::Apply(apply) => apply.bindings.iter().map(|b| b.id.0 + 1).max().unwrap_or(0),
        _ => 0,
    };
    rel.children().into_iter().map(bound_parameters).max().unwrap_or(0).max(own)
}

/// A subquery for all values of its parameters, and the rows to join it with.
struct Lifted {
    outer: Rel,
    /// Columns for the parameters, then those of the subquery.
    rel: Rel,
    /// How many columns are for the parameters.
    width: usize,
    /// What rows of `outer` and of `rel` belong together, over the columns of both.
    ties: Vec<Predicate>,
    /// Values that `outer` and `rel` refer to.
    lets: Vec<(LocalId, Rel)>,
}

impl Decorrelator<'_> {
    /// The subqueries of subqueries first: what is left of them are joins that refer to outer parameters.
    fn decorrelate(&mut self, rel: Rel) -> Rel {
        let rel = sink_filter(rel).map_children(&mut |child| self.decorrelate(child));
        let Node::Apply(apply) = rel.node else { return rel };
        Rel { columns: rel.columns, ..self.replace(*apply) }
    }

    fn replace(&mut self, apply: Apply) -> Rel {
        let Apply { kind, mut bindings, outer, inner } = apply;
        let inner = same_types::unify(flatten(inner), &mut bindings, &mut self.parameters);
        let used = inner.parameters();
        bindings.retain(|binding| used.contains(&binding.id));
        let apply = Apply { kind, bindings, outer, inner };
        if let Some(rel) = direct::join(&apply).or_else(|| table_function::expand(&apply)) {
            return rel;
        }
        let Apply { kind, bindings, outer, inner } = apply;
        let (layers, bottom) = single_row::peel(inner);
        match &bottom.node {
            Node::Constant { .. } if bottom == Rel::unit() => {
                layers.apply(kind, &bindings, outer.arity(), outer)
            }
            Node::Reduce { input, key, aggregates } if key.is_empty() => {
                let arity = outer.arity();
                let rows = self.aggregate(&bindings, outer, &bottom, (input, aggregates));
                layers.apply(kind, &bindings, arity, rows)
            }
            _ => {
                let lifted = self.lift(&bindings, outer, |lift| lift.lift(&layers.stack(&bottom)));
                self.join_back(kind, lifted)
            }
        }
    }

    /// The outer rows, each with the aggregates of the subquery.
    fn aggregate(
        &mut self,
        bindings: &[Binding],
        outer: Rel,
        whole: &Rel,
        (input, aggregates): (&Rel, &[Aggregate]),
    ) -> Rel {
        let used = whole.parameters();
        if !bindings.iter().any(|binding| used.contains(&binding.id)) {
            return Rel::join(vec![outer, whole.clone()], vec![]);
        }
        let bindings: Vec<Binding> =
            bindings.iter().filter(|binding| used.contains(&binding.id)).cloned().collect();
        let arity = outer.arity();
        let grouped = |lift: &mut Lift<'_>| lift.reduce(input, &[], aggregates, &whole.columns);
        let Lifted { outer, rel, width, ties, lets } = self.lift(&bindings, outer, grouped);
        let joined = Rel::outer_join(Preserved::Left, outer, rel, ties);
        // An outer row without a group has an empty one: count is 0 there, all others are NULL.
        let mut columns = joined.columns[..arity].to_vec();
        let mut outputs: Vec<Expr> = (0..arity).map(Expr::Column).collect();
        for (i, (aggregate, column)) in aggregates.iter().zip(&whole.columns).enumerate() {
            let value = Expr::Column(arity + width + i);
            outputs.push(match aggregate.func {
                AggregateFunc::Count => Expr::Coalesce(vec![value, zero()]),
                _ => value,
            });
            columns.push(column.clone());
        }
        let_all(lets, joined.map(outputs, columns))
    }

    /// Lifts with values from equalities, or if that is not possible with those of the outer rows.
    fn lift(
        &mut self,
        bindings: &[Binding],
        outer: Rel,
        mut lifted: impl FnMut(&mut Lift<'_>) -> Option<Rel>,
    ) -> Lifted {
        if let Some(mut lift) = Lift::by_equalities(bindings) {
            if let Some(rel) = lifted(&mut lift) {
                return self.finish(lift, outer, rel, vec![]);
            }
        }
        let mut lets = Vec::new();
        let outer = self.share("outer", outer, &mut lets);
        let values = self.share("values", lift::distinct_values(bindings, &outer), &mut lets);
        let mut lift = Lift::given(bindings, values);
        let rel = lifted(&mut lift);
        if let Some(error) = lift.error.take() {
            self.error.get_or_insert(error);
        }
        // Only an error leaves none.
        let rel = rel.unwrap_or_else(|| outer.clone());
        self.finish(lift, outer, rel, lets)
    }

    fn finish(
        &mut self,
        lift: Lift<'_>,
        outer: Rel,
        rel: Rel,
        lets: Vec<(LocalId, Rel)>,
    ) -> Lifted {
        for id in &lift.locals {
            if let Some(local) = self.locals.get_mut(id.0) {
                let names = lift.columns().into_iter().map(|column| column.name);
                local.columns.splice(0..0, names);
            }
        }
        let ties = lift.ties(outer.arity());
        Lifted { outer, rel, width: lift.width(), ties, lets }
    }

    /// A name for a relation that is referred to several times, unless it has one.
    fn share(&mut self, name: &str, rel: Rel, lets: &mut Vec<(LocalId, Rel)>) -> Rel {
        if matches!(rel.node, Node::Source(_) | Node::Get(_)) {
            return rel;
        }
        let id = LocalId(self.locals.len());
        let columns = rel.columns.clone();
        let names = columns.iter().map(|column| column.name.clone()).collect();
        self.locals.push(Local { name: name.to_owned(), columns: names, note: None });
        lets.push((id, rel));
        Rel { columns, node: Node::Get(id) }
    }

    /// What becomes of the subquery's rows.
    fn join_back(&self, kind: ApplyKind, lifted: Lifted) -> Rel {
        let Lifted { outer, rel, width, ties, lets } = lifted;
        let (start, end) = (outer.arity(), outer.arity() + rel.arity());
        let own: Vec<usize> = (0..start).collect();
        let both: Vec<usize> = (0..start).chain(start + width..end).collect();
        let values = |rel: Rel| rel.project(&(0..width).collect::<Vec<_>>());
        let joined = match kind {
            ApplyKind::Cross => Rel::join(vec![outer, rel], ties).project(&both),
            ApplyKind::Left => Rel::outer_join(Preserved::Left, outer, rel, ties).project(&both),
            ApplyKind::Semi => Rel::join(vec![outer, values(rel).distinct()], ties).project(&own),
            ApplyKind::Anti => Rel::anti_join(outer, values(rel), ties),
            ApplyKind::Mark if width == 0 => Rel::join(vec![outer, has_rows(values(rel))], vec![]),
            ApplyKind::Mark => mark(outer, values(rel).distinct(), ties),
            ApplyKind::Scalar if self.is_single(&rel, width) => {
                Rel::outer_join(Preserved::Left, outer, rel, ties).project(&both)
            }
            ApplyKind::Scalar => only_row(outer, rel, width, ties),
        };
        let_all(lets, joined)
    }

    /// Whether there is at most one row for each values of the parameters.
    fn is_single(&self, rel: &Rel, width: usize) -> bool {
        derive_key::keys(self.inputs, rel).iter().any(|key| key.range(width..).next().is_none())
    }
}

/// Conditions on outer rows only are tested before a subquery is evaluated for them.
fn sink_filter(rel: Rel) -> Rel {
    let Node::Filter { input, predicates } = rel.node else { return rel };
    let Node::Apply(mut apply) = input.node else {
        return Rel { columns: rel.columns, node: Node::Filter { input, predicates } };
    };
    let arity = apply.outer.arity();
    let (own, rest) = predicates
        .into_iter()
        .partition(|predicate: &Predicate| predicate.columns().iter().all(|c| *c < arity));
    apply.outer = sink_filter(apply.outer.filter(own));
    let applied = Rel { columns: input.columns, node: Node::Apply(apply) }.filter(rest);
    Rel { columns: rel.columns, ..applied }
}

/// One row: whether a relation has any.
fn has_rows(rel: Rel) -> Rel {
    let column = |name: &str, ty: Scalar| {
        let (name, ty) = (name.to_owned(), Type::Scalar(ty));
        Column { name, ty, typmod: -1, nullable: false }
    };
    let node = Node::Reduce {
        input: Box::new(rel.distinct()),
        key: vec![],
        aggregates: vec![Aggregate { func: AggregateFunc::Count, arg: None }],
    };
    let count = Rel { columns: vec![column("count", Scalar::Int8)], node };
    let func = Func::Compare(Comparison::Gt, Blanks::Significant);
    let test = Expr::Call { func, args: vec![Expr::Column(0), zero()] };
    count.map(vec![test], vec![column("exists", Scalar::Bool)])
}

/// The outer rows with the truth of whether they have a partner.
fn mark(outer: Rel, partners: Rel, ties: Vec<Predicate>) -> Rel {
    let arity = outer.arity();
    let flag = |nullable| Column {
        name: "exists".to_owned(),
        ty: Type::Scalar(Scalar::Bool),
        typmod: -1,
        nullable,
    };
    let mut columns = partners.columns.clone();
    let mut outputs: Vec<Expr> = (0..columns.len()).map(Expr::Column).collect();
    columns.push(flag(false));
    outputs.push(Expr::true_literal());
    let joined = Rel::outer_join(Preserved::Left, outer, partners.map(outputs, columns), ties);
    let last = joined.arity() - 1;
    let mut columns = joined.columns[..arity].to_vec();
    columns.push(flag(false));
    let mut outputs: Vec<Expr> = (0..arity).map(Expr::Column).collect();
    outputs.push(Expr::Not(Box::new(Expr::IsNull(Box::new(Expr::Column(last))))));
    joined.map(outputs, columns)
}

/// The outer rows with the only row that the subquery has for them, which is asked for where the outer
/// row is: nobody may see that there are several for others.
fn only_row(outer: Rel, rel: Rel, width: usize, ties: Vec<Predicate>) -> Rel {
    let (start, inner) = (outer.arity(), rel.arity() - width);
    let inner_columns = rel.columns[width..].to_vec();
    // The least of one value is that value.
    let value = |column: usize| Aggregate {
        func: AggregateFunc::Min(rel.columns[column].ty),
        arg: Some(Expr::Column(column)),
    };
    let mut aggregates: Vec<Aggregate> = (width..rel.arity()).map(value).collect();
    aggregates.push(Aggregate { func: AggregateFunc::Count, arg: None });
    let mut columns = rel.columns.clone();
    columns.push(Column {
        name: "count".to_owned(),
        ty: Type::Scalar(Scalar::Int8),
        typmod: -1,
        nullable: false,
    });
    let node = Node::Reduce { input: Box::new(rel), key: (0..width).collect(), aggregates };
    let grouped = Rel { columns, node };
    let joined = match width {
        0 => Rel::join(vec![outer, grouped], ties),
        _ => Rel::outer_join(Preserved::Left, outer, grouped, ties),
    };
    let count = joined.arity() - 1;
    let mut columns = joined.columns[..start].to_vec();
    let mut outputs: Vec<Expr> = (0..start).map(Expr::Column).collect();
    for (i, column) in inner_columns.into_iter().enumerate().take(inner) {
        let args = vec![Expr::Column(start + width + i), Expr::Column(count)];
        outputs.push(Expr::Call { func: Func::OnlyRow, args });
        columns.push(Column { nullable: true, ..column });
    }
    joined.map(outputs, columns)
}

fn zero() -> Expr {
    Expr::Literal(plan::value::Datum::Int8(0), Type::Scalar(Scalar::Int8))
}

fn let_all(lets: Vec<(LocalId, Rel)>, body: Rel) -> Rel {
    lets.into_iter().rev().fold(body, |body, (id, value)| Rel {
        columns: body.columns.clone(),
        node: Node::Let { id, value: Box::new(value), body: Box::new(body) },
    })
}
