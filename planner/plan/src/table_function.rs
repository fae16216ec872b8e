//! Calls of set-returning functions side by side, and the rows they make of one row.

use crate::error::DataError;
use crate::expr::{self, Expr};
use crate::func::{TableFunc, Values};
use crate::types::{Scalar, Type};
use crate::value::Datum;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// What becomes of a row: one row for each value of the call that has the most, with NULL for calls that have ended.
/// Each begins with the columns of the row it is made of; behind them one for each call, then the ordinality.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableFunction {
    /// The calls; at least one.
    pub calls: Vec<TableCall>,
    /// Whether a bigint column numbers the rows from 1.
    pub has_ordinality: bool,
    /// Whether a row of which no call makes anything is kept, with NULL for all that would be appended.
    pub keeps_all: bool,
}

/// A call of a set-returning function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableCall {
    pub func: TableFunc,
    /// Its arguments over the columns of the row.
    pub args: Vec<Expr>,
}

impl TableFunction {
    /// Calls alone.
    pub fn of(calls: Vec<TableCall>) -> TableFunction {
        TableFunction { calls, has_ordinality: false, keeps_all: false }
    }

    /// Number of columns appended.
    pub fn width(&self) -> usize {
        self.calls.len() + usize::from(self.has_ordinality)
    }

    /// The columns appended to a row with columns of these types: their types and whether they may be NULL.
    pub fn columns(&self, input: &[Type]) -> Vec<(Type, bool)> {
        let column = |call: &TableCall| {
            let args: Vec<Type> = call.args.iter().map(|arg| arg.ty(input)).collect();
            (call.func.value_type(&args), !self.is_distinct() || self.keeps_all)
        };
        let ordinality = self.has_ordinality.then_some((Scalar::Int8.into(), self.keeps_all));
        self.calls.iter().map(column).chain(ordinality).collect()
    }

    /// Whether the rows made of one row differ in the column of the first call.
    pub fn is_distinct(&self) -> bool {
        matches!(self.calls.as_slice(), [call] if call.func.is_distinct())
    }

    /// The arguments of all calls.
    pub fn args(&self) -> impl Iterator<Item = &Expr> {
        self.calls.iter().flat_map(|call| &call.args)
    }

    /// The arguments of all calls, for change.
    pub fn args_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.calls.iter_mut().flat_map(|call| &mut call.args)
    }

    /// The same with each argument rewritten. The rewrite must keep their types.
    pub fn map_args(&self, f: &dyn Fn(&Expr) -> Expr) -> TableFunction {
        let call = |call: &TableCall| TableCall {
            func: call.func,
            args: call.args.iter().map(f).collect(),
        };
        TableFunction { calls: self.calls.iter().map(call).collect(), ..*self }
    }

    /// Whether some rows may make it raise an error. True when in doubt.
    pub fn may_fail(&self) -> bool {
        let fails = |call: &TableCall| call.func.may_fail(call.args.len());
        self.calls.iter().any(fails) || self.args().any(expr::may_fail)
    }

    /// What is appended to a row given as its columns.
    pub fn rows(&self, columns: &[Datum]) -> Result<TableRows, DataError> {
        let values = |call: &TableCall| {
            let arg =
                |(i, arg): (usize, &Expr)| arg.eval(columns).or_else(|e| call.func.instead(i, e));
            let args = call.args.iter().enumerate().map(arg);
            call.func.values(&args.collect::<Result<Vec<Datum>, DataError>>()?)
        };
        Ok(TableRows {
            values: self.calls.iter().map(values).collect::<Result<_, _>>()?,
            ordinality: self.has_ordinality.then_some(0),
            keeps_one: self.keeps_all,
        })
    }

    /// The calls as EXPLAIN shows them, with the names of the row's columns.
    pub fn show(&self, names: &[String]) -> String {
        let mut text = format!("({})", self.call_texts(names).join(", "));
        let marks =
            [(self.has_ordinality, " with ordinality"), (self.keeps_all, " keeping all rows")];
        for (_, mark) in marks.iter().filter(|(is_set, _)| *is_set) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{mark}");
        }
        text
    }

    /// What to call the columns appended.
    pub fn names(&self, names: &[String]) -> Vec<String> {
        let mut own = self.call_texts(names);
        own.extend(self.has_ordinality.then(|| "ordinality".to_owned()));
        own
    }

    fn call_texts(&self, names: &[String]) -> Vec<String> {
        let text = |call: &TableCall| {
            let args: Vec<String> =
                call.args.iter().map(|arg| arg.with_names(names).to_string()).collect();
            match call.func {
                TableFunc::Once => args.join(", "),
                func => format!("{func}({})", args.join(", ")),
            }
        };
        self.calls.iter().map(text).collect()
    }
}

/// What is still to be appended to one row.
#[derive(Clone, Debug)]
pub struct TableRows {
    values: Vec<Values>,
    /// The number of the last row.
    ordinality: Option<i64>,
    /// Whether there is to be a row yet.
    keeps_one: bool,
}

impl TableRows {
    /// Appends the values of the next row; nothing, if there is none.
    pub fn append_next(&mut self, columns: &mut Vec<Datum>) -> bool {
        let start = columns.len();
        let mut is_there = false;
        for values in &mut self.values {
            let value = values.next();
            is_there |= value.is_some();
            columns.push(value.unwrap_or(Datum::Null));
        }
        if let Some(number) = &mut self.ordinality {
            *number += 1;
            columns.push(if is_there { Datum::Int8(*number) } else { Datum::Null });
        }
        if !is_there && !self.keeps_one {
            columns.truncate(start);
        }
        is_there | std::mem::take(&mut self.keeps_one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::func::Number;

    fn rows(table_function: &TableFunction) -> Vec<Vec<Option<i64>>> {
        let mut rows = table_function.rows(&[]).unwrap();
        let mut columns = Vec::new();
        let mut found = Vec::new();
        while rows.append_next(&mut columns) {
            found.push(columns.drain(..).map(|value| value.as_i64()).collect());
        }
        assert!(columns.is_empty());
        found
    }

    fn series(start: i64, stop: i64) -> TableCall {
        let literal = |value| Expr::Literal(Datum::Int8(value), Scalar::Int8.into());
        TableCall {
            func: TableFunc::Series(Number::Int8),
            args: vec![literal(start), literal(stop)],
        }
    }

    #[test]
    fn shorter_calls_are_padded() {
        let both = TableFunction::of(vec![series(1, 1), series(5, 6)]);
        assert_eq!(rows(&both), [[Some(1), Some(5)], [None, Some(6)]]);
        let numbered = TableFunction { has_ordinality: true, ..both };
        assert_eq!(rows(&numbered), [[Some(1), Some(5), Some(1)], [None, Some(6), Some(2)]]);
    }

    #[test]
    fn a_row_is_kept_if_asked_for() {
        let empty = TableFunction::of(vec![series(1, 0)]);
        assert!(rows(&empty).is_empty());
        let kept = TableFunction { keeps_all: true, has_ordinality: true, ..empty };
        assert_eq!(rows(&kept), [[None, None]]);
        let one = TableFunction { calls: vec![series(3, 3)], ..kept };
        assert_eq!(rows(&one), [[Some(3), Some(1)]]);
    }
}
