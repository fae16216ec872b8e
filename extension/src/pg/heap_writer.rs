//! Writing of views' heaps.
//!
//! Rows go in as COPY has them go, many with one call. A row is replaced on its page if there is room for the new one, so that
//! no index has to know of it unless its values change; otherwise it is deleted, and the new one comes with many others, which costs
//! less than an update across pages. Indexes learn of rows later, in their own order (see [`super::index_entries`]).

use super::heap::{prune, Tid};
use super::index_entries::IndexEntries;
use super::relation::RelationRef;
use super::{alarm, entry, evaluate, memory, origin, process, summaries, types, value};
use crate::pg::versions::tuple::{self, Affected};
use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use pgrx::pg_sys::{self, Oid};
use plan::row::Row;
use plan::types::Type;
use plan::value::Datum;
use std::ffi::c_int;

/// Rows inserted with one call of the table access method.
const INSERT_BATCH: usize = 1000;

/// Bytes from which on there are no more of them: rows are there several times until they are stored.
const INSERT_BYTES: usize = 1 << 20;

/// Bytes of values whose rows the indexes do not know yet.
const MAX_VALUES: usize = 16 << 20;

/// Steps after which writing, which has come a part of its way, gets its time anew.
const RENEW_EVERY: usize = 1000;

/// A view's heap, open for writing within a transaction. Closed by [`Writer::finish`], or by the
/// abort of the transaction if an error strikes.
pub struct Writer<'a> {
    relation: &'a RelationRef<'a>,
    /// Whether what is written carries the origin of views.
    is_view: bool,
    types: &'a [Type],
    /// Columns that are arrays of a domain; values may come as arrays of its base type.
    domains: Vec<(usize, Oid)>,
    entries: IndexEntries,
    bulk: *mut pg_sys::BulkInsertStateData,
    slots: Vec<*mut pg_sys::TupleTableSlot>,
    /// What is allocated meanwhile.
    scratch: pg_sys::MemoryContext,
    /// Values of rows that the indexes do not know yet.
    values: pg_sys::MemoryContext,
    row: Vec<Datum>,
    /// The page on which a row was replaced last.
    page: Page,
    /// Of a table whose blocks get summaries as they come: how many of them have been seen.
    summarized: Option<u32>,
    pace: Pace,
}

extern "C-unwind" {
    /// Exported by the server, missing in the bindings.
    #[link_name = "datumCopy"]
    fn raw_copy_value(value: pg_sys::Datum, is_by_value: bool, length: c_int) -> pg_sys::Datum;
}

/// A value in the current memory context.
///
/// # Safety
/// A value of a type of that length, passed as that type is.
unsafe fn copy_value(value: pg_sys::Datum, is_by_value: bool, length: c_int) -> pg_sys::Datum {
    // SAFETY: per contract.
    match is_by_value {
        true => value,
        false => unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| raw_copy_value(value, is_by_value, length))
        },
    }
}

/// Writes rows with the origin of views, or without one.
fn mark<R>(is_view: bool, write: impl FnOnce() -> R) -> R {
    match is_view {
        true => origin::of_views(write),
        false => write(),
    }
}

/// A page and how much room there is on it for a row.
struct Page {
    block: Option<u32>,
    room: usize,
}

/// Counts steps.
#[derive(Default)]
pub(super) struct Pace(usize);

impl Pace {
    /// The work has come a step further.
    pub(super) fn go_on(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(RENEW_EVERY) {
            alarm::renew();
            process::check_interrupts();
        }
    }
}

/// The columns that are arrays of a domain, and the domain.
///
/// # Safety
/// An open relation.
pub(super) unsafe fn domains(relation: pg_sys::Relation) -> Vec<(usize, Oid)> {
    // SAFETY: an open relation.
    let attributes = unsafe { tuple::columns((*relation).rd_att) };
    let domain = |attribute: &pg_sys::FormData_pg_attribute| {
        (!attribute.attisdropped).then(|| types::domain_of(attribute.atttypid)).flatten()
    };
    let columns = attributes.iter().map(domain).enumerate();
    columns.filter_map(|(index, domain)| Some((index, domain?))).collect()
}

