//! The launcher: one process per server that sees to it that every database with the extension
//! has a worker, and one only. It is connected to no database. Where nobody has looked for the extension yet it
//! sends a scout, which is a worker that leaves when it finds none: one at a time, as background workers are few
//! and others want them.
//!
//! It remembers nothing that a successor would miss. Whether a worker runs follows from who owns the database
//! (`shared`) and lives, so that a new launcher goes on with the workers of the last one.

use super::checkpoints;
use super::held_wal;
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::process::{self, Started};
use crate::pg::shmem::{self, Area, Database};
use crate::pg::{catalog, markers, wal, xact};
use crate::shared::{self, DatabaseState, Ending, Failure};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

/// The list of databases is read again at least this often.
const RESCAN: Duration = Duration::from_secs(60);

/// The launcher looks at its workers at least this often while there are any.
const WATCH: Duration = Duration::from_secs(1);

/// The same while one prepares.
const PREPARING: Duration = Duration::from_millis(50);

/// A worker that ran this long starts without delay when it ends.
const STABLE: Duration = Duration::from_secs(30);

/// The same where it ended because its engine had.
const STABLE_WITH_ENGINE: Duration = Duration::from_secs(5);

/// Longest delay between two attempts.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// Delay until a free background worker is looked for again, which costs next to nothing.
const NO_SLOT_DELAY: Duration = Duration::from_secs(1);

/// The launcher's view of one database's worker.
#[derive(Default)]
struct Supervised {
    /// What this launcher has started, until that has ended.
    process: Option<Started>,
    /// Since when it has been started, or was found to run.
    since: Option<Instant>,
    /// Starts since it last ran for long.
    attempts: u32,
    /// When the next one is due.
    not_before: Option<Instant>,
}

struct Launcher {
    area: &'static Area,
    /// Databases that accept connections, as of the last look.
    databases: Vec<u32>,
    scanned: Option<Instant>,
    /// Databases in which somebody has looked for the extension.
    known: BTreeSet<u32>,
    /// Where a scout is now.
    scout: Option<u32>,
    workers: BTreeMap<u32, Supervised>,
}

/// Entry point, called by PostgreSQL.
#[pgrx::pg_guard]
#[no_mangle]
pub extern "C-unwind" fn pg_eddy_launcher(_argument: pgrx::pg_sys::Datum) {
    process::connect(0);
    let Some(area) = shmem::area() else { process::exit(0) };
    process::at_exit(on_exit);
    area.launcher.set_to_mine();
    area.changed.broadcast();
    process::report_activity(c"launching workers of incremental views");
    let mut launcher = Launcher {
        area,
        databases: Vec::new(),
        scanned: None,
        known: BTreeSet::new(),
        scout: None,
        workers: BTreeMap::new(),
    };
    loop {
        process::reset_latch();
        process::check_interrupts();
        let next = launcher.look_around();
        process::wait_for_latch(next);
    }
}

#[pgrx::pg_guard]
extern "C-unwind" fn on_exit(_code: std::ffi::c_int, _argument: pgrx::pg_sys::Datum) {
    if let Some(area) = shmem::area() {
        area.launcher.clear();
    }
}

impl Launcher {
    /// Starts what should run; answers how long nothing will be left to do.
    fn look_around(&mut self) -> Duration {
        if !wal::level_is_logical() {
            return RESCAN;
        }
        let asked = self.area.rescan.swap(0, SeqCst) != 0;
        if asked || self.scanned.is_none_or(|at| at.elapsed() > RESCAN) {
            self.scan();
            crash_point::reach(CrashPoint::LauncherScan);
        }
        self.workers.retain(|oid, _| shared::database(*oid).is_some());
        let mut next = RESCAN;
        for slot in self.area.databases() {
            let oid = slot.oid.load(Acquire);
            if oid != 0 {
                let is_scouted = self.scout == Some(oid);
                let worker = self.workers.entry(oid).or_default();
                next = next.min(supervise(self.area, oid, slot, worker, is_scouted));
                self.note_found(oid, slot);
            }
        }
        match self.send_scout() {
            true => Duration::ZERO,
            false => next,
        }
    }

    /// Reads the list of databases and gives back the slots of lost ones.
    fn scan(&mut self) {
        self.databases = xact::run(catalog::connectable_databases);
        self.scanned = Some(Instant::now());
        self.known.retain(|oid| self.databases.contains(oid));
        for slot in self.area.databases() {
            let oid = slot.oid.load(Acquire);
            let is_idle = slot.has_no_users() && !slot.state().is_up();
            if oid != 0 && is_idle && !self.databases.contains(&oid) {
                shared::forget_database(slot);
                checkpoints::remove_all(oid);
                markers::remove(oid);
            }
        }
    }

    /// Takes note of what a worker or scout said of the extension.
    fn note_found(&mut self, oid: u32, slot: &Database) {
        use DatabaseState::*;
        let state = slot.state();
        if matches!(state, Preparing | Running | NoExtension) {
            self.known.insert(oid);
        }
        if self.scout == Some(oid) && state != Starting {
            self.scout = None;
        }
    }

