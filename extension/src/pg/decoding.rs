//! Logical decoding in this process: a temporary slot, an output plugin made of callbacks into a
//! [`Sink`], and a reader that follows the WAL of this server.

use super::relation::RelationRef;
use super::{guc, process, slots, wal, xact};
use pgrx::pg_sys;
use pgrx::{pg_guard, PgSqlErrorCode, PgTryBuilder};
use std::ffi::{c_char, c_int, CStr, CString};

/// Receives what committed transactions did, one transaction after the other in commit order.
///
/// Called with the catalogs as they were when the change was made. Must not start transactions.
pub trait Sink {
    /// Transaction `xid` inserted, updated or deleted a row.
    fn change(&mut self, xid: u32, change: Change<'_>);
    /// Transaction `xid` truncated tables, all at once.
    fn truncate(&mut self, xid: u32, relids: &[u32]);
    /// The transaction whose changes came since the last call has committed.
    fn commit(&mut self, commit: Commit);
    /// Whether decoding shall stop after this transaction although there is more.
    fn is_full(&self) -> bool;
}

/// A committed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its top-level xid.
    pub xid: u32,
    /// End of its commit record.
    pub lsn: u64,
    /// When it committed (PostgreSQL timestamp).
    pub at: i64,
}

/// A change of one row; what the replica identity does not cover is missing from `old`.
pub struct Change<'a> {
    /// The table, as it was then.
    pub relation: RelationRef<'a>,
    /// What was done.
    pub kind: ChangeKind,
    /// The row before, or its identity; `None` for inserts and for updates that keep the identity.
    pub old: Option<TupleRef<'a>>,
    /// The row after; `None` for deletes.
    pub new: Option<TupleRef<'a>>,
}

/// Kind of a [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Insert,
    Update,
    Delete,
}

/// A decoded row, valid within the callback.
#[derive(Clone, Copy)]
pub struct TupleRef<'a> {
    pub(super) tuple: pg_sys::HeapTuple,
    pub(super) life: std::marker::PhantomData<&'a ()>,
}

extern "C-unwind" {
    /// Exported by the server, missing in the bindings. Raises errors: call it guarded.
    #[link_name = "LogicalDecodingProcessRecord"]
    fn process_record(
        context: *mut pg_sys::LogicalDecodingContext,
        record: *mut pg_sys::XLogReaderState,
    );
}

/// Plain C symbols as callbacks, without a Rust frame between.
mod reader {
    use super::*;
    extern "C-unwind" {
        pub fn read_local_xlog_page(
            state: *mut pg_sys::XLogReaderState,
            page: u64,
            len: c_int,
            record: u64,
            buffer: *mut c_char,
        ) -> c_int;
        pub fn wal_segment_open(state: *mut pg_sys::XLogReaderState, n: u64, t: *mut u32);
        pub fn wal_segment_close(state: *mut pg_sys::XLogReaderState);
    }
}

fn routine() -> pg_sys::XLogReaderRoutine {
    pg_sys::XLogReaderRoutine {
        page_read: Some(reader::read_local_xlog_page),
        segment_open: Some(reader::wal_segment_open),
        segment_close: Some(reader::wal_segment_close),
    }
}

/// There is no free replication slot.
#[derive(Debug)]
pub struct NoFreeSlot;

/// This process's replication slot, on which a [`Decoder`] can be opened.
pub struct Slot(());

impl Slot {
    /// Takes a temporary slot, which goes with the process.
    pub fn create() -> Result<Slot, NoFreeSlot> {
        allow_output_plugin();
        let name = format!("pg_eddy_{}_{}", process::database(), process::my_pid());
        let name = CString::new(name).expect("digits and letters");
        let create = || {
            xact::run(|| {
                // SAFETY: in a transaction of a process that has no slot yet.
                unsafe {
                    pg_sys::CheckLogicalDecodingRequirements();
                    pg_sys::ReplicationSlotCreate(
                        name.as_ptr(),
                        true,
                        pg_sys::ReplicationSlotPersistency::RS_TEMPORARY,
                        false,
                    );
                }
            });
            Ok(Slot(()))
        };
        PgTryBuilder::new(create)
            .catch_when(PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, |_| {
                xact::abort();
                Err(NoFreeSlot)
            })
            .execute()
    }

    /// Waits for the transactions that are running now, then starts to follow the WAL.
    pub fn open(self) -> Decoder {
        // SAFETY: the slot belongs to this process. The contexts are created within a transaction,
        // or vacuum would take this process's snapshots for those of a walsender; the second one
        // lives in a context of its own beyond the transaction.
        unsafe {
            pg_sys::StartTransactionCommand();
            let initial = pg_sys::CreateInitDecodingContext(
                c"pg_eddy".as_ptr(),
                std::ptr::null_mut(),
                false,
                0,
                &mut routine(),
                None,
                None,
                None,
            );
            pg_sys::DecodingContextFindStartpoint(initial);
            pg_sys::FreeDecodingContext(initial);
            pg_sys::CommitTransactionCommand();

            let memory = new_context(c"pg_eddy decoding");
            let scratch = new_context(c"pg_eddy change");
            pg_sys::StartTransactionCommand();
            let old = pg_sys::MemoryContextSwitchTo(memory);
            let context = pg_sys::CreateDecodingContext(
                0,
                std::ptr::null_mut(),
                false,
                &mut routine(),
                None,
                None,
                None,
            );
            pg_sys::MemoryContextSwitchTo(old);
            pg_sys::CommitTransactionCommand();
            let start = (*pg_sys::MyReplicationSlot).data.restart_lsn;
            pg_sys::XLogBeginRead((*context).reader, start);
            Decoder { context, scratch, pass: new_context(c"pg_eddy pass") }
        }
    }
}

