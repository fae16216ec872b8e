//! Stored rows of tables, read by scans: one scan for all that want rows of a table.

use super::heap::{in_column, new_scratch, Projection, Tid};
use super::ids::RelationId;
use super::relation::{RelationRef, TABLE_OID};
use super::value;
use pgrx::pg_sys;
use plan::error::DataError;
use plan::row::Row;
use plan::value::Datum;
use std::ffi::c_int;
use std::ops::Range;

/// Rows between two resets of the scratch memory.
const RESET_EVERY: usize = 256;

/// Reads all rows of a relation that the active snapshot sees, as each of the projections has them; `each` is told which
/// one by its number. An error of it ends the scan.
pub fn scan<E>(
    relation: &RelationRef<'_>,
    projections: &[&Projection],
    each: impl FnMut(usize, Result<Row, DataError>, Tid) -> Result<(), E>,
) -> Result<(), E> {
    // SAFETY: the relation is open and locked.
    unsafe {
        let snapshot = pg_sys::GetActiveSnapshot();
        let scan = pg_sys::table_beginscan(relation.raw, snapshot, 0, std::ptr::null_mut());
        read_all(relation, scan, projections, each)
    }
}

/// Pages of a relation; `None` if its rows are not kept in pages as PostgreSQL's own are, so that only all of them can be read.
pub fn pages(relation: &RelationRef<'_>) -> Option<u32> {
    // SAFETY: the relation is open and locked.
    unsafe {
        let is_heap = (*(*relation.raw).rd_rel).relam == pg_sys::HEAP_TABLE_AM_OID;
        let main = pg_sys::ForkNumber::MAIN_FORKNUM;
        is_heap.then(|| pg_sys::RelationGetNumberOfBlocksInFork(relation.raw, main))
    }
}

/// Likewise, those rows that are in some pages, of a relation that has pages.
pub fn scan_pages<E>(
    relation: &RelationRef<'_>,
    pages: Range<u32>,
    projections: &[&Projection],
    each: impl FnMut(usize, Result<Row, DataError>, Tid) -> Result<(), E>,
) -> Result<(), E> {
    // The table may have lost empty pages at its end.
    let end = pages.end.min(self::pages(relation).unwrap_or(0));
    if pages.start >= end {
        return Ok(());
    }
    // SAFETY: the relation is open and locked, and a heap; the scan, which has not begun, is not shared with others.
    unsafe {
        let snapshot = pg_sys::GetActiveSnapshot();
        let key = std::ptr::null_mut();
        let scan = pg_sys::table_beginscan_strat(relation.raw, snapshot, 0, key, true, false);
        pg_sys::heap_setscanlimits(scan, pages.start, end - pages.start);
        read_all(relation, scan, projections, each)
    }
}

/// The rows in these places, which the active snapshot sees. What cannot be read is left out.
pub fn fetch(
    relation: &RelationRef<'_>,
    projection: &Projection,
    places: impl Iterator<Item = Tid>,
) -> Vec<Row> {
    // SAFETY: the relation is open and locked; slot and memory context are released at the end, or by the abort.
    unsafe {
        let scratch = new_scratch();
        let slot = pg_sys::table_slot_create(relation.raw, std::ptr::null_mut());
        let snapshot = pg_sys::GetActiveSnapshot();
        let fetch = (*(*relation.raw).rd_tableam).tuple_fetch_row_version;
        let (mut rows, mut row) = (Vec::new(), Vec::new());
        for place in places {
            let mut raw = place.to_raw();
            let is_there = fetch.is_some_and(|fetch| {
                pg_sys::ffi::pg_guard_ffi_boundary(|| {
                    fetch(relation.raw, &raw mut raw, snapshot, slot)
                })
            });
            if is_there {
                pg_sys::slot_getsomeattrs_int(slot, projection.last_attribute());
                let old = pg_sys::MemoryContextSwitchTo(scratch);
                let read = read_slot(slot, relation.id(), projection, &mut row);
                rows.extend(read.ok().map(|()| Row::pack(&row)));
                pg_sys::MemoryContextSwitchTo(old);
                pg_sys::MemoryContextReset(scratch);
            }
            pg_sys::ExecClearTuple(slot);
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::MemoryContextDelete(scratch);
        rows
    }
}

/// The different ones among projections, each with the numbers of those that are equal to it.
fn different<'p>(projections: &[&'p Projection]) -> Vec<(&'p Projection, Vec<usize>)> {
    let mut different: Vec<(&Projection, Vec<usize>)> = Vec::new();
    for (number, projection) in projections.iter().enumerate() {
        match different.iter_mut().find(|(other, _)| other == projection) {
            Some((_, numbers)) => numbers.push(number),
            None => different.push((*projection, vec![number])),
        }
    }
    different
}

