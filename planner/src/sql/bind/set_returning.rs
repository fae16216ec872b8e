//! Set-returning functions in the select list and in GROUP BY.
//!
//! While such a clause is bound, a call becomes a virtual column; afterwards the calls are put above the
//! relation whose rows the clause is evaluated for, which for the select list are the groups if there are any. Calls
//! of a clause run side by side, but for those in whose arguments there are others: they are made of the rows of these.

use super::super::refuse::{unsupported, unsupported_hint};
use super::scalar::{Scalar, ScalarBinder};
use super::select::replaced;
use super::subquery::Subqueries;
use super::window::Windows;
use crate::error::PlanError;
use crate::ir::Rel;
use plan::expr::{self, Expr};
use plan::func::TableFunc;
use plan::table_function::{TableCall, TableFunction};
use plan::types::Type;
use sqlparser::ast;
use std::collections::BTreeMap;

/// First of the virtual columns that stand for values of calls, behind those for window functions.
const VIRTUAL: usize = 1 << 23;

/// The calls of a clause found so far; a call is behind those in its arguments.
#[derive(Default)]
pub(super) struct SetCalls {
    found: Vec<SetCall>,
    /// The virtual column of the first, counted from [`VIRTUAL`].
    first: usize,
}

struct SetCall {
    name: String,
    func: TableFunc,
    args: Vec<Expr>,
    /// How many calls are within one another in its arguments.
    level: usize,
}

impl ScalarBinder<'_, '_> {
    /// A call where there may be one.
    pub(super) fn bind_set_call(
        &mut self,
        name: &str,
        call: &ast::Function,
    ) -> Result<Scalar, PlanError> {
        let (func, args) = self.bind_set_returning(name, call)?;
        let types: Vec<Type> = args.iter().map(|arg| arg.ty).collect();
        let args = args.into_iter().map(|arg| arg.expr).collect();
        let Some(calls) = &mut self.set_calls else {
            return Err(unsupported(format!("set-returning function {name} here is")));
        };
        let column = calls.add(name, func, args);
        Ok(Scalar {
            expr: Expr::Column(column),
            ty: func.value_type(&types),
            typmod: -1,
            nullable: true,
        })
    }
}

impl SetCalls {
    /// For the calls of a clause that may use the values of these.
    pub(super) fn of_next_clause(&self) -> SetCalls {
        SetCalls { found: vec![], first: self.first + self.found.len() }
    }

    /// The virtual column of a call.
    fn add(&mut self, name: &str, func: TableFunc, args: Vec<Expr>) -> usize {
        let below = args.iter().flat_map(expr::columns_of);
        let first = VIRTUAL + self.first;
        let levels =
            below.filter_map(|column| Some(self.found.get(column.checked_sub(first)?)?.level));
        let level = levels.max().map_or(0, |level| level + 1);
        self.found.push(SetCall { name: name.to_owned(), func, args, level });
        first + self.found.len() - 1
    }

    /// The arguments of all calls.
    pub(super) fn args(&self) -> Vec<Expr> {
        self.found.iter().flat_map(|call| call.args.clone()).collect()
    }

    /// Subqueries are evaluated before the calls.
    pub(super) fn check_subqueries(&self, subqueries: &Subqueries) -> Result<(), PlanError> {
        match reads_behind(&subqueries.values(), VIRTUAL) {
            true => Err(unsupported("a subquery over a set-returning function is")),
            false => Ok(()),
        }
    }

    /// Windows are computed before the calls.
    pub(super) fn check_windows(&self, windows: &Windows) -> Result<(), PlanError> {
        match reads_behind(&windows.exprs(), VIRTUAL + self.first) {
            true => {
                let hint = "Call the set-returning function in FROM.";
                Err(unsupported_hint("a window over a set-returning function is", hint))
            }
            false => Ok(()),
        }
    }

    /// The relation with the values of all calls behind its columns, and where they are. `args` are those of
    /// [`SetCalls::args`], over the columns of the relation and the virtual ones.
    pub(super) fn attach(self, rel: Rel, args: Vec<Expr>) -> (Rel, BTreeMap<usize, usize>) {
        let mut args = args.into_iter();
        let first = VIRTUAL + self.first;
        let calls = self.found.into_iter().map(|call| {
            let args = args.by_ref().take(call.args.len()).collect();
            SetCall { args, ..call }
        });
        let mut levels: BTreeMap<usize, Vec<(usize, SetCall)>> = BTreeMap::new();
        for (number, call) in calls.enumerate() {
            levels.entry(call.level).or_default().push((number, call));
        }
        let mut places = BTreeMap::new();
        let mut rel = rel;
        for calls in levels.into_values() {
            let names = calls.iter().map(|(_, call)| call.name.clone()).collect();
            let own = calls.iter().zip(rel.arity()..).map(|((n, _), place)| (first + n, place));
            let own: Vec<(usize, usize)> = own.collect();
            let calls =
                calls.into_iter().map(|(_, SetCall { func, args, .. })| TableCall { func, args });
            let table_function = TableFunction::of(calls.collect());
            rel = rel.table_function(table_function.map_args(&|arg| replaced(arg, &places)), names);
            places.extend(own);
        }
        (rel, places)
    }
}

/// Whether expressions read columns from the first on.
fn reads_behind(exprs: &[Expr], first: usize) -> bool {
    exprs.iter().flat_map(expr::columns_of).any(|column| column >= first)
}