unsafe fn new_context(name: &'static CStr) -> pg_sys::MemoryContext {
    // SAFETY: the name is static, as required.
    unsafe {
        pg_sys::AllocSetContextCreateInternal(
            pg_sys::TopMemoryContext,
            name.as_ptr(),
            0,
            8 << 10,
            8 << 20,
        )
    }
}

/// Minor releases from 15.19 and 17.11 on refuse output plugins that a setting does not list:
/// allows our own library, which is loaded already, in this process only.
fn allow_output_plugin() {
    if guc::exists(c"output_plugin_libraries") {
        guc::set_for_process(c"output_plugin_libraries", c"pg_eddy");
    }
}

/// Follows the WAL.
pub struct Decoder {
    context: *mut pg_sys::LogicalDecodingContext,
    scratch: pg_sys::MemoryContext,
    pass: pg_sys::MemoryContext,
}

/// What the callbacks find behind the context's private pointer.
struct Call<'a> {
    sink: &'a mut dyn Sink,
    scratch: pg_sys::MemoryContext,
}

impl Decoder {
    /// End of the last record read.
    pub fn position(&self) -> u64 {
        // SAFETY: the context lives as long as `self`.
        unsafe { (*(*self.context).reader).EndRecPtr }
    }

    /// Reads the records that are on disk and begin before `target`, until the sink is full.
    pub fn decode_to(&mut self, target: u64, sink: &mut dyn Sink) {
        let target = target.min(wal::flush_lsn());
        let mut call = Call { sink, scratch: self.scratch };
        // SAFETY: `call` outlives the loop, and the pointer to it is reset after the loop; after an
        // error the process ends without using the context again.
        unsafe {
            let reader = (*self.context).reader;
            (*self.context).output_writer_private = (&raw mut call).cast();
            let old = pg_sys::CurrentMemoryContext;
            while self.position() < target && !call.sink.is_full() {
                // The reader keeps large records beyond this call.
                pg_sys::MemoryContextSwitchTo((*self.context).context);
                let mut message: *mut c_char = std::ptr::null_mut();
                let record = pg_sys::XLogReadRecord(reader, &mut message);
                if !message.is_null() {
                    let message = CStr::from_ptr(message).to_string_lossy();
                    pgrx::error!("pg_eddy: could not read WAL: {message}");
                }
                if record.is_null() {
                    break;
                }
                pg_sys::MemoryContextSwitchTo(self.pass);
                pg_sys::ffi::pg_guard_ffi_boundary(|| process_record(self.context, reader));
                process::check_interrupts();
            }
            pg_sys::MemoryContextSwitchTo(old);
            pg_sys::MemoryContextReset(self.pass);
            (*self.context).output_writer_private = std::ptr::null_mut();
        }
    }

    /// Lets the server remove WAL that is not needed any more.
    pub fn confirm(&mut self) {
        slots::confirm(self.position())
    }
}

/// Entry point by which PostgreSQL finds the output plugin in a library.
///
/// # Safety
/// Called by PostgreSQL with a valid pointer.
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
}

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

unsafe extern "C-unwind" fn begin(
    _context: *mut pg_sys::LogicalDecodingContext,
    _transaction: *mut pg_sys::ReorderBufferTXN,
) {
}

/// The call in progress. Callbacks happen within [`Decoder::decode_to`] only.
unsafe fn call<'a>(context: *mut pg_sys::LogicalDecodingContext) -> &'a mut Call<'a> {
    // SAFETY: `decode_to` set the pointer and waits for this callback to return.
    unsafe { &mut *(*context).output_writer_private.cast::<Call>() }
}

#[pg_guard]
unsafe extern "C-unwind" fn change(
    context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
    relation: pg_sys::Relation,
    change: *mut pg_sys::ReorderBufferChange,
) {
    use pg_sys::ReorderBufferChangeType::*;
    // SAFETY: PostgreSQL passes a valid open relation and change; the action says which member of
    // the union is set. Memory taken by the sink is given back when it returns.
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
        call.sink.change((*transaction).xid.into_inner(), change);
        pg_sys::MemoryContextSwitchTo(old);
        if !(*call.scratch).isReset {
            pg_sys::MemoryContextReset(call.scratch);
        }
    }
}

unsafe fn tuple_ref<'a>(buffer: *mut pg_sys::ReorderBufferTupleBuf) -> Option<TupleRef<'a>> {
    // SAFETY: the buffer, if there is one, is valid during the callback.
    (!buffer.is_null()).then(|| TupleRef {
        tuple: unsafe { &raw mut (*buffer).tuple },
        life: std::marker::PhantomData,
    })
}

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
        let relations = std::slice::from_raw_parts(relations, count as usize);
        let relids: Vec<u32> = relations.iter().map(|rel| (**rel).rd_id.to_u32()).collect();
        call(context).sink.truncate((*transaction).xid.into_inner(), &relids);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn commit(
    context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
    _commit_lsn: pg_sys::XLogRecPtr,
) {
    // SAFETY: PostgreSQL passes a valid transaction.
    unsafe {
        let commit = Commit {
            xid: (*transaction).xid.into_inner(),
            lsn: (*transaction).end_lsn,
            at: (*transaction).xact_time.commit_time,
        };
        call(context).sink.commit(commit);
    }
}

/// Drops what is written into the views' heaps (see `pg::origin`).
unsafe extern "C-unwind" fn filter_by_origin(
    _context: *mut pg_sys::LogicalDecodingContext,
    origin: pg_sys::RepOriginId,
) -> bool {
    origin == super::origin::OF_VIEWS
}
