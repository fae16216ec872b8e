//! Scalar work on rows: the only place where the engine decodes and encodes them.

use planner::error::DataError;
use planner::expr::Expr;
use planner::plan::Mfp;
use planner::row::Row;
use planner::value::Datum;
use smallvec::SmallVec;
use std::cell::RefCell;

thread_local! {
    /// Columns of the row at hand; reused to spare an allocation per row.
    static COLUMNS: RefCell<Vec<Datum>> = const { RefCell::new(Vec::new()) };
}

/// Calls `action` with the columns of `rows`, one row after the other.
fn with_columns<R>(rows: &[&Row], action: impl FnOnce(&mut Vec<Datum>) -> R) -> R {
    let mut columns = COLUMNS.with(RefCell::take);
    columns.clear();
    for row in rows {
        row.unpack_into(&mut columns);
    }
    let result = action(&mut columns);
    COLUMNS.with(|cell| cell.replace(columns));
    result
}

/// Runs an [`Mfp`] over the concatenation of `rows`; `None` when the row is filtered out.
pub(crate) fn apply(mfp: &Mfp, rows: &[&Row]) -> Option<Result<Row, DataError>> {
    if mfp.only_projects() {
        return Some(Ok(Row::project(rows, &mfp.project)));
    }
    with_columns(rows, |columns| mfp.eval(columns)).transpose()
}

/// Expressions to be evaluated as a row. Columns as they are need no decoding.
#[derive(Clone)]
pub(crate) enum Exprs {
    Columns(Vec<usize>),
    Any(Vec<Expr>),
}

impl Exprs {
    pub(crate) fn new(exprs: &[Expr]) -> Self {
        let column = |expr: &Expr| match expr {
            Expr::Column(index) => Some(*index),
            _ => None,
        };
        match exprs.iter().map(column).collect() {
            Some(columns) => Exprs::Columns(columns),
            None => Exprs::Any(exprs.to_vec()),
        }
    }

    /// The values as a row.
    pub(crate) fn eval(&self, row: &Row) -> Result<Row, DataError> {
        match self {
            Exprs::Columns(columns) => Ok(Row::project(&[row], columns)),
            Exprs::Any(exprs) => with_columns(&[row], |columns| {
                let values = exprs.iter().map(|expr| expr.eval(columns));
                Ok(Row::pack(&values.collect::<Result<SmallVec<[Datum; 4]>, _>>()?))
            }),
        }
    }

    /// The values as a row, or `None` if one of them is NULL.
    pub(crate) fn eval_not_null(&self, row: &Row) -> Option<Result<Row, DataError>> {
        let exprs = match self {
            Exprs::Columns(columns) => return row.project_not_null(columns).map(Ok),
            Exprs::Any(exprs) => exprs,
        };
        with_columns(&[row], |columns| {
            let mut values: SmallVec<[Datum; 4]> = SmallVec::new();
            for expr in exprs {
                match expr.eval(columns) {
                    Ok(Datum::Null) => return None,
                    Ok(value) => values.push(value),
                    Err(error) => return Some(Err(error)),
                }
            }
            Some(Ok(Row::pack(&values)))
        })
    }
}

/// The value of an expression over a row.
pub(crate) fn eval(expr: &Expr, row: &Row) -> Result<Datum, DataError> {
    match expr {
        Expr::Column(index) => Ok(row.column(*index)),
        expr => with_columns(&[row], |columns| expr.eval(columns)),
    }
}
