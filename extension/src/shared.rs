//! What the processes of the server tell each other: which databases have a worker and how far it
//! is, which views it maintains and in what state. Sessions that commit wake their worker here.

use crate::pg::ids::ViewId;
use crate::pg::shmem::{self, Area, Database, Figures, View};
use crate::pg::{process, xact};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

pub use crate::handshake::{require_server, require_worker, stop_worker_for_database};

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
    /// The SQL objects are of a later version than the library.
    LaterObjects = 3,
}

/// How the last worker of a database ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Ending {
    /// There was none, or it has nothing to say.
    Quiet,
    /// By an error, which the database's complaint tells.
    Error,
    /// Somebody asked it to.
    Asked,
    /// It holds back more WAL than is allowed and is being ended.
    Wal,
    /// So did the one before, and everything starts afresh.
    AfterWal,
    /// Its engine has ended, which was a process of its own: the next one goes on from a checkpoint.
    Engine,
}

impl Ending {
    fn from_u32(value: u32) -> Self {
        match value {
            1 => Self::Error,
            2 => Self::Asked,
            3 => Self::Wal,
            4 => Self::AfterWal,
            5 => Self::Engine,
            _ => Self::Quiet,
        }
    }
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
}

/// At which point of commit order the rows of a view are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Where those of the others are.
    WithOthers,
    /// Everything committed before `position` is in them, and was there at that time (PostgreSQL timestamp).
    Apart { position: u64, since: i64 },
    /// They have not been compared with what they should be.
    Unknown,
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
    /// A view that it reads is in error; goes with that.
    Beneath,
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
            6 => Self::Beneath,
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
    /// Its state. A worker that is gone has none, whatever it said last.
    pub fn state(&self) -> DatabaseState {
        use DatabaseState::*;
        match DatabaseState::from_u32(self.state.load(SeqCst)) {
            Preparing | Running if self.pid.load(SeqCst) == 0 => Stopped,
            state => state,
        }
    }

    /// Changes its state, for its owner, and tells those who wait for that.
    pub fn set_state(&self, state: DatabaseState) {
        self.state.store(state as u32, SeqCst);
        self.announce();
    }

    /// Changes its state unless it is another one by now: others than the owner must not overwrite what they have
    /// not seen.
    pub fn change_state(&self, from: DatabaseState, to: DatabaseState) -> bool {
        let stored = self.state.load(SeqCst);
        let is_as_seen = self.state() == from;
        let changed =
            is_as_seen && self.state.compare_exchange(stored, to as u32, SeqCst, SeqCst).is_ok();
        if changed {
            self.announce();
        }
        changed
    }

    fn announce(&self) {
        if let Some(area) = shmem::area() {
            area.changed.broadcast();
        }
        self.advanced.broadcast();
    }

    /// Makes this process the worker of the database, unless another one is: of two, only one gets it.
    pub fn claim(&self) -> bool {
        let mine = process::my_pid();
        loop {
            let owner = self.pid.load(SeqCst);
            if owner != 0 && self.is_owned_by(owner) {
                return owner == mine;
            }
            if self.pid.compare_exchange(owner, mine, SeqCst, SeqCst).is_ok() {
                return true;
            }
        }
    }

    /// Whether this process is its worker.
    pub fn is_mine(&self) -> bool {
        self.pid.load(SeqCst) == process::my_pid()
    }

    /// This process is not its worker any more.
    pub fn release(&self) {
        let _ = self.pid.compare_exchange(process::my_pid(), 0, SeqCst, SeqCst);
        self.announce();
    }

    /// Process ID of its worker, if that lives.
    pub fn living_worker(&self) -> Option<i32> {
        Some(self.pid.load(SeqCst)).filter(|pid| *pid != 0 && self.is_owned_by(*pid))
    }

    fn is_owned_by(&self, pid: i32) -> bool {
        process::is_worker_of(pid, self.oid.load(Acquire))
    }

    /// Records that the worker could not start.
    pub fn set_failed(&self, failure: Failure) {
        self.failure.store(failure as u32, SeqCst);
        self.set_state(DatabaseState::Failed);
    }

    /// How its last worker ended.
    pub fn ending(&self) -> Ending {
        Ending::from_u32(self.ending.load(SeqCst))
    }

    /// Records how its worker ends, with an error's message.
    pub fn set_ending(&self, ending: Ending, complaint: &str) {
        if let Some(area) = shmem::area() {
            area.locked(|locked| locked.complaint(self).set(complaint));
        }
        self.ended_at.store(xact::now(), SeqCst);
        self.ending.store(ending as u32, SeqCst);
    }

    /// A new worker begins.
    pub fn begin_anew(&self) {
        if self.ending() == Ending::Wal {
            self.ending.store(Ending::AfterWal as u32, SeqCst);
        }
    }

    /// What was said of its last worker's end.
    pub fn complaint(&self) -> String {
        let read = |area: &Area| area.locked(|locked| *locked.complaint(self));
        shmem::area().map_or(String::new(), |area| read(area).get())
    }

    /// Why the worker could not start.
    pub fn failure(&self) -> Option<Failure> {
        match self.failure.load(SeqCst) {
            1 => Some(Failure::NoWorkerSlot),
            2 => Some(Failure::NoReplicationSlot),
            3 => Some(Failure::LaterObjects),
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
    area.databases().iter().find(|database| database.oid.load(Acquire) == oid)
}

/// The slot of a database, taken if there is none yet; `None` when all are taken.
pub fn database_or_new(oid: u32) -> Option<&'static Database> {
    let area = shmem::area()?;
    area.locked(|_| find_or_take(area, oid))
}

