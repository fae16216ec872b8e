//! The background processes: the launcher, and one worker per database with the extension.

mod apply;
mod attach;
mod capture;
mod clock;
mod compute;
mod evaluate;
mod launcher;
mod main_loop;
mod pace;
mod states;
mod stored;
mod suspects;
mod view;

use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::decoding::{NoFreeSlot, Slot};
use crate::pg::shmem::Database;
use crate::pg::{guc, heap, inval, markers, process, registry, wal, xact};
use crate::shared::{self, DatabaseState, Failure};
use main_loop::{Worker, STOPPING};
use std::ffi::c_int;
use std::sync::atomic::Ordering::*;
use suspects::Suspects;

/// Set-up at library load.
pub fn register() {
    process::register_launcher(c"pg_eddy launcher", c"pg_eddy_launcher");
}

/// Entry point of a worker, called by PostgreSQL with the database's OID.
#[pgrx::pg_guard]
#[no_mangle]
pub extern "C-unwind" fn pg_eddy_worker(argument: pgrx::pg_sys::Datum) {
    process::connect(argument.value() as u32);
    crash_point::reach(CrashPoint::WorkerConnect);
    let Some(database) = shared::my_database() else { process::exit(0) };
    process::at_exit(on_exit);
    database.pid.store(process::my_pid(), SeqCst);
    database.activity.reset(xact::now());
    database.worker.set_to_mine();
    crash_point::reach(CrashPoint::WorkerOwn);
    if database.holders.load(SeqCst) > 0 {
        process::exit(0);
    }
    if xact::run(registry::extension).is_none() {
        database.set_state(DatabaseState::NoExtension);
        process::exit(0);
    }
    let slot = take_slot(database);
    crash_point::reach(CrashPoint::WorkerSlot);
    prepare();
    let decoder = slot.open();
    xact::run(xact::wait_for_committed_to_end);
    inval::register();
    let suspects = Suspects::new(markers::open(process::database()));
    database.set_state(DatabaseState::Running);
    pgrx::log!("pg_eddy: worker follows the WAL from {}", wal::display(decoder.position()));
    crash_point::reach(CrashPoint::WorkerRun);
    Worker::new(database, decoder, suspects).run()
}

fn take_slot(database: &Database) -> Slot {
    match Slot::create() {
        Ok(slot) => {
            database.set_state(DatabaseState::Preparing);
            slot
        }
        Err(NoFreeSlot) => {
            pgrx::log!("pg_eddy: no free replication slot, see max_replication_slots");
            database.set_failed(Failure::NoReplicationSlot);
            process::exit(0)
        }
    }
}

/// Settings of this process. Nobody waits for its commits to reach the disk, because a new worker
/// compares everything; and it gives way to locks rather than stop all views for one.
fn prepare() {
    for (name, value) in [
        (c"synchronous_commit", c"off"),
        (c"lock_timeout", c"100ms"),
        (c"statement_timeout", c"0"),
        (c"idle_in_transaction_session_timeout", c"0"),
        (c"default_transaction_isolation", c"read committed"),
        (c"default_transaction_read_only", c"off"),
        (c"search_path", c"pg_catalog, pg_temp"),
        (c"row_security", c"off"),
    ] {
        guc::set_for_process(name, value);
    }
    heap::Origin::OWN.set();
}

/// Others must know at once that this worker is gone, and its threads must leave shared memory.
extern "C-unwind" fn on_exit(code: c_int, _argument: pgrx::pg_sys::Datum) {
    STOPPING.store(true, SeqCst);
    markers::close(code != 0 && !process::is_terminated());
    if let Some(database) = shared::my_database() {
        database.worker.clear();
        for view in shared::views_of(process::database()) {
            view.set_state(shared::ViewState::Attaching);
        }
        database.pid.store(0, SeqCst);
        if database.state().is_up() {
            database.set_state(DatabaseState::Stopped);
        }
    }
}
