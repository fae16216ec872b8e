//! PostgreSQL's book of what serializable transactions have read, in which it finds conflicts.

use crate::pg::ids::RelationId;
use crate::pg::read::Read;
use crate::pg::relation::{self, with_relation, Lock, RelationRef};
use crate::pg::versions::process::{holder, Holder};
use crate::pg::{process, xact};
use pgrx::pg_sys::{self, TransactionId};
use std::collections::BTreeSet;

/// PostgreSQL's functions that pgrx does not know.
mod raw {
    #![allow(non_snake_case)]
    use pgrx::pg_sys;
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" {
        pub fn PredicateLockRelation(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot);
        pub fn CheckForSerializableConflictOut(
            relation: pg_sys::Relation,
            xid: pg_sys::TransactionId,
            snapshot: pg_sys::Snapshot,
        );
    }
}

/// How often signals are looked at.
const INTERRUPT_EVERY: u32 = 1024;

/// Notes that this transaction has read the whole of some tables under the snapshot of a statement, and who may
/// have written there what the snapshot does not see. Raises 40001 if that cannot be.
pub fn note_read_of(tables: &[RelationId], read: &Read) {
    for table in tables {
        with_relation(*table, Lock::AccessShare, |table| {
            // SAFETY: an open relation, and a registered snapshot.
            unsafe { raw::PredicateLockRelation(table.raw, read.snapshot()) }
        });
    }
    // From here on whoever writes finds those locks. Whoever has written has a number, and as long as it runs
    // holds a lock on the table.
    let writers = writers_of(tables);
    let next = xact::next_full_xid() as u32;
    for table in tables {
        let note = |table: RelationRef<'_>| note_unseen_writers(table, read, next, &writers);
        // The transactions are looked up by their numbers alone, so one table will do. Materialized views are of
        // no interest to PostgreSQL here.
        if with_relation(*table, Lock::AccessShare, |table| is_table(table) && note(table))
            == Some(true)
        {
            break;
        }
    }
}

fn is_table(relation: RelationRef<'_>) -> bool {
    matches!(relation.kind(), b'r' | b'p')
}

fn note_unseen_writers(
    table: RelationRef<'_>,
    read: &Read,
    next: u32,
    writers: &BTreeSet<u32>,
) -> bool {
    for_each_unseen(read, next, |xid| {
        let is_elsewhere = !writers.contains(&xid) && xact::is_in_progress(xid);
        if !is_elsewhere {
            // SAFETY: an open relation, a registered snapshot, the number of a transaction.
            unsafe {
                let xid = TransactionId::from(xid);
                raw::CheckForSerializableConflictOut(table.raw, xid, read.snapshot());
            }
        }
    });
    true
}

/// Calls `visit` with all numbers of transactions below `next` that a statement's snapshot does not see.
fn for_each_unseen(read: &Read, next: u32, mut visit: impl FnMut(u32)) {
    // SAFETY: a registered snapshot, whose array has the length it says.
    let (running, mut xid) = unsafe {
        let snapshot = &*read.snapshot();
        let running = match snapshot.xcnt {
            0 => &[],
            count => std::slice::from_raw_parts(snapshot.xip, count as usize),
        };
        (running, snapshot.xmax.into_inner())
    };
    running.iter().for_each(|xid| visit(xid.into_inner()));
    while (xid.wrapping_sub(next) as i32) < 0 {
        if TransactionId::from(xid) >= pg_sys::FirstNormalTransactionId {
            visit(xid);
        }
        if xid % INTERRUPT_EVERY == 0 {
            process::check_interrupts();
        }
        xid = xid.wrapping_add(1);
    }
}

/// The numbers of running transactions that hold locks of writers on tables.
fn writers_of(tables: &[RelationId]) -> BTreeSet<u32> {
    let mut writers = BTreeSet::new();
    for table in tables {
        let tag = relation::lock_tag(*table);
        // SAFETY: the list is a copy, as long as it says; backends that are gone have no process. One that has
        // taken another's place meanwhile is one writer too many.
        unsafe {
            let mut count = 0;
            let holders =
                pg_sys::GetLockConflicts(&tag, pg_sys::ShareLock as pg_sys::LOCKMODE, &mut count);
            for index in 0..usize::try_from(count).unwrap_or(0) {
                match holder(&*holders.add(index)) {
                    Holder::Prepared(xid) => writers.insert(xid),
                    Holder::Process(process) => writers.insert((*process).xid.into_inner()),
                    Holder::Gone => continue,
                };
            }
        }
    }
    writers
}
