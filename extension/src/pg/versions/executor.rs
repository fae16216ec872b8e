//! Running a planned statement. 18 has no `execute_once` any more.

use pgrx::pg_sys;
use std::sync::OnceLock;

/// What is done in place of each run. Its frame has no destructors, so that errors of the server may jump over it.
pub type Around = unsafe fn(*mut pg_sys::QueryDesc, Run);

static AROUND: OnceLock<Around> = OnceLock::new();
static NEXT: OnceLock<pg_sys::ExecutorRun_hook_type> = OnceLock::new();

/// Has `around` called in place of each run of a statement, once per process.
pub fn install_run(around: Around) {
    if AROUND.set(around).is_err() {
        return;
    }
    // SAFETY: the hook variable is a plain global, set at library load by the only thread.
    unsafe {
        let _ = NEXT.set(pg_sys::ExecutorRun_hook);
        pg_sys::ExecutorRun_hook = Some(hook);
    }
}

/// What a statement is to be run for: the arguments of the hook behind the query itself.
#[derive(Clone, Copy)]
pub struct Run {
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    #[cfg(not(feature = "pg18"))]
    execute_once: bool,
}

impl Run {
    /// Runs the statement, as if there were no hook of ours.
    ///
    /// # Safety
    /// The query that [`Around`] got with this.
    pub unsafe fn go(self, query: *mut pg_sys::QueryDesc) {
        let next = NEXT.get().copied().flatten().unwrap_or(standard_ExecutorRun);
        // SAFETY: PostgreSQL's own arguments are handed on.
        unsafe {
            #[cfg(not(feature = "pg18"))]
            next(query, self.direction, self.count, self.execute_once);
            #[cfg(feature = "pg18")]
            next(query, self.direction, self.count);
        }
    }
}

// Not the bindings' own, which would catch errors of the server.
unsafe extern "C-unwind" {
    #[cfg(not(feature = "pg18"))]
    fn standard_ExecutorRun(
        query: *mut pg_sys::QueryDesc,
        direction: pg_sys::ScanDirection::Type,
        count: u64,
        execute_once: bool,
    );
    #[cfg(feature = "pg18")]
    fn standard_ExecutorRun(
        query: *mut pg_sys::QueryDesc,
        direction: pg_sys::ScanDirection::Type,
        count: u64,
    );
}

/// Unguarded: hands on what PostgreSQL passes.
///
/// # Safety
/// For PostgreSQL to call, as this hook.
#[cfg(not(feature = "pg18"))]
unsafe extern "C-unwind" fn hook(
    query: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    execute_once: bool,
) {
    let run = Run { direction, count, execute_once };
    // SAFETY: PostgreSQL's own arguments.
    AROUND.get().into_iter().for_each(|around| unsafe { around(query, run) });
}

/// Unguarded: hands on what PostgreSQL passes.
///
/// # Safety
/// For PostgreSQL to call, as this hook.
#[cfg(feature = "pg18")]
unsafe extern "C-unwind" fn hook(
    query: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
) {
    let run = Run { direction, count };
    // SAFETY: PostgreSQL's own arguments.
    AROUND.get().into_iter().for_each(|around| unsafe { around(query, run) });
}
