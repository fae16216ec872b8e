//! Logical decoding in this process: a temporary slot, an output plugin made of [`callbacks`] into a
//! [`Sink`], and a reader that follows the WAL of this server.

mod callbacks;
pub mod own_writes;

use super::relation::RelationRef;
use super::{guc, inval, memory, process, slots, wal, xact};
use crate::pg::ids::RelationId;
use crate::pg::versions;
use pgrx::pg_sys;
use pgrx::{PgSqlErrorCode, PgTryBuilder};
use std::collections::HashSet;
use std::ffi::{c_char, c_int, CStr, CString};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Receives what transactions did.
///
/// Most come when they have committed, each as a whole, one after the other in commit order. Those of which the server
/// remembers too much come in pieces while they run, under the names with `running`; pieces of several may alternate, and
/// their ends come in commit order with the others.
///
/// Changes come with the catalogs as they were when they were made. Must not start transactions.
pub trait Sink {
    /// Transaction `xid` inserted, updated or deleted a row.
    fn change(&mut self, xid: u32, change: Change<'_>);
    /// Transaction `xid` truncated tables, all at once.
    fn truncate(&mut self, xid: u32, relids: &[RelationId]);
    /// The transaction whose changes came since the last call has committed.
    fn commit(&mut self, commit: Commit);
    /// Whether decoding shall stop after this transaction although there is more.
    fn is_full(&self) -> bool;

    /// Part of a running transaction inserted, updated or deleted a row. Whether it stays is not known yet.
    ///
    /// A part that has been rolled back already may raise an error of the catalogs out of this call, which must pass.
    fn change_while_running(&mut self, part: Part, change: Change<'_>);
    /// Part of a running transaction truncated tables, all at once.
    fn truncate_while_running(&mut self, part: Part, relids: &[RelationId]);
    /// The changes of running transaction `xid` end here for now. The catalogs cannot be read if a part of it was found to
    /// have been rolled back.
    fn pause_running(&mut self, xid: u32, can_read_catalogs: bool);
    /// What this part did has not happened; the transaction goes on, unless it is the whole of it.
    fn abort_running(&mut self, part: Part);
    /// A transaction has committed whose changes came while it ran, and with it these parts: what others did has not
    /// happened, even if nobody has said so. The catalogs cannot be read.
    fn commit_running(&mut self, commit: Commit, parts: HashSet<u32>);
}

/// A transaction that has committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its number, without the epoch.
    pub xid: u32,
    /// Where its record in the WAL ends.
    pub lsn: u64,
    /// When that was, as PostgreSQL counts microseconds.
    pub at: i64,
}

/// Who made a change within a running transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The top-level xid.
    pub transaction: u32,
    /// The xid of the subtransaction, or again that of the transaction.
    pub xid: u32,
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

/// Kilobytes of changes that the server remembers of running transactions before it hands over those of the largest: so
/// much is left to be done at a commit, some ten thousand rows. Less, if the server's setting is less.
const REMEMBERED: u64 = 4096;

fn limit_what_is_remembered() {
    // In kilobytes.
    let of_server = guc::get(c"logical_decoding_work_mem").parse().unwrap_or(REMEMBERED);
    let least = CString::new(REMEMBERED.min(of_server).to_string()).expect("digits");
    guc::set_for_process(c"logical_decoding_work_mem", &least);
}

/// Set while a piece of a running transaction is decoded.
static IN_PIECE: AtomicBool = AtomicBool::new(false);

/// Whether the error that ends this process was raised while a piece of a running transaction was decoded.
///
/// Releases of PostgreSQL, 16.14 and 18.6 among them, lose a table ("could not map filenumber") when a part of the transaction that
/// changed the table's definition was rolled back and a later part changes it too. Whole transactions they decode well.
pub fn has_failed_in_piece() -> bool {
    IN_PIECE.load(Relaxed)
}

/// When transactions of which the server remembers too much are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Large {
    /// Piece by piece, while they run.
    WhileRunning,
    /// When they have committed, like others.
    Committed,
}

/// There is no free replication slot.
#[derive(Debug)]
pub struct NoFreeSlot;

/// Why a slot was not taken.
#[derive(Clone, Copy)]
enum NotTaken {
    NoneFree,
    NameInUse,
}

/// How long a process may take to end that has a slot for the same database.
const PREDECESSOR_ENDS: Duration = Duration::from_secs(2);

/// This process's replication slot, on which a [`Decoder`] can be opened.
pub struct Slot {
    /// Where decoding goes on, of one that was there; else it begins after the transactions that are running.
    from: Option<u64>,
    /// Whether it stays when the process ends.
    lasts: bool,
}

