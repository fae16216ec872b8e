//! Rows of tables: decoded ones, and stored ones read by scans.

use super::decoding::TupleRef;
use super::ids::RelationId;
use super::relation::{RelationRef, TABLE_OID};
use super::{memory, value};
use pgrx::pg_sys;
use plan::error::DataError;
use plan::row::Row;
use plan::types::Type;
use plan::value::Datum;
use std::ffi::{c_int, CStr};
use std::ops::Range;

/// Place of a row in a heap: block number and line pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(u64);

impl Tid {
    pub(super) fn from_raw(raw: pg_sys::ItemPointerData) -> Tid {
        let block = u64::from(raw.ip_blkid.bi_hi) << 16 | u64::from(raw.ip_blkid.bi_lo);
        Tid(block << 16 | u64::from(raw.ip_posid))
    }

    pub fn to_number(self) -> u64 {
        self.0
    }

    pub fn from_number(number: u64) -> Tid {
        Tid(number)
    }

    /// The number of its block.
    pub(super) fn block(self) -> u32 {
        (self.0 >> 16) as u32
    }

    pub(super) fn to_raw(self) -> pg_sys::ItemPointerData {
        pg_sys::ItemPointerData {
            ip_blkid: pg_sys::BlockIdData {
                bi_hi: (self.0 >> 32) as u16,
                bi_lo: (self.0 >> 16) as u16,
            },
            ip_posid: self.0 as u16,
        }
    }
}

/// Which attributes of a relation make up a row, and their types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    /// Attribute numbers, among them maybe [`TABLE_OID`], and types, in the order of the row's columns.
    pub columns: Vec<(i16, Type)>,
}

/// Buffers for taking tuples apart, kept for the life of the process.
#[derive(Default)]
pub struct Deformer {
    old: Columns,
    new: Columns,
    row: Vec<Datum>,
}

struct Columns {
    /// Of the tuple's relation, which is open as long as the tuple is there.
    descriptor: pg_sys::TupleDesc,
    table: RelationId,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl Default for Columns {
    fn default() -> Self {
        let (values, nulls) = (Vec::new(), Vec::new());
        Columns { descriptor: std::ptr::null_mut(), table: RelationId::NONE, values, nulls }
    }
}

extern "C" {
    /// Unguarded: it raises no errors, and is called for every change.
    #[link_name = "heap_deform_tuple"]
    fn raw_heap_deform_tuple(
        tuple: pg_sys::HeapTuple,
        descriptor: pg_sys::TupleDesc,
        values: *mut pg_sys::Datum,
        nulls: *mut bool,
    );
}

impl Columns {
    /// Takes a tuple apart.
    ///
    /// # Safety
    /// The tuple must be of this relation, and outlive what is read of it.
    unsafe fn deform(&mut self, tuple: TupleRef<'_>, relation: &RelationRef<'_>) {
        let descriptor = relation.descriptor();
        self.table = relation.id();
        // SAFETY: the tuple has this descriptor; the buffers have room for all attributes.
        unsafe {
            let count = (*descriptor).natts as usize;
            self.descriptor = descriptor;
            self.values.resize(count, pg_sys::Datum::from(0));
            self.nulls.resize(count, true);
            raw_heap_deform_tuple(
                tuple.tuple,
                descriptor,
                self.values.as_mut_ptr(),
                self.nulls.as_mut_ptr(),
            );
        }
    }
}

impl Deformer {
    /// Takes a decoded change apart, for the `project` calls that follow.
    pub fn load(
        &mut self,
        relation: &RelationRef<'_>,
        old: Option<TupleRef<'_>>,
        new: Option<TupleRef<'_>>,
    ) {
        // SAFETY: both tuples belong to the relation, as decoding promises.
        unsafe {
            if let Some(old) = old {
                self.old.deform(old, relation);
            }
            if let Some(new) = new {
                self.new.deform(new, relation);
            }
        }
    }

    /// Columns of the row before the change.
    pub fn old_row(&mut self, projection: &Projection) -> Result<Row, DataError> {
        self.row.clear();
        for (attnum, ty) in &projection.columns {
            // SAFETY: values of the tuple loaded last.
            self.row.push(unsafe { self.old.read(*attnum, *ty)? });
        }
        Ok(Row::pack(&self.row))
    }

    /// Columns of the row after the change. What the change left in TOAST is taken from the row
    /// before, if that was loaded for the same change.
    pub fn new_row(&mut self, projection: &Projection, has_old: bool) -> Result<Row, DataError> {
        self.row.clear();
        for (attnum, ty) in &projection.columns {
            // SAFETY: values of the tuples loaded last.
            let datum = unsafe {
                match has_old && self.new.is_left_in_toast(*attnum, *ty) {
                    true => self.old.read(*attnum, *ty)?,
                    false => self.new.read(*attnum, *ty)?,
                }
            };
            self.row.push(datum);
        }
        Ok(Row::pack(&self.row))
    }
}

impl Columns {
    /// The value of a column.
    ///
    /// # Safety
    /// [`Columns::deform`] has been called, of a tuple that is still there, whose column has this type.
    unsafe fn read(&self, attnum: i16, ty: Type) -> Result<Datum, DataError> {
        if attnum == TABLE_OID {
            return value::of_table(self.table, ty);
        }
        let index = attnum as usize - 1;
        match self.nulls[index] {
            true => Ok(Datum::Null),
            // SAFETY: the value is of the type, as the projection was checked against the table.
            false => unsafe {
                value::read(self.values[index], ty)
                    .map_err(|error| in_column(error, self.descriptor, index))
            },
        }
    }

