//! The shared memory segment: its layout, and the lock and condition variables in it.
//!
//! Layout: one [`Area`], then `eddy.max_databases` [`Database`] slots, then `eddy.max_views` [`View`] cells and as many
//! [`IndexCell`]s. Everything a reader or writer
//! touches on its hot path is an atomic; texts and figures of views are behind one LWLock.
//! Zeroed memory is the valid initial state of all of it.

use crate::pg::attaching::Attaching;
use crate::pg::ids::ViewId;
use crate::pg::index_cells::{IndexCell, MAX_READS};
use crate::pg::sqlstate::SqlState;
use crate::pg::versions::wait_event;
use pgrx::pg_sys;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Bytes kept of a text.
const TEXT_BYTES: usize = plan::error::TEXT_LIMIT;

const NAME: &std::ffi::CStr = c"pg_eddy";

/// Tells this layout from others: a number, and the sizes of what is in the segment.
const LAYOUT: u64 = {
    let (area, database, view) = (size_of::<Area>(), size_of::<Database>(), size_of::<View>());
    3 << 56 | (area as u64) << 40 | (database as u64) << 20 | view as u64
};

/// The head of the segment.
#[repr(C)]
pub struct Area {
    /// [`LAYOUT`] of the library that made it.
    layout: AtomicU64,
    lock: AtomicPtr<pg_sys::LWLock>,
    /// Broadcast when a database's state changes.
    pub changed: Condition,
    pub launcher: LatchCell,
    /// Increases when a database gets a slot.
    pub generation: AtomicU64,
    /// Set when the list of databases may have changed.
    pub rescan: AtomicU32,
    /// Set while the launcher finds no free background worker.
    pub lacks_workers: AtomicU32,
    databases_capacity: AtomicU32,
    /// Number of view cells ever used.
    views_used: AtomicU32,
    views_capacity: AtomicU32,
}

/// What all processes know of one database.
#[repr(C)]
pub struct Database {
    /// Its OID, 0 for a free slot.
    pub oid: AtomicU32,
    /// A `shared::DatabaseState`.
    pub state: AtomicU32,
    /// A `shared::Failure`, when the state is failed.
    pub failure: AtomicU32,
    /// How its last worker ended, a `shared::Ending`.
    pub ending: AtomicU32,
    /// Process ID of its worker, which is its owner; 0 for none. Changed by `shared::Database::claim` and the
    /// owner alone.
    pub pid: AtomicI32,
    /// Set when a session asks for the worker, cleared when the launcher starts one.
    pub asked: AtomicU32,
    /// Sessions that want the worker to stay away.
    pub holders: AtomicU32,
    /// Sessions between the start of their commit and its end.
    pub committing: AtomicU32,
    /// Whether the worker waits for commits to wake it.
    pub listening: AtomicU32,
    /// xid of the last published apply transaction.
    pub apply_xid: AtomicU32,
    /// Whether decoding a piece of a running transaction has failed since the server started: they are decoded whole then.
    pub whole_only: AtomicU32,
    /// Latch of its worker.
    pub worker: LatchCell,
    /// Highest known end of a commit record.
    pub last_commit: AtomicU64,
    /// Highest LSN a reader waits for.
    pub wanted: AtomicU64,
    /// Everything committed up to here is in the live views.
    pub applied: AtomicU64,
    /// When that was published (PostgreSQL timestamp).
    pub applied_at: AtomicI64,
    /// The present time of the live views (PostgreSQL timestamp).
    pub clock: AtomicI64,
    /// That which they have as soon as a transaction ends that is writing them; otherwise the same.
    pub next_clock: AtomicI64,
    /// Broadcast when `applied` or the state of one of its views changes.
    pub advanced: Condition,
    /// What its worker has done so far.
    pub activity: Activity,
    /// Workers that have started here since the server did.
    pub starts: AtomicU64,
    /// When the last one ended (PostgreSQL timestamp), 0 for none.
    pub ended_at: AtomicI64,
    /// Since when no worker has come to rest here (PostgreSQL timestamp): one that ends at once, again and again, changes nothing about
    /// it. 0 if one has, or since the server started.
    pub away_since: AtomicI64,
    complaint: UnsafeCell<Text>,
}

