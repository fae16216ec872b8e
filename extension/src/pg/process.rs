//! Processes: background workers, latches, interrupts, signals, identity of this process.

use crate::pg::versions;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::ffi::{c_int, CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Functions that must be called without pgrx's guard: from engine threads or as C callbacks.
pub(super) mod raw {
    use pgrx::pg_sys;
    extern "C-unwind" {
        pub fn die(signal: std::ffi::c_int);
        pub fn SignalHandlerForConfigReload(signal: std::ffi::c_int);
        pub fn StatementCancelHandler(signal: std::ffi::c_int);
    }
    extern "C" {
        pub fn SetLatch(latch: *mut pg_sys::Latch);
    }
}

/// Whether this process is one of ours (launcher or worker), which never waits for a worker.
static OURS: AtomicBool = AtomicBool::new(false);

/// Whether this process is the launcher or a worker.
pub fn is_ours() -> bool {
    OURS.load(Ordering::Relaxed)
}

/// Memory in bytes that there is for this process: the machine's, or its control group's.
pub fn usable_memory() -> usize {
    static BYTES: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *BYTES.get_or_init(|| engine::machine::usable_memory(ask_physical_memory()))
}

fn ask_physical_memory() -> usize {
    // SAFETY: sysconf has no preconditions.
    let (pages, size) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGE_SIZE)) };
    usize::try_from(pages).unwrap_or(0).saturating_mul(usize::try_from(size).unwrap_or(0))
}

/// Bytes free in the file system of a directory, or of the nearest one above it that exists.
pub fn free_space(directory: Option<&Path>) -> u64 {
    let exists = directory.and_then(|path| path.ancestors().find(|path| path.is_dir()));
    let path = CString::new(exists.unwrap_or(Path::new(".")).as_os_str().as_bytes());
    let Ok(path) = path else { return 0 };
    let mut figures = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: a path that ends with a zero, and a place for the figures, which are there on success.
    let figures = unsafe {
        if libc::statvfs(path.as_ptr(), figures.as_mut_ptr()) != 0 {
            return 0;
        }
        figures.assume_init()
    };
    figures.f_bavail.saturating_mul(figures.f_frsize)
}

/// OID of the database this process is connected to.
pub fn database() -> u32 {
    // SAFETY: a plain global.
    unsafe { pg_sys::MyDatabaseId }.to_u32()
}

pub fn my_pid() -> i32 {
    // SAFETY: a plain global.
    unsafe { pg_sys::MyProcPid }
}

/// Memory on which a thread's signal handlers run, so that they can even if its stack is full.
struct SignalStack(*mut libc::c_void);

const SIGNAL_STACK_BYTES: usize = 64 << 10;

impl Drop for SignalStack {
    fn drop(&mut self) {
        // SAFETY: the stack is not in use outside of a handler, and was mapped with this length.
        unsafe {
            let mut none: libc::stack_t = std::mem::zeroed();
            none.ss_flags = libc::SS_DISABLE;
            libc::sigaltstack(&none, std::ptr::null_mut());
            libc::munmap(self.0, SIGNAL_STACK_BYTES);
        }
    }
}

thread_local! {
    static SIGNAL_STACK: std::cell::OnceCell<SignalStack> = const { std::cell::OnceCell::new() };
}

/// Gives this thread a stack of its own for signal handlers, as long as it lives.
pub fn use_own_signal_stack() {
    SIGNAL_STACK.with(|cell| {
        cell.get_or_init(|| {
            // SAFETY: an anonymous mapping, which the kernel is told to use; without one all is as before.
            unsafe {
                let place = libc::mmap(
                    std::ptr::null_mut(),
                    SIGNAL_STACK_BYTES,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                );
                if place != libc::MAP_FAILED {
                    let mut stack: libc::stack_t = std::mem::zeroed();
                    stack.ss_sp = place;
                    stack.ss_size = SIGNAL_STACK_BYTES;
                    libc::sigaltstack(&stack, std::ptr::null_mut());
                }
                SignalStack(place)
            }
        });
    });
}

/// Whether this process was told to end.
static TERMINATED: AtomicBool = AtomicBool::new(false);

/// Whether this process was told to end.
pub fn is_terminated() -> bool {
    TERMINATED.load(Ordering::Relaxed)
}

/// Unguarded: a signal handler.
///
/// # Safety
/// For PostgreSQL to call, as the handler of a signal.
unsafe extern "C-unwind" fn on_terminate(signal: c_int) {
    TERMINATED.store(true, Ordering::Relaxed);
    // SAFETY: as PostgreSQL's own handler, within a signal handler.
    unsafe { raw::die(signal) }
}