impl<'a> Writer<'a> {
    /// Opens a view's heap, which the caller has locked for writing; `types` are its columns'.
    pub fn open(relation: &'a RelationRef<'a>, types: &'a [Type]) -> Writer<'a> {
        Writer::new(relation, types, true)
    }

    /// The same for a table; triggers and constraints are not heeded.
    pub fn of_table(relation: &'a RelationRef<'a>, types: &'a [Type]) -> Writer<'a> {
        Writer::new(relation, types, false)
    }

    /// The same, of a table whose rows come in the order of an index that holds summaries of blocks: see [`summaries`].
    pub fn summarizing(self) -> Writer<'a> {
        Writer { summarized: Some(self.relation.blocks()), ..self }
    }

    fn new(relation: &'a RelationRef<'a>, types: &'a [Type], is_view: bool) -> Writer<'a> {
        // SAFETY: an open relation; contexts are children of the current one.
        unsafe {
            let entries = IndexEntries::open(relation.raw);
            if entries.have_expressions() {
                evaluate::note_run();
            }
            let context = |name| memory::new_context(pg_sys::CurrentMemoryContext, name);
            Writer {
                relation,
                is_view,
                types,
                domains: domains(relation.raw),
                entries,
                bulk: pg_sys::GetBulkInsertState(),
                slots: Vec::new(),
                scratch: context(c"pg_eddy scratch"),
                values: context(c"pg_eddy values"),
                row: Vec::new(),
                page: Page { block: None, room: 0 },
                summarized: None,
                pace: Pace::default(),
            }
        }
    }

    pub fn delete(&mut self, tid: Tid) {
        // SAFETY: the heap is locked, the row is there (the caller's map says so).
        unsafe {
            let mut raw = tid.to_raw();
            let snapshot = pg_sys::GetActiveSnapshot();
            mark(self.is_view, || {
                pg_sys::simple_table_tuple_delete(self.relation.raw, &mut raw, snapshot);
            });
        }
        self.pace.go_on();
    }

    /// Replaces rows, which are in the order of their places; answers the new places in the same order.
    pub fn replace<'r>(&mut self, rows: impl Iterator<Item = (Tid, &'r Row)>) -> Vec<Tid> {
        let mut places = Vec::new();
        let mut moved = Vec::new();
        for (tid, row) in rows {
            let place = self.replace_in_place(tid, row).unwrap_or_else(|| {
                self.delete(tid);
                moved.push((places.len(), row));
                tid
            });
            places.push(place);
        }
        let rows = moved.iter().map(|(_, row)| ([], *row));
        let new = self.insert_all(rows, Some(Affected::All));
        for ((index, _), place) in moved.iter().zip(new) {
            places[*index] = place;
        }
        places
    }

    /// Replaces a row by one that is on the same page, if that has room.
    fn replace_in_place(&mut self, tid: Tid, row: &Row) -> Option<Tid> {
        // SAFETY: as for `delete`; the slot holds a tuple of the relation's shape.
        unsafe {
            let slot = self.slot(0);
            self.load(slot, &[], row);
            let old = pg_sys::MemoryContextSwitchTo(self.scratch);
            if self.page.block != Some(tid.block()) {
                let room = prune(self.relation, tid.block());
                self.page = Page { block: Some(tid.block()), room };
            }
            let room = room_for(slot);
            let affected = (room <= self.page.room).then(|| {
                self.page.room =
                    self.page.room.saturating_sub(room + size_of::<pg_sys::ItemIdData>());
                let mut raw = tid.to_raw();
                let snapshot = pg_sys::GetActiveSnapshot();
                mark(self.is_view, || tuple::update(self.relation.raw, &mut raw, slot, snapshot))
            });
            let place = Tid::from_raw((*slot).tts_tid);
            match affected {
                None | Some(Affected::None) => self.entries.forget_staged(),
                affected => self.entries.add(place, affected),
            }
            pg_sys::ExecClearTuple(slot);
            pg_sys::MemoryContextSwitchTo(old);
            pg_sys::MemoryContextReset(self.scratch);
            self.enter_many();
            self.pace.go_on();
            affected.map(|_| place)
        }
    }