    /// Whether the value of a column is not in the tuple itself.
    ///
    /// # Safety
    /// As for [`Columns::read`].
    unsafe fn is_left_in_toast(&self, attnum: i16, ty: Type) -> bool {
        if !value::is_varlena(ty) {
            return false;
        }
        let index = attnum as usize - 1;
        // SAFETY: a varlena that is not NULL.
        !self.nulls[index] && unsafe { value::is_toast_reference(self.values[index]) }
    }
}

/// Rows between two resets of the scratch memory.
const RESET_EVERY: usize = 256;

/// Reads all rows of a relation that the active snapshot sees.
pub fn scan<E>(
    relation: &RelationRef<'_>,
    projection: &Projection,
    each: impl FnMut(Result<Row, DataError>, Tid) -> Result<(), E>,
) -> Result<(), E> {
    // SAFETY: the relation is open and locked.
    unsafe {
        let snapshot = pg_sys::GetActiveSnapshot();
        let scan = pg_sys::table_beginscan(relation.raw, snapshot, 0, std::ptr::null_mut());
        read_all(relation, scan, projection, each)
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

/// Reads those rows that are in some pages, of a relation that has pages.
pub fn scan_pages<E>(
    relation: &RelationRef<'_>,
    pages: Range<u32>,
    projection: &Projection,
    each: impl FnMut(Result<Row, DataError>, Tid) -> Result<(), E>,
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
        read_all(relation, scan, projection, each)
    }
}

/// Reads the rows of a scan, and ends it.
///
/// # Safety
/// The scan must be of this relation, which is open and locked.
unsafe fn read_all<E>(
    relation: &RelationRef<'_>,
    scan: pg_sys::TableScanDesc,
    projection: &Projection,
    mut each: impl FnMut(Result<Row, DataError>, Tid) -> Result<(), E>,
) -> Result<(), E> {
    // SAFETY: per contract; slot, scan and memory context are released at the end, or by the transaction's abort.
    unsafe {
        let scratch = new_scratch();
        let slot = pg_sys::table_slot_create(relation.raw, std::ptr::null_mut());
        let forward = pg_sys::ScanDirection::ForwardScanDirection;
        let mut row = Vec::new();
        let mut count = 0;
        let mut result = Ok(());
        while result.is_ok() && pg_sys::table_scan_getnextslot(scan, forward, slot) {
            pg_sys::slot_getallattrs(slot);
            let old = pg_sys::MemoryContextSwitchTo(scratch);
            let read = read_slot(slot, relation.id(), projection, &mut row);
            let read = read.map(|()| Row::pack(&row));
            pg_sys::MemoryContextSwitchTo(old);
            result = each(read, Tid::from_raw((*slot).tts_tid));
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

fn new_scratch() -> pg_sys::MemoryContext {
    // SAFETY: a child of the current context.
    unsafe { memory::new_context(pg_sys::CurrentMemoryContext, c"pg_eddy scratch") }
}

/// The wanted columns of the row in a slot, which is one of a table.
///
/// # Safety
/// A slot all of whose attributes have been deformed, with these types.
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
        // SAFETY: all attributes of the slot have been deformed.
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

/// Adds the name of the column to an error of its value.
///
/// # Safety
/// The descriptor must have that attribute.
unsafe fn in_column(error: DataError, descriptor: pg_sys::TupleDesc, index: usize) -> DataError {
    // SAFETY: the descriptor has that attribute, whose name is returned as a C string.
    let name = unsafe { CStr::from_ptr(pg_sys::SPI_fname(descriptor, index as c_int + 1)) };
    let message = format!("column \"{}\": {}", name.to_string_lossy(), error.message);
    DataError { message, ..error }
}

/// Clears versions that nobody sees any more from a page that has little room left, as a scan would: where rows are
/// only ever replaced, each finds room beside the one before, and the heap does not grow. Answers how much room there is for a row.
///
/// # Safety
/// The relation must be open and locked, and have this block.
pub(super) unsafe fn prune(relation: &RelationRef<'_>, block: u32) -> usize {
    // SAFETY: per contract.
    unsafe {
        let page = pg_sys::ReadBuffer(relation.raw, block);
        pg_sys::heap_page_prune_opt(relation.raw, page);
        // Not locked: others may take some of it, or clear more.
        let room = pg_sys::PageGetHeapFreeSpace(pg_sys::BufferGetPage(page));
        pg_sys::ReleaseBuffer(page);
        room
    }
}