/// Asks a process of the server to end.
pub fn terminate(pid: i32) {
    // SAFETY: kill has no memory preconditions; the caller took the pid from shared memory.
    unsafe { libc::kill(pid, libc::SIGTERM) };
}

/// Whether a process of this server's user exists.
pub fn exists(pid: i32) -> bool {
    // SAFETY: signal 0 only asks.
    unsafe { libc::kill(pid, 0) == 0 }
}

/// Whether a living background worker with this process ID is connected to a database. What shared memory says of
/// processes holds if this does: a process that has ended, however it did, is in no list of PostgreSQL's.
pub fn is_worker_of(pid: i32, database: u32) -> bool {
    // SAFETY: PostgreSQL takes its own lock for the search; the entry may be given to another process at any time,
    // but it is never unmapped, and plain fields are read.
    unsafe {
        let entry = pg_sys::BackendPidGetProc(pid);
        !entry.is_null()
            && versions::process::serves_no_client(&*entry)
            && (*entry).databaseId.to_u32() == database
    }
}

/// Whether a script runs that says what it makes: that of an extension, or of pg_upgrade.
pub fn runs_script() -> bool {
    // SAFETY: reads a plain global.
    is_binary_upgrade() || unsafe { pg_sys::creating_extension }
}

/// Whether the server runs for `pg_upgrade`, which must find nothing at work.
pub fn is_binary_upgrade() -> bool {
    // SAFETY: a plain global, set from the command line.
    unsafe { pg_sys::IsBinaryUpgrade }
}

/// Registers the launcher. Only while preloading.
pub fn register_launcher(name: &CStr, function: &CStr) {
    let mut worker = background_worker(name, function, 0);
    // Seconds. After an exit with code 0 it would not be restarted at all.
    worker.bgw_restart_time = 1;
    // SAFETY: a fully initialised registration in the postmaster.
    unsafe { pg_sys::RegisterBackgroundWorker(&mut worker) }
}

/// A background worker started by this process.
pub struct Started(*mut pg_sys::BackgroundWorkerHandle);

impl Started {
    /// Whether it has ended (or never could start).
    pub fn has_ended(&self) -> bool {
        let mut pid = 0;
        // SAFETY: the handle was allocated in TopMemoryContext by `start`.
        unsafe {
            pg_sys::GetBackgroundWorkerPid(self.0, &mut pid)
                == pg_sys::BgwHandleStatus::BGWH_STOPPED
        }
    }

    /// Tells it to end, also if it has not begun yet.
    pub fn terminate(&self) {
        // SAFETY: as above; of one that has ended nothing is left to be told.
        unsafe { pg_sys::TerminateBackgroundWorker(self.0) }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        STARTED.with_borrow_mut(|started| started.retain(|handle| *handle != self.0));
        // SAFETY: allocated by RegisterDynamicBackgroundWorker with palloc, freed once.
        unsafe { pg_sys::pfree(self.0.cast()) }
    }
}

thread_local! {
    /// Background workers that this process has started and still knows.
    static STARTED: RefCell<Vec<*mut pg_sys::BackgroundWorkerHandle>> = const { RefCell::new(Vec::new()) };
}

/// Tells all background workers to end that this process has started and not let go of. For the end of the process.
pub fn terminate_started() {
    STARTED.with(|started| {
        for handle in started.try_borrow().iter().flat_map(|handles| handles.iter()) {
            // SAFETY: handles that were not freed yet.
            unsafe { pg_sys::TerminateBackgroundWorker(*handle) }
        }
    });
}

/// Starts a background worker that is not restarted; `None` when no worker slot is free.
pub fn start(name: &CStr, function: &CStr, argument: u32) -> Option<Started> {
    start_with(name, function, argument, c"")
}

/// The same with a text of up to 127 bytes for it, which [`extra`] is there.
pub fn start_with(name: &CStr, function: &CStr, argument: u32, extra: &CStr) -> Option<Started> {
    let mut worker = background_worker(name, function, argument);
    copy_text(&mut worker.bgw_extra, extra);
    worker.bgw_notify_pid = my_pid();
    let mut handle = std::ptr::null_mut();
    // SAFETY: the handle is allocated in the long-lived context so that it may be kept.
    unsafe {
        let old = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
        let registered = pg_sys::RegisterDynamicBackgroundWorker(&mut worker, &mut handle);
        pg_sys::MemoryContextSwitchTo(old);
        // Without a free slot the handle is not set, and must not be freed.
        (registered && !handle.is_null()).then(|| {
            STARTED.with_borrow_mut(|started| started.push(handle));
            Started(handle)
        })
    }
}

/// What whoever started this background worker has given to it.
pub fn extra() -> String {
    // SAFETY: the entry of this background worker, whose text ends with a zero: `copy_text` leaves the last byte.
    unsafe { CStr::from_ptr((*pg_sys::MyBgworkerEntry).bgw_extra.as_ptr()) }
        .to_string_lossy()
        .into_owned()
}

