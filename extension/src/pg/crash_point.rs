//! Crash points: named places in the code at which a test lets a process end, fail or stop. What is true after a
//! crash depends on the instant of the crash, and nothing but a name in the code hits the instant that a test is about.
//!
//! The setting `eddy.crash_point`, which only superusers may change, arms one of them: `name`, or `name/subject` for the
//! calls of [`reach_for`] with that subject, followed by `=action` for anything but an abort. To add one, add
//! it to [`CrashPoint`] and [`NAMES`], and call [`reach`] where it is.

use super::ids::ViewId;
use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use pgrx::{pg_guard, pg_sys, PgSqlErrorCode};
use std::ffi::{c_char, c_void, CStr, CString};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CrashPoint {
    /// The launcher has looked at the list of databases.
    LauncherScan = 1,
    /// The launcher has asked for a worker.
    LauncherStart,
    /// A worker is connected to its database.
    WorkerConnect,
    /// A worker owns its database.
    WorkerOwn,
    /// A worker has its replication slot.
    WorkerSlot,
    /// A worker is about to do its first step.
    WorkerRun,
    /// A session is counted as committing and has not committed.
    Commit,
    /// A session keeps a worker away from a database.
    Hold,
    /// A worker reads the tables of a view.
    Attach,
    /// A thread of a view's dataflow starts.
    Thread,
    /// It feeds a view's dataflow.
    Batch,
    /// It evaluates an expression of a view.
    Evaluate,
    /// It writes a view's rows.
    Apply,
    /// It has decoded a transaction, perhaps one of several.
    Decode,
    /// It decodes a piece of a running transaction.
    Piece,
    /// It has dataflows saved.
    Checkpoint,
    /// They have been saved, and the manifest does not say so.
    CheckpointStore,
    /// It does, and the slot holds the WAL from the one before.
    CheckpointConfirm,
    /// It is about to go on with what was saved.
    Restore,
}

use CrashPoint::*;

/// Their names in the setting.
const NAMES: [(&str, CrashPoint); 19] = [
    ("launcher_scan", LauncherScan),
    ("launcher_start", LauncherStart),
    ("worker_connect", WorkerConnect),
    ("worker_own", WorkerOwn),
    ("worker_slot", WorkerSlot),
    ("worker_run", WorkerRun),
    ("commit", Commit),
    ("hold", Hold),
    ("attach", Attach),
    ("thread", Thread),
    ("batch", Batch),
    ("evaluate", Evaluate),
    ("apply", Apply),
    ("decode", Decode),
    ("piece", Piece),
    ("checkpoint", Checkpoint),
    ("checkpoint_store", CheckpointStore),
    ("checkpoint_confirm", CheckpointConfirm),
    ("restore", Restore),
];

/// What a process does when it reaches the armed point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Action {
    /// SIGABRT: the server restarts all its processes.
    Abort,
    /// SIGKILL: the same.
    Kill,
    /// The process stands still until it gets SIGCONT.
    Stop,
    /// It is asked to end, as by `pg_terminate_backend`.
    Terminate,
    /// An error; only where errors may be raised, which is not the case within callbacks of transactions.
    Error,
    /// An error that ends the process.
    Fatal,
    /// A bug of ours.
    Panic,
}

const ACTIONS: [(&str, Action); 7] = [
    ("abort", Action::Abort),
    ("kill", Action::Kill),
    ("stop", Action::Stop),
    ("terminate", Action::Terminate),
    ("error", Action::Error),
    ("fatal", Action::Fatal),
    ("panic", Action::Panic),
];

static SETTING: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);

/// The armed [`CrashPoint`], 0 for none: what code on a hot path looks at.
static ARMED: AtomicU32 = AtomicU32::new(0);

/// Its place in [`ACTIONS`].
static ACTION: AtomicU32 = AtomicU32::new(0);

/// A value of the setting, taken apart.
struct Choice<'a> {
    point: CrashPoint,
    subject: Option<&'a str>,
    action: u32,
}

fn parse(text: &str) -> Option<Choice<'_>> {
    let (place, action) = text.rsplit_once('=').unwrap_or((text, "abort"));
    let (name, subject) = match place.split_once('/') {
        Some((name, subject)) => (name, Some(subject)),
        None => (place, None),
    };
    let point = NAMES.iter().find(|(known, _)| *known == name)?.1;
    let action = ACTIONS.iter().position(|(known, _)| *known == action)? as u32;
    Some(Choice { point, subject, action })
}

