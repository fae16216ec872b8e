//! What sessions ask of the launcher and the workers: to wake up after a commit, to start, to stay
//! away from a database while a command needs it for itself.

use crate::errors::Error;
use crate::outage;
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::shmem::{self, Database};
use crate::pg::xact::{Event, SubEvent};
use crate::pg::{self, evaluate, process, registry, wal, xact};
use crate::settings;
use crate::shared::{self, DatabaseState, Failure};
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::Duration;

/// How long CREATE waits for a worker to come up.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// How long CREATE waits for the launcher, which comes up with the server.
const LAUNCHER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a command waits for a worker to go.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

static IS_LEAVING_NOTED: AtomicBool = AtomicBool::new(false);
static START_AT_COMMIT: AtomicBool = AtomicBool::new(false);
static RESCAN_AT_COMMIT: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Databases whose worker this transaction keeps away, each until the end of the (sub)transaction at that depth.
    static HELD: RefCell<Vec<(u32, i32)>> = const { RefCell::new(Vec::new()) };
    /// Where this session is counted as committing. The slot stays that of its database as long as it is.
    static COMMITTING: Cell<Option<&'static Database>> = const { Cell::new(None) };
    /// Whether what it commits is another transaction, a prepared one.
    static IS_PREPARED: Cell<bool> = const { Cell::new(false) };
}

/// Registers this session's part; in the postmaster, so that all sessions inherit it.
pub fn register() {
    xact::register_callback(on_transaction_event);
    xact::register_sub_callback(on_subtransaction_event);
}

fn on_transaction_event(event: Event) {
    if process::is_ours() {
        return note_written_by_functions(event);
    }
    match event {
        Event::PreCommit => begin_commit(),
        Event::Commit => {
            end_commit(true);
            ask_launcher();
        }
        Event::NotCommitted => {
            end_commit(false);
            START_AT_COMMIT.store(false, Relaxed);
            RESCAN_AT_COMMIT.store(false, Relaxed);
        }
    }
    if event != Event::PreCommit {
        release_held(0);
    }
}

fn on_subtransaction_event(event: SubEvent, depth: i32) {
    match event {
        // What it keeps away the transaction around it does from now on.
        SubEvent::Commit => HELD.with_borrow_mut(|held| {
            held.iter_mut().for_each(|(_, kept_at)| *kept_at = depth.min(*kept_at + 1) - 1);
        }),
        SubEvent::Abort => release_held(depth),
    }
}

/// What functions have written in a worker's transaction is waited for as what sessions write. What they have locked for a session is
/// free again: this one does not end with them.
fn note_written_by_functions(event: Event) {
    let have_run = event != Event::PreCommit && evaluate::take_has_run();
    if have_run {
        xact::release_advisory_locks();
    }
    if have_run && event == Event::Commit {
        if let Some(database) = shared::my_database().filter(|_| xact::has_xid()) {
            database.note_commit(wal::last_commit_end());
        }
    }
}

/// From here until `end_commit` readers cannot know whether this transaction is committed.
fn begin_commit() {
    if xact::has_xid() {
        count_commit();
    }
}

fn count_commit() {
    let Some(database) = shared::my_database().filter(|_| COMMITTING.get().is_none()) else {
        return;
    };
    leave_no_traces();
    database.committing.fetch_add(1, SeqCst);
    // A slot without users may be given to another database.
    if database.oid.load(SeqCst) != process::database() {
        database.committing.fetch_sub(1, SeqCst);
        return;
    }
    COMMITTING.set(Some(database));
    crash_point::reach(CrashPoint::Commit);
}

fn end_commit(committed: bool) {
    let counted = COMMITTING.take();
    let is_prepared = IS_PREPARED.take();
    if committed && (counted.is_some() || xact::has_xid()) {
        if let Some(database) = counted.or_else(shared::my_database) {
            // The end of another transaction's commit record is not known here, but it is not beyond that.
            let end = if is_prepared { wal::insert_lsn() } else { wal::last_commit_end() };
            database.note_commit(end);
        }
    }
    if let Some(database) = counted {
        database.committing.fetch_sub(1, SeqCst);
    }
}

/// COMMIT PREPARED commits another transaction within one of its own: from its first step on readers cannot know whether
/// it has.
pub fn before_commit_prepared() {
    IS_PREPARED.set(true);
    count_commit();
}

/// Whatever comes of the rest of the statement: the other transaction is committed.
pub fn after_commit_prepared() {
    if let Some(database) = shared::my_database() {
        database.note_commit(wal::insert_lsn());
    }
}

/// What a session is counted in must be put right even if its end skips the end of its transaction.
fn leave_no_traces() {
    if !IS_LEAVING_NOTED.swap(true, Relaxed) {
        process::at_last(on_exit);
    }
}

#[pgrx::pg_guard]
extern "C-unwind" fn on_exit(_code: c_int, _argument: pgrx::pg_sys::Datum) {
    if let Some(database) = COMMITTING.take() {
        database.committing.fetch_sub(1, SeqCst);
    }
    release_held(0);
}

fn ask_launcher() {
    let start = START_AT_COMMIT.swap(false, Relaxed);
    let rescan = RESCAN_AT_COMMIT.swap(false, Relaxed);
    let Some(area) = shmem::area().filter(|_| start || rescan) else { return };
    if start {
        shared::ask_for_worker(process::database());
    }
    if rescan {
        area.rescan.store(1, SeqCst);
    }
    area.launcher.wake();
}