fn background_worker(name: &CStr, function: &CStr, argument: u32) -> pg_sys::BackgroundWorker {
    // SAFETY: all-zero is a valid value of this plain C struct.
    let mut worker: pg_sys::BackgroundWorker = unsafe { std::mem::zeroed() };
    copy_text(&mut worker.bgw_name, name);
    copy_text(&mut worker.bgw_type, name);
    copy_text(&mut worker.bgw_library_name, c"pg_eddy");
    copy_text(&mut worker.bgw_function_name, function);
    worker.bgw_flags =
        (pg_sys::BGWORKER_SHMEM_ACCESS | pg_sys::BGWORKER_BACKEND_DATABASE_CONNECTION) as c_int;
    worker.bgw_start_time = pg_sys::BgWorkerStartTime::BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = pg_sys::BGW_NEVER_RESTART;
    worker.bgw_main_arg = pg_sys::Datum::from(argument as usize);
    worker
}

fn copy_text<const N: usize>(to: &mut [std::ffi::c_char; N], text: &CStr) {
    for (to, from) in to[..N - 1].iter_mut().zip(text.to_bytes()) {
        *to = *from as std::ffi::c_char;
    }
}

/// Longest wait for a database that somebody has locked, by an open transaction with ALTER DATABASE, say. A process
/// that waits takes a place that others may need.
const CONNECT_TIMEOUT: &CStr = c"2s";

/// First steps of a background worker: signals and database connection (0: shared catalogs only).
pub fn connect(database: u32) {
    OURS.store(true, Ordering::Relaxed);
    super::guc::set_for_process(c"lock_timeout", CONNECT_TIMEOUT);
    // SAFETY: called once, first thing in the worker's main function.
    unsafe {
        versions::process::on_signal(libc::SIGTERM, on_terminate);
        versions::process::on_signal(libc::SIGHUP, raw::SignalHandlerForConfigReload);
        // PostgreSQL starts such processes with the signal ignored: one that came just now is gone.
        pg_sys::ConfigReloadPending = 1;
        versions::process::on_signal(libc::SIGINT, note_cancel);
        pg_sys::BackgroundWorkerUnblockSignals();
        if database == 0 {
            let none = std::ptr::null();
            pg_sys::BackgroundWorkerInitializeConnection(none, none, 0);
        } else {
            let oid = pg_sys::Oid::from(database);
            pg_sys::BackgroundWorkerInitializeConnectionByOid(oid, pg_sys::InvalidOid, 0);
        }
    }
    super::guc::set_for_process(c"lock_timeout", c"0");
}

/// Set when somebody cancels what this process does.
static CANCELED: AtomicBool = AtomicBool::new(false);

/// Unguarded: a signal handler.
///
/// # Safety
/// For PostgreSQL to call, as the handler of a signal.
unsafe extern "C-unwind" fn note_cancel(signal: c_int) {
    CANCELED.store(true, Ordering::SeqCst);
    // SAFETY: PostgreSQL's handler of this very signal.
    unsafe { raw::StatementCancelHandler(signal) }
}

/// Whether somebody has canceled what this process does since this was asked last. An error that says so may as well
/// be a function's own.
pub fn take_cancel() -> bool {
    CANCELED.swap(false, Ordering::SeqCst)
}

/// Place of ProcArrayLock among PostgreSQL's own locks (lwlocknames.txt; stable since 9.6).
const PROC_ARRAY_LOCK: usize = 4;

