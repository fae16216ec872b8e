//! Rows: descriptions of their columns, those of decoded changes, and replacing one in a heap with its indexes.

use pgrx::pg_sys;

/// The columns that a description has.
///
/// # Safety
/// A description of a row, which outlives the result.
pub unsafe fn columns<'a>(descriptor: pg_sys::TupleDesc) -> &'a [pg_sys::FormData_pg_attribute] {
    // SAFETY: per contract; 18 has the columns behind as many short forms of them.
    unsafe {
        let count = usize::try_from((*descriptor).natts).unwrap_or(0);
        #[cfg(not(feature = "pg18"))]
        return (*descriptor).attrs.as_slice(count);
        #[cfg(feature = "pg18")]
        {
            let short_forms =
                (&raw const (*descriptor).compact_attrs).cast::<pg_sys::CompactAttribute>();
            std::slice::from_raw_parts(short_forms.add(count).cast(), count)
        }
    }
}

/// Whether no row has NULL in the column at this place, counted from 0, of a description of an open relation. 18 marks NOT NULL
/// before all rows have been looked at.
///
/// # Safety
/// Such a description.
pub unsafe fn is_not_null(descriptor: pg_sys::TupleDesc, place: usize) -> bool {
    // SAFETY: per contract; as many short forms as columns.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return columns(descriptor)[place].attnotnull;
        #[cfg(feature = "pg18")]
        {
            let count = columns(descriptor).len();
            let short_forms = (*descriptor).compact_attrs.as_slice(count);
            short_forms[place].attnullability as u8 == pg_sys::ATTNULLABLE_VALID
        }
    }
}

/// Whether a column is not stored, but computed when it is read (from 18 on).
pub fn is_virtual(column: &pg_sys::FormData_pg_attribute) -> bool {
    !column.attisdropped && column.attgenerated as u8 == b'v'
}

/// What a virtual column is computed from, as an expression over the first entry of a range table.
///
/// # Safety
/// An open relation and the number of such a column of it.
pub unsafe fn generation_expression(
    relation: pg_sys::Relation,
    number: std::ffi::c_int,
) -> *mut pg_sys::Node {
    #[cfg(not(feature = "pg18"))]
    {
        let _ = (relation, number);
        unreachable!("columns are virtual from 18 on")
    }
    #[cfg(feature = "pg18")]
    // SAFETY: per contract.
    unsafe {
        pg_sys::build_generation_expression(relation, number)
    }
}

/// A row of a decoded change.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub type Decoded = *mut pg_sys::ReorderBufferTupleBuf;
/// A row of a decoded change.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub type Decoded = pg_sys::HeapTuple;

/// The tuple of a row of a decoded change.
///
/// # Safety
/// Such a row.
pub unsafe fn decoded(row: Decoded) -> pg_sys::HeapTuple {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    // SAFETY: per contract.
    return unsafe { &raw mut (*row).tuple };
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    return row;
}

/// Which indexes have to know of a new version of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Affected {
    None,
    /// Those that hold summaries of blocks, such as BRIN, from 16 on.
    #[cfg(not(feature = "pg15"))]
    Summarizing,
    All,
}

/// Replaces a row; answers which indexes are affected.
///
/// # Safety
/// A relation that is open and locked for writing, the place of a row in it that `snapshot` sees, and a slot of its shape.
pub unsafe fn update(
    relation: pg_sys::Relation,
    place: &mut pg_sys::ItemPointerData,
    slot: *mut pg_sys::TupleTableSlot,
    snapshot: pg_sys::Snapshot,
) -> Affected {
    #[cfg(feature = "pg15")]
    let mut affected = false;
    #[cfg(not(feature = "pg15"))]
    let mut affected = pg_sys::TU_UpdateIndexes::TU_None;
    // SAFETY: per contract.
    unsafe {
        pg_sys::simple_table_tuple_update(relation, place, slot, snapshot, &mut affected);
    }
    #[cfg(feature = "pg15")]
    return if affected { Affected::All } else { Affected::None };
    #[cfg(not(feature = "pg15"))]
    match affected {
        pg_sys::TU_UpdateIndexes::TU_None => Affected::None,
        pg_sys::TU_UpdateIndexes::TU_Summarizing => Affected::Summarizing,
        _ => Affected::All,
    }
}

/// Enters a row into indexes: those that are `affected` by its update, or all if it is new.
///
/// # Safety
/// Open indexes of a relation, and a slot with a row that is stored there.
pub unsafe fn insert_index_entries(
    result: *mut pg_sys::ResultRelInfo,
    slot: *mut pg_sys::TupleTableSlot,
    estate: *mut pg_sys::EState,
    affected: Option<Affected>,
) {
    let none = std::ptr::null_mut();
    let is_update = affected.is_some();
    // SAFETY: per contract.
    unsafe {
        #[cfg(feature = "pg15")]
        pg_sys::ExecInsertIndexTuples(
            result,
            slot,
            estate,
            is_update,
            false,
            none,
            std::ptr::null_mut(),
        );
        #[cfg(not(feature = "pg15"))]
        pg_sys::ExecInsertIndexTuples(
            result,
            slot,
            estate,
            is_update,
            false,
            none,
            std::ptr::null_mut(),
            affected == Some(Affected::Summarizing),
        );
    }
}

/// Replaces a row of a relation without indexes.
///
/// # Safety
/// A relation that is open and locked for writing, the place of a row in it, and another row of its shape.
pub unsafe fn update_without_indexes(
    relation: pg_sys::Relation,
    place: &mut pg_sys::ItemPointerData,
    tuple: pg_sys::HeapTuple,
) {
    // SAFETY: per contract.
    unsafe {
        #[cfg(feature = "pg15")]
        pg_sys::simple_heap_update(relation, place, tuple);
        #[cfg(not(feature = "pg15"))]
        {
            let mut affected = pg_sys::TU_UpdateIndexes::TU_None;
            pg_sys::simple_heap_update(relation, place, tuple, &mut affected);
        }
    }
}
