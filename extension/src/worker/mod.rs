//! The background processes: the launcher, and one worker per database with the extension.

mod apply;
mod assistant;
mod attach;
mod capture;
mod changelog;
mod checkpoints;
mod choose;
mod chosen;
mod clock;
mod compute;
mod engine;
mod entries;
mod evaluate;
mod feed;
mod finished;
mod former;
mod heap;
mod held_wal;
mod indexes;
mod kept_plans;
mod launcher;
mod main_loop;
mod mirror;
mod naming;
mod output;
mod passing;
mod problem;
mod reading;
mod reload;
mod retention;
mod sources;
mod stack;
mod states;
mod stored;
mod suspects;
mod task;
mod telling;
mod turns;
mod view;
mod without_engine;
mod write;

use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::decoding::{self, Large, NoFreeSlot, Slot};
use crate::pg::shmem::{self, Database};
use crate::pg::{confinement, guc, inval, markers, process, quiet, registry, wal, xact};
use crate::shared::{self, DatabaseState, Ending, Failure};
use checkpoints::Checkpoints;
use main_loop::Worker;
use rules::versions::{self, Objects};
use std::ffi::c_int;
use std::sync::atomic::Ordering::*;
use suspects::Suspects;
use task::STOPPING;

/// Set-up at library load.
pub fn register() {
    // pg_upgrade copies the files of a server that must not write anything by itself.
    if !process::is_binary_upgrade() {
        process::register_launcher(c"pg_eddy launcher", c"pg_eddy_launcher");
    }
}

/// Entry point of a worker, called by PostgreSQL with the database's OID.
#[pgrx::pg_guard]
#[no_mangle]
pub extern "C-unwind" fn pg_eddy_worker(argument: pgrx::pg_sys::Datum) {
    process::connect(argument.value() as u32);
    crash_point::reach(CrashPoint::WorkerConnect);
    let Some(database) = shared::my_database() else { process::exit(0) };
    if !database.claim() {
        // Another worker owns the database: a launcher that came after another's end could not know.
        process::exit(0);
    }
    process::at_exit(on_exit);
    let note = |message: &str| {
        database.set_ending(Ending::Error, message);
        if decoding::has_failed_in_piece() {
            database.whole_only.store(1, SeqCst);
        }
    };
    xact::noting_error(|| work_for(database), note)
}

/// What a worker does that owns its database. Nothing here has a limit of time: what it waits for ends, or `outage`
/// names it.
fn work_for(database: &'static Database) -> ! {
    crash_point::reach(CrashPoint::WorkerOwn);
    let is_after_engine = database.ending() == Ending::Engine;
    database.begin_anew();
    database.activity.reset(xact::now());
    database.worker.set_to_mine();
    if database.holders.load(SeqCst) > 0 {
        database.set_state(DatabaseState::Stopped);
        process::exit(0);
    }
    if xact::run(registry::extension).is_none() {
        Slot::remove_left();
        database.set_state(DatabaseState::NoExtension);
        process::exit(0);
    }
    check_objects(database);
    database.starts.fetch_add(1, SeqCst);
    let (slot, checkpoints) = take_slot(database);
    crash_point::reach(CrashPoint::WorkerSlot);
    let decoder = slot.open(when_to_decode_large(database));
    xact::run(xact::wait_for_committed_to_end);
    prepare();
    inval::register();
    assistant::files::remove_of(process::database());
    let suspects = Suspects::new(markers::open(process::database()), is_after_engine);
    database.set_state(DatabaseState::Running);
    pgrx::log!("pg_eddy: worker follows the WAL from {}", wal::display(decoder.position()));
    crash_point::reach(CrashPoint::WorkerRun);
    Worker::new(database, (decoder, checkpoints), suspects).run()
}

