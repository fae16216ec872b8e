//! Finding rows of a table by a key, by way of a unique index.

use super::heap::Tid;
use super::heap_writer::{domains, fill};
use super::ids::RelationId;
use super::memory;
use super::relation::RelationRef;
use crate::pg::versions::relation as versions;
use pgrx::pg_sys;
use plan::row::Row;
use plan::types::Type;
use std::ffi::c_int;

/// Where a row is.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub tid: Tid,
    /// Whether another transaction that runs has locked it.
    pub is_locked: bool,
}

/// An index of a table by which rows with certain columns are found, one for each: it is unique, of these columns and no others,
/// and holds at any moment. Columns are counted from 0.
pub fn index_of(table: &RelationRef<'_>, key: &[usize]) -> Option<RelationId> {
    let mut wanted: Vec<i16> =
        key.iter().filter_map(|place| i16::try_from(place + 1).ok()).collect();
    wanted.sort_unstable();
    // SAFETY: an open relation; the list holds its indexes, which the relation's lock keeps.
    unsafe {
        let indexes = super::lists::oids(pg_sys::RelationGetIndexList(table.as_raw()));
        let serves = |oid: &pg_sys::Oid| {
            let lock = pg_sys::AccessShareLock as c_int;
            let index = pg_sys::index_open(*oid, lock);
            let form = (*index).rd_index;
            let mut columns = columns_of(index);
            columns.sort_unstable();
            let serves = (*form).indisunique
                && (*form).indisvalid
                && (*form).indimmediate
                && (*(*index).rd_rel).relam == pg_sys::BTREE_AM_OID
                && pg_sys::RelationGetIndexPredicate(index).is_null()
                && columns == wanted;
            pg_sys::index_close(index, lock);
            serves
        };
        indexes.into_iter().find(serves).map(RelationId::from)
    }
}

/// The numbers of the columns of an index by which it is ordered, 0 for expressions.
///
/// # Safety
/// An open index.
unsafe fn columns_of(index: pg_sys::Relation) -> Vec<i16> {
    // SAFETY: an index has as many numbers as columns.
    unsafe {
        let form = (*index).rd_index;
        let count = usize::try_from((*form).indnkeyatts).unwrap_or(0);
        (*form).indkey.values.as_slice(count).to_vec()
    }
}

/// Finds rows in a table by the columns of an index of [`index_of`]. The table begins with columns of these types, and the caller
/// has locked it; rows are those that the active snapshot sees. `None` for one that is not there.
pub fn find(
    table: &RelationRef<'_>,
    index: RelationId,
    types: &[Type],
    rows: &[Row],
) -> Vec<Option<Place>> {
    // SAFETY: an open relation and its index; all that is opened is closed here, or by the transaction's abort.
    unsafe {
        let lock = pg_sys::AccessShareLock as c_int;
        let index = pg_sys::index_open(index.into(), lock);
        let columns = columns_of(index);
        let mut keys: Vec<_> = (0..columns.len()).map(|place| equality(index, place)).collect();
        let count = keys.len() as c_int;
        let scan = versions::begin_index_scan(table.as_raw(), index, count);
        let raw = table.as_raw();
        let callbacks = pg_sys::table_slot_callbacks(raw);
        let wanted = pg_sys::MakeSingleTupleTableSlot(table.descriptor(), callbacks);
        let found = pg_sys::table_slot_create(raw, std::ptr::null_mut());
        let scratch = memory::new_context(pg_sys::CurrentMemoryContext, c"pg_eddy key scan");
        let (domains, mut values) = (domains(raw), Vec::new());
        let find = |row: &Row| {
            let old = pg_sys::MemoryContextSwitchTo(scratch);
            fill(wanted, (&[], row), &mut values, (types, &domains));
            // What the scan allocates it keeps.
            pg_sys::MemoryContextSwitchTo(old);
            for (key, number) in keys.iter_mut().zip(&columns) {
                let place = usize::from(number.unsigned_abs()) - 1;
                let is_null = *(*wanted).tts_isnull.add(place);
                key.sk_argument = *(*wanted).tts_values.add(place);
                key.sk_flags = match is_null {
                    true => (pg_sys::SK_ISNULL | pg_sys::SK_SEARCHNULL) as c_int,
                    false => 0,
                };
            }
            pg_sys::index_rescan(scan, keys.as_mut_ptr(), count, std::ptr::null_mut(), 0);
            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            let place = pg_sys::index_getnext_slot(scan, forward, found).then(|| Place {
                tid: Tid::from_raw((*found).tts_tid),
                is_locked: is_locked(found),
            });
            pg_sys::ExecClearTuple(found);
            pg_sys::ExecClearTuple(wanted);
            pg_sys::MemoryContextReset(scratch);
            place
        };
        let places = rows.iter().map(find).collect();
        pg_sys::index_endscan(scan);
        pg_sys::ExecDropSingleTupleTableSlot(found);
        pg_sys::ExecDropSingleTupleTableSlot(wanted);
        pg_sys::MemoryContextDelete(scratch);
        pg_sys::index_close(index, lock);
        places
    }
}

/// What asks for a column of an index to equal something.
///
/// # Safety
/// An open B-tree index, and the place of a column of its.
unsafe fn equality(index: pg_sys::Relation, place: usize) -> pg_sys::ScanKeyData {
    let mut key = pg_sys::ScanKeyData::default();
    // SAFETY: per contract; a family of a B-tree has equality of its types.
    unsafe {
        let (family, ty) = (*(*index).rd_opfamily.add(place), *(*index).rd_opcintype.add(place));
        let equal = pg_sys::BTEqualStrategyNumber as i16;
        let operator = pg_sys::get_opfamily_member(family, ty, ty, equal);
        pg_sys::ScanKeyEntryInitialize(
            &mut key,
            0,
            place as pg_sys::AttrNumber + 1,
            equal as pg_sys::StrategyNumber,
            pg_sys::Oid::INVALID,
            *(*index).rd_indcollation.add(place),
            pg_sys::get_opcode(operator),
            pg_sys::Datum::from(0),
        );
    }
    key
}

/// Whether another transaction that runs has locked the row in a slot, or is changing it. It may be so a moment later.
///
/// # Safety
/// A slot with a row of a heap.
unsafe fn is_locked(slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: per contract; the slot keeps the row's page in its place.
    unsafe {
        let row = pg_sys::ExecFetchSlotHeapTuple(slot, false, std::ptr::null_mut());
        let header = (*row).t_data;
        let (mask, by) = (u32::from((*header).t_infomask), (*header).t_choice.t_heap.t_xmax);
        if mask & pg_sys::HEAP_XMAX_INVALID != 0 {
            return false;
        }
        match mask & pg_sys::HEAP_XMAX_IS_MULTI != 0 {
            true => pg_sys::MultiXactIdIsRunning(by, false),
            false => {
                pg_sys::TransactionIdIsInProgress(by)
                    && !pg_sys::TransactionIdIsCurrentTransactionId(by)
            }
        }
    }
}