/// Who waits for a lock of this process cancels what it does after `deadlock_timeout`, as with autovacuum. Nor does CREATE
/// INDEX CONCURRENTLY wait for its snapshots, under which functions of indexes alone could look at other tables.
pub fn give_way() {
    let flag = pg_sys::PROC_IS_AUTOVACUUM as u8;
    // SAFETY: this process's own entry and the copy of its flags, both under the lock that guards them.
    unsafe {
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(PROC_ARRAY_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let me = pg_sys::MyProc;
        (*me).statusFlags |= flag;
        let copy = (*pg_sys::ProcGlobal).statusFlags.add((*me).pgxactoff as usize);
        *copy = (*me).statusFlags;
        pg_sys::LWLockRelease(lock);
    }
}

/// Runs `callback` when this process ends in any way but a crash.
pub fn at_exit(callback: unsafe extern "C-unwind" fn(c_int, pg_sys::Datum)) {
    // SAFETY: registration of a function that lives as long as the library.
    unsafe { pg_sys::before_shmem_exit(Some(callback), pg_sys::Datum::from(0)) }
}

/// Runs `callback` when this process ends in any way but a crash, after its transaction has been aborted.
pub fn at_last(callback: unsafe extern "C-unwind" fn(c_int, pg_sys::Datum)) {
    // SAFETY: registration of a function that lives as long as the library; shared memory is still there.
    unsafe { pg_sys::on_shmem_exit(Some(callback), pg_sys::Datum::from(0)) }
}

pub use super::versions::process::exit;

/// Sleeps until this process's latch is set or the time is over, then resets the latch, raises
/// pending interrupts, and answers whether the configuration was reloaded.
pub fn wait_for_latch(timeout: Duration) -> bool {
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    let ms = timeout.as_millis().min(i32::MAX as u128) as std::ffi::c_long;
    // SAFETY: waiting on this process's own latch.
    unsafe {
        pg_sys::WaitLatch(pg_sys::MyLatch, events as c_int, ms, pg_sys::PG_WAIT_EXTENSION);
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
    check_interrupts();
    reload_settings()
}

/// Resets the latch; to be done before looking for work.
pub fn reset_latch() {
    // SAFETY: this process's own latch.
    unsafe { pg_sys::ResetLatch(pg_sys::MyLatch) }
}

/// Lets the next wait for the latch end at once: what it was set for may not have been looked at.
pub fn wake_myself() {
    // SAFETY: this process's own latch.
    unsafe { raw::SetLatch(pg_sys::MyLatch) }
}

/// Raises pending interrupts (termination, cancel).
pub fn check_interrupts() {
    pgrx::check_for_interrupts!();
}

/// Takes back a cancel that nobody has noticed yet; answers whether there was one.
pub fn forget_cancel() -> bool {
    // SAFETY: a plain global that handlers of signals set.
    unsafe { (&raw mut pg_sys::QueryCancelPending).replace(0) != 0 }
}

/// Re-reads the configuration files if asked to; answers whether it did.
fn reload_settings() -> bool {
    // SAFETY: the flag is set by the signal handler only; the main loop is the place to reload.
    unsafe {
        if pg_sys::ConfigReloadPending == 0 {
            return false;
        }
        pg_sys::ConfigReloadPending = 0;
        pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
        true
    }
}

/// A function that wakes this process from any thread.
pub fn waker() -> impl Fn() + Send + Sync + 'static {
    // SAFETY: reading the pointer to this process's latch.
    let latch = unsafe { pg_sys::MyLatch } as usize;
    // SAFETY: SetLatch only writes shared memory and this process's self-pipe or signal; the latch
    // outlives the threads, which the process ends before it gives up its PGPROC.
    move || unsafe { raw::SetLatch(latch as *mut pg_sys::Latch) }
}

/// The signals that come for a thread from what it does itself, and say that the process is at its end.
pub const FATAL: [c_int; 5] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];

/// All signals but the fatal ones: while one of those is blocked, the process ends without its handler having been called.
fn signals_of_others() -> libc::sigset_t {
    // SAFETY: plain libc calls on a local set.
    unsafe {
        let mut signals = std::mem::zeroed();
        libc::sigfillset(&mut signals);
        for fatal in FATAL {
            libc::sigdelset(&mut signals, fatal);
        }
        signals
    }
}

/// Blocks the signals of others in the calling thread, so that PostgreSQL's handlers never run on it.
pub fn block_signals() {
    // SAFETY: a plain libc call.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &signals_of_others(), std::ptr::null_mut());
    }
}

/// Runs `work` with the signals of others blocked, so that threads it starts inherit the block from their
/// first instruction on.
pub fn with_signals_blocked<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: plain libc calls; the old mask is restored.
    unsafe {
        let mut old = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, &signals_of_others(), &mut old);
        let result = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut());
        result
    }
}

/// Tells pg_stat_activity what this process does.
pub fn report_activity(text: &CStr) {
    // SAFETY: the text is copied.
    unsafe { pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_RUNNING, text.as_ptr()) }
}

/// Tells pg_stat_activity what this process does for a view, whose name is shown as that of the application.
pub fn report_view(doing: &str, view: &str) {
    let text = CString::new(format!("{doing} view {view}")).unwrap_or_default();
    report_activity(&text);
    report_application(&CString::new(view).unwrap_or_default());
}

fn report_application(name: &CStr) {
    // SAFETY: the text is copied, as much of it as there is room for.
    unsafe { pg_sys::pgstat_report_appname(name.as_ptr()) }
}

/// Tells pg_stat_activity that this process waits for work, and hands over its statistics.
pub fn report_idle() {
    report_application(c"");
    // SAFETY: outside of a transaction, as required.
    unsafe {
        pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_IDLE, std::ptr::null());
        pg_sys::pgstat_report_stat(false);
    }
}