    /// Inserts rows; answers their places in the same order.
    pub fn insert<'r>(&mut self, rows: impl Iterator<Item = &'r Row>) -> Vec<Tid> {
        self.insert_all(rows.map(|row| ([], row)), None)
    }

    /// Inserts rows, each behind own values of eight bytes.
    pub fn insert_behind<'r, const OWN: usize>(
        &mut self,
        rows: impl Iterator<Item = ([Option<u64>; OWN], &'r Row)>,
    ) {
        self.insert_all(rows, None);
    }

    /// The same; `affected` if they replace others.
    fn insert_all<'r, const OWN: usize>(
        &mut self,
        rows: impl Iterator<Item = ([Option<u64>; OWN], &'r Row)>,
        affected: Option<Affected>,
    ) -> Vec<Tid> {
        let mut places = Vec::new();
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let (mut count, mut bytes) = (0, 0);
            let batch = std::iter::from_fn(|| {
                let row = rows.next_if(|_| count < INSERT_BATCH && bytes < INSERT_BYTES)?;
                (count, bytes) = (count + 1, bytes + row.1.as_bytes().len());
                Some(row)
            });
            self.insert_batch(batch, affected, &mut places);
            self.enter_many();
            alarm::renew();
            process::check_interrupts();
        }
        places
    }

    fn insert_batch<'r, const OWN: usize>(
        &mut self,
        rows: impl Iterator<Item = ([Option<u64>; OWN], &'r Row)>,
        affected: Option<Affected>,
        places: &mut Vec<Tid>,
    ) {
        let mut count = 0;
        for (own, row) in rows {
            // SAFETY: a slot of this relation.
            unsafe {
                let slot = self.slot(count);
                self.load(slot, &own, row);
            }
            count += 1;
        }
        self.insert_loaded(count, affected, places);
    }

    /// Inserts the rows in the first slots.
    fn insert_loaded(&mut self, count: usize, affected: Option<Affected>, places: &mut Vec<Tid>) {
        // SAFETY: slots hold virtual tuples of the relation's shape whose values live until all are stored and the indexes know
        // them; heap_multi_insert leaks into the scratch memory.
        unsafe {
            let old = pg_sys::MemoryContextSwitchTo(self.scratch);
            mark(self.is_view, || {
                pg_sys::table_multi_insert(
                    self.relation.raw,
                    self.slots.as_mut_ptr(),
                    count as c_int,
                    pg_sys::GetCurrentCommandId(true),
                    0,
                    self.bulk,
                );
            });
            for slot in &self.slots[..count] {
                let place = Tid::from_raw((**slot).tts_tid);
                self.entries.add(place, affected);
                places.push(place);
                pg_sys::ExecClearTuple(*slot);
            }
            pg_sys::MemoryContextSwitchTo(old);
            pg_sys::MemoryContextReset(self.scratch);
        }
        if let Some(seen) = &mut self.summarized {
            let before = std::mem::replace(seen, self.relation.blocks());
            summaries::begin(self.relation, before..*seen);
        }
    }

    /// Inserts the rows of another relation that the active snapshot sees, each behind the same values of eight bytes.
    pub fn copy(&mut self, own: &[Option<u64>], from: &RelationRef<'_>) {
        let mut places = Vec::new();
        // SAFETY: the other relation is open and locked, and its columns are of the types of those of this one behind the own ones.
        // Values are copied before the scan goes on.
        unsafe {
            let snapshot = pg_sys::GetActiveSnapshot();
            let scan = pg_sys::table_beginscan(from.raw, snapshot, 0, std::ptr::null_mut());
            let source = pg_sys::table_slot_create(from.raw, std::ptr::null_mut());
            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            let mut count = 0;
            loop {
                let is_there = pg_sys::table_scan_getnextslot(scan, forward, source);
                if is_there {
                    let slot = self.slot(count);
                    self.load_copy(slot, own, source);
                    count += 1;
                }
                if count == INSERT_BATCH || !is_there {
                    self.insert_loaded(count, None, &mut places);
                    places.clear();
                    self.enter();
                    process::check_interrupts();
                    count = 0;
                }
                if !is_there {
                    break;
                }
            }
            pg_sys::table_endscan(scan);
            pg_sys::ExecDropSingleTupleTableSlot(source);
        }
    }

    /// Puts own values and the row of another slot into a slot, and stages it for the indexes.
    ///
    /// # Safety
    /// A slot of this writer's relation, and one with a row of a relation as of [`Writer::copy`].
    unsafe fn load_copy(
        &mut self,
        slot: *mut pg_sys::TupleTableSlot,
        own: &[Option<u64>],
        source: *mut pg_sys::TupleTableSlot,
    ) {
        // SAFETY: per contract.
        unsafe {
            let old = pg_sys::MemoryContextSwitchTo(self.values);
            pg_sys::slot_getallattrs(source);
            pg_sys::ExecClearTuple(slot);
            let columns = tuple::columns((*source).tts_tupleDescriptor);
            let copied = columns.iter().enumerate().map(|(index, column)| {
                let value = *(*source).tts_values.add(index);
                let is_null = *(*source).tts_isnull.add(index);
                let (by_value, length) = (column.attbyval, c_int::from(column.attlen));
                (!is_null).then(|| copy_value(value, by_value, length))
            });
            let own = own.iter().map(|value| value.map(pg_sys::Datum::from));
            let rest = (*(*slot).tts_tupleDescriptor).natts as usize;
            let all = own.chain(copied).chain(std::iter::repeat(None)).take(rest);
            for (index, value) in all.enumerate() {
                *(*slot).tts_isnull.add(index) = value.is_none();
                *(*slot).tts_values.add(index) = value.unwrap_or(pg_sys::Datum::from(0));
            }
            pg_sys::ExecStoreVirtualTuple(slot);
            self.entries.stage(slot);
            pg_sys::MemoryContextSwitchTo(old);
        }
    }

    /// Tells the indexes of rows if they do not know many. All that was loaded has been stored.
    fn enter_many(&mut self) {
        // SAFETY: a context of this writer.
        let has_much = unsafe { (*self.values).mem_allocated > MAX_VALUES };
        if self.entries.are_many() || has_much || !self.entries.are_wanted() {
            self.enter();
        }
    }

    /// Tells the indexes of all rows that they do not know.
    fn enter(&mut self) {
        // SAFETY: the rows are stored in this relation, and their values are there; after that nobody needs them.
        unsafe {
            self.entries.enter(&mut self.pace);
            pg_sys::MemoryContextReset(self.values);
        }
    }

    /// The slot of that number; the next one is made if it does not exist.
    ///
    /// # Safety
    /// The writer is open.
    unsafe fn slot(&mut self, index: usize) -> *mut pg_sys::TupleTableSlot {
        if index == self.slots.len() {
            // SAFETY: slots live as long as the indexes are open.
            unsafe {
                let old = pg_sys::MemoryContextSwitchTo(self.entries.memory());
                let callbacks = pg_sys::table_slot_callbacks(self.relation.raw);
                let descriptor = self.entries.descriptor();
                self.slots.push(pg_sys::MakeSingleTupleTableSlot(descriptor, callbacks));
                pg_sys::MemoryContextSwitchTo(old);
            }
        }
        self.slots[index]
    }

    /// Puts a row into a slot, and stages it for the indexes.
    ///
    /// # Safety
    /// A slot of this writer's relation.
    unsafe fn load(&mut self, slot: *mut pg_sys::TupleTableSlot, own: &[Option<u64>], row: &Row) {
        // SAFETY: per contract.
        unsafe {
            let old = pg_sys::MemoryContextSwitchTo(self.values);
            fill(slot, (own, row), &mut self.row, (self.types, &self.domains));
            self.entries.stage(slot);
            pg_sys::MemoryContextSwitchTo(old);
        }
    }

    /// Closes the heap and its indexes, which know all rows then; locks stay until the end of the transaction.
    pub fn finish(mut self) {
        // SAFETY: everything was opened by `open`.
        unsafe {
            self.enter();
            for slot in &self.slots {
                pg_sys::ExecDropSingleTupleTableSlot(*slot);
            }
            pg_sys::FreeBulkInsertState(self.bulk);
            self.entries.close();
            pg_sys::MemoryContextDelete(self.scratch);
            pg_sys::MemoryContextDelete(self.values);
        }
    }

    /// Marks the view as filled, so that it can be read. An error if that would wait for another transaction.
    pub fn mark_populated(&self) {
        extern "C-unwind" {
            #[link_name = "SetMatViewPopulatedState"]
            fn set_populated(relation: pg_sys::Relation, populated: bool);
        }
        if !self.relation.is_populated() {
            if !entry::is_free(self.relation.id()) {
                let message =
                    format!("another session is altering view \"{}\"", self.relation.name());
                pgrx::ereport!(ERROR, PgSqlErrorCode::ERRCODE_OBJECT_IN_USE, message);
            }
            // SAFETY: the relation is an open, locked materialized view.
            unsafe {
                pg_sys::ffi::pg_guard_ffi_boundary(|| set_populated(self.relation.raw, true));
            }
        }
    }
}

