//! Entries of indexes for rows that have been stored.
//!
//! An index is told of many rows at once, in about the order of its keys: those that belong on one of its pages follow each
//! other, so that each page is found in the cache. Where rows came in another order, that is half of the work or less. What is entered,
//! and what an index checks, is PostgreSQL's own business.

use super::heap::Tid;
use super::heap_writer::Pace;
use crate::pg::versions::tuple::{self, Affected};
use pgrx::pg_sys;
use std::cmp::Ordering;

/// Rows of which indexes are told together.
const TOGETHER: usize = 50_000;

/// The indexes of a relation, and rows that they do not know yet.
pub struct IndexEntries {
    result: *mut pg_sys::ResultRelInfo,
    estate: *mut pg_sys::EState,
    /// What is shown to the indexes.
    slot: *mut pg_sys::TupleTableSlot,
    descriptor: pg_sys::TupleDesc,
    columns: usize,
    indexes: Vec<Index>,
    /// Values of rows, one row after the other: as many as `rows`, and what is staged.
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
    rows: Vec<Stored>,
}

/// An index, and its leading columns.
struct Index {
    relation: *mut pg_sys::Relation,
    info: *mut *mut pg_sys::IndexInfo,
    order: Vec<Column>,
    /// Whether it holds summaries of blocks, of nothing but the columns of `order`: BRIN.
    summarizes: bool,
}

/// A column by which rows are put in order.
struct Column {
    place: usize,
    form: Form,
}

/// How a value is compared: about as its index does.
#[derive(Clone, Copy)]
enum Form {
    Number,
    Bytes(usize),
    Varlena,
}

/// A row that is stored.
struct Stored {
    place: Tid,
    /// Which indexes are affected if it replaces another one; all if it is new.
    affected: Option<Affected>,
}

impl IndexEntries {
    /// Opens the indexes of a relation.
    ///
    /// # Safety
    /// A relation that is open and locked for writing as long as this is.
    pub(super) unsafe fn open(relation: pg_sys::Relation) -> IndexEntries {
        // SAFETY: an executor state and result relation as the server's own row-at-a-time writers
        // set them up; all live in the current memory context.
        unsafe {
            let estate = pg_sys::CreateExecutorState();
            let result: *mut pg_sys::ResultRelInfo =
                pg_sys::palloc0(size_of::<pg_sys::ResultRelInfo>()).cast();
            (*result).type_ = pg_sys::NodeTag::T_ResultRelInfo;
            // No entry of a range table: there is none that could say which columns an update changes.
            pg_sys::InitResultRelInfo(result, relation, 0, std::ptr::null_mut(), 0);
            pg_sys::ExecOpenIndices(result, false);
            let descriptor = descriptor_for_slots(relation);
            let slot =
                pg_sys::MakeSingleTupleTableSlot(descriptor, &raw const pg_sys::TTSOpsVirtual);
            (*slot).tts_tableOid = (*relation).rd_id;
            let count = usize::try_from((*result).ri_NumIndices).unwrap_or(0);
            let index = |number: usize| {
                let info = (*result).ri_IndexRelationInfo.add(number);
                let relation = (*result).ri_IndexRelationDescs.add(number);
                let order = order_of(*info, descriptor);
                let summarizes = is_summary(*relation, *info, order.len());
                Index { relation, info, order, summarizes }
            };
            IndexEntries {
                result,
                estate,
                slot,
                descriptor,
                columns: (*descriptor).natts as usize,
                indexes: (0..count).map(index).collect(),
                values: Vec::new(),
                nulls: Vec::new(),
                rows: Vec::new(),
            }
        }
    }

    /// Memory that lasts until the indexes are closed.
    pub(super) fn memory(&self) -> pg_sys::MemoryContext {
        // SAFETY: the executor state is there.
        unsafe { (*self.estate).es_query_cxt }
    }

    /// A description of the relation's rows that lasts as long.
    pub(super) fn descriptor(&self) -> pg_sys::TupleDesc {
        self.descriptor
    }