/// Counters of one worker since it started; only the worker writes them. Times in microseconds.
#[repr(C)]
pub struct Activity {
    /// When it started (PostgreSQL timestamp).
    pub since: AtomicI64,
    /// Rounds of work.
    pub steps: AtomicU64,
    /// Transactions that changed a base table of a view.
    pub transactions: AtomicU64,
    /// Rows that they inserted, updated and deleted there.
    pub changes: AtomicU64,
    /// Reading the WAL and turning changes into updates.
    pub decode: AtomicU64,
    /// Following the catalogs and reading base tables for views that are attached.
    pub attach: AtomicU64,
    /// Waiting for the engine's threads.
    pub engine: AtomicU64,
    /// Writing the views.
    pub apply: AtomicU64,
    /// Bytes of memory that the process holds.
    pub memory: AtomicU64,
}

impl Activity {
    /// A worker starts from nothing.
    pub fn reset(&self, since: i64) {
        for counter in [&self.steps, &self.transactions, &self.changes] {
            counter.store(0, Ordering::Relaxed);
        }
        for time in [&self.decode, &self.attach, &self.engine, &self.apply] {
            time.store(0, Ordering::Relaxed);
        }
        self.since.store(since, Ordering::Relaxed);
    }
}

/// What all processes know of one view.
#[repr(C)]
pub struct View {
    /// The view's database, 0 for a free cell.
    pub database: AtomicU32,
    pub relid: AtomicU32,
    /// A `shared::ViewState`.
    pub state: AtomicU32,
    /// Whether its error may be over: it is about to be tried again.
    pub in_doubt: AtomicU32,
    /// Whether its rows come and go with the present time.
    pub reads_clock: AtomicU32,
    /// How many columns its rows have while they are of what it was before it was replaced; otherwise 0.
    pub former_columns: AtomicU32,
    /// How many columns it had when its rows were written last; 0 if that is not known.
    pub columns: AtomicU32,
    /// Full number of the transaction that wrote it last.
    pub changed: AtomicU64,
    /// File of its heap in which the worker wrote it last.
    pub file: AtomicU32,
    /// Since when it is in its state (PostgreSQL timestamp).
    pub since: AtomicI64,
    /// A `shared::Point` as `shared` writes it, and when it was there (PostgreSQL timestamp).
    pub applied: AtomicU64,
    pub applied_at: AtomicI64,
    /// How often statements have run its query.
    pub query_reads: AtomicU64,
    /// How far it is when it is being attached.
    pub attaching: Attaching,
    figures: UnsafeCell<Figures>,
}

/// Texts and figures of a view, guarded by the area's lock.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Figures {
    /// SQLSTATE of its error.
    pub sqlstate: SqlState,
    /// A `shared::Cause` of its error.
    pub cause: u32,
    /// Message of its error.
    pub message: Text,
    /// What the error says itself about what happened, may be empty.
    pub detail: Text,
    /// What can be done about it, may be empty.
    pub hint: Text,
    pub rows: i64,
    /// Source transactions that changed it.
    pub transactions: u64,
    /// Rows inserted, updated and deleted.
    pub updates: u64,
    /// Iterations of the last round.
    pub iterations: u64,
    /// Bytes of engine state.
    pub state_bytes: u64,
    /// Bytes of it on disk.
    pub spilled_bytes: u64,
    /// Its last error, be it over or not.
    pub last_error: LastError,
    /// The indexes that it reads: one more than the numbers of their cells, 0 for none.
    pub reads: [u32; MAX_READS],
}

/// What went wrong with a view the last time.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LastError {
    /// When it came up (PostgreSQL timestamp), 0 for never.
    pub at: i64,
    pub sqlstate: SqlState,
    pub message: Text,
    /// What can be done about it, may be empty.
    pub hint: Text,
}

/// A text of limited length.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    bytes: [u8; TEXT_BYTES],
    len: usize,
}

impl Text {
    pub fn get(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.len.min(TEXT_BYTES)]).into_owned()
    }

    /// Keeps a text, cut at a character boundary if it is too long.
    pub fn set(&mut self, text: &str) {
        let mut len = text.len().min(TEXT_BYTES);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        self.bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len = len;
    }

    const ZERO: Text = Text { bytes: [0; TEXT_BYTES], len: 0 };
}