/// Asks for a database's worker. The mark stays when one is just starting, which may have looked for the
/// extension too early. `None` when all slots are taken.
pub fn ask_for_worker(oid: u32) -> Option<&'static Database> {
    let area = shmem::area()?;
    // Under the lock: the slot of a database that nobody has asked for may be given to another.
    let slot = area.locked(|_| {
        let slot = find_or_take(area, oid)?;
        slot.asked.store(1, SeqCst);
        Some(slot)
    })?;
    let state = slot.state();
    if !state.is_up() {
        slot.change_state(state, DatabaseState::Requested);
    }
    area.launcher.wake();
    Some(slot)
}

/// Counts this session among those that want a database's worker to stay away.
pub fn hold(oid: u32) -> Option<&'static Database> {
    let area = shmem::area()?;
    area.locked(|_| {
        let slot = find_or_take(area, oid)?;
        slot.holders.fetch_add(1, SeqCst);
        Some(slot)
    })
}

/// Needs the area's lock.
fn find_or_take(area: &'static Area, oid: u32) -> Option<&'static Database> {
    let is = |wanted| area.databases().iter().find(|slot| slot.oid.load(Acquire) == wanted);
    if let Some(slot) = is(oid) {
        return Some(slot);
    }
    let slot = is(0).or_else(|| area.databases().iter().find(|slot| take_away(slot)))?;
    reset(slot);
    slot.oid.store(oid, Release);
    area.generation.fetch_add(1, Release);
    Some(slot)
}

/// Takes the slot of a database without the extension, if nobody uses it. Sessions count themselves first and look
/// whose slot it is then; here it is the other way round, so one of both notices.
fn take_away(slot: &Database) -> bool {
    if slot.state() != DatabaseState::NoExtension || slot.living_worker().is_some() {
        return false;
    }
    let oid = slot.oid.swap(0, SeqCst);
    let is_free = slot.has_no_users() && slot.asked.load(SeqCst) == 0;
    if !is_free {
        slot.oid.store(oid, SeqCst);
    }
    is_free
}

fn reset(slot: &Database) {
    slot.state.store(DatabaseState::Unknown as u32, SeqCst);
    let counters =
        [&slot.failure, &slot.ending, &slot.asked, &slot.apply_xid, &slot.listening, &slot.holders];
    for counter in counters.into_iter().chain([&slot.committing, &slot.whole_only]) {
        counter.store(0, SeqCst);
    }
    slot.ended_at.store(0, SeqCst);
    slot.away_since.store(0, SeqCst);
    for lsn in [&slot.last_commit, &slot.wanted, &slot.applied, &slot.starts] {
        lsn.store(0, SeqCst);
    }
    slot.pid.store(0, SeqCst);
    slot.worker.clear();
}

/// Gives back the slot of a database that does not exist any more.
pub fn forget_database(slot: &Database) {
    if let Some(area) = shmem::area() {
        remove_views(slot.oid.load(Acquire), |_| false);
        area.locked(|_| slot.oid.store(0, Release));
    }
}

static MY_SLOT: AtomicUsize = AtomicUsize::new(usize::MAX);
static SEEN_GENERATION: AtomicU64 = AtomicU64::new(u64::MAX);

/// The slot of this process's database; cheap enough for every commit.
pub fn my_database() -> Option<&'static Database> {
    let area = shmem::area()?;
    let mine = process::database();
    if let Some(slot) = area.databases().get(MY_SLOT.load(Relaxed)) {
        if slot.oid.load(Acquire) == mine {
            return Some(slot);
        }
    }
    let generation = area.generation.load(Acquire);
    if mine == 0 || SEEN_GENERATION.load(Relaxed) == generation {
        return None;
    }
    let found = area.databases().iter().position(|slot| slot.oid.load(Acquire) == mine);
    match found {
        Some(index) => MY_SLOT.store(index, Relaxed),
        None => SEEN_GENERATION.store(generation, Relaxed),
    }
    area.databases().get(found?)
}