    /// Whether writing evaluates expressions or conditions of indexes.
    pub(super) fn have_expressions(&self) -> bool {
        // SAFETY: the indexes are open.
        self.indexes.iter().any(|index| unsafe {
            let info = *index.info;
            !(*info).ii_Expressions.is_null() || !(*info).ii_Predicate.is_null()
        })
    }

    /// Whether there is an index.
    pub(super) fn are_wanted(&self) -> bool {
        !self.indexes.is_empty()
    }

    /// Whether it is time to enter them.
    pub(super) fn are_many(&self) -> bool {
        self.rows.len() >= TOGETHER
    }

    /// Keeps the values of a row that is about to be stored.
    ///
    /// # Safety
    /// A slot of the relation that holds a virtual tuple; its values last until they are entered or forgotten.
    pub(super) unsafe fn stage(&mut self, slot: *mut pg_sys::TupleTableSlot) {
        if self.are_wanted() {
            // SAFETY: per contract.
            unsafe {
                let values = std::slice::from_raw_parts((*slot).tts_values, self.columns);
                let nulls = std::slice::from_raw_parts((*slot).tts_isnull, self.columns);
                self.values.extend_from_slice(values);
                self.nulls.extend_from_slice(nulls);
            }
        }
    }

    /// Nothing is to be entered for what is staged.
    pub(super) fn forget_staged(&mut self) {
        self.values.truncate(self.rows.len() * self.columns);
        self.nulls.truncate(self.rows.len() * self.columns);
    }

    /// The first row of those that are staged has been stored.
    pub(super) fn add(&mut self, place: Tid, affected: Option<Affected>) {
        if self.are_wanted() {
            self.rows.push(Stored { place, affected });
        }
    }

    /// Enters all rows.
    ///
    /// # Safety
    /// They are stored in the relation, and their values are there.
    pub(super) unsafe fn enter(&mut self, pace: &mut Pace) {
        let all = self.indexes.len();
        for index in 0..all {
            let order = self.to_enter(index);
            // SAFETY: both arrays have that many elements, of which it is shown one for a while.
            unsafe {
                let result = &mut *self.result;
                let (relations, infos) =
                    (result.ri_IndexRelationDescs, result.ri_IndexRelationInfo);
                result.ri_IndexRelationDescs = self.indexes[index].relation;
                result.ri_IndexRelationInfo = self.indexes[index].info;
                result.ri_NumIndices = 1;
                for row in order {
                    self.enter_row(row as usize);
                    pace.go_on();
                }
                let result = &mut *self.result;
                result.ri_IndexRelationDescs = relations;
                result.ri_IndexRelationInfo = infos;
                result.ri_NumIndices = all as i32;
            }
        }
        self.rows.clear();
        self.forget_staged();
    }

    /// # Safety
    /// As above.
    unsafe fn enter_row(&mut self, row: usize) {
        let Stored { place, affected } = &self.rows[row];
        // SAFETY: the slot has room for as many values as there are columns; per-tuple memory is given back.
        unsafe {
            let slot = self.slot;
            let columns = row * self.columns..(row + 1) * self.columns;
            let (values, nulls) = (&self.values[columns.clone()], &self.nulls[columns]);
            (*slot).tts_values.copy_from_nonoverlapping(values.as_ptr(), values.len());
            (*slot).tts_isnull.copy_from_nonoverlapping(nulls.as_ptr(), nulls.len());
            (*slot).tts_tid = place.to_raw();
            if (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0 {
                pg_sys::ExecStoreVirtualTuple(slot);
            }
            tuple::insert_index_entries(self.result, slot, self.estate, *affected);
            let context = (*self.estate).es_per_tuple_exprcontext;
            if !context.is_null() {
                pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
            }
        }
    }

    /// The rows that an index has to know, in about its order; those that are alike to it stay as they came. A summary of a
    /// block stays the same when the block gets what it has.
    fn to_enter(&self, index: usize) -> Vec<u32> {
        let Index { order, summarizes, .. } = &self.indexes[index];
        let compare = |a: u32, b: u32| self.compare(order, a as usize, b as usize);
        let mut rows: Vec<u32> = (0..self.rows.len() as u32).collect();
        if *summarizes {
            let block = |row: u32| self.rows[row as usize].place.block();
            rows.dedup_by(|b, a| block(*a) == block(*b) && compare(*a, *b) == Ordering::Equal);
        } else if !order.is_empty() {
            rows.sort_by(|a, b| compare(*a, *b));
        }
        rows
    }

    fn compare(&self, order: &[Column], a: usize, b: usize) -> Ordering {
        let values = order.iter().map(|Column { place, form }| {
            let [a, b] = [a, b].map(|row| row * self.columns + place);
            match (self.nulls[a], self.nulls[b]) {
                // SAFETY: values of such a column, which are not NULL.
                (false, false) => unsafe { form.compare(self.values[a], self.values[b]) },
                (a, b) => a.cmp(&b),
            }
        });
        values.fold(Ordering::Equal, Ordering::then)
    }

    /// Closes the indexes; locks stay until the end of the transaction.
    ///
    /// # Safety
    /// Nothing of [`IndexEntries::memory`] is used any more.
    pub(super) unsafe fn close(self) {
        // SAFETY: everything was opened by `open`.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
            pg_sys::ExecCloseIndices(self.result);
            pg_sys::FreeExecutorState(self.estate);
        }
    }
}