/// Puts a row, behind own values, into a slot, whose values are in the current memory context. `values` is what it is unpacked
/// into.
///
/// # Safety
/// A slot of a relation that begins with as many columns of eight bytes as there are own values, then columns of these types, and its
/// arrays of domains.
pub(super) unsafe fn fill(
    slot: *mut pg_sys::TupleTableSlot,
    (own, row): (&[Option<u64>], &Row),
    values: &mut Vec<Datum>,
    (types, domains): (&[Type], &[(usize, Oid)]),
) {
    values.clear();
    row.unpack_into(values);
    // SAFETY: per contract.
    unsafe {
        pg_sys::ExecClearTuple(slot);
        let others = own.len() + types.len()..(*(*slot).tts_tupleDescriptor).natts as usize;
        others.for_each(|index| *(*slot).tts_isnull.add(index) = true);
        let own = own.iter().map(|value| value.map(pg_sys::Datum::from));
        let rest = values.iter().zip(types).map(|(datum, ty)| value::write(datum, *ty));
        for (index, written) in own.chain(rest).enumerate() {
            *(*slot).tts_isnull.add(index) = written.is_none();
            *(*slot).tts_values.add(index) = written.unwrap_or(pg_sys::Datum::from(0));
        }
        for (index, domain) in domains {
            if !*(*slot).tts_isnull.add(*index) {
                let value = *(*slot).tts_values.add(*index);
                (*value.cast_mut_ptr::<pg_sys::ArrayType>()).elemtype = *domain;
            }
        }
        pg_sys::ExecStoreVirtualTuple(slot);
    }
}

/// Bytes that the row in a slot takes on a page.
///
/// # Safety
/// A slot of a heap that holds a row.
unsafe fn room_for(slot: *mut pg_sys::TupleTableSlot) -> usize {
    // SAFETY: per contract; the slot owns the tuple that it makes of its values.
    unsafe {
        let tuple = pg_sys::ExecFetchSlotHeapTuple(slot, true, std::ptr::null_mut());
        ((*tuple).t_len as usize).next_multiple_of(pg_sys::MAXIMUM_ALIGNOF as usize)
    }
}