/// What a database's slot is called.
fn usual_name() -> String {
    format!("pg_eddy_{}", process::database())
}

impl Slot {
    /// Takes a new slot, which goes with the process unless it lasts. Its name is always the same for a database, unless somebody
    /// else has a slot of that name and keeps it: this process's predecessor may be about to end. One that lasts has no other name.
    pub fn create(lasts: bool) -> Result<Slot, NoFreeSlot> {
        allow_output_plugin();
        limit_what_is_remembered();
        let name = usual_name();
        let began = Instant::now();
        loop {
            match Slot::take(&name, lasts) {
                Err(NotTaken::NameInUse) if began.elapsed() < PREDECESSOR_ENDS => {
                    process::wait_for_latch(Duration::from_millis(10));
                }
                Err(NotTaken::NameInUse) => break,
                Err(NotTaken::NoneFree) => return Err(NoFreeSlot),
                Ok(slot) => return Ok(slot),
            }
        }
        let other = format!("{name}_{}", process::my_pid());
        pgrx::log!("pg_eddy: somebody else has replication slot \"{name}\", using \"{other}\"");
        Slot::take(&other, false).map_err(|_| NoFreeSlot)
    }

    /// Takes the slot that this process's predecessor has left, if it holds the WAL from a position on.
    pub fn resume(from: u64) -> Option<Slot> {
        allow_output_plugin();
        limit_what_is_remembered();
        let holds = |slot: &pg_sys::ReplicationSlot| {
            let begins = slot.data.restart_lsn;
            begins != 0 && begins <= from && slot.data.confirmed_flush <= from
        };
        wait_for_predecessor();
        let is_there = with_own(|slot| holds(slot) && !versions::slot::is_invalidated(slot));
        if is_there != Some(true) || from > wal::flush_lsn() {
            return None;
        }
        let name = CString::new(usual_name()).expect("digits and letters");
        let acquire = || {
            xact::run(|| {
                // SAFETY: in a transaction of a process that has no slot yet.
                unsafe {
                    pg_sys::CheckLogicalDecodingRequirements();
                    versions::slot::acquire(&name);
                }
            });
            slots::hold_no_rows();
            Some(Slot { from: Some(from), lasts: true })
        };
        PgTryBuilder::new(acquire)
            .catch_others(|_| {
                xact::abort();
                None
            })
            .execute()
    }

    /// Whether a predecessor has left one that lasts.
    pub fn is_any_left() -> bool {
        with_own(|_| ()).is_some()
    }

    /// Drops the slot that a predecessor has left, if there is one that nobody has.
    pub fn remove_left() {
        wait_for_predecessor();
        if with_own(|_| ()).is_none() {
            return;
        }
        let name = CString::new(usual_name()).expect("digits and letters");
        let remove = || {
            // SAFETY: in a transaction of a process that has no slot.
            xact::run(|| unsafe { pg_sys::ReplicationSlotDrop(name.as_ptr(), true) });
        };
        PgTryBuilder::new(remove).catch_others(|_| xact::abort()).execute();
    }

    fn take(name: &str, lasts: bool) -> Result<Slot, NotTaken> {
        let name = CString::new(name).expect("digits and letters");
        let create = || {
            xact::run(|| {
                // SAFETY: in a transaction of a process that has no slot yet.
                unsafe {
                    pg_sys::CheckLogicalDecodingRequirements();
                    versions::slot::create(&name, lasts);
                }
            });
            Ok(Slot { from: None, lasts })
        };
        let fail = |reason| {
            xact::abort();
            Err(reason)
        };
        PgTryBuilder::new(create)
            .catch_when(PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, |_| {
                fail(NotTaken::NoneFree)
            })
            .catch_when(PgSqlErrorCode::ERRCODE_DUPLICATE_OBJECT, |_| fail(NotTaken::NameInUse))
            .execute()
    }

    /// Waits for the transactions that are running now, then starts to follow the WAL; or goes on.
    pub fn open(self, large: Large) -> Decoder {
        // SAFETY: the slot belongs to this process. The contexts are created within a transaction, or vacuum would take
        // this process's snapshots for those of a walsender; the second one lives in memory of its own beyond the
        // transaction.
        unsafe {
            if self.from.is_none() {
                xact::run_without_snapshot(|| {
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
                    if self.lasts {
                        pg_sys::ReplicationSlotPersist();
                    }
                });
            }
            let context = xact::run_without_snapshot(|| {
                let old = pg_sys::MemoryContextSwitchTo(new_context(c"pg_eddy decoding"));
                let (none, routine) = (std::ptr::null_mut(), &mut routine());
                let from = self.from.unwrap_or(0);
                let context =
                    pg_sys::CreateDecodingContext(from, none, false, routine, None, None, None);
                pg_sys::MemoryContextSwitchTo(old);
                (*context).streaming &= large == Large::WhileRunning;
                context
            });
            let start = (*pg_sys::MyReplicationSlot).data.restart_lsn;
            pg_sys::XLogBeginRead((*context).reader, start);
            own_writes::begin();
            let (scratch, pass) = (new_context(c"pg_eddy change"), new_context(c"pg_eddy pass"));
            Decoder { context, scratch, pass, lasts: self.lasts }
        }
    }
}

