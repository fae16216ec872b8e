//! Summaries of the blocks of a table whose rows come in the order of an index (BRIN).
//!
//! PostgreSQL makes a summary of blocks when they are vacuumed, and until then whoever looks for rows reads all blocks that came
//! since. Once there is one, each new row is added to it. So the first summary is made here, as soon as there are such blocks.

use super::lists;
use super::relation::{try_lock, Lock, RelationRef};
use pgrx::pg_sys::{self, Oid};
use std::ops::Range;

/// Blocks that have one summary.
pub const PAGES_PER_RANGE: u32 = 32;

/// Has summaries made of blocks that a table has got, unless somebody is altering or vacuuming it. `pages` are the numbers of
/// blocks before and now. As the table's owner.
pub fn begin(table: &RelationRef<'_>, pages: Range<u32>) {
    let new = pages.start.div_ceil(PAGES_PER_RANGE)..pages.end.div_ceil(PAGES_PER_RANGE);
    if new.is_empty() || !try_lock(table.id(), Lock::ShareUpdateExclusive) {
        return;
    }
    for index in indexes(table) {
        for range in new.clone() {
            summarize(index, range * PAGES_PER_RANGE);
        }
    }
}

/// The indexes of a table that hold summaries.
fn indexes(table: &RelationRef<'_>) -> Vec<Oid> {
    // SAFETY: an open relation; the list holds its indexes, which the relation's lock keeps.
    unsafe {
        let mut indexes = lists::oids(pg_sys::RelationGetIndexList(table.as_raw()));
        indexes.retain(|oid| {
            let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
            let index = pg_sys::index_open(*oid, lock);
            let summarizes = (*(*index).rd_rel).relam == pg_sys::BRIN_AM_OID;
            pg_sys::index_close(index, lock);
            summarizes
        });
        indexes
    }
}

/// Makes the summary of the blocks of which this is one, unless there is one.
fn summarize(index: Oid, block: u32) {
    let arguments = [pg_sys::Datum::from(index), pg_sys::Datum::from(i64::from(block))];
    // SAFETY: a function of the server's, with arguments of its types.
    unsafe {
        pgrx::direct_function_call::<i32>(pg_sys::brin_summarize_range, &arguments.map(Some));
    }
}
