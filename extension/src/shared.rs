//! What the processes of the server tell each other: which databases have a worker and how far it
//! is, which views it maintains and in what state. Sessions that commit wake their worker here.

use crate::pg::shmem::{self, Area, Database, Figures, View, MAX_DATABASES};
use crate::pg::{process, xact};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

pub use crate::handshake::{require_worker, stop_worker_for_database};

/// How far a database's worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DatabaseState {
    /// Nobody asked yet.
    Unknown,
    /// The launcher shall start it.
    Requested,
    /// The launcher has asked the postmaster for it.
    Starting,
    /// It has its replication slot and waits for older transactions to end.
    Preparing,
    /// It follows the WAL.
    Running,
    /// It found no extension in the database and left.
    NoExtension,
    /// It could not start; see [`Failure`].
    Failed,
    /// It ended and will be started again.
    Stopped,
}

impl DatabaseState {
    fn from_u32(value: u32) -> Self {
        use DatabaseState::*;
        let all = [Unknown, Requested, Starting, Preparing, Running, NoExtension, Failed, Stopped];
        all.get(value as usize).copied().unwrap_or(Unknown)
    }

    /// Whether a process exists or is about to.
    pub fn is_up(self) -> bool {
        matches!(self, Self::Starting | Self::Preparing | Self::Running)
    }
}

/// Why a worker could not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Failure {
    /// `max_worker_processes` is reached.
    NoWorkerSlot = 1,
    /// `max_replication_slots` is reached.
    NoReplicationSlot = 2,
}

/// State of a view, as `eddy.views` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ViewState {
    /// Not yet joined to the running stream.
    Attaching,
    /// Follows its base tables.
    Live,
    /// Cannot be computed; reads raise the error.
    Error,
    /// Set aside: what is stored is of an earlier point than that of the others.
    Behind,
}

impl ViewState {
    /// From its number in shared memory.
    pub fn from_u32(value: u32) -> Self {
        match value {
            1 => Self::Live,
            2 => Self::Error,
            3 => Self::Behind,
            _ => Self::Attaching,
        }
    }

    /// Whether fresh reads need not wait any longer.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Live | Self::Error)
    }
}

/// Why a view is in error: decides what heals it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Cause {
    /// The query itself raises it on the present data; it goes with them.
    Query,
    /// Its owner may not read what it reads; goes when the right is granted.
    Rights,
    /// What it reads is not, or no longer, as it must be; goes with DDL.
    Tables,
    /// A base table has a value that cannot be taken over; needs REFRESH.
    Value,
    /// It needs more than is allowed; needs REFRESH, or other settings.
    Limit,
    /// Its rows could not be written; needs REFRESH.
    Write,
}

impl Cause {
    /// From its number in shared memory.
    pub fn from_u32(value: u32) -> Self {
        match value {
            1 => Self::Rights,
            2 => Self::Tables,
            3 => Self::Value,
            4 => Self::Limit,
            5 => Self::Write,
            _ => Self::Query,
        }
    }
}

/// Set-up at library load.
pub fn request_shmem() {
    shmem::request();
    crate::handshake::register();
}

impl Database {
    /// Its state.
    pub fn state(&self) -> DatabaseState {
        DatabaseState::from_u32(self.state.load(SeqCst))
    }

    /// Changes its state and tells those who wait for that.
    pub fn set_state(&self, state: DatabaseState) {
        self.state.store(state as u32, SeqCst);
        if let Some(area) = shmem::area() {
            area.changed.broadcast();
        }
        self.advanced.broadcast();
    }

    /// Records that the worker could not start.
    pub fn set_failed(&self, failure: Failure) {
        self.failure.store(failure as u32, SeqCst);
        self.set_state(DatabaseState::Failed);
    }

    /// Why the worker could not start.
    pub fn failure(&self) -> Option<Failure> {
        match self.failure.load(SeqCst) {
            1 => Some(Failure::NoWorkerSlot),
            2 => Some(Failure::NoReplicationSlot),
            _ => None,
        }
    }

    /// Takes note of a commit, and wakes the worker if it waits for one.
    pub fn note_commit(&self, end: u64) {
        self.last_commit.fetch_max(end, SeqCst);
        if self.listening.load(SeqCst) != 0 {
            self.worker.wake();
        }
    }

    /// Publishes that everything up to `lsn` is applied, and what passed up to a present time.
    pub fn publish(&self, lsn: u64, apply_xid: Option<u32>, clock: i64) {
        self.next_clock.store(clock, SeqCst);
        self.clock.store(clock, SeqCst);
        if let Some(xid) = apply_xid {
            self.apply_xid.store(xid, SeqCst);
        }
        self.applied_at.store(xact::now(), Relaxed);
        self.applied.store(lsn, SeqCst);
        self.advanced.broadcast();
    }
}