/// Whoever had the slot that lasts may be about to end.
fn wait_for_predecessor() {
    let began = Instant::now();
    let is_in_use = || with_own(|slot| slot.active_pid).is_some_and(|pid| pid != 0);
    while is_in_use() && began.elapsed() < PREDECESSOR_ENDS {
        process::wait_for_latch(Duration::from_millis(10));
    }
}

/// Looks at the slot of this database, if one lasts.
fn with_own<R>(look: impl FnOnce(&pg_sys::ReplicationSlot) -> R) -> Option<R> {
    let name = CString::new(usual_name()).expect("digits and letters");
    // SAFETY: slots are never unmapped; whoever drops this one is a predecessor, which has ended, or a superuser.
    unsafe {
        let slot = pg_sys::SearchNamedReplicationSlot(name.as_ptr(), true);
        let slot = slot.as_ref().filter(|slot| {
            let kind = pg_sys::ReplicationSlotPersistency::RS_PERSISTENT;
            let is_ours = CStr::from_ptr(slot.data.plugin.data.as_ptr()) == c"pg_eddy";
            let is_here = slot.data.database.to_u32() == process::database();
            slot.data.persistency == kind && is_ours && is_here
        })?;
        Some(look(slot))
    }
}

fn new_context(name: &'static CStr) -> pg_sys::MemoryContext {
    // SAFETY: that context lives as long as the process.
    unsafe { memory::new_context(pg_sys::TopMemoryContext, name) }
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
    /// Whether the slot stays when the process ends.
    lasts: bool,
}

/// Records between two looks at the clock.
const LOOK_EVERY: u32 = 32;

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

    /// Reads the records that are on disk and begin before `target`, until the sink is full or the time is over.
    ///
    /// Within a transaction: the server then replays each source transaction in a subtransaction, and not in a
    /// transaction of its own, which it aborts, and which the statistics of the database would count as rolled back.
    pub fn decode_to(&mut self, target: u64, time: Duration, sink: &mut dyn Sink) {
        xact::run_without_snapshot(|| self.decode_in_transaction(target, time, sink));
    }

    fn decode_in_transaction(&mut self, target: u64, time: Duration, sink: &mut dyn Sink) {
        let target = target.min(wal::flush_lsn());
        let until = Instant::now() + time;
        let mut count = 0u32;
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
                own_writes::mark(reader, self.position());
                pg_sys::MemoryContextSwitchTo(self.pass);
                pg_sys::ffi::pg_guard_ffi_boundary(|| process_record(self.context, reader));
                inval::heed();
                process::check_interrupts();
                count += 1;
                if count.is_multiple_of(LOOK_EVERY) && Instant::now() >= until {
                    break;
                }
            }
            pg_sys::MemoryContextSwitchTo(old);
            pg_sys::MemoryContextReset(self.pass);
            (*self.context).output_writer_private = std::ptr::null_mut();
        }
    }

    /// Lets the server remove WAL that is not needed any more: that of a slot that lasts is, until somebody says how far.
    pub fn confirm(&mut self) {
        if !self.lasts {
            slots::confirm(self.position());
        }
    }

    /// Whether the slot stays when the process ends.
    pub fn lasts(&self) -> bool {
        self.lasts
    }

    /// Has it written to the WAL which transactions are running, so that a later decoder need not begin long before that.
    pub fn note_running(&mut self) {
        slots::forget_candidates();
        // SAFETY: in a transaction, and not in recovery: there is no worker then.
        xact::run(|| unsafe { pg_sys::LogStandbySnapshot() });
    }

    /// What was committed before a position is not going to be decoded again, by whoever has the slot.
    pub fn confirm_for_good(&mut self, position: u64) {
        // SAFETY: the slot belongs to this process; outside of transactions of its own, as walsenders call it.
        unsafe { pg_sys::LogicalConfirmReceivedLocation(position) }
    }

    /// Nobody is going to need the slot any more, also where it lasts.
    pub fn give_up(&mut self) {
        if self.lasts {
            // SAFETY: this process has the slot, and is about to end.
            unsafe { pg_sys::ReplicationSlotRelease() };
            Slot::remove_left();
        }
    }
}