/// Defines the setting that arms a point.
pub fn register() {
    // SAFETY: both hooks are guarded.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            c"eddy.crash_point",
            c"Place in the code at which a process ends, for tests of pg_eddy.",
            c"Empty: nowhere. A name, a subject after a slash, an action after an equals sign.",
            &SETTING,
            GucContext::Suset,
            GucFlags::SUPERUSER_ONLY | GucFlags::NO_SHOW_ALL,
            Some(check),
            Some(assign),
            None,
        );
    }
}

/// # Safety
/// For PostgreSQL to call, of the setting.
#[pg_guard]
unsafe extern "C-unwind" fn check(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: PostgreSQL passes the place of a C string, or of null.
    let text = unsafe { text_of(*value) };
    text.is_some_and(|text| text.is_empty() || parse(text).is_some())
}

/// # Safety
/// For PostgreSQL to call, of the setting.
#[pg_guard]
unsafe extern "C-unwind" fn assign(value: *const c_char, _extra: *mut c_void) {
    // SAFETY: as above.
    let choice = unsafe { text_of(value) }.and_then(parse);
    ACTION.store(choice.as_ref().map_or(0, |choice| choice.action), Relaxed);
    ARMED.store(choice.map_or(0, |choice| choice.point as u32), Relaxed);
}

/// # Safety
/// `value` is null or a C string that outlives the result.
unsafe fn text_of<'a>(value: *const c_char) -> Option<&'a str> {
    match value.is_null() {
        true => Some(""),
        // SAFETY: per contract.
        false => unsafe { CStr::from_ptr(value) }.to_str().ok(),
    }
}

/// The process is at a crash point. A single load unless one is armed.
pub fn reach(point: CrashPoint) {
    if ARMED.load(Relaxed) == point as u32 {
        act(point, None);
    }
}

/// The process is at a crash point with something that has a name, such as a view.
pub fn reach_for(point: CrashPoint, subject: &str) {
    if ARMED.load(Relaxed) == point as u32 {
        act(point, Some(subject));
    }
}

/// The view whose threads are to end the process, 0 for none: they cannot ask for the setting.
static THREADS_OF: AtomicU32 = AtomicU32::new(0);

/// Threads of a view's dataflow are about to start.
pub fn before_threads(relid: ViewId, name: &str) {
    let is_meant = ARMED.load(Relaxed) == Thread as u32
        && SETTING
            .get()
            .as_deref()
            .and_then(|value| value.to_str().ok())
            .and_then(parse)
            .is_some_and(|choice| choice.subject.is_none_or(|subject| subject == name));
    let relid = relid.to_u32();
    if is_meant {
        THREADS_OF.store(relid, Relaxed);
    } else {
        // Threads of another view may not have got so far as to ask.
        let _ = THREADS_OF.compare_exchange(relid, 0, Relaxed, Relaxed);
    }
}

/// A thread of a view's dataflow has started. The only action that it can take is an abort.
pub fn reach_in_thread(relid: ViewId) {
    if relid != ViewId::default() && THREADS_OF.load(Relaxed) == relid.to_u32() {
        abort();
    }
}

#[cold]
fn act(point: CrashPoint, subject: Option<&str>) {
    let value = SETTING.get();
    let Some(choice) = value.as_deref().and_then(|value| parse(value.to_str().ok()?)) else {
        return;
    };
    if choice.subject.is_some() && choice.subject != subject {
        return;
    }
    let message = format!("reached crash point {point:?}");
    let signal = |number| {
        // SAFETY: signals to this process itself have no memory preconditions.
        unsafe { libc::kill(libc::getpid(), number) };
    };
    match ACTIONS.get(ACTION.load(Relaxed) as usize).map(|(_, action)| action) {
        Some(Action::Abort) => abort(),
        Some(Action::Kill) => signal(libc::SIGKILL),
        Some(Action::Stop) => signal(libc::SIGSTOP),
        Some(Action::Terminate) => signal(libc::SIGTERM),
        Some(Action::Error) => pgrx::error!("pg_eddy: {message}"),
        Some(Action::Fatal) => {
            pgrx::ereport!(
                FATAL,
                PgSqlErrorCode::ERRCODE_ADMIN_SHUTDOWN,
                format!("pg_eddy: {message}")
            );
        }
        Some(Action::Panic) => panic!("{message}"),
        None => {}
    }
}

/// Without a core file: nobody is going to look at it.
fn abort() -> ! {
    // SAFETY: a limit of this process, and its end.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::abort()
    }
}
