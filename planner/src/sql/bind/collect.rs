//! Aggregates of all values of a group in an order: array_agg, string_agg, percentiles, mode.

use super::super::refuse::{unsupported, unsupported_hint};
use super::bound_expr::BoundExpr;
use super::expr_binder::ExprBinder;
use super::row_order::Consumer;
use super::sort::{Sort, BYTEA};
use crate::error::PlanError;
use plan::expr::Expr;
use plan::func::Func;
use plan::partition::SortKey;
use plan::types::{self, Type};
use plan::value::Datum;
use plan::{AggregateFunc, Collect};
use sqlparser::ast::{self, FunctionArgumentClause, FunctionArguments, OrderByExpr};

/// The ORDER BY within the parentheses.
fn order_within(call: &ast::Function) -> &[OrderByExpr] {
    let FunctionArguments::List(list) = &call.args else { return &[] };
    let order = list.clauses.iter().find_map(|clause| match clause {
        FunctionArgumentClause::OrderBy(items) => Some(items.as_slice()),
        _ => None,
    });
    order.unwrap_or_default()
}

/// What the values of an aggregate are sorted by.
pub(super) fn sorted_by(call: &ast::Function) -> impl Iterator<Item = &ast::Expr> {
    call.within_group.iter().chain(order_within(call)).map(|item| &item.expr)
}

impl ExprBinder<'_, '_> {
    /// The aggregate, the entry that a row contributes, and the type of the result. `is_outer`: it is one of a query
    /// around.
    pub(super) fn bind_collecting(
        &mut self,
        name: &str,
        call: &ast::Function,
        args: Vec<BoundExpr>,
        (distinct, is_outer): (bool, bool),
    ) -> Result<(AggregateFunc, BoundExpr, Type), PlanError> {
        let mut sort = |items: &[OrderByExpr]| -> Result<Vec<Sort>, PlanError> {
            items.iter().map(|item| self.bind_sort(item)).collect()
        };
        let within_group = sort(&call.within_group)?;
        let mut order = sort(order_within(call))?;
        let (collect, values, ty) = match (name, args.as_slice(), within_group.as_slice()) {
            ("array_agg", [value], []) => match value.ty {
                Type::Scalar(element) => {
                    (Collect::Array { distinct }, args.clone(), Type::Array(element))
                }
                Type::Array(_) => (Collect::Arrays { distinct }, args.clone(), value.ty),
            },
            ("string_agg", [value, _], []) if value.ty == BYTEA => {
                (Collect::Bytes { distinct }, args.clone(), BYTEA)
            }
            ("string_agg", [_, _], []) => {
                (Collect::Text { distinct }, args.clone(), Type::Scalar(types::Scalar::Text))
            }
            ("mode", [], [sort]) => (Collect::Mode, vec![sort.value.clone()], sort.value.ty),
            ("percentile_disc", [fraction], [sort]) => {
                let collect = Collect::PercentileDisc(constant(fraction)?);
                (collect, vec![sort.value.clone()], sort.value.ty)
            }
            ("percentile_cont", [fraction], [sort])
                if sort.value.ty == Type::Scalar(types::Scalar::Float8) =>
            {
                let collect = Collect::PercentileCont(constant(fraction)?);
                (collect, vec![sort.value.clone()], sort.value.ty)
            }
            _ => return Err(unsupported(format!("this form of {name} is"))),
        };
        let sorts_itself = !within_group.is_empty();
        order.extend(within_group);
        if !sorts_itself && !distinct {
            self.follow_rows(&mut order, is_outer)?;
        }
        if order.is_empty() || distinct {
            // Any order will do: that of the values. Duplicates follow one another in it.
            let ascending = |value: &Sort| !order.iter().any(|sort| sort.value == value.value);
            let by_value = if distinct { Sort::ascending } else { Sort::in_any_order };
            let by_value: Vec<Sort> =
                values.iter().map(by_value).filter(|value| ascending(value)).collect();
            order.extend(by_value);
        }
        Ok((AggregateFunc::Collect(collect, ty), entry(&order, &values), ty))
    }

    /// Sorts the values of peers, of all rows if nothing is said, as the rows come.
    fn follow_rows(&self, order: &mut Vec<Sort>, is_outer: bool) -> Result<(), PlanError> {
        if is_outer {
            let outer = self.binder.outer_row_order();
            return if order.is_empty() { outer.check(Consumer::OuterAggregate) } else { Ok(()) };
        }
        let rows = self.scope.order();
        if order.is_empty() {
            rows.check(Consumer::Aggregate)?;
        }
        order.extend(rows.keys().iter().map(sort_of));
        Ok(())
    }
}

/// What rows are sorted by, as an item of an ORDER BY.
fn sort_of(key: &SortKey) -> Sort {
    let SortKey { column, ty, descending, nulls_first, .. } = *key;
    let scalar = BoundExpr { expr: Expr::Column(column), ty, typmod: -1, nullable: true };
    Sort { value: scalar.clone(), scalar, descending, nulls_first }
}

/// What a row contributes.
fn entry(order: &[Sort], values: &[BoundExpr]) -> BoundExpr {
    let key = |sort: &Sort| Expr::Call {
        func: Func::OrderKey(sort.by(0)),
        args: vec![sort.scalar.expr.clone()],
    };
    let mut args: Vec<Expr> = order.iter().map(key).collect();
    args.extend(values.iter().map(|value| value.expr.clone()));
    let expr = Expr::Call { func: Func::Entry { keys: order.len() }, args };
    BoundExpr { expr, ty: BYTEA, typmod: -1, nullable: false }
}

/// `min` or `max` in an order of the host's: the aggregate, and what a row contributes.
pub(super) fn extreme(
    value: &BoundExpr,
    collation: Option<u32>,
    is_max: bool,
) -> Result<(AggregateFunc, BoundExpr), PlanError> {
    let sort =
        Sort { descending: is_max, ..Sort::new(value.clone(), collation, &Default::default())? };
    let func = AggregateFunc::Collect(Collect::First, value.ty);
    Ok((func, entry(&[sort], std::slice::from_ref(value))))
}

/// What a row of a relation contributes: a value, in an order given by columns or else in its own.
pub(super) fn entry_of_columns(order: &[SortKey], value: BoundExpr) -> BoundExpr {
    let mut sorts: Vec<Sort> = order.iter().map(sort_of).collect();
    if sorts.is_empty() {
        sorts.push(Sort::in_any_order(&value));
    }
    entry(&sorts, &[value])
}

/// The bits of a fraction.
fn constant(fraction: &BoundExpr) -> Result<u64, PlanError> {
    match &fraction.expr {
        Expr::Literal(Datum::Float8(fraction), _) => Ok(fraction.to_bits()),
        _ => {
            let hint = "Use a constant fraction between 0 and 1.";
            Err(unsupported_hint("a percentile of this fraction is", hint))
        }
    }
}
