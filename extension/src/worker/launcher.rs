//! The launcher: one process per server that sees to it that every database with the extension
//! has a worker. It is connected to no database and knows of the extension only what workers
//! report: it starts one in every database once, and those that find no extension leave.

use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::process::{self, Started};
use crate::pg::shmem::{self, Area, Database};
use crate::pg::{catalog, xact};
use crate::shared::{self, DatabaseState, Failure};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

/// The list of databases is read again at least this often.
const RESCAN: Duration = Duration::from_secs(60);

/// A worker that ran this long starts without delay when it ends.
const STABLE: Duration = Duration::from_secs(30);

/// Longest delay between two attempts.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// The launcher's view of one database's worker.
struct Supervised {
    process: Option<Started>,
    started: Instant,
    attempts: u32,
    not_before: Instant,
}

/// Entry point, called by PostgreSQL.
#[pgrx::pg_guard]
#[no_mangle]
pub extern "C-unwind" fn pg_eddy_launcher(_argument: pgrx::pg_sys::Datum) {
    process::connect(0);
    let Some(area) = shmem::area() else { process::exit(0) };
    process::at_exit(on_exit);
    area.launcher.set_to_mine();
    process::report_activity(c"launching workers of incremental views");
    let mut supervised = BTreeMap::new();
    let mut scanned: Option<Instant> = None;
    loop {
        process::reset_latch();
        process::check_interrupts();
        let asked = area.rescan.swap(0, SeqCst) != 0;
        if asked || scanned.is_none_or(|at| at.elapsed() > RESCAN) {
            scan(area);
            crash_point::reach(CrashPoint::LauncherScan);
            scanned = Some(Instant::now());
        }
        let next = supervise_all(area, &mut supervised);
        process::wait_for_latch(next.min(RESCAN));
    }
}

extern "C-unwind" fn on_exit(_code: std::ffi::c_int, _argument: pgrx::pg_sys::Datum) {
    if let Some(area) = shmem::area() {
        area.launcher.clear();
    }
}

/// Gives every database that accepts connections a slot and takes back those of lost ones.
fn scan(area: &'static Area) {
    let databases = xact::run(catalog::connectable_databases);
    for oid in &databases {
        match shared::database_or_new(*oid) {
            Some(slot) if slot.state() == DatabaseState::Unknown => {
                slot.set_state(DatabaseState::Requested);
            }
            Some(_) => {}
            None => pgrx::warning!("pg_eddy: too many databases, no worker for database {oid}"),
        }
    }
    for slot in &area.databases {
        let oid = slot.oid.load(Acquire);
        let is_idle = slot.holders.load(SeqCst) == 0 && !slot.state().is_up();
        if oid != 0 && is_idle && !databases.contains(&oid) {
            shared::forget_database(slot);
        }
    }
}

/// Starts what should run; answers how long nothing will be left to do.
fn supervise_all(area: &'static Area, all: &mut BTreeMap<u32, Supervised>) -> Duration {
    all.retain(|oid, _| shared::database(*oid).is_some());
    let mut next = RESCAN;
    for slot in &area.databases {
        let oid = slot.oid.load(Acquire);
        if oid != 0 {
            let now = Instant::now();
            let worker = all.entry(oid).or_insert_with(|| Supervised {
                process: None,
                started: now,
                attempts: 0,
                not_before: now,
            });
            next = next.min(supervise(oid, slot, worker));
        }
    }
    next
}

fn supervise(oid: u32, slot: &Database, worker: &mut Supervised) -> Duration {
    let now = Instant::now();
    if let Some(process) = &worker.process {
        if !process.has_ended() {
            return RESCAN;
        }
        note_end(slot, worker);
    }
    match slot.state() {
        DatabaseState::Unknown | DatabaseState::NoExtension => return RESCAN,
        DatabaseState::Requested => worker.not_before = now,
        _ => {}
    }
    if slot.holders.load(SeqCst) > 0 {
        return RESCAN;
    }
    if now < worker.not_before {
        return worker.not_before - now;
    }
    start(oid, slot, worker)
}

/// A worker ended: decides when the next one may start.
fn note_end(slot: &Database, worker: &mut Supervised) {
    worker.process = None;
    if slot.state().is_up() {
        slot.set_state(DatabaseState::Stopped);
    }
    if slot.state() == DatabaseState::NoExtension && slot.asked.load(SeqCst) != 0 {
        slot.set_state(DatabaseState::Requested);
    }
    if worker.started.elapsed() > STABLE {
        worker.attempts = 0;
    }
    worker.not_before = Instant::now() + delay(worker.attempts);
}

fn delay(attempts: u32) -> Duration {
    Duration::from_millis(100).saturating_mul(1 << attempts.min(16)).min(MAX_DELAY)
}

fn start(oid: u32, slot: &Database, worker: &mut Supervised) -> Duration {
    slot.set_state(DatabaseState::Starting);
    // A session that wants the worker away counts itself first and looks at the state then.
    if slot.holders.load(SeqCst) > 0 {
        slot.set_state(DatabaseState::Stopped);
        return RESCAN;
    }
    slot.asked.store(0, SeqCst);
    worker.attempts += 1;
    worker.started = Instant::now();
    worker.process = process::start(c"pg_eddy worker", c"pg_eddy_worker", oid);
    crash_point::reach(CrashPoint::LauncherStart);
    if worker.process.is_some() {
        return RESCAN;
    }
    slot.set_failed(Failure::NoWorkerSlot);
    let wait = delay(worker.attempts + 3);
    worker.not_before = Instant::now() + wait;
    wait
}