impl View {
    /// The view that has the cell.
    pub fn id(&self) -> ViewId {
        ViewId::new(self.relid.load(Ordering::SeqCst))
    }
}

impl Figures {
    pub const ZERO: Figures = Figures {
        sqlstate: SqlState::SUCCESSFUL_COMPLETION,
        cause: 0,
        message: Text::ZERO,
        detail: Text::ZERO,
        hint: Text::ZERO,
        rows: 0,
        transactions: 0,
        updates: 0,
        iterations: 0,
        state_bytes: 0,
        spilled_bytes: 0,
        last_error: LastError {
            at: 0,
            sqlstate: SqlState::SUCCESSFUL_COMPLETION,
            message: Text::ZERO,
            hint: Text::ZERO,
        },
        reads: [0; MAX_READS],
    };
}

/// The latch of some process, or none.
#[repr(transparent)]
pub struct LatchCell(AtomicPtr<pg_sys::Latch>);

impl LatchCell {
    /// Remembers this process's latch.
    pub fn set_to_mine(&self) {
        // SAFETY: reading the pointer to this process's latch, which PostgreSQL set at start.
        self.0.store(unsafe { pg_sys::MyLatch }, Ordering::SeqCst);
    }

    pub fn clear(&self) {
        self.0.store(std::ptr::null_mut(), Ordering::SeqCst);
    }

    /// Whether there is a process.
    pub fn is_set(&self) -> bool {
        !self.0.load(Ordering::SeqCst).is_null()
    }

    /// Wakes the process, if there is one.
    pub fn wake(&self) {
        let latch = self.0.load(Ordering::SeqCst);
        if !latch.is_null() {
            // SAFETY: the latch belongs to a PGPROC, which lives in shared memory as long as the
            // server; waking its next owner by mistake is harmless.
            unsafe { super::process::raw::SetLatch(latch) }
        }
    }
}

/// A condition variable in shared memory.
#[repr(transparent)]
pub struct Condition(UnsafeCell<pg_sys::ConditionVariable>);

// SAFETY: PostgreSQL's functions synchronise access to the condition variable themselves.
unsafe impl Sync for Condition {}

impl Condition {
    /// Wakes all sleepers.
    pub fn broadcast(&self) {
        // SAFETY: initialised at creation of the segment.
        unsafe { pg_sys::ConditionVariableBroadcast(self.0.get()) }
    }

    /// Sleeps until `done` or the timeout; answers whether it is done. Interruptible: cancelling
    /// raises an error through this call, so callers must not hold anything that needs dropping.
    pub fn wait_until(&self, timeout: Option<Duration>, mut done: impl FnMut() -> bool) -> bool {
        if done() {
            return true;
        }
        let deadline = timeout.map(|timeout| std::time::Instant::now() + timeout);
        // SAFETY: prepare, sleep, cancel is the documented protocol; after an error the
        // transaction's abort cancels the sleep.
        unsafe {
            pg_sys::ConditionVariablePrepareToSleep(self.0.get());
            let finished = loop {
                if done() {
                    break true;
                }
                let left = match deadline {
                    None => Duration::from_secs(3600),
                    Some(deadline) => deadline.saturating_duration_since(std::time::Instant::now()),
                };
                if left.is_zero() {
                    break false;
                }
                let ms = left.as_millis().clamp(1, 3_600_000) as std::ffi::c_long;
                pg_sys::ConditionVariableTimedSleep(self.0.get(), ms, wait_event::worker());
            };
            pg_sys::ConditionVariableCancelSleep();
            finished
        }
    }

    /// The same for conditions that change without a broadcast too: looks again every 10 ms.
    pub fn wait_until_polling(&self, timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
        let deadline = std::time::Instant::now() + timeout;
        while std::time::Instant::now() < deadline {
            if self.wait_until(Some(Duration::from_millis(10)), &mut done) {
                return true;
            }
        }
        done()
    }

    /// # Safety
    /// Only while the segment is being created.
    unsafe fn init(&self) {
        // SAFETY: memory of the right size, nobody else sees it yet.
        unsafe { pg_sys::ConditionVariableInit(self.0.get()) }
    }
}