impl Form {
    /// # Safety
    /// Values of this form.
    unsafe fn compare(self, a: pg_sys::Datum, b: pg_sys::Datum) -> Ordering {
        // SAFETY: per contract; a varlena is plain, as it has just been made.
        unsafe {
            let bytes = |value: pg_sys::Datum| match self {
                Form::Bytes(count) => std::slice::from_raw_parts(value.cast_mut_ptr::<u8>(), count),
                _ => {
                    let value = value.cast_mut_ptr::<pg_sys::varlena>();
                    let data = pgrx::vardata_any(value).cast::<u8>();
                    std::slice::from_raw_parts(data, pgrx::varsize_any_exhdr(value))
                }
            };
            match self {
                Form::Number => (a.value() as isize).cmp(&(b.value() as isize)),
                _ => bytes(a).cmp(bytes(b)),
            }
        }
    }
}

/// A description for slots. The relation's own would count them, and the time that takes grows with the number of slots: for each
/// row, too, whose key a unique index finds, as it makes a slot to look at it.
///
/// # Safety
/// An open relation.
unsafe fn descriptor_for_slots(relation: pg_sys::Relation) -> pg_sys::TupleDesc {
    // SAFETY: a copy in the current memory context.
    unsafe { pg_sys::CreateTupleDescCopy((*relation).rd_att) }
}

/// Whether an index is of the kind that holds summaries of blocks, and of so many columns, all of them plain, and all rows.
///
/// # Safety
/// An open index.
unsafe fn is_summary(
    index: pg_sys::Relation,
    info: *const pg_sys::IndexInfo,
    columns: usize,
) -> bool {
    // SAFETY: per contract.
    unsafe {
        (*(*index).rd_rel).relam == pg_sys::BRIN_AM_OID
            && (*info).ii_Predicate.is_null()
            && usize::try_from((*info).ii_NumIndexAttrs) == Ok(columns)
    }
}

/// The leading columns of an index, up to the first expression.
///
/// # Safety
/// An index of a relation with this description.
unsafe fn order_of(info: *const pg_sys::IndexInfo, descriptor: pg_sys::TupleDesc) -> Vec<Column> {
    // SAFETY: as many columns as the relation has, as many keys as the index.
    unsafe {
        let attributes = tuple::columns(descriptor);
        let keys = usize::try_from((*info).ii_NumIndexKeyAttrs).unwrap_or(0);
        let numbers = (*info).ii_IndexAttrNumbers.iter().take(keys);
        let columns = numbers.map_while(|number| {
            let place = usize::try_from(*number).ok()?.checked_sub(1)?;
            let attribute = &attributes[place];
            let form = match (attribute.attbyval, usize::try_from(attribute.attlen)) {
                (true, _) => Form::Number,
                (false, Ok(count)) => Form::Bytes(count),
                (false, Err(_)) if attribute.attlen == -1 => Form::Varlena,
                _ => return None,
            };
            Some(Column { place, form })
        });
        columns.collect()
    }
}