/// Leaves where the SQL objects are of a later version than the library: nobody knows what they expect of it.
fn check_objects(database: &Database) {
    let library = env!("CARGO_PKG_VERSION");
    let Some(objects) = xact::run(registry::version) else { return };
    match versions::compare(&objects, library) {
        Objects::Same => {}
        Objects::Earlier => pgrx::log!(
            "pg_eddy: the SQL objects are of version {objects}, the library of version {library}: run ALTER EXTENSION pg_eddy UPDATE"
        ),
        Objects::Later => {
            pgrx::log!(
                "pg_eddy: the SQL objects are of version {objects}, later than the library, {library}: restart the server with that library"
            );
            database.set_failed(Failure::LaterObjects);
            process::exit(0)
        }
    }
}

/// Pieces that cannot be decoded end this process, and the next one at the next such transaction, were they tried again.
fn when_to_decode_large(database: &Database) -> Large {
    if database.whole_only.load(SeqCst) == 0 {
        return Large::WhileRunning;
    }
    pgrx::log!("pg_eddy: decoding a transaction while it ran has failed: until the server is restarted, large ones are decoded when they have committed");
    Large::Committed
}

fn take_slot(database: &Database) -> (Slot, Checkpoints) {
    match Checkpoints::take_slot() {
        Ok(slot) => {
            database.set_state(DatabaseState::Preparing);
            // It sends scouts one after the other, and this one has found what it was sent for.
            if let Some(area) = shmem::area() {
                area.launcher.wake();
            }
            slot
        }
        Err(NoFreeSlot) => {
            pgrx::log!("pg_eddy: no free replication slot, see max_replication_slots");
            database.set_failed(Failure::NoReplicationSlot);
            process::exit(0)
        }
    }
}

/// Settings of this process from its first step on; what comes before waits for locks as long as it must. It runs functions
/// of users. Nobody waits for its commits to reach the disk, because a new worker compares everything; and it gives way
/// to locks rather than stop all views for one.
fn prepare() {
    for (name, value) in [
        (c"synchronous_commit", c"off"),
        (c"lock_timeout", c"100ms"),
        (c"statement_timeout", c"0"),
        (c"idle_in_transaction_session_timeout", c"0"),
        (c"default_transaction_isolation", c"read committed"),
        (c"default_transaction_read_only", c"off"),
        (c"search_path", guc::SAFE_SEARCH_PATH),
        (c"row_security", c"off"),
    ] {
        guc::set_for_process(name, value);
    }
    // From 17 on.
    if guc::exists(c"transaction_timeout") {
        guc::set_for_process(c"transaction_timeout", c"0");
    }
    quiet::hide_top_level();
    confinement::begin();
}

/// Others must know at once that this worker is gone, and its threads must leave shared memory.
#[pgrx::pg_guard]
extern "C-unwind" fn on_exit(code: c_int, _argument: pgrx::pg_sys::Datum) {
    STOPPING.store(true, SeqCst);
    markers::close(code != 0 && !process::is_terminated());
    let Some(database) = shared::my_database().filter(|database| database.is_mine()) else {
        return;
    };
    process::terminate_started();
    assistant::files::remove_of(process::database());
    if database.state() == DatabaseState::NoExtension {
        markers::remove(process::database());
        checkpoints::remove_all(process::database());
    }
    database.worker.clear();
    for view in shared::views_of(process::database()) {
        view.set_state(shared::ViewState::Attaching);
    }
    if !matches!(database.ending(), Ending::Wal | Ending::Engine) {
        match process::is_terminated() {
            true => database.set_ending(Ending::Asked, ""),
            false if code == 0 => database.set_ending(Ending::Quiet, ""),
            false => {}
        }
    }
    let _ = database.away_since.compare_exchange(0, xact::now(), SeqCst, SeqCst);
    let state = database.state();
    if state.is_up() {
        database.set_state(DatabaseState::Stopped);
    }
    database.release();
    if let Some(area) = shmem::area() {
        area.launcher.wake();
    }
}