// SAFETY: all fields are atomics or `Sync` cells; `figures` is only reached through `Locked`.
unsafe impl Sync for View {}

// SAFETY: all fields are atomics or `Sync` cells; the texts are only reached through `Locked`.
unsafe impl Sync for Database {}

static AREA: AtomicPtr<Area> = AtomicPtr::new(std::ptr::null_mut());

/// The segment, `None` when the library was not preloaded.
pub fn area() -> Option<&'static Area> {
    // SAFETY: set once, before any use, to memory that lives as long as the process.
    unsafe { AREA.load(Ordering::Relaxed).as_ref() }
}

/// Arranges for the segment to be created. Only while preloading.
pub fn request() {
    // SAFETY: the postmaster is single-threaded while it loads libraries; the hooks keep the
    // previous ones.
    unsafe {
        PREVIOUS_REQUEST = pg_sys::shmem_request_hook;
        pg_sys::shmem_request_hook = Some(request_hook);
        PREVIOUS_STARTUP = pg_sys::shmem_startup_hook;
        pg_sys::shmem_startup_hook = Some(startup_hook);
    }
}

static mut PREVIOUS_REQUEST: pg_sys::shmem_request_hook_type = None;
static mut PREVIOUS_STARTUP: pg_sys::shmem_startup_hook_type = None;

fn segment_bytes() -> usize {
    let databases = crate::settings::max_databases() * size_of::<Database>();
    let views = crate::settings::max_views() * (size_of::<View>() + size_of::<IndexCell>());
    size_of::<Area>() + databases + views
}

/// # Safety
/// For PostgreSQL to call, as this hook.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn request_hook() {
    // SAFETY: called by the postmaster at the moment meant for requests.
    unsafe {
        if let Some(previous) = PREVIOUS_REQUEST {
            previous();
        }
        pg_sys::RequestAddinShmemSpace(segment_bytes());
        pg_sys::RequestNamedLWLockTranche(NAME.as_ptr(), 1);
        wait_event::request();
    }
}

/// # Safety
/// For PostgreSQL to call, as this hook.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn startup_hook() {
    // SAFETY: called once the segment exists; the init lock excludes others; a fresh area is
    // zeroed before anybody can see it.
    unsafe {
        if let Some(previous) = PREVIOUS_STARTUP {
            previous();
        }
        let init_lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
        pg_sys::LWLockAcquire(init_lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let mut found = false;
        let area: *mut Area =
            pg_sys::ShmemInitStruct(NAME.as_ptr(), segment_bytes(), &mut found).cast();
        if !found {
            std::ptr::write_bytes(area.cast::<u8>(), 0, segment_bytes());
            let lock = &raw mut (*pg_sys::GetNamedLWLockTranche(NAME.as_ptr())).lock;
            (*area).layout.store(LAYOUT, Ordering::Relaxed);
            (*area).lock.store(lock, Ordering::Relaxed);
            (*area).changed.init();
            let databases = crate::settings::max_databases() as u32;
            (*area).databases_capacity.store(databases, Ordering::Relaxed);
            (*area).views_capacity.store(crate::settings::max_views() as u32, Ordering::Relaxed);
            for database in (*area).databases() {
                database.advanced.init();
            }
        }
        // All processes have the postmaster's library; whoever has not leaves the segment alone.
        if (*area).layout.load(Ordering::Relaxed) == LAYOUT {
            AREA.store(area, Ordering::Relaxed);
        }
        pg_sys::LWLockRelease(init_lock);
        wait_event::learn();
    }
}

/// Index of AddinShmemInitLock among PostgreSQL's own locks (lwlocknames.txt; stable since 9.6).
const ADDIN_SHMEM_INIT_LOCK: usize = 21;

impl Area {
    /// The view cells ever used.
    pub fn views(&self) -> &[View] {
        self.cells(self.views_used.load(Ordering::Acquire) as usize)
    }

    /// The slots of databases, free ones included.
    pub fn databases(&self) -> &[Database] {
        let count = self.databases_capacity.load(Ordering::Relaxed) as usize;
        // SAFETY: the slots follow the area in the segment; all three types are aligned to eight bytes.
        unsafe {
            let first = (std::ptr::from_ref(self)).add(1).cast::<Database>();
            std::slice::from_raw_parts(first, count)
        }
    }

