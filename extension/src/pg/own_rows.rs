//! Rows of the extension's own small relations, `eddy.progress`, `eddy.view_states`, `eddy.view_creations`,
//! `eddy.view_statistics`, `eddy.view_changes` and `eddy.view_mirrors`.
//!
//! These are materialized views that are written as incremental views are, by the worker and, when a view is made,
//! by its session: so no publication ever has them, nobody else can write them, and standbys have them. What is
//! written carries the origin that decoding drops at sight.
//!
//! A row is found by its key, its first column if that is an OID; a relation whose first column is none has one row. The
//! worker remembers where it put each row, because under an old snapshot of somebody these relations grow: a
//! search would cost more with every write. What it remembers is checked, so an abort or a VACUUM costs one search.

use super::heap::{self, Tid};
use super::relation::{with_relation, Lock, RelationRef};
use super::{catalog, origin};
use crate::pg::versions::tuple;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, CStr};

/// A column of such a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    Null,
    /// `oid`
    Oid(u32),
    /// `pg_lsn`
    Lsn(u64),
    /// `timestamptz`
    Time(i64),
    /// `text`
    Text(String),
}

/// The file of a relation, and the key of a row in it.
type RowKey = (u32, Option<u32>);

thread_local! {
    /// Where this process put rows last; it may have aborted since.
    static PLACES: RefCell<BTreeMap<RowKey, Tid>> = const { RefCell::new(BTreeMap::new()) };
}

/// Puts a row in the place of the one with its key, or adds it; false if there is no such relation. Needs a transaction,
/// which sees the row at once.
pub fn put(name: &CStr, row: &[Field]) -> bool {
    let key = key_of(row);
    let written = with_own(name, Lock::RowExclusive, |relation| {
        // SAFETY: the relation is open and locked for writing, and has the columns of the install
        // script; the tuple is ours, and its place is set by the write.
        unsafe {
            let tuple = form(relation, row);
            match find(relation, key) {
                Some(old) => {
                    tuple::update_without_indexes(relation.raw, &mut old.to_raw(), tuple);
                }
                None => pg_sys::simple_heap_insert(relation.raw, tuple),
            }
            let place = Tid::from_raw((*tuple).t_self);
            PLACES.with_borrow_mut(|places| places.insert((relation.file(), key), place));
            pg_sys::heap_freetuple(tuple);
            pg_sys::CommandCounterIncrement();
        }
    });
    written.is_some()
}

/// Removes the row with a key; says whether there was one. Needs a transaction.
pub fn remove(name: &CStr, key: u32) -> bool {
    let removed = with_own(name, Lock::RowExclusive, |relation| {
        // SAFETY: as above; the row is there.
        unsafe {
            let Some(old) = find(relation, Some(key)) else { return false };
            pg_sys::simple_heap_delete(relation.raw, &mut old.to_raw());
            pg_sys::CommandCounterIncrement();
        }
        PLACES.with_borrow_mut(|places| places.remove(&(relation.file(), Some(key))));
        true
    });
    removed.unwrap_or(false)
}

/// The rows that the active snapshot sees, or those of them with a key.
pub fn read(name: &CStr, key: Option<u32>) -> Vec<Vec<Field>> {
    let mut rows = Vec::new();
    with_own(name, Lock::AccessShare, |relation| {
        // SAFETY: there is an active snapshot, per contract of all reads.
        let snapshot = unsafe { pg_sys::GetActiveSnapshot() };
        scan(relation, snapshot, key, |row, _| {
            rows.push(row);
            true
        });
    });
    rows
}

fn key_of(row: &[Field]) -> Option<u32> {
    match row.first() {
        Some(Field::Oid(key)) => Some(*key),
        _ => None,
    }
}