/// The slot of a database, `None` without one (or without preloading).
pub fn database(oid: u32) -> Option<&'static Database> {
    let area = shmem::area()?;
    area.databases.iter().find(|database| database.oid.load(Acquire) == oid)
}

/// The slot of a database, taken if there is none yet; `None` when all are taken.
pub fn database_or_new(oid: u32) -> Option<&'static Database> {
    let area = shmem::area()?;
    area.locked(|_| {
        let is = |wanted| area.databases.iter().find(|slot| slot.oid.load(Acquire) == wanted);
        if let Some(slot) = is(oid) {
            return Some(slot);
        }
        let slot = is(0)?;
        reset(slot);
        slot.oid.store(oid, Release);
        area.generation.fetch_add(1, Release);
        Some(slot)
    })
}

fn reset(slot: &Database) {
    slot.state.store(DatabaseState::Unknown as u32, SeqCst);
    for counter in [&slot.failure, &slot.committing, &slot.apply_xid, &slot.listening] {
        counter.store(0, SeqCst);
    }
    for lsn in [&slot.last_commit, &slot.wanted, &slot.applied] {
        lsn.store(0, SeqCst);
    }
    slot.worker.clear();
}

/// Gives back the slot of a database that does not exist any more.
pub fn forget_database(slot: &Database) {
    if let Some(area) = shmem::area() {
        remove_views(slot.oid.load(Acquire), |_| false);
        area.locked(|_| slot.oid.store(0, Release));
    }
}

static MY_SLOT: AtomicUsize = AtomicUsize::new(MAX_DATABASES);
static SEEN_GENERATION: AtomicU64 = AtomicU64::new(u64::MAX);

/// The slot of this process's database; cheap enough for every commit.
pub fn my_database() -> Option<&'static Database> {
    let area = shmem::area()?;
    let mine = process::database();
    if let Some(slot) = area.databases.get(MY_SLOT.load(Relaxed)) {
        if slot.oid.load(Acquire) == mine {
            return Some(slot);
        }
    }
    let generation = area.generation.load(Acquire);
    if mine == 0 || SEEN_GENERATION.load(Relaxed) == generation {
        return None;
    }
    let found = area.databases.iter().position(|slot| slot.oid.load(Acquire) == mine);
    match found {
        Some(index) => MY_SLOT.store(index, Relaxed),
        None => SEEN_GENERATION.store(generation, Relaxed),
    }
    area.databases.get(found?)
}

impl Database {
    /// The time zone of its worker, in which conditions on the present time hold; empty before it has started.
    pub fn time_zone(&self) -> String {
        let read = |area: &Area| area.locked(|locked| *locked.time_zone(self));
        shmem::area().map_or(String::new(), |area| read(area).get())
    }

    /// Publishes it.
    pub fn set_time_zone(&self, name: &str) {
        if let Some(area) = shmem::area() {
            area.locked(|locked| locked.time_zone(self).set(name));
        }
    }
}

// ---- views ---------------------------------------------------------------------------------

/// The cells of a database's views.
pub fn views_of(database: u32) -> impl Iterator<Item = &'static View> {
    let views = shmem::area().map(Area::views).unwrap_or_default();
    views.iter().filter(move |view| view.database.load(Acquire) == database)
}

/// The cell of a view of this process's database.
pub fn view(relid: u32) -> Option<&'static View> {
    views_of(process::database()).find(|view| view.relid.load(Acquire) == relid)
}

impl View {
    /// Its state.
    pub fn state(&self) -> ViewState {
        ViewState::from_u32(self.state.load(SeqCst))
    }

    /// Its texts and figures.
    pub fn figures(&self) -> Figures {
        let read = |area: &Area| area.locked(|locked| *locked.figures(self));
        shmem::area().map_or(Figures::ZERO, read)
    }

    /// Changes texts and figures.
    pub fn update(&self, change: impl FnOnce(&mut Figures)) {
        if let Some(area) = shmem::area() {
            area.locked(|locked| change(locked.figures(self)));
        }
    }

    /// Changes the state.
    pub fn set_state(&self, state: ViewState) {
        self.state.store(state as u32, SeqCst);
    }
}

/// The cell of a view of this process's database, taken if there is none yet (state attaching);
/// `None` when all are taken.
pub fn view_or_new(relid: u32) -> Option<&'static View> {
    view(relid)
        .or_else(|| shmem::area()?.locked(|locked| locked.take_view(process::database(), relid)))
}

/// Gives back the cells of a database's views that are not to be kept.
pub fn remove_views(database: u32, keep: impl Fn(u32) -> bool) {
    for view in views_of(database) {
        if !keep(view.relid.load(Acquire)) {
            view.database.store(0, Release);
        }
    }
}