    fn cells(&self, count: usize) -> &[View] {
        // SAFETY: the cells follow the databases in the segment, `count` is within the capacity.
        unsafe {
            let first = self.databases().as_ptr_range().end.cast::<View>();
            std::slice::from_raw_parts(first, count)
        }
    }

    fn capacity(&self) -> usize {
        self.views_capacity.load(Ordering::Relaxed) as usize
    }

    /// Whether no cell is free for another view.
    pub fn is_full_of_views(&self) -> bool {
        let used = self.views();
        used.len() >= self.capacity()
            && used.iter().all(|view| view.database.load(Ordering::Relaxed) != 0)
    }

    /// Number of views that databases but this one have.
    pub fn views_of_others(&self, database: u32) -> usize {
        let owners = self.views().iter().map(|view| view.database.load(Ordering::Relaxed));
        owners.filter(|owner| *owner != 0 && *owner != database).count()
    }

    /// Takes the lock for the time of `work`, which must not raise errors.
    pub fn locked<'a, R>(&'a self, work: impl FnOnce(&mut Locked<'a>) -> R) -> R {
        let lock = self.lock.load(Ordering::Relaxed);
        // SAFETY: the lock is from our tranche. `work` is plain Rust that does not call
        // PostgreSQL; if an error strikes nevertheless, PostgreSQL releases LWLocks at abort.
        unsafe {
            pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
            let result = work(&mut Locked { area: self });
            pg_sys::LWLockRelease(lock);
            result
        }
    }
}

/// Proof that the area's lock is held.
pub struct Locked<'a> {
    area: &'a Area,
}

impl<'a> Locked<'a> {
    /// Texts and figures of a view.
    pub fn figures<'v>(&'v mut self, view: &View) -> &'v mut Figures {
        // SAFETY: the lock is held, and `self` is borrowed as long as the result lives.
        unsafe { &mut *view.figures.get() }
    }

    /// What a database's last worker had to say when it ended by an error.
    pub fn complaint<'d>(&'d mut self, database: &Database) -> &'d mut Text {
        // SAFETY: as in `figures`.
        unsafe { &mut *database.complaint.get() }
    }

    /// The cells of indexes, free ones included.
    pub fn indexes(&mut self) -> &mut [IndexCell] {
        let count = self.area.capacity();
        // SAFETY: the cells follow those of the views, as many as there can be; zeroed memory is a free one. The lock is held,
        // and `self` is borrowed as long as the result lives.
        unsafe {
            let views = std::slice::from_raw_parts(self.area.cells(0).as_ptr(), count);
            let first = views.as_ptr_range().end.cast::<IndexCell>().cast_mut();
            std::slice::from_raw_parts_mut(first, count)
        }
    }

    /// Takes a free cell for a view, in its first state; `None` when all are taken.
    pub fn take_view(&mut self, database: u32, relid: ViewId) -> Option<&'a View> {
        let area = self.area;
        let used = area.views_used.load(Ordering::Relaxed) as usize;
        let is_free = |view: &&View| view.database.load(Ordering::Relaxed) == 0;
        let view = match area.cells(used).iter().find(is_free) {
            Some(view) => view,
            None if used < area.capacity() => {
                area.views_used.store(used as u32 + 1, Ordering::Release);
                area.cells(used + 1).last()?
            }
            None => return None,
        };
        *self.figures(view) = Figures::ZERO;
        view.relid.store(relid.to_u32(), Ordering::SeqCst);
        view.state.store(0, Ordering::SeqCst);
        view.reads_clock.store(0, Ordering::SeqCst);
        view.former_columns.store(0, Ordering::SeqCst);
        view.columns.store(0, Ordering::SeqCst);
        view.changed.store(0, Ordering::SeqCst);
        view.file.store(0, Ordering::SeqCst);
        view.since.store(super::xact::now(), Ordering::SeqCst);
        view.applied.store(u64::MAX, Ordering::SeqCst);
        view.applied_at.store(0, Ordering::SeqCst);
        view.query_reads.store(0, Ordering::SeqCst);
        view.attaching.reset();
        view.database.store(database, Ordering::Release);
        Some(view)
    }
}
