//! ORDER BY, LIMIT, OFFSET, FETCH FIRST and DISTINCT ON, where they decide which rows there are.
//!
//! An ORDER BY at which nobody looks is not even bound: a view is a multiset.

use super::super::refuse::{invalid, unsupported};
use super::binder::Binder;
use super::bound_expr::BoundExpr;
use super::expr_binder::ExprBinder;
use super::row_count::{partition, RowCount};
use super::row_order::{Consumer, RowOrder, Sorted};
use super::sort::Sort;
use super::syntax::{collated, strip};
use crate::error::PlanError;
use crate::ir::Rel;
use plan::expr::Expr;
use plan::partition::{Count, SortKey, TopK, Work};
use plan::types::Column;
use sqlparser::ast::{self, OrderByExpr, OrderByKind};

/// What a query says about the order of its rows, and how many it wants.
pub(super) struct Ordering<'q> {
    items: &'q [OrderByExpr],
    /// `None`: all rows.
    limit: Option<RowCount>,
    /// Whether somebody may look at the order of the rows.
    is_wanted: bool,
    /// Whether it says that all are wanted (`OFFSET 0`): conditions from outside then stay outside, as in PostgreSQL.
    pub(super) is_fence: bool,
}

impl<'q> Ordering<'q> {
    /// That of a part of a query.
    pub(super) fn none(is_wanted: bool) -> Ordering<'q> {
        Ordering { items: &[], limit: None, is_wanted, is_fence: false }
    }

    /// Whether it matters in which order the rows come that are to be ordered.
    pub(super) fn looks_at_rows(&self) -> bool {
        self.is_wanted || self.limit.is_some()
    }

    pub(super) fn of(
        binder: &mut Binder<'_>,
        query: &'q ast::Query,
        is_wanted: bool,
    ) -> Result<Self, PlanError> {
        let items = match query.order_by.as_ref().map(|order_by| &order_by.kind) {
            None => [].as_slice(),
            Some(OrderByKind::Expressions(items)) => items,
            Some(OrderByKind::All(_)) => return Err(unsupported("ORDER BY ALL is")),
        };
        let limit = RowCount::of(binder, query)?;
        let is_all = limit.is_all();
        let is_fence = is_all && query.limit_clause.is_some();
        Ok(Ordering { items, limit: (!is_all).then_some(limit), is_wanted, is_fence })
    }

    /// The first rows of a relation whose order names its columns or counts them.
    pub(super) fn limit_columns(&self, rows: Sorted) -> Result<Sorted, PlanError> {
        if !self.looks_at_rows() {
            return Ok(Sorted::unordered(rows.into_rel()));
        }
        let Sorted { rel, arity, order: input } = rows;
        let place = |name: &str| rel.columns.iter().position(|column| column.name == name);
        let key = |item: &OrderByExpr| {
            let column = match strip(&item.expr) {
                ast::Expr::Identifier(name) => place(&name.value),
                // `"*VALUES*".column1`
                ast::Expr::CompoundIdentifier(parts) => {
                    parts.last().and_then(|name| place(&name.value))
                }
                ast::Expr::Value(value) => match &value.value {
                    ast::Value::Number(text, _) => {
                        text.parse::<usize>().ok().and_then(|number| number.checked_sub(1))
                    }
                    _ => None,
                },
                _ => None,
            };
            let column = column.filter(|column| *column < arity);
            let column = column.ok_or_else(|| invalid("ORDER BY of what is no column"))?;
            let scalar = BoundExpr::of_column(column, &rel.columns[column]);
            Sort::new(scalar, None, &item.options)
        };
        let sorts: Vec<Sort> = self.items.iter().map(key).collect::<Result<_, PlanError>>()?;
        let (rel, own) = sorted_by(rel, &sorts);
        self.limit_sorted(rel, arity, (own, input))
    }

    /// The first rows of a relation that is sorted by some of its columns, then as it comes; the columns from `arity`
    /// on are there to be sorted by.
    fn limit_sorted(
        &self,
        rel: Rel,
        arity: usize,
        (own, input): (Vec<SortKey>, RowOrder),
    ) -> Result<Sorted, PlanError> {
        let rel = match self.limit.clone() {
            None => rel,
            Some(limit) => limit.of_rows(rel, input.behind(own.clone(), Consumer::Limit)?),
        };
        if !self.is_wanted {
            return Ok(Sorted::unordered(Sorted { rel, arity, order: input }.into_rel()));
        }
        Ok(Sorted { rel, arity, order: input.sorted_by(own) })
    }

    /// Binds what a SELECT is ordered by, as far as it matters.
    pub(super) fn bind(
        &self,
        binder: &mut ExprBinder<'_, '_>,
        distinct: Option<&ast::Distinct>,
        outputs: &[(String, BoundExpr)],
    ) -> Result<Ordered, PlanError> {
        let on = match distinct {
            Some(ast::Distinct::On(exprs)) => exprs.as_slice(),
            _ => &[],
        };
        let (limit, is_wanted) = (self.limit.clone(), self.is_wanted);
        let ordering = Ordering { items: &[], limit, is_wanted, is_fence: false };
        let input = binder.scope.order().clone();
        let relation = binder.scope.first_table().map(str::to_owned);
        let mut ordered = Ordered { ordering, sorts: vec![], on: vec![], input, relation };
        if !self.looks_at_rows() && on.is_empty() {
            return Ok(ordered);
        }
        for item in self.items {
            let (expr, collation) = collated(&item.expr);
            let value = bind_item(binder, expr, outputs)?;
            ordered.sorts.push(Sort::new(value, collation, &item.options)?);
        }
        let on = on.iter().map(|expr| bind_item(binder, collated(expr).0, outputs));
        ordered.on = on.collect::<Result<_, _>>()?;
        Ok(ordered)
    }
}

