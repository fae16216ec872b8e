//! What sessions ask of the launcher and the workers: to wake up after a commit, to start, to stay
//! away from a database while a command needs it for itself.

use crate::errors::Error;
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::shmem::{self, Database};
use crate::pg::xact::Event;
use crate::pg::{process, wal, xact};
use crate::shared::{self, DatabaseState, Failure};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::Duration;

/// How long CREATE waits for a worker to come up.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// How long CREATE waits for the launcher, which comes up with the server.
const LAUNCHER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a command waits for a worker to go.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

static COMMITTING: AtomicBool = AtomicBool::new(false);
static START_AT_COMMIT: AtomicBool = AtomicBool::new(false);
static RESCAN_AT_COMMIT: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Databases whose worker this transaction keeps away.
    static HELD: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// Registers this session's part; in the postmaster, so that all sessions inherit it.
pub fn register() {
    xact::register_callback(on_transaction_event);
}

fn on_transaction_event(event: Event) {
    if process::is_ours() {
        return;
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
        release_held();
    }
}

/// From here until `end_commit` readers cannot know whether this transaction is committed.
fn begin_commit() {
    if xact::has_xid() {
        if let Some(database) = shared::my_database() {
            database.committing.fetch_add(1, SeqCst);
            COMMITTING.store(true, Relaxed);
            crash_point::reach(CrashPoint::Commit);
        }
    }
}

fn end_commit(committed: bool) {
    let was_committing = COMMITTING.swap(false, Relaxed);
    let has_news = was_committing || (committed && xact::has_xid());
    if !has_news {
        return;
    }
    let Some(database) = shared::my_database() else { return };
    if committed {
        database.note_commit(wal::last_commit_end());
    }
    if was_committing {
        database.committing.fetch_sub(1, SeqCst);
    }
}

/// COMMIT PREPARED commits another transaction within one of its own: tells the worker of it.
pub fn after_commit_prepared() {
    if let Some(database) = shared::my_database() {
        database.note_commit(wal::insert_lsn());
    }
}

fn ask_launcher() {
    let start = START_AT_COMMIT.swap(false, Relaxed);
    let rescan = RESCAN_AT_COMMIT.swap(false, Relaxed);
    let Some(area) = shmem::area().filter(|_| start || rescan) else { return };
    if start {
        if let Some(database) = shared::database_or_new(process::database()) {
            request(database);
        }
    }
    if rescan {
        area.rescan.store(1, SeqCst);
    }
    area.launcher.wake();
}

/// Asks for the worker. The mark stays when one is just starting, which may have looked for the
/// extension too early.
fn request(database: &Database) {
    database.asked.store(1, SeqCst);
    if !database.state().is_up() {
        database.set_state(DatabaseState::Requested);
    }
}

/// Has this database's worker started when this transaction commits.
pub fn start_at_commit() {
    START_AT_COMMIT.store(true, Relaxed);
}

/// Has the launcher look for new and lost databases when this transaction commits.
pub fn rescan_at_commit() {
    RESCAN_AT_COMMIT.store(true, Relaxed);
}

/// Fails with 55000 and a hint unless this database's worker runs or is about to. In the
/// transaction that creates the extension no worker can be up yet: then only the settings count.
pub fn require_worker() -> Result<(), Error> {
    let Some(area) = shmem::area() else {
        return Err(Error::state("library \"pg_eddy\" is not preloaded")
            .hint("Add pg_eddy to shared_preload_libraries and restart the server."));
    };
    if !wal::level_is_logical() {
        return Err(Error::state("incremental views need wal_level = logical")
            .hint("Set wal_level = logical and restart the server."));
    }
    if wal::max_replication_slots() == 0 {
        return Err(failure_error(Failure::NoReplicationSlot));
    }
    if area.is_full_of_views() {
        return Err(Error::state("too many incremental views")
            .hint("Increase eddy.max_views and restart the server."));
    }
    let Some(database) = shared::database_or_new(process::database()) else {
        return Err(Error::state("too many databases have incremental views"));
    };
    if START_AT_COMMIT.load(Relaxed) {
        return Ok(());
    }
    if !database.state().is_up() {
        request(database);
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
        return Err(Error::state("the worker of this database does not start")
            .hint("See the server log for the reason."));
    }
    match database.failure().filter(|_| database.state() == DatabaseState::Failed) {
        Some(failure) => Err(failure_error(failure)),
        None => Ok(()),
    }
}

fn failure_error(failure: Failure) -> Error {
    match failure {
        Failure::NoWorkerSlot => Error::state("no free background worker for this database")
            .hint("Increase max_worker_processes and restart the server."),
        Failure::NoReplicationSlot => Error::state("no free replication slot for this database")
            .hint("Increase max_replication_slots and restart the server."),
    }
}

/// Ends the worker of a database, waits until it is gone, and keeps it away until the end of
/// this transaction. For commands that want the database for themselves.
pub fn stop_worker_for_database(oid: u32) -> Result<(), Error> {
    let Some(area) = shmem::area() else { return Ok(()) };
    let Some(database) = shared::database_or_new(oid) else { return Ok(()) };
    database.holders.fetch_add(1, SeqCst);
    HELD.with_borrow_mut(|held| held.push(oid));
    crash_point::reach(CrashPoint::Hold);
    let mut last_pid = 0;
    let gone = area.changed.wait_until_polling(STOP_TIMEOUT, || {
        let pid = database.pid.load(SeqCst);
        if pid != 0 {
            last_pid = pid;
            process::terminate(pid);
        }
        pid == 0 && !database.state().is_up() && (last_pid == 0 || !process::exists(last_pid))
    });
    if gone {
        return Ok(());
    }
    Err(Error::state("the worker of the database does not stop")
        .hint("See the server log for the reason, and try again."))
}

fn release_held() {
    let released = HELD.with_borrow_mut(std::mem::take);
    if released.is_empty() {
        return;
    }
    for oid in &released {
        if let Some(database) = shared::database(*oid) {
            database.holders.fetch_sub(1, SeqCst);
            if database.state() != DatabaseState::NoExtension {
                database.set_state(DatabaseState::Requested);
            }
        }
    }
    if let Some(area) = shmem::area() {
        area.rescan.store(1, SeqCst);
        area.launcher.wake();
    }
}
