//! Rows of tables: decoded ones. Stored ones are read by [`super::scan`], and written by [`super::heap_writer`].

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

impl Projection {
    /// The number of the last attribute that is needed, 0 for none.
    pub(super) fn last_attribute(&self) -> c_int {
        let numbers = self.columns.iter().map(|(number, _)| *number);
        numbers.filter(|number| *number != TABLE_OID).max().unwrap_or(0).into()
    }
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

pub(super) fn new_scratch() -> pg_sys::MemoryContext {
    // SAFETY: a child of the current context.
    unsafe { memory::new_context(pg_sys::CurrentMemoryContext, c"pg_eddy scratch") }
}

/// Adds the name of the column to an error of its value.
///
/// # Safety
/// The descriptor must have that attribute.
pub(super) unsafe fn in_column(
    error: DataError,
    descriptor: pg_sys::TupleDesc,
    index: usize,
) -> DataError {
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
