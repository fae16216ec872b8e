//! Triggers of a table that is written as a subscription writes one: those AFTER ... FOR EACH ROW that are `ENABLE ALWAYS`.
//!
//! They run when all rows and indexes are written, some rows at a time: each gets its time, and what has been queued does not
//! grow with the rows. One that may wait for the end of a transaction runs here, too: an error at that end would be everybody's.

use super::heap::Tid;
use super::relation::RelationRef;
use super::{alarm, evaluate, process};
use pgrx::pg_sys;
use std::ptr::null_mut;

/// Rows whose triggers run together.
const TOGETHER: usize = 100;

/// What has become of a row of a table.
#[derive(Clone, Copy)]
pub enum Written {
    Deleted(Tid),
    /// One by another, which may be elsewhere.
    Replaced(Tid, Tid),
    Inserted(Tid),
}

/// Whether a table has such triggers. They are functions of users.
pub fn are_on(table: &RelationRef<'_>) -> bool {
    // SAFETY: an open relation.
    let triggers = unsafe { triggers((*table.as_raw()).trigdesc) };
    triggers.iter().any(fires)
}

/// Runs the triggers of a table for rows that have been written in this transaction. As the table's owner.
pub fn fire(table: &RelationRef<'_>, rows: impl Iterator<Item = Written>) {
    if !are_on(table) {
        return;
    }
    evaluate::note_run();
    // SAFETY: the relation is open and locked; everything is released at the end, or by the abort.
    unsafe {
        let queue = Queue::open(table.as_raw());
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            pg_sys::AfterTriggerBeginQuery();
            rows.by_ref().take(TOGETHER).for_each(|row| queue.add(row));
            pg_sys::AfterTriggerEndQuery(queue.estate);
            alarm::renew();
            process::check_interrupts();
        }
        queue.close();
    }
}

/// The triggers of a relation, by its description of them.
///
/// # Safety
/// A description, or null.
unsafe fn triggers<'a>(described: *mut pg_sys::TriggerDesc) -> &'a mut [pg_sys::Trigger] {
    if described.is_null() {
        return &mut [];
    }
    // SAFETY: there are as many as it says.
    unsafe {
        let count = usize::try_from((*described).numtriggers).unwrap_or(0);
        std::slice::from_raw_parts_mut((*described).triggers, count)
    }
}

/// Whether it is one of those that run here. Tables of what a statement has changed there are none.
fn fires(trigger: &pg_sys::Trigger) -> bool {
    let of = |bits: u32| trigger.tgtype as u32 & bits;
    let when = pg_sys::TRIGGER_TYPE_BEFORE | pg_sys::TRIGGER_TYPE_INSTEAD;
    trigger.tgenabled as u8 == pg_sys::TRIGGER_FIRES_ALWAYS
        && of(pg_sys::TRIGGER_TYPE_ROW) != 0
        && of(when) == 0
        && trigger.tgoldtable.is_null()
        && trigger.tgnewtable.is_null()
}

/// Where the server keeps what triggers are to run for.
struct Queue {
    table: pg_sys::Relation,
    estate: *mut pg_sys::EState,
    result: *mut pg_sys::ResultRelInfo,
    /// What a row has become.
    slot: *mut pg_sys::TupleTableSlot,
}

impl Queue {
    /// # Safety
    /// A relation that is open and locked for writing until this is closed.
    unsafe fn open(table: pg_sys::Relation) -> Queue {
        // SAFETY: an executor state and a result relation as the server's own writers set them up, with triggers of its own.
        unsafe {
            let estate = pg_sys::CreateExecutorState();
            let result: *mut pg_sys::ResultRelInfo =
                pg_sys::palloc0(size_of::<pg_sys::ResultRelInfo>()).cast();
            (*result).type_ = pg_sys::NodeTag::T_ResultRelInfo;
            pg_sys::InitResultRelInfo(result, table, 0, null_mut(), 0);
            for trigger in triggers((*result).ri_TrigDesc) {
                if !fires(trigger) {
                    trigger.tgenabled = pg_sys::TRIGGER_DISABLED as std::ffi::c_char;
                }
                (trigger.tgdeferrable, trigger.tginitdeferred) = (false, false);
                // A row is replaced in all of its columns.
                trigger.tgnattr = 0;
            }
            // There the server finds it when they run.
            let opened = pg_sys::lappend((*estate).es_opened_result_relations, result.cast());
            (*estate).es_opened_result_relations = opened;
            let slot = pg_sys::table_slot_create(table, null_mut());
            Queue { table, estate, result, slot }
        }
    }

    /// # Safety
    /// Between the server's beginning and end of a query; the row has been written in this transaction.
    unsafe fn add(&self, row: Written) {
        let Queue { estate, result, slot, .. } = *self;
        // SAFETY: per contract.
        unsafe {
            match row {
                Written::Deleted(old) => {
                    let (mut old, none) = (old.to_raw(), null_mut());
                    pg_sys::ExecARDeleteTriggers(estate, result, &mut old, none, null_mut(), false);
                }
                Written::Replaced(old, new) => {
                    let (mut old, none) = (old.to_raw(), null_mut());
                    self.load(new);
                    pg_sys::ExecARUpdateTriggers(
                        estate,
                        result,
                        null_mut(),
                        null_mut(),
                        &mut old,
                        none,
                        slot,
                        null_mut(),
                        null_mut(),
                        false,
                    );
                }
                Written::Inserted(new) => {
                    self.load(new);
                    pg_sys::ExecARInsertTriggers(estate, result, slot, null_mut(), null_mut());
                }
            }
            pg_sys::ExecClearTuple(slot);
        }
    }

    /// Puts the row that is at a place into the slot.
    ///
    /// # Safety
    /// There is one.
    unsafe fn load(&self, place: Tid) {
        // SAFETY: whatever the row has become, it is there as long as this transaction has not ended.
        unsafe {
            let mut place = place.to_raw();
            let any = &raw mut pg_sys::SnapshotAnyData;
            pg_sys::table_tuple_fetch_row_version(self.table, &mut place, any, self.slot);
        }
    }

    /// # Safety
    /// Nothing is queued.
    unsafe fn close(self) {
        // SAFETY: everything was opened by `open`.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
            pg_sys::ExecResetTupleTable((*self.estate).es_tupleTable, false);
            pg_sys::FreeExecutorState(self.estate);
        }
    }
}
