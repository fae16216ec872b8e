//! What this extension asks the server for by itself, unseen by others: extensions that watch what users do
//! (`pg_stat_statements`, `auto_explain`, `pgaudit`) have hooks in the planner and in the executor, and would show questions
//! that nobody has asked.
//!
//! Catalogs are read without any of these hooks. Queries of our own that read tables of users or call their functions, as the comparison of a view
//! does, begin without them; PostgreSQL checks rights as ever, and statements of functions are seen as ever.

use crate::pg::guc;
use pgrx::spi::{Spi, SpiTupleTable};
use pgrx::{pg_sys, spi};
use std::ffi::CStr;

/// Hooks of others, taken out as long as this is there.
struct Hooks {
    parsed: pg_sys::post_parse_analyze_hook_type,
    planner: pg_sys::planner_hook_type,
    start: pg_sys::ExecutorStart_hook_type,
    run: pg_sys::ExecutorRun_hook_type,
    finish: pg_sys::ExecutorFinish_hook_type,
    end: pg_sys::ExecutorEnd_hook_type,
    rights: pg_sys::ExecutorCheckPerms_hook_type,
}

impl Hooks {
    fn take() -> Hooks {
        // SAFETY: plain globals that the only thread reads which runs statements.
        unsafe {
            Hooks {
                parsed: (&raw mut pg_sys::post_parse_analyze_hook).replace(None),
                planner: (&raw mut pg_sys::planner_hook).replace(None),
                start: (&raw mut pg_sys::ExecutorStart_hook).replace(None),
                run: (&raw mut pg_sys::ExecutorRun_hook).replace(None),
                finish: (&raw mut pg_sys::ExecutorFinish_hook).replace(None),
                end: (&raw mut pg_sys::ExecutorEnd_hook).replace(None),
                rights: (&raw mut pg_sys::ExecutorCheckPerms_hook).replace(None),
            }
        }
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe {
            pg_sys::post_parse_analyze_hook = self.parsed;
            pg_sys::planner_hook = self.planner;
            pg_sys::ExecutorStart_hook = self.start;
            pg_sys::ExecutorRun_hook = self.run;
            pg_sys::ExecutorFinish_hook = self.finish;
            pg_sys::ExecutorEnd_hook = self.end;
            pg_sys::ExecutorCheckPerms_hook = self.rights;
        }
    }
}

/// Runs `work`, which asks catalogs and nothing else.
pub fn look_up<R>(work: impl FnOnce() -> R) -> R {
    let _hooks = Hooks::take();
    work()
}

/// The first row of a query that asks catalogs and nothing else; `None` if there is none.
///
/// The like in the bindings, `Spi::get_one`, gives the transaction a number: a worker that starts waits for the end of those that
/// have one, which must not be one that waits for it.
pub fn first_row<R>(
    query: &str,
    read: impl FnOnce(&SpiTupleTable<'_>) -> Result<R, spi::Error>,
) -> Option<R> {
    let ask = || Spi::connect(|client| read(&client.select(query, Some(1), &[])?.first()));
    look_up(ask).ok()
}

/// Runs `work`, which checks rights without doing what they are for. Nobody is to be told of it, and `pgaudit` takes the
/// statement that it is told of for one that the executor has begun, and ends the server.
pub fn check_rights<R>(work: impl FnOnce() -> R) -> R {
    struct Restore(pg_sys::ExecutorCheckPerms_hook_type);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: as below.
            unsafe { pg_sys::ExecutorCheckPerms_hook = self.0 };
        }
    }
    // SAFETY: a plain global that the only thread reads which runs statements.
    let _restore = Restore(unsafe { (&raw mut pg_sys::ExecutorCheckPerms_hook).replace(None) });
    work()
}

/// Settings of those who watch, the value with which they leave out what functions do, and the setting with the value that
/// says so, and what to set in a process in which nobody calls these functions but this extension.
const WATCHERS: [(&CStr, &str, &CStr, &CStr); 2] = [
    (c"pg_stat_statements.track", "top", c"pg_stat_statements.track", c"none"),
    (c"auto_explain.log_nested_statements", "off", c"auto_explain.log_min_duration", c"-1"),
];

/// In this process statements of functions count as what they are: called by a statement of somebody else.
pub fn hide_top_level() {
    for (name, value, setting, nothing) in WATCHERS {
        if guc::get(name) == value {
            guc::set_for_process(setting, nothing);
        }
    }
}
