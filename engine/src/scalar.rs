//! Scalar work on rows: the only place where the engine decodes and encodes them.

use planner::error::DataError;
use planner::expr::Expr;
use planner::plan::Mfp;
use planner::row::Row;
use planner::value::Datum;
use std::cell::RefCell;

thread_local! {
    /// Columns of the row at hand; reused to spare an allocation per row.
    static COLUMNS: RefCell<Vec<Datum>> = const { RefCell::new(Vec::new()) };
}

/// Calls `action` with the columns of `rows`, one row after the other.
pub(crate) fn with_columns<R>(rows: &[&Row], action: impl FnOnce(&mut Vec<Datum>) -> R) -> R {
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

/// The values of `exprs` as a row.
pub(crate) fn eval_key(exprs: &[Expr], columns: &[Datum]) -> Result<Row, DataError> {
    let values = exprs.iter().map(|expr| expr.eval(columns)).collect::<Result<Vec<_>, _>>()?;
    Ok(Row::pack(&values))
}

/// The values of `exprs` as a row, or `None` if one of them is NULL.
pub(crate) fn eval_join_key(exprs: &[Expr], row: &Row) -> Option<Result<Row, DataError>> {
    if exprs.is_empty() {
        return Some(Ok(Row::pack(&[])));
    }
    with_columns(&[row], |columns| {
        let mut values = Vec::with_capacity(exprs.len());
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