impl Database {
    /// Whether no session is counted here.
    pub fn has_no_users(&self) -> bool {
        self.holders.load(SeqCst) == 0 && self.committing.load(SeqCst) == 0
    }
}

// ---- views ---------------------------------------------------------------------------------

/// The cells of a database's views.
pub fn views_of(database: u32) -> impl Iterator<Item = &'static View> {
    let views = shmem::area().map(Area::views).unwrap_or_default();
    views.iter().filter(move |view| view.database.load(Acquire) == database)
}

/// The cell of a view of this process's database.
pub fn view(relid: ViewId) -> Option<&'static View> {
    views_of(process::database()).find(|view| view.id() == relid)
}

impl View {
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

    pub fn set_state(&self, state: ViewState) {
        if self.state.swap(state as u32, SeqCst) != state as u32 {
            self.since.store(xact::now(), Relaxed);
        }
    }

    /// At which point of commit order its rows are.
    pub fn point(&self) -> Point {
        match self.applied.load(SeqCst) {
            0 => Point::WithOthers,
            u64::MAX => Point::Unknown,
            position => Point::Apart { position, since: self.applied_at.load(Relaxed) },
        }
    }

    pub fn set_point(&self, point: Point) {
        let (position, since) = match point {
            Point::WithOthers => (0, 0),
            Point::Unknown => (u64::MAX, 0),
            Point::Apart { position, since } => (position, since),
        };
        self.applied_at.store(since, Relaxed);
        self.applied.store(position, SeqCst);
    }
}

/// The cell of a view of this process's database, taken if there is none yet (state attaching);
/// `None` when all are taken.
pub fn view_or_new(relid: ViewId) -> Option<&'static View> {
    view(relid)
        .or_else(|| shmem::area()?.locked(|locked| locked.take_view(process::database(), relid)))
}

/// Gives back the cells of a database's views that are not to be kept.
pub fn remove_views(database: u32, keep: impl Fn(ViewId) -> bool) {
    for view in views_of(database) {
        if !keep(view.id()) {
            view.database.store(0, Release);
        }
    }
}
