//! Rows that this process has written into tables beside views, of which decoding need not remember anything.
//!
//! They carry no origin, so that whoever subscribes to such a table gets them. Here nobody reads them but a view over such a table;
//! where there is none they would be collected, a row at a time, only to be thrown away: as much work as writing them.

use crate::pg::ids::RelationId;
use crate::pg::relation::{with_relation, Lock, RelationRef};
use crate::pg::versions::wal::file_of_record;
use crate::pg::{origin, wal, xact};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};

/// Rows that were written by a (sub)transaction of this process.
struct Written {
    xid: u32,
    table: RelationId,
    /// Of the table, and of what is stored out of line.
    files: [Option<u32>; 2],
    /// Their records are before this position.
    end: u64,
}

thread_local! {
    /// The tables that are read by views.
    static READ: RefCell<HashSet<RelationId>> = RefCell::default();
    /// What has not been decoded, in a process that decodes.
    static WRITTEN: RefCell<Option<VecDeque<Written>>> = const { RefCell::new(None) };
}

/// This process decodes from now on: an assistant, which writes such rows, too, does not.
pub(super) fn begin() {
    WRITTEN.set(Some(VecDeque::new()));
}

/// These tables, and no others, are read by views from now on.
pub fn note_read(tables: impl Iterator<Item = RelationId>) {
    READ.set(tables.collect());
}

/// Whether views read any of these tables.
pub fn are_read(tables: impl IntoIterator<Item = RelationId>) -> bool {
    READ.with_borrow(|read| tables.into_iter().any(|table| read.contains(&table)))
}

/// The (sub)transaction at hand has written what it writes into a table.
pub fn note(table: &RelationRef<'_>) {
    let decodes = WRITTEN.with_borrow(Option::is_some);
    let Some(xid) = xact::my_sub_xid().filter(|_| decodes) else { return };
    let out_of_line =
        table.toast().and_then(|id| with_relation(id, Lock::AccessShare, |t| t.file()));
    let files = [Some(table.file()), out_of_line];
    let written = Written { xid, table: table.id(), files, end: wal::insert_lsn() };
    WRITTEN.with_borrow_mut(|all| {
        if let Some(all) = all {
            all.push_back(written);
        }
    });
}

/// Marks the record that has been read, and ends at a position, if it is of such rows and no view reads their table.
///
/// # Safety
/// A reader that has read a record.
pub(super) unsafe fn mark(reader: *mut pg_sys::XLogReaderState, position: u64) {
    WRITTEN.with_borrow_mut(|all| {
        let Some(all) = all else { return };
        while all.front().is_some_and(|written| written.end < position) {
            all.pop_front();
        }
        if all.is_empty() {
            return;
        }
        // SAFETY: per contract.
        let record = unsafe { &mut *(*reader).record };
        let xid = record.header.xl_xid.into_inner();
        // SAFETY: per contract.
        let file = || unsafe { file_of_record(reader) };
        let is_of = |written: &&Written| written.xid == xid && written.files.contains(&file());
        let own = all.iter().find(is_of).filter(|written| !are_read([written.table]));
        if own.is_some() {
            record.record_origin = origin::OF_VIEWS;
        }
    });
}
