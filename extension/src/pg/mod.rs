//! Safe wrappers around PostgreSQL's C interface: the only folder with `unsafe`.
//!
//! Hooks are plain `extern "C-unwind"` functions without destructors that call the next hook
//! *unguarded*: pgrx's guard would turn every error of the server into a new one and lose its
//! position, context and constraint names.

pub mod report;

use pgrx::pg_sys;

/// Whether the postmaster is loading `shared_preload_libraries` right now.
pub fn preloading() -> bool {
    // SAFETY: a plain global that only the main thread writes.
    unsafe { pg_sys::process_shared_preload_libraries_in_progress }
}
