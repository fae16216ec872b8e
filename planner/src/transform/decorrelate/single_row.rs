//! Subqueries that have exactly one row but for conditions: projections and filters over the row without
//! columns or over an aggregate without GROUP BY. They are computed on the outer row.

use super::super::flatten_joins::MAX_EXPRESSION;
use crate::ir::{ApplyKind, Binding, Node, Predicate, Rel};
use plan::expr::{self, Expr};
use plan::func::Func;
use plan::types::{Column, Scalar, Type};
use plan::value::Datum;

/// Projections and filters, the topmost first.
pub(super) struct Layers(Vec<Layer>);

enum Layer {
    Map(Vec<Expr>, Vec<Column>),
    Filter(Vec<Predicate>),
}

/// The projections and filters at the top of a relation, and what is below them.
pub(super) fn peel(mut rel: Rel) -> (Layers, Rel) {
    let mut layers = Vec::new();
    loop {
        match rel.node {
            Node::Map { input, outputs } => {
                layers.push(Layer::Map(outputs, rel.columns));
                rel = *input;
            }
            Node::Filter { input, predicates } => {
                layers.push(Layer::Filter(predicates));
                rel = *input;
            }
            node => return (Layers(layers), Rel { columns: rel.columns, node }),
        }
    }
}

impl Layers {
    /// The layers put back on what was below them.
    pub(super) fn stack(&self, bottom: &Rel) -> Rel {
        self.0.iter().rev().fold(bottom.clone(), |rel, layer| match layer {
            Layer::Map(outputs, columns) => {
                let node = Node::Map { input: Box::new(rel), outputs: outputs.clone() };
                Rel { columns: columns.clone(), node }
            }
            Layer::Filter(predicates) => rel.filter(predicates.clone()),
        })
    }

    /// The result of a subquery for `rows`, which are the outer ones with what is below the layers.
    pub(super) fn apply(
        self,
        kind: ApplyKind,
        bindings: &[Binding],
        outer: usize,
        mut rows: Rel,
    ) -> Rel {
        let mut columns = rows.columns[outer..].to_vec();
        let mut values: Vec<Expr> = (outer..rows.arity()).map(Expr::Column).collect();
        let mut conditions = Vec::new();
        let value = |id| bindings.iter().find(|b| b.id == id).map(|b| b.value.clone());
        for layer in self.0.into_iter().rev() {
            // Columns first: the values of parameters are over the outer row.
            let place = |expr: &Expr| substitute(expr, &values, &value);
            match layer {
                Layer::Filter(predicates) => {
                    conditions.extend(predicates.iter().map(|p| p.map_exprs(&place)));
                }
                Layer::Map(outputs, names) => {
                    values = outputs.iter().map(place).collect();
                    columns = names;
                    if values.iter().map(expr::size).sum::<usize>() > MAX_EXPRESSION {
                        rows = compute(rows, outer, (&mut values, &mut conditions), &columns);
                    }
                }
            }
        }
        let own = || (0..outer).map(Expr::Column);
        let own_columns = rows.columns[..outer].to_vec();
        let passes = (!conditions.is_empty())
            .then(|| Expr::And(conditions.iter().map(Predicate::to_expr).collect()));
        let is_true = |expr| Expr::Call { func: Func::IsTrue, args: vec![expr] };
        match kind {
            ApplyKind::Cross => {
                let outputs = own().chain(values).collect();
                rows.filter(conditions).map(outputs, [own_columns, columns].concat())
            }
            ApplyKind::Semi => rows.filter(conditions).map(own().collect(), own_columns),
            ApplyKind::Anti => {
                let fails = Expr::Not(Box::new(passes.map_or(Expr::true_literal(), is_true)));
                rows.filter(vec![Predicate::Test(fails)]).map(own().collect(), own_columns)
            }
            ApplyKind::Mark => {
                let mark = passes.map_or(Expr::true_literal(), is_true);
                let outputs = own().chain([mark]).collect();
                rows.map(outputs, [own_columns, vec![mark_column("exists", false)]].concat())
            }
            ApplyKind::Left | ApplyKind::Scalar => {
                let value = |(value, column)| value_if(passes.as_ref(), value, column);
                let values = values.into_iter().zip(&columns).map(value).collect::<Vec<_>>();
                columns.iter_mut().for_each(|column| column.nullable = true);
                let outputs = own().chain(values).collect();
                rows.map(outputs, [own_columns, columns].concat())
            }
        }
    }
}

/// The value where a row passes, else NULL.
fn value_if(passes: Option<&Expr>, value: Expr, column: &Column) -> Expr {
    match passes {
        None => value,
        Some(passes) => Expr::Case {
            branches: vec![(passes.clone(), value)],
            otherwise: Box::new(Expr::Literal(Datum::Null, column.ty)),
        },
    }
}

fn mark_column(name: &str, nullable: bool) -> Column {
    Column { name: name.to_owned(), ty: Type::Scalar(Scalar::Bool), typmod: -1, nullable }
}

/// The rows with the values, and whether they meet the conditions, as columns, which replace both.
fn compute(
    rows: Rel,
    outer: usize,
    (values, conditions): (&mut Vec<Expr>, &mut Vec<Predicate>),
    columns: &[Column],
) -> Rel {
    let passes = Expr::And(conditions.iter().map(Predicate::to_expr).collect());
    let mut all = [rows.columns[..outer].to_vec(), columns.to_vec()].concat();
    all.push(mark_column("passes", true));
    let outputs = (0..outer).map(Expr::Column).chain(std::mem::take(values)).chain([passes]);
    let rows = rows.map(outputs.collect(), all);
    *values = (outer..rows.arity() - 1).map(Expr::Column).collect();
    *conditions = vec![Predicate::Test(Expr::Column(rows.arity() - 1))];
    rows
}

fn substitute(
    expr: &Expr,
    values: &[Expr],
    value: &dyn Fn(plan::expr::ParameterId) -> Option<Expr>,
) -> Expr {
    match expr {
        Expr::Column(column) => values[*column].clone(),
        Expr::Parameter(id, _) => value(*id).unwrap_or_else(|| expr.clone()),
        other => expr::map_children(other, &mut |child| substitute(child, values, value)),
    }
}