impl ExprBinder<'_, '_> {
    /// An item of an ORDER BY as it stands in a query.
    pub(super) fn bind_sort(&mut self, item: &OrderByExpr) -> Result<Sort, PlanError> {
        let (expr, collation) = collated(&item.expr);
        Sort::new(self.bind(expr)?, collation, &item.options)
    }
}

/// A relation with what it is sorted by in columns of its own, if it is no column.
fn sorted_by(rel: Rel, sorts: &[Sort]) -> (Rel, Vec<SortKey>) {
    let mut outputs: Vec<Expr> = (0..rel.arity()).map(Expr::Column).collect();
    let mut columns = rel.columns.clone();
    let mut order = Vec::new();
    for Sort { scalar, .. } in sorts {
        let known = outputs.iter().position(|output| *output == scalar.expr);
        order.push(known.unwrap_or_else(|| {
            columns.push(scalar.column(&format!("order{}", columns.len() + 1)));
            outputs.push(scalar.expr.clone());
            outputs.len() - 1
        }));
    }
    let order = sorts.iter().zip(order).map(|(sort, column)| sort.by(column)).collect();
    if outputs.len() == rel.arity() {
        return (rel, order);
    }
    (rel.map(outputs, columns), order)
}

/// A bare name is that of an output before it is that of an input.
fn bind_item(
    binder: &mut ExprBinder<'_, '_>,
    expr: &ast::Expr,
    outputs: &[(String, BoundExpr)],
) -> Result<BoundExpr, PlanError> {
    if let ast::Expr::Identifier(name) = expr {
        if let Some((_, output)) = outputs.iter().find(|(output, _)| *output == name.value) {
            return Ok(output.clone());
        }
    }
    binder.bind(expr)
}

/// The order of a SELECT's rows, over what its outputs are over.
pub(super) struct Ordered {
    ordering: Ordering<'static>,
    sorts: Vec<Sort>,
    on: Vec<BoundExpr>,
    /// In which order the rows come, and whose order that is.
    input: RowOrder,
    relation: Option<String>,
}

