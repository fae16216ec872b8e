//! Set-returning functions in the select list and in GROUP BY.
//!
//! While such a clause is bound, a call becomes a virtual column; afterwards the calls are put above the
//! relation whose rows the clause is evaluated for, which for the select list are the groups if there are any. Calls
//! of a clause run side by side, but for those in whose arguments there are others: they are made of the rows of these.

use super::subqueries::Subqueries;
use super::windows::Windows;
use super::{Places, SET_CALLS};
use crate::error::PlanError;
use crate::ir::Rel;
use crate::sql::refuse::{unsupported, unsupported_hint};
use plan::expr::{self, Expr};
use plan::func::TableFunc;
use plan::table_function::{TableCall, TableFunction};
use std::collections::BTreeMap;

/// The calls of a clause found so far; a call is behind those in its arguments.
#[derive(Default)]
pub(crate) struct SetCalls {
    found: Vec<SetCall>,
    /// The virtual column of the first, counted from [`SET_CALLS`].
    first: usize,
}

struct SetCall {
    name: String,
    func: TableFunc,
    args: Vec<Expr>,
    /// How many calls are within one another in its arguments.
    level: usize,
}

impl SetCalls {
    /// For the calls of a clause that may use the values of these.
    pub(crate) fn of_next_clause(&self) -> SetCalls {
        SetCalls { found: vec![], first: self.first + self.found.len() }
    }

    /// The virtual column of a call.
    pub(crate) fn add(&mut self, name: &str, func: TableFunc, args: Vec<Expr>) -> usize {
        let below = args.iter().flat_map(expr::columns_of);
        let first = SET_CALLS + self.first;
        let levels =
            below.filter_map(|column| Some(self.found.get(column.checked_sub(first)?)?.level));
        let level = levels.max().map_or(0, |level| level + 1);
        self.found.push(SetCall { name: name.to_owned(), func, args, level });
        first + self.found.len() - 1
    }

    /// The arguments of all calls.
    pub(crate) fn args(&self) -> Vec<Expr> {
        self.found.iter().flat_map(|call| call.args.clone()).collect()
    }

    /// Subqueries are evaluated before the calls.
    pub(crate) fn check_subqueries(&self, subqueries: &Subqueries) -> Result<(), PlanError> {
        match reads_behind(&subqueries.values(), SET_CALLS) {
            true => Err(unsupported("a subquery over a set-returning function is")),
            false => Ok(()),
        }
    }

    /// Windows are computed before the calls.
    pub(crate) fn check_windows(&self, windows: &Windows) -> Result<(), PlanError> {
        match reads_behind(&windows.exprs(), SET_CALLS + self.first) {
            true => {
                let hint = "Call the set-returning function in FROM.";
                Err(unsupported_hint("a window over a set-returning function is", hint))
            }
            false => Ok(()),
        }
    }

    /// The relation with the values of all calls behind its columns, and where they are. `args` are those of
    /// [`SetCalls::args`], over the columns of the relation and the virtual ones.
    pub(crate) fn attach(self, rel: Rel, args: Vec<Expr>) -> (Rel, Places) {
        let mut args = args.into_iter();
        let first = SET_CALLS + self.first;
        let calls = self.found.into_iter().map(|call| {
            let args = args.by_ref().take(call.args.len()).collect();
            SetCall { args, ..call }
        });
        let mut levels: BTreeMap<usize, Vec<(usize, SetCall)>> = BTreeMap::new();
        for (number, call) in calls.enumerate() {
            levels.entry(call.level).or_default().push((number, call));
        }
        let mut places = Places::default();
        let mut rel = rel;
        for calls in levels.into_values() {
            let names = calls.iter().map(|(_, call)| call.name.clone()).collect();
            let own = calls.iter().zip(rel.arity()..).map(|((n, _), place)| (first + n, place));
            let own: Vec<(usize, usize)> = own.collect();
            let calls =
                calls.into_iter().map(|(_, SetCall { func, args, .. })| TableCall { func, args });
            let table_function = TableFunction::of(calls.collect());
            rel = rel.table_function(table_function.map_args(&|arg| places.resolve(arg)), names);
            places.extend(own);
        }
        (rel, places)
    }
}

/// Whether expressions read columns from the first on.
fn reads_behind(exprs: &[Expr], first: usize) -> bool {
    exprs.iter().flat_map(expr::columns_of).any(|column| column >= first)
}
