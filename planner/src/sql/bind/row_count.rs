//! How many rows LIMIT, OFFSET and FETCH FIRST ask for: numbers, or what subqueries and queries around compute.
//!
//! What is computed is a relation of one row, with which the rows are joined: its columns are the key of a partition,
//! which is all rows there are.

use super::super::parse::WITH_TIES;
use super::super::refuse::{invalid, unsupported};
use super::binder::Binder;
use super::bound_expr::BoundExpr;
use super::expr_binder::ExprBinder;
use super::function::function_name;
use super::resolve;
use super::scope::Scope;
use super::syntax::{plain_arguments, strip};
use crate::error::PlanError;
use crate::ir::{Node, Rel};
use plan::expr::{self, Expr};
use plan::func::Func;
use plan::partition::{Count, SortKey, TopK, Work};
use plan::types::{Column, Scalar, Type};
use plan::value::Datum;
use sqlparser::ast::{self, LimitClause};

/// The rows that a query wants of those it has.
#[derive(Clone)]
pub(super) struct RowCount {
    top: TopK,
    /// The numbers that are computed: one row, whose columns `top` names.
    counts: Option<Rel>,
}

impl RowCount {
    pub(super) fn of(binder: &mut Binder<'_>, query: &ast::Query) -> Result<Self, PlanError> {
        let (mut limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(_) => return Err(unsupported("this form of LIMIT is")),
        };
        let mut with_ties = false;
        if let Some(value) = limit.and_then(with_ties_of) {
            (limit, with_ties) = (Some(value), true);
        }
        let scope = Scope::default();
        let mut numbers = Numbers { binder: ExprBinder::new(binder, &scope), computed: vec![] };
        let offset = numbers.bind_optional("OFFSET", offset)?.unwrap_or(Count::Fixed(0));
        let mut top = TopK { offset, limit: numbers.bind_optional("LIMIT", limit)?, with_ties };
        if let Some(fetch) = &query.fetch {
            // Without a quantity it is one row.
            top.limit = match &fetch.quantity {
                None => Some(Count::Fixed(1)),
                Some(quantity) => numbers.bind("FETCH FIRST", quantity)?,
            };
            top.with_ties = fetch.with_ties;
        }
        Ok(RowCount { top, counts: numbers.into_rel() })
    }

    /// Whether all rows are wanted.
    pub(super) fn is_all(&self) -> bool {
        self.top.offset == Count::Fixed(0) && self.top.limit.is_none()
    }

    /// The rows wanted of a relation, in an order.
    pub(super) fn of_rows(self, rel: Rel, order: Vec<SortKey>) -> Rel {
        let Some(counts) = self.counts else {
            return partition(rel, vec![], order, Work::TopK(self.top));
        };
        let arity = rel.arity();
        let key = (arity..arity + counts.arity()).collect();
        let mut work = Work::TopK(self.top);
        work.columns_mut(&mut |column| *column += arity);
        let rows = partition(Rel::join(vec![rel, counts], vec![]), key, order, work);
        rows.project(&(0..arity).collect::<Vec<_>>())
    }
}

/// The rows of each partition as they are, fewer of them. A key sorts nothing within its partition.
pub(super) fn partition(rel: Rel, key: Vec<usize>, mut order: Vec<SortKey>, work: Work) -> Rel {
    order.retain(|sort| !key.contains(&sort.column));
    let columns = rel.columns.clone();
    Rel { columns, node: Node::Partition { input: Box::new(rel), key, order, work } }
}

/// The number of rows that have ties, as the parser was given it.
fn with_ties_of(limit: &ast::Expr) -> Option<&ast::Expr> {
    let ast::Expr::Function(call) = strip(limit) else { return None };
    let is_marked = function_name(&call.name).is_ok_and(|name| name == WITH_TIES);
    is_marked.then(|| plain_arguments(call).first().copied()).flatten()
}

/// The numbers of one query.
struct Numbers<'s, 'c> {
    binder: ExprBinder<'s, 'c>,
    /// Those that are no constants, with their columns.
    computed: Vec<(Expr, Column)>,
}

impl Numbers<'_, '_> {
    fn bind_optional(
        &mut self,
        clause: &str,
        value: Option<&ast::Expr>,
    ) -> Result<Option<Count>, PlanError> {
        value.map_or(Ok(None), |value| self.bind(clause, value))
    }

    /// The number of rows a clause asks for; NULL asks for all.
    fn bind(&mut self, clause: &str, value: &ast::Expr) -> Result<Option<Count>, PlanError> {
        let is_all = |name: &ast::Ident| name.value.eq_ignore_ascii_case("all");
        if matches!(strip(value), ast::Expr::Identifier(name) if is_all(name)) {
            return Ok(None);
        }
        let number = self.binder.bind(value)?;
        if expr::is_closed(&number.expr) {
            return constant(clause, &number);
        }
        const INT8: Type = Type::Scalar(Scalar::Int8);
        let (name, is_offset) = match clause {
            "OFFSET" => ("offset", true),
            _ => ("limit", false),
        };
        let number = resolve::cast(number, INT8, -1)?;
        let column = number.column(name);
        let func = Func::RowCount { is_offset };
        self.computed.push((Expr::Call { func, args: vec![number.expr] }, column));
        Ok(Some(Count::Of(self.computed.len() - 1)))
    }

    fn into_rel(self) -> Option<Rel> {
        if self.computed.is_empty() {
            return None;
        }
        let (rel, places) = self.binder.subqueries.attach(Rel::unit());
        let (exprs, columns): (Vec<Expr>, Vec<Column>) = self.computed.into_iter().unzip();
        let exprs = exprs.iter().map(|expr| places.resolve(expr)).collect();
        Some(rel.map(exprs, columns))
    }
}

/// The number that literals make.
fn constant(clause: &str, value: &BoundExpr) -> Result<Option<Count>, PlanError> {
    let refuse = || invalid(format!("{clause} of what is no number"));
    match value.expr.eval(&[]) {
        Ok(Datum::Null) => Ok(None),
        Ok(Datum::Text(text)) => {
            text.parse().map(|number| Some(Count::Fixed(number))).map_err(|_| refuse())
        }
        Ok(number) => match number.as_i64().map(u64::try_from) {
            Some(Ok(number)) => Ok(Some(Count::Fixed(number))),
            Some(Err(_)) => Err(unsupported(format!("a negative {clause} is"))),
            None => Err(refuse()),
        },
        Err(_) => Err(refuse()),
    }
}