/// Reads the rows of a scan, and ends it.
///
/// # Safety
/// The scan must be of this relation, which is open and locked.
unsafe fn read_all<E>(
    relation: &RelationRef<'_>,
    scan: pg_sys::TableScanDesc,
    projections: &[&Projection],
    mut each: impl FnMut(usize, Result<Row, DataError>, Tid) -> Result<(), E>,
) -> Result<(), E> {
    // SAFETY: per contract; slot, scan and memory context are released at the end, or by the transaction's abort.
    unsafe {
        let scratch = new_scratch();
        let slot = pg_sys::table_slot_create(relation.raw, std::ptr::null_mut());
        let forward = pg_sys::ScanDirection::ForwardScanDirection;
        let needed = projections.iter().map(|projection| projection.last_attribute());
        let needed = needed.max().unwrap_or(0);
        let different = different(projections);
        let mut row = Vec::new();
        let mut count = 0;
        let mut result = Ok(());
        while result.is_ok() && pg_sys::table_scan_getnextslot(scan, forward, slot) {
            if c_int::from((*slot).tts_nvalid) < needed {
                pg_sys::slot_getsomeattrs_int(slot, needed);
            }
            let tid = Tid::from_raw((*slot).tts_tid);
            for (projection, numbers) in &different {
                let old = pg_sys::MemoryContextSwitchTo(scratch);
                let read = read_slot(slot, relation.id(), projection, &mut row);
                let read = read.map(|()| Row::pack(&row));
                pg_sys::MemoryContextSwitchTo(old);
                let (last, others) = (numbers[numbers.len() - 1], &numbers[..numbers.len() - 1]);
                result = others.iter().try_for_each(|number| each(*number, read.clone(), tid));
                result = result.and_then(|()| each(last, read, tid));
                if result.is_err() {
                    break;
                }
            }
            count += 1;
            if count % RESET_EVERY == 0 {
                pg_sys::MemoryContextReset(scratch);
                super::process::check_interrupts();
            }
        }
        pg_sys::table_endscan(scan);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::MemoryContextDelete(scratch);
        result
    }
}

/// The wanted columns of the row in a slot, which is one of a table.
///
/// # Safety
/// A slot whose attributes have been deformed, as far as they are wanted, with these types.
unsafe fn read_slot(
    slot: *mut pg_sys::TupleTableSlot,
    table: RelationId,
    projection: &Projection,
    row: &mut Vec<Datum>,
) -> Result<(), DataError> {
    row.clear();
    for (attnum, ty) in &projection.columns {
        if *attnum == TABLE_OID {
            row.push(value::of_table(table, *ty)?);
            continue;
        }
        let index = *attnum as usize - 1;
        // SAFETY: the attribute has been deformed.
        unsafe {
            row.push(match *(*slot).tts_isnull.add(index) {
                true => Datum::Null,
                false => value::read(*(*slot).tts_values.add(index), *ty)
                    .map_err(|error| in_column(error, (*slot).tts_tupleDescriptor, index))?,
            });
        }
    }
    Ok(())
}