impl Ordered {
    /// The same of rows that come in another order than those of FROM.
    pub(super) fn of_rows(self, input: RowOrder) -> Ordered {
        Ordered { input, ..self }
    }

    /// What is to be computed beside the outputs.
    pub(super) fn exprs(&self) -> Vec<Expr> {
        let sorts = self.sorts.iter().map(|sort| &sort.scalar);
        let own = sorts.chain(&self.on).map(|scalar| scalar.expr.clone());
        own.chain(self.input.keys().iter().map(|key| Expr::Column(key.column))).collect()
    }

    /// The rows wanted: `outputs` over `rel`, where `exprs` are those of [`Ordered::exprs`].
    pub(super) fn select(
        self,
        rel: Rel,
        (outputs, columns): (Vec<Expr>, Vec<Column>),
        exprs: &[Expr],
        is_distinct: bool,
    ) -> Result<Sorted, PlanError> {
        if is_distinct {
            return self.select_distinct(
                rel.map(outputs.clone(), columns).distinct(),
                &outputs,
                exprs,
            );
        }
        let arity = outputs.len();
        let (mut computed, mut computed_columns) = (outputs, columns);
        let scalars = self.sorts.iter().map(|sort| &sort.scalar).chain(&self.on);
        let input = self.input.keys().iter().map(|key| rel.columns[key.column].clone());
        let sources: Vec<Column> = scalars.map(|scalar| scalar.column("")).chain(input).collect();
        let mut places = Vec::new();
        for (expr, source) in exprs.iter().zip(sources) {
            let known = computed.iter().position(|other| other == expr);
            places.push(known.unwrap_or_else(|| {
                let name = format!("order{}", computed.len() + 1);
                computed_columns.push(Column { name, ..source });
                computed.push(expr.clone());
                computed.len() - 1
            }));
        }
        let (sorts, rest) = places.split_at(self.sorts.len());
        let (on, keys) = rest.split_at(self.on.len());
        let own: Vec<SortKey> =
            self.sorts.iter().zip(sorts).map(|(sort, &column)| sort.by(column)).collect();
        let mut input = self.input.in_columns(keys);
        let mut rel = rel.map(computed, computed_columns);
        if !on.is_empty() {
            let [offset, limit] = [0, 1].map(Count::Fixed);
            let first = TopK { offset, limit: Some(limit), with_ties: false };
            let order = input.behind(own.clone(), Consumer::DistinctOn)?;
            rel = partition(rel, on.to_vec(), order, Work::TopK(first));
            // PostgreSQL sorts by what it is ON.
            input = input.lost(self.relation.as_deref(), "DISTINCT ON");
        }
        self.ordering.limit_sorted(rel, arity, (own, input))
    }

    /// The rows wanted of different ones, which are sorted by what they have.
    fn select_distinct(
        self,
        rel: Rel,
        outputs: &[Expr],
        exprs: &[Expr],
    ) -> Result<Sorted, PlanError> {
        let arity = rel.arity();
        let selected = |expr: &Expr| outputs.iter().position(|output| output == expr);
        let mut sorts = Vec::new();
        for (sort, expr) in self.sorts.into_iter().zip(exprs) {
            let of_output = match (selected(expr), expr) {
                (Some(column), _) => Some(Expr::Column(column)),
                // An order of the host's.
                (None, Expr::Host { call, args }) => args
                    .first()
                    .and_then(selected)
                    .map(|c| Expr::Host { call: call.clone(), args: vec![Expr::Column(c)] }),
                _ => None,
            };
            let of_output = of_output
                .ok_or_else(|| invalid("ORDER BY of what SELECT DISTINCT does not select"))?;
            sorts.push(Sort {
                scalar: BoundExpr { expr: of_output, ..sort.scalar.clone() },
                ..sort
            });
        }
        let (rel, own) = sorted_by(rel, &sorts);
        self.ordering.limit_sorted(rel, arity, (own, RowOrder::Any))
    }
}