/// Opens a relation of the extension; what is written meanwhile carries the worker's origin.
fn with_own<R>(name: &CStr, lock: Lock, work: impl FnOnce(&RelationRef<'_>) -> R) -> Option<R> {
    let table = catalog::extension_table(name)?;
    with_relation(table, lock, |relation| origin::of_views(|| work(&relation)))
}

/// Where the row with a key is.
///
/// # Safety
/// The relation is open and locked.
unsafe fn find(relation: &RelationRef<'_>, key: Option<u32>) -> Option<Tid> {
    let remembered = PLACES.with_borrow(|places| places.get(&(relation.file(), key)).copied());
    // SAFETY: the relation is open and locked.
    if let Some(tid) = remembered.filter(|tid| unsafe { is_at(relation, *tid, key) }) {
        return Some(tid);
    }
    let mut found = None;
    scan(relation, &raw mut pg_sys::SnapshotSelfData, key, |row, tid| {
        if key_of(&row) == key {
            found = Some(tid);
        }
        found.is_none()
    });
    found
}

/// Whether the row with a key is in a place. Clears old versions from its page, as a scan would.
///
/// # Safety
/// The relation is open and locked.
unsafe fn is_at(relation: &RelationRef<'_>, tid: Tid, key: Option<u32>) -> bool {
    // SAFETY: the relation is open and locked; the block exists when it is read; the tuple is read while its
    // buffer is pinned.
    unsafe {
        let main = pg_sys::ForkNumber::MAIN_FORKNUM;
        if tid.block() >= pg_sys::RelationGetNumberOfBlocksInFork(relation.raw, main) {
            return false;
        }
        heap::prune(relation, tid.block());
        let mut tuple = pg_sys::HeapTupleData { t_self: tid.to_raw(), ..Default::default() };
        let mut buffer = 0;
        let latest = &raw mut pg_sys::SnapshotSelfData;
        if !pg_sys::heap_fetch(relation.raw, latest, &mut tuple, &mut buffer, false) {
            return false;
        }
        let row = deform(relation, &mut tuple);
        pg_sys::ReleaseBuffer(buffer);
        key_of(&row) == key
    }
}

/// Shows `each` row that a snapshot sees, or those of them with a key, and its place, as long as it answers true.
fn scan(
    relation: &RelationRef<'_>,
    snapshot: pg_sys::Snapshot,
    key: Option<u32>,
    mut each: impl FnMut(Vec<Field>, Tid) -> bool,
) {
    // SAFETY: the relation is open and locked; tuples are read while the scan is at them.
    unsafe {
        let scan = pg_sys::table_beginscan(relation.raw, snapshot, 0, std::ptr::null_mut());
        loop {
            let tuple = pg_sys::heap_getnext(scan, pg_sys::ScanDirection::ForwardScanDirection);
            if tuple.is_null() {
                break;
            }
            // The other columns of other rows are not even looked at.
            if key.is_some() && first_field(relation, tuple) != key.map(Field::Oid) {
                continue;
            }
            if !each(deform(relation, tuple), Tid::from_raw((*tuple).t_self)) {
                break;
            }
        }
        pg_sys::table_endscan(scan);
    }
}

/// A tuple of these fields.
///
/// # Safety
/// The relation is open, and has columns of these types.
unsafe fn form(relation: &RelationRef<'_>, row: &[Field]) -> pg_sys::HeapTuple {
    let mut nulls: Vec<bool> = row.iter().map(|field| *field == Field::Null).collect();
    // SAFETY: the row has the relation's columns; the tuple is a copy of the values.
    unsafe {
        let mut values: Vec<pg_sys::Datum> = row.iter().map(|field| datum(field)).collect();
        pg_sys::heap_form_tuple(relation.descriptor(), values.as_mut_ptr(), nulls.as_mut_ptr())
    }
}

/// A field as PostgreSQL has it.
///
/// # Safety
/// The current memory context outlives the use of the result.
unsafe fn datum(field: &Field) -> pg_sys::Datum {
    match field {
        Field::Null => pg_sys::Datum::from(0),
        Field::Oid(oid) => pg_sys::Datum::from(*oid),
        Field::Lsn(lsn) => pg_sys::Datum::from(*lsn),
        Field::Time(time) => pg_sys::Datum::from(*time),
        // SAFETY: copies that many bytes.
        Field::Text(text) => unsafe {
            let length = c_int::try_from(text.len()).unwrap_or(c_int::MAX);
            let bytes = text.as_ptr().cast::<c_char>();
            pg_sys::Datum::from(pg_sys::cstring_to_text_with_len(bytes, length))
        },
    }
}

/// The first field of a tuple, unless it is NULL.
///
/// # Safety
/// A tuple of this relation.
unsafe fn first_field(relation: &RelationRef<'_>, tuple: pg_sys::HeapTuple) -> Option<Field> {
    let descriptor = relation.descriptor();
    let mut is_null = true;
    // SAFETY: a tuple of the relation, which has a column.
    unsafe {
        let ty = tuple::columns(descriptor).first()?.atttypid;
        let value = pg_sys::heap_getattr(tuple, 1, descriptor, &mut is_null);
        (!is_null).then(|| field(value, ty))
    }
}

/// The fields of a tuple.
///
/// # Safety
/// A tuple of this relation.
unsafe fn deform(relation: &RelationRef<'_>, tuple: pg_sys::HeapTuple) -> Vec<Field> {
    let descriptor = relation.descriptor();
    // SAFETY: a tuple of the relation; values are read by the types of its columns.
    unsafe {
        let count = (*descriptor).natts as usize;
        let mut values = vec![pg_sys::Datum::from(0); count];
        let mut nulls = vec![true; count];
        pg_sys::heap_deform_tuple(tuple, descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
        let columns = tuple::columns(descriptor).iter().zip(values.iter().zip(&nulls));
        columns
            .map(|(column, (value, is_null))| match *is_null {
                true => Field::Null,
                false => field(*value, column.atttypid),
            })
            .collect()
    }
}

/// A field of a tuple.
///
/// # Safety
/// A value of that type.
unsafe fn field(value: pg_sys::Datum, ty: pg_sys::Oid) -> Field {
    match ty {
        pg_sys::OIDOID => Field::Oid(value.value() as u32),
        pg_sys::PG_LSNOID => Field::Lsn(value.value() as u64),
        pg_sys::TIMESTAMPTZOID => Field::Time(value.value() as i64),
        // SAFETY: the only other type in the install script is text; the copy is read and given back.
        _ => unsafe {
            let copy = pg_sys::text_to_cstring(value.cast_mut_ptr());
            let text = CStr::from_ptr(copy).to_string_lossy().into_owned();
            pg_sys::pfree(copy.cast());
            Field::Text(text)
        },
    }
}
