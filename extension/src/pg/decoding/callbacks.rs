//! The output plugin: what PostgreSQL calls while it decodes, passed on to the [`Sink`](super::Sink).
//!
//! Transactions of which the reorder buffer remembers more than `logical_decoding_work_mem` are handed over while they
//! run ("streamed"). All callbacks that this needs are here, and none for prepared transactions: with one of those,
//! decoding at PREPARE would be on; without, a prepared transaction is like any that runs until COMMIT PREPARED.
//!
//! What a running transaction did may have been rolled back by the time it is decoded, and its catalog rows may be gone.
//! Scans of catalogs raise `ERRCODE_TRANSACTION_ROLLBACK` then; the reorder buffer takes it for the end of the piece, drops
//! what else it remembers of that part, and calls `stream_stop`. The guards around these callbacks let it pass as it is,
//! and the callback for an abort comes for what had been handed over when the record of the rollback is read.

use super::{process, Call, Change, ChangeKind, Commit, Part, TupleRef};
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::ids::RelationId;
use crate::pg::inval;
use crate::pg::relation::RelationRef;
use crate::pg::versions::tuple;
use pgrx::pg_guard;
use pgrx::pg_sys;
use std::collections::HashSet;
use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

/// Entry point by which PostgreSQL finds the output plugin in a library.
///
/// # Safety
/// Called by PostgreSQL with a valid pointer.
/// Unguarded: fills in a table.
#[no_mangle]
pub unsafe extern "C-unwind" fn _PG_output_plugin_init(
    callbacks: *mut pg_sys::OutputPluginCallbacks,
) {
    // SAFETY: per contract.
    let callbacks = unsafe { &mut *callbacks };
    callbacks.startup_cb = Some(startup);
    callbacks.begin_cb = Some(begin);
    callbacks.change_cb = Some(change);
    callbacks.truncate_cb = Some(truncate);
    callbacks.commit_cb = Some(commit);
    callbacks.filter_by_origin_cb = Some(filter_by_origin);
    callbacks.stream_start_cb = Some(resume_running);
    callbacks.stream_stop_cb = Some(pause_running);
    callbacks.stream_change_cb = Some(change_while_running);
    callbacks.stream_truncate_cb = Some(truncate_while_running);
    callbacks.stream_abort_cb = Some(abort_running);
    callbacks.stream_commit_cb = Some(commit_running);
}

/// # Safety
/// For PostgreSQL to call, as this callback of the output plugin.
#[pg_guard]
unsafe extern "C-unwind" fn startup(
    _context: *mut pg_sys::LogicalDecodingContext,
    options: *mut pg_sys::OutputPluginOptions,
    _is_init: bool,
) {
    // Only our own worker may use this plugin: it delivers to memory, not to a client.
    if !process::is_ours() {
        pgrx::error!("output plugin \"pg_eddy\" is for internal use only");
    }
    // SAFETY: PostgreSQL passes valid options.
    unsafe {
        (*options).output_type = pg_sys::OutputPluginOutputType::OUTPUT_PLUGIN_BINARY_OUTPUT;
    }
}

/// Unguarded: sets a variable.
///
/// # Safety
/// For PostgreSQL to call, as this callback of the output plugin.
unsafe extern "C-unwind" fn begin(
    _context: *mut pg_sys::LogicalDecodingContext,
    _transaction: *mut pg_sys::ReorderBufferTXN,
) {
    // A piece of another transaction may have come with the same record.
    inval::heed();
}

/// The call in progress. Callbacks happen within [`Decoder::decode_to`](super::Decoder::decode_to) only.
///
/// # Safety
/// A context in which [`decode_to`](super::Decoder::decode_to) is at work; the result must not outlive the callback.
unsafe fn call<'a>(context: *mut pg_sys::LogicalDecodingContext) -> &'a mut Call<'a> {
    // SAFETY: `decode_to` set the pointer and waits for this callback to return.
    unsafe { &mut *(*context).output_writer_private.cast::<Call>() }
}

