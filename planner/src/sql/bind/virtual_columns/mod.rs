//! What is found in the expressions of a SELECT and computed beside them: aggregates, subqueries, window functions and
//! set-returning functions.
//!
//! While an expression is bound, each is a *virtual column*, one with a number that no row has. When all are known, the
//! relation whose rows the expression is evaluated for gets their values as columns behind its own, and the virtual
//! ones are replaced by these ([`Places`]).

mod grouping;
mod set_calls;
mod subqueries;
mod windows;

pub(crate) use grouping::{Aggregates, Call, Grouping};
pub(crate) use set_calls::SetCalls;
pub(crate) use subqueries::{is_constant, Reads, Subqueries};
pub(crate) use windows::{reads_window, Window, WindowFunction, Windows};

use plan::expr::{self, Expr};
use std::collections::BTreeMap;

/// First of the virtual columns that stand for aggregates; no row is that wide.
pub(crate) const AGGREGATES: usize = 1 << 20;

/// First of those that stand for GROUPING.
pub(crate) const GROUPINGS: usize = AGGREGATES + (1 << 19);

/// First of those that stand for results of subqueries.
pub(crate) const SUBQUERIES: usize = 1 << 21;

/// First of those that stand for window functions.
pub(crate) const WINDOWS: usize = 1 << 22;

/// First of those that stand for values of set-returning functions.
pub(crate) const SET_CALLS: usize = 1 << 23;

/// Where virtual columns have gone.
#[derive(Default)]
pub(crate) struct Places(BTreeMap<usize, usize>);

impl Places {
    /// The expression over the columns there are.
    pub(crate) fn resolve(&self, expr: &Expr) -> Expr {
        expr::renumber(expr, &|column| self.0.get(&column).copied().unwrap_or(column))
    }

    /// Adds virtual columns, each with the column it has become.
    pub(crate) fn extend(&mut self, places: impl IntoIterator<Item = (usize, usize)>) {
        self.0.extend(places);
    }

    pub(crate) fn with(mut self, others: Places) -> Places {
        self.0.extend(others.0);
        self
    }
}
