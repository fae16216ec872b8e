//! The aggregates of a SELECT and its calls of GROUPING. `reduce` makes one `Reduce` of them.

use super::{AGGREGATES, GROUPINGS};
use crate::sql::bind::bound_expr::BoundExpr;
use plan::expr::{self, Expr};
use plan::types::{self, Column, Type};
use plan::AggregateFunc;

const INT4: Type = Type::Scalar(types::Scalar::Int4);

/// The aggregates found so far.
#[derive(Clone, Default)]
pub(crate) struct Grouping {
    pub(crate) calls: Vec<Call>,
    pub(crate) results: Vec<Column>,
    /// The keys, for calls of GROUPING in subqueries.
    pub(crate) keys: Vec<Expr>,
    /// The calls of GROUPING, by positions of keys.
    pub(crate) indicators: Vec<Vec<usize>>,
    /// Whether there was one that nothing reads: it groups all the same.
    has_forgotten: bool,
}

/// How many calls there are, of aggregates and of GROUPING.
#[derive(Clone, Copy, Default)]
pub(crate) struct Aggregates {
    pub(crate) calls: usize,
    indicators: usize,
}

/// The call of an aggregate.
#[derive(Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) func: AggregateFunc,
    /// `None` for `count(*)`.
    pub(crate) arg: Option<BoundExpr>,
    pub(crate) distinct: bool,
}

impl Grouping {
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.indicators.is_empty() && !self.has_forgotten
    }

    pub(crate) fn count(&self) -> Aggregates {
        Aggregates { calls: self.calls.len(), indicators: self.indicators.len() }
    }

    /// Forgets the calls beyond some: nothing reads them.
    pub(crate) fn truncate(&mut self, Aggregates { calls, indicators }: Aggregates) {
        self.has_forgotten |= calls < self.calls.len() || indicators < self.indicators.len();
        self.calls.truncate(calls);
        self.results.truncate(calls);
        self.indicators.truncate(indicators);
    }

    /// The position of a key.
    pub(crate) fn position(&self, key: &Expr) -> Option<usize> {
        self.keys.iter().position(|known| known == key)
    }

    /// A reference to `GROUPING(…)` of some keys: a bit for each, set where the key is not grouped by.
    pub(crate) fn add_indicator(&mut self, keys: Vec<usize>) -> BoundExpr {
        self.indicators.push(keys);
        let expr = Expr::Column(GROUPINGS + self.indicators.len() - 1);
        BoundExpr { expr, ty: INT4, typmod: -1, nullable: false }
    }

    /// A reference to the aggregate; equal calls are computed once.
    pub(crate) fn add(&mut self, name: &str, call: Call, ty: Type) -> BoundExpr {
        let found = self.calls.iter().position(|known| *known == call);
        let slot = found.unwrap_or_else(|| {
            let nullable = call.func != AggregateFunc::Count;
            self.results.push(Column { name: name.to_owned(), ty, typmod: -1, nullable });
            self.calls.push(call);
            self.calls.len() - 1
        });
        let nullable = self.results[slot].nullable;
        BoundExpr { expr: Expr::Column(AGGREGATES + slot), ty, typmod: -1, nullable }
    }

    /// Rewrites the arguments of the aggregates.
    pub(crate) fn map_args(&mut self, f: &dyn Fn(&Expr) -> Expr) {
        let args = self.calls.iter_mut().filter_map(|call| call.arg.as_mut());
        args.for_each(|arg| arg.expr = f(&arg.expr));
    }

    /// Whether an argument may raise an error.
    pub(crate) fn may_fail(&self) -> bool {
        let mut args = self.calls.iter().filter_map(|call| call.arg.as_ref());
        args.any(|arg| expr::may_fail(&arg.expr))
    }
}