    /// Has the next database looked at where nobody has been; answers whether there is one.
    fn send_scout(&mut self) -> bool {
        if self.scout.is_some() {
            return false;
        }
        let is_new = |oid: &&u32| {
            let state = shared::database(**oid).map(Database::state);
            !self.known.contains(*oid) && state.is_none_or(|state| state == DatabaseState::Unknown)
        };
        let Some(oid) = self.databases.iter().find(is_new).copied() else { return false };
        match shared::database_or_new(oid) {
            Some(slot) => {
                slot.change_state(DatabaseState::Unknown, DatabaseState::Requested);
                self.scout = Some(oid);
            }
            None => {
                pgrx::warning!("pg_eddy: too many databases, see eddy.max_databases");
                self.known.extend(&self.databases);
            }
        }
        true
    }
}

/// Starts the worker of a database if it should run and does not; answers when to look again.
fn supervise(
    area: &'static Area,
    oid: u32,
    slot: &Database,
    worker: &mut Supervised,
    is_scouted: bool,
) -> Duration {
    if let Some(pid) = slot.living_worker() {
        worker.since.get_or_insert_with(Instant::now);
        held_wal::enforce_limit(slot, pid);
        if slot.state() != DatabaseState::Preparing {
            return WATCH;
        }
        // It reads what is on disk, and what it waits for comes with no commit that brings it there.
        wal::flush_to(wal::insert_lsn());
        return PREPARING;
    }
    if worker.process.as_ref().is_some_and(|process| !process.has_ended()) {
        // On its way to its database.
        return WATCH;
    }
    if worker.process.take().is_some() || worker.since.is_some() {
        note_end(slot, worker);
    }
    let now = Instant::now();
    match slot.state() {
        DatabaseState::Unknown => return RESCAN,
        DatabaseState::NoExtension => {
            if slot.asked.load(SeqCst) == 0 {
                return RESCAN;
            }
            slot.change_state(DatabaseState::NoExtension, DatabaseState::Requested);
        }
        // It will find the same until somebody changes it and asks.
        DatabaseState::Failed if slot.failure() == Some(Failure::LaterObjects) => return RESCAN,
        DatabaseState::Requested => worker.not_before = None,
        // It ended before it could say so, or was started by a launcher that ended.
        state @ (DatabaseState::Starting | DatabaseState::Preparing | DatabaseState::Running) => {
            slot.change_state(state, DatabaseState::Stopped);
        }
        DatabaseState::Stopped | DatabaseState::Failed => {}
    }
    if slot.holders.load(SeqCst) > 0 {
        return RESCAN;
    }
    match worker.not_before.filter(|due| *due > now) {
        Some(due) => due - now,
        None => start(area, oid, slot, worker, is_scouted),
    }
}

/// A worker ended: decides when the next one may start.
fn note_end(slot: &Database, worker: &mut Supervised) {
    let enough = match slot.ending() {
        Ending::Engine => STABLE_WITH_ENGINE,
        _ => STABLE,
    };
    let was_stable = worker.since.take().is_some_and(|since| since.elapsed() > enough);
    // One that was told to end had no trouble of its own.
    if was_stable || slot.ending() == Ending::Asked {
        worker.attempts = 0;
    }
    worker.not_before = Some(Instant::now() + delay(worker.attempts));
}

fn delay(attempts: u32) -> Duration {
    Duration::from_millis(100).saturating_mul(1 << attempts.min(16)).min(MAX_DELAY)
}

fn start(
    area: &'static Area,
    oid: u32,
    slot: &Database,
    worker: &mut Supervised,
    is_scouted: bool,
) -> Duration {
    // Before the process exists, which changes the state itself.
    if !slot.change_state(slot.state(), DatabaseState::Starting) {
        return Duration::ZERO;
    }
    // A session that wants the worker away counts itself first and looks at the state then.
    if slot.holders.load(SeqCst) > 0 {
        slot.change_state(DatabaseState::Starting, DatabaseState::Stopped);
        return RESCAN;
    }
    slot.asked.store(0, SeqCst);
    worker.process = process::start(c"pg_eddy worker", c"pg_eddy_worker", oid);
    crash_point::reach(CrashPoint::LauncherStart);
    let lacked = area.lacks_workers.swap(worker.process.is_none().into(), SeqCst) != 0;
    if worker.process.is_some() {
        worker.attempts += 1;
        worker.since = Some(Instant::now());
        return WATCH;
    }
    if !lacked {
        let purpose = if is_scouted { "to look for the extension in" } else { "for" };
        pgrx::log!(
            "pg_eddy: no free background worker {purpose} database {oid}, trying again; see max_worker_processes"
        );
    }
    slot.failure.store(Failure::NoWorkerSlot as u32, SeqCst);
    slot.change_state(DatabaseState::Starting, DatabaseState::Failed);
    worker.not_before = Some(Instant::now() + NO_SLOT_DELAY);
    NO_SLOT_DELAY
}