/// Hands a change over to the sink.
///
/// # Safety
/// As in a callback: a valid context, open relation and change.
unsafe fn deliver(
    context: *mut pg_sys::LogicalDecodingContext,
    relation: pg_sys::Relation,
    change: *mut pg_sys::ReorderBufferChange,
    take: impl FnOnce(&mut dyn super::Sink, Change<'_>),
) {
    use pg_sys::ReorderBufferChangeType::*;
    // SAFETY: per contract; the action says which member of the union is set. Memory taken by the sink is given back when it
    // returns, or, when an error was raised, at the next change.
    unsafe {
        let call = call(context);
        let kind = match (*change).action {
            REORDER_BUFFER_CHANGE_INSERT => ChangeKind::Insert,
            REORDER_BUFFER_CHANGE_UPDATE => ChangeKind::Update,
            REORDER_BUFFER_CHANGE_DELETE => ChangeKind::Delete,
            _ => return,
        };
        let tuples = &(*change).data.tp;
        let change = Change {
            relation: RelationRef::new(relation),
            kind,
            old: tuple_ref(tuples.oldtuple),
            new: tuple_ref(tuples.newtuple),
        };
        let old = pg_sys::MemoryContextSwitchTo(call.scratch);
        take(call.sink, change);
        pg_sys::MemoryContextSwitchTo(old);
        if !(*call.scratch).isReset {
            pg_sys::MemoryContextReset(call.scratch);
        }
    }
}

/// # Safety
/// For PostgreSQL to call, as this callback of the output plugin.
#[pg_guard]
unsafe extern "C-unwind" fn change(
    context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
    relation: pg_sys::Relation,
    change: *mut pg_sys::ReorderBufferChange,
) {
    // SAFETY: PostgreSQL passes a valid transaction, open relation and change.
    unsafe {
        let xid = (*transaction).xid.into_inner();
        deliver(context, relation, change, |sink, change| sink.change(xid, change));
    }
}

/// A tuple, if there is one.
///
/// # Safety
/// Null, or a tuple that lives as long as the result.
unsafe fn tuple_ref<'a>(row: tuple::Decoded) -> Option<TupleRef<'a>> {
    // SAFETY: the row, if there is one, is valid during the callback.
    (!row.is_null())
        .then(|| TupleRef { tuple: unsafe { tuple::decoded(row) }, life: std::marker::PhantomData })
}

/// # Safety
/// There are that many open relations.
unsafe fn oids(count: c_int, relations: *mut pg_sys::Relation) -> Vec<RelationId> {
    // SAFETY: per contract.
    unsafe {
        let relations = std::slice::from_raw_parts(relations, count as usize);
        relations.iter().map(|relation| (**relation).rd_id.into()).collect()
    }
}

/// # Safety
/// For PostgreSQL to call, as this callback of the output plugin.
#[pg_guard]
unsafe extern "C-unwind" fn truncate(
    context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
    count: c_int,
    relations: *mut pg_sys::Relation,
    _change: *mut pg_sys::ReorderBufferChange,
) {
    // SAFETY: PostgreSQL passes that many open relations.
    unsafe {
        call(context).sink.truncate((*transaction).xid.into_inner(), &oids(count, relations));
    }
}

/// # Safety
/// For PostgreSQL to call, as this callback of the output plugin.
#[pg_guard]
unsafe extern "C-unwind" fn commit(
    context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
    _commit_lsn: pg_sys::XLogRecPtr,
) {
    // SAFETY: PostgreSQL passes a valid transaction.
    unsafe { call(context).sink.commit(commit_of(transaction)) }
}

/// Drops what is written into the views' heaps (see `pg::origin`).
/// Unguarded: compares numbers.
///
/// # Safety
/// For PostgreSQL to call, as this callback of the output plugin.
unsafe extern "C-unwind" fn filter_by_origin(
    _context: *mut pg_sys::LogicalDecodingContext,
    origin: pg_sys::RepOriginId,
) -> bool {
    origin == crate::pg::origin::OF_VIEWS
}

/// A piece of a running transaction begins.
///
/// Between two pieces the caches have served others, who do not see what this transaction did to the catalogs.
///
/// # Safety
/// For PostgreSQL to call, as this callback of the output plugin.
#[pg_guard]
unsafe extern "C-unwind" fn resume_running(
    _context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
) {
    super::IN_PIECE.store(true, Relaxed);
    crash_point::reach(CrashPoint::Piece);
    inval::disregard();
    // SAFETY: PostgreSQL passes the top-level transaction, which is marked when any part of it changed catalogs.
    if unsafe { (*transaction).txn_flags } & pg_sys::RBTXN_HAS_CATALOG_CHANGES != 0 {
        inval::empty_caches();
    }
}

/// # Safety
/// A valid change of a running transaction.
unsafe fn part_of(
    transaction: *mut pg_sys::ReorderBufferTXN,
    change: *mut pg_sys::ReorderBufferChange,
) -> Part {
    // SAFETY: per contract; each change says which subtransaction made it.
    unsafe {
        Part {
            transaction: (*transaction).xid.into_inner(),
            xid: (*(*change).txn).xid.into_inner(),
        }
    }
}

/// # Safety
/// For PostgreSQL to call, as this callback of the output plugin.
#[pg_guard]
unsafe extern "C-unwind" fn change_while_running(
    context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
    relation: pg_sys::Relation,
    change: *mut pg_sys::ReorderBufferChange,
) {
    // SAFETY: PostgreSQL passes a valid transaction, open relation and change.
    unsafe {
        let part = part_of(transaction, change);
        deliver(context, relation, change, |sink, change| sink.change_while_running(part, change));
    }
}

/// # Safety
/// For PostgreSQL to call, as this callback of the output plugin.
#[pg_guard]
unsafe extern "C-unwind" fn truncate_while_running(
    context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
    count: c_int,
    relations: *mut pg_sys::Relation,
    change: *mut pg_sys::ReorderBufferChange,
) {
    // SAFETY: PostgreSQL passes a valid transaction and change, and that many open relations.
    unsafe {
        let part = part_of(transaction, change);
        call(context).sink.truncate_while_running(part, &oids(count, relations));
    }
}

/// # Safety
/// For PostgreSQL to call, as this callback of the output plugin.
#[pg_guard]
unsafe extern "C-unwind" fn pause_running(
    context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
) {
    // SAFETY: PostgreSQL passes a valid transaction. After an error its snapshot of the catalogs has been taken down.
    unsafe {
        let can_read_catalogs = pg_sys::HistoricSnapshotActive();
        call(context).sink.pause_running((*transaction).xid.into_inner(), can_read_catalogs);
    }
    super::IN_PIECE.store(false, Relaxed);
}

/// # Safety
/// For PostgreSQL to call, as this callback of the output plugin.
#[pg_guard]
unsafe extern "C-unwind" fn abort_running(
    context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
    _abort_lsn: pg_sys::XLogRecPtr,
) {
    // SAFETY: PostgreSQL passes a valid transaction, which has a parent if it is a subtransaction.
    unsafe {
        let xid = (*transaction).xid.into_inner();
        let parent = (*transaction).toptxn;
        let transaction = if parent.is_null() { xid } else { (*parent).xid.into_inner() };
        call(context).sink.abort_running(Part { transaction, xid });
    }
}

/// # Safety
/// For PostgreSQL to call, as this callback of the output plugin.
#[pg_guard]
unsafe extern "C-unwind" fn commit_running(
    context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
    _commit_lsn: pg_sys::XLogRecPtr,
) {
    // SAFETY: PostgreSQL passes a valid transaction.
    unsafe { call(context).sink.commit_running(commit_of(transaction), parts_of(transaction)) }
}

/// # Safety
/// A valid top-level transaction that has committed.
unsafe fn commit_of(transaction: *mut pg_sys::ReorderBufferTXN) -> Commit {
    // SAFETY: per contract; the record of the commit has been read.
    unsafe {
        Commit {
            xid: (*transaction).xid.into_inner(),
            lsn: (*transaction).end_lsn,
            at: (*transaction).xact_time.commit_time,
        }
    }
}

/// The numbers of a transaction and of its subtransactions but for those that were rolled back, which PostgreSQL takes off the
/// list. Asked for at the end rather than counted as they are rolled back: what is here is what has happened, whoever was told.
///
/// # Safety
/// A valid top-level transaction.
unsafe fn parts_of(transaction: *mut pg_sys::ReorderBufferTXN) -> HashSet<u32> {
    // SAFETY: per contract; the list is a ring that its head is part of, or has never been used.
    unsafe {
        let head = &raw mut (*transaction).subtxns.head;
        let mut parts = HashSet::from([(*transaction).xid.into_inner()]);
        let mut node = (*head).next;
        while !node.is_null() && node != head {
            let part = node.byte_sub(std::mem::offset_of!(pg_sys::ReorderBufferTXN, node));
            parts.insert((*part.cast::<pg_sys::ReorderBufferTXN>()).xid.into_inner());
            node = (*node).next;
        }
        parts
    }
}
