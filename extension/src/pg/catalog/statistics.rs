//! What ANALYZE has found out about tables: how many rows, and how different they are. Of the values themselves nothing is
//! read, so whoever sees a plan learns nothing of them.

use super::relations::relation_kind;
use crate::pg::relation::{with_relation, Lock};
use pgrx::pg_sys::{self, Oid};
use planner::catalog::ColumnStatistics;
use std::ffi::c_int;

/// From this size on the rows of a table can be estimated that nobody has looked at.
const SIZED_PAGES: u32 = 10;

/// Rows of some tables together, by PostgreSQL's estimate; `None` if none of them was looked at and all are small.
pub fn estimated_rows(tables: &[Oid]) -> Option<f64> {
    let (mut rows, mut is_known) = (0.0, false);
    for table in tables.iter().filter(|t| relation_kind(**t) == Some(pg_sys::RELKIND_RELATION)) {
        with_relation(*table, Lock::AccessShare, |table| {
            is_known |= table.is_analyzed() || table.blocks() >= SIZED_PAGES;
            rows += table.estimated_rows() as f64;
        })?;
    }
    is_known.then(|| rounded(rows))
}

/// What is known of a column of a table with that many rows, those of its children included if `inherited`.
pub fn column_statistics(
    table: Oid,
    column: i16,
    inherited: bool,
    rows: f64,
) -> Option<ColumnStatistics> {
    let cache = pg_sys::SysCacheIdentifier::STATRELATTINH as c_int;
    let [table, column, inherited] =
        [pg_sys::Datum::from(table), pg_sys::Datum::from(column), pg_sys::Datum::from(inherited)];
    // SAFETY: a row of pg_statistic, which is kept while it is read.
    unsafe {
        let row = pg_sys::SearchSysCache3(cache, table, column, inherited);
        if row.is_null() {
            return None;
        }
        let form = *pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_statistic>();
        let shares = most_common_shares(row);
        pg_sys::ReleaseSysCache(row);
        Some(statistics(&form, &shares, rows))
    }
}

fn statistics(form: &pg_sys::FormData_pg_statistic, shares: &[f64], rows: f64) -> ColumnStatistics {
    let nulls = f64::from(form.stanullfrac).clamp(0.0, 1.0);
    let not_null = 1.0 - nulls;
    let distinct = match f64::from(form.stadistinct) {
        0.0 => 200.0,
        share if share < 0.0 => -share * rows,
        number => number,
    };
    let distinct = distinct.max(shares.len() as f64).max(1.0);
    // The most common ones, and all others as if these were evenly frequent.
    let others = (distinct - shares.len() as f64).max(1.0);
    let rest = (not_null - shares.iter().sum::<f64>()).max(0.0);
    let same = shares.iter().map(|share| share * share).sum::<f64>() + rest * rest / others;
    let repeats = if not_null > 0.0 { same / (not_null * not_null) } else { 1.0 };
    ColumnStatistics {
        distinct: rounded(distinct),
        nulls: rounded(nulls),
        repeats: rounded(repeats.clamp(1.0 / distinct, 1.0)),
        width: f64::from(form.stawidth.max(0)),
    }
}

/// The shares of all rows that the most common values have.
///
/// # Safety
/// A row of pg_statistic.
unsafe fn most_common_shares(row: pg_sys::HeapTuple) -> Vec<f64> {
    let mut slot = pg_sys::AttStatsSlot::default();
    let (kind, what) = (pg_sys::STATISTIC_KIND_MCV, pg_sys::ATTSTATSSLOT_NUMBERS);
    // SAFETY: the slot is filled for a row that is kept by the caller, read, and given back.
    unsafe {
        let (kind, what) = (kind as c_int, what as c_int);
        if !pg_sys::get_attstatsslot(&mut slot, row, kind, Oid::INVALID, what) {
            return Vec::new();
        }
        let count = usize::try_from(slot.nnumbers).unwrap_or(0);
        let numbers: &[f32] = match slot.numbers.is_null() {
            true => &[],
            false => std::slice::from_raw_parts(slot.numbers, count),
        };
        let shares = numbers.iter().map(|share| f64::from(*share)).collect();
        pg_sys::free_attstatsslot(&mut slot);
        shares
    }
}

/// Three digits are more than an estimate has, and are short to note.
fn rounded(figure: f64) -> f64 {
    format!("{figure:.2e}").parse().unwrap_or(figure)
}