/// Has this database's worker started when this transaction commits.
pub fn start_at_commit() {
    START_AT_COMMIT.store(true, Relaxed);
}

/// Has the launcher look for new and lost databases when this transaction commits.
pub fn rescan_at_commit() {
    RESCAN_AT_COMMIT.store(true, Relaxed);
}

/// Fails with 55000 and a hint unless the server was started with what a worker needs.
pub fn require_server() -> Result<(), Error> {
    if !pg::preloaded() {
        return Err(not_preloaded());
    }
    if !wal::level_is_logical() {
        return Err(Error::state("incremental views need wal_level = logical")
            .hint("Set wal_level = logical in postgresql.conf and restart the server."));
    }
    Ok(())
}

fn not_preloaded() -> Error {
    Error::state("pg_eddy was not loaded at server start")
        .hint("Add pg_eddy to shared_preload_libraries in postgresql.conf and restart the server.")
}

/// Fails with 55000 and a hint unless this database's worker runs or is about to, on a server that has what
/// [`require_server`] asks for. In the transaction that creates the extension no worker can be up yet: then only the
/// settings count.
pub fn require_worker() -> Result<(), Error> {
    let Some(area) = shmem::area() else { return Err(not_preloaded()) };
    if wal::max_replication_slots() == 0 {
        return Err(failure_error(Failure::NoReplicationSlot));
    }
    // A worker may not have come yet to views that were created just now.
    let mine = process::database();
    if area.views_of_others(mine) + registry::all().len() >= settings::max_views() {
        return Err(Error::state("too many incremental views")
            .hint("Increase eddy.max_views and restart the server."));
    }
    let Some(database) = shared::database_or_new(process::database()) else {
        return Err(too_many_databases());
    };
    if START_AT_COMMIT.load(Relaxed) {
        return Ok(());
    }
    if !database.state().is_up() {
        shared::ask_for_worker(process::database());
        // Without a free slot at server start there is not even a launcher.
        if !area.changed.wait_until_polling(LAUNCHER_TIMEOUT, || area.launcher.is_set()) {
            return Err(failure_error(Failure::NoWorkerSlot));
        }
        area.launcher.wake();
    }
    let is_settled = || {
        use DatabaseState::*;
        matches!(database.state(), Preparing | Running | Failed)
    };
    if !area.changed.wait_until(Some(START_TIMEOUT), is_settled) {
        let error = Error::state("the worker of this database does not start")
            .hint("See the server log for the reason.");
        return Err(match outage::explain(Some(database)) {
            Some(reason) => error.detail(reason.text),
            None => error,
        });
    }
    match database.failure().filter(|_| database.state() == DatabaseState::Failed) {
        Some(failure) => Err(failure_error(failure)),
        None => Ok(()),
    }
}

/// There is no slot for this database in shared memory.
pub fn too_many_databases() -> Error {
    Error::state("too many databases have incremental views")
        .hint("Increase eddy.max_databases and restart the server.")
}

fn failure_error(failure: Failure) -> Error {
    match failure {
        Failure::NoWorkerSlot => Error::state("no free background worker for this database")
            .hint("Increase max_worker_processes and restart the server."),
        Failure::NoReplicationSlot => Error::state("no free replication slot for this database")
            .hint("Increase max_replication_slots and restart the server."),
        Failure::LaterObjects => {
            let message =
                "the objects of extension \"pg_eddy\" are of a later version than its library";
            Error::state(message)
                .hint("Restart the server, so that it loads the library of that version; install it if it is missing.")
        }
    }
}

/// Ends the worker of a database, waits until it is gone, and keeps it away until the end of
/// this transaction. For commands that want the database for themselves.
pub fn stop_worker_for_database(oid: u32) -> Result<(), Error> {
    let Some(area) = shmem::area() else { return Ok(()) };
    leave_no_traces();
    let Some(database) = shared::hold(oid) else { return Ok(()) };
    HELD.with_borrow_mut(|held| held.push((oid, xact::depth())));
    crash_point::reach(CrashPoint::Hold);
    let mut last_pid = 0;
    let gone = area.changed.wait_until_polling(STOP_TIMEOUT, || {
        let pid = database.living_worker().unwrap_or(0);
        if pid != 0 {
            last_pid = pid;
            process::terminate(pid);
        }
        pid == 0 && !database.state().is_up() && (last_pid == 0 || !process::exists(last_pid))
    });
    if gone {
        return Ok(());
    }
    let error = Error::state("the worker of the database does not stop")
        .hint("See the server log for the reason, and try again.");
    Err(match last_pid {
        0 => error,
        pid => error.detail(format!("Process {pid} has been told to end.")),
    })
}

/// Lets go of what transactions of that depth, and deeper ones, keep away.
fn release_held(depth: i32) {
    let released = HELD.with_borrow_mut(|held| {
        let (released, kept) = held.drain(..).partition(|(_, kept_at)| *kept_at >= depth);
        *held = kept;
        released
    });
    let released: Vec<(u32, i32)> = released;
    if released.is_empty() {
        return;
    }
    for (oid, _) in &released {
        if let Some(database) = shared::database(*oid) {
            database.holders.fetch_sub(1, SeqCst);
            // Not where nobody has looked for the extension yet: the launcher will, in its turn.
            database.change_state(DatabaseState::Stopped, DatabaseState::Requested);
        }
    }
    if let Some(area) = shmem::area() {
        area.rescan.store(1, SeqCst);
        area.launcher.wake();
    }
}
