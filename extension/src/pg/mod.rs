//! Safe wrappers around PostgreSQL's C interface: the only folder with `unsafe`.
//!
//! Hooks are plain `extern "C-unwind"` functions without destructors that call the next hook
//! *unguarded*: pgrx's guard would turn every error of the server into a new one and lose its
//! position, context and constraint names.

pub mod alarm;
mod canonical;
pub mod catalog;
mod code;
pub mod command;
mod compared_columns;
pub mod comparison;
pub mod confinement;
pub mod crash_point;
pub mod creations;
pub mod decoding;
pub mod dependencies;
pub mod evaluate;
pub mod executor;
pub mod fill;
pub mod guc;
pub mod heap;
pub mod held_snapshot;
mod host_aggregates;
pub mod host_calls;
mod host_queries;
pub mod host_sets;
pub mod ids;
pub mod inval;
pub mod keywords;
pub mod label;
pub mod lists;
pub mod locks;
pub mod markers;
mod nodes;
pub mod object_access;
pub mod origin;
mod own_rows;
pub mod predicate;
pub mod present;
pub mod process;
pub mod progress;
mod query;
pub mod raw_tree;
pub mod registry;
pub mod relation;
pub mod replica_identity;
pub mod report;
pub mod shmem;
mod simple_case;
pub mod slots;
pub mod snapshots;
pub mod sort_keys;
pub mod sqlstate;
pub mod statement;
pub mod states;
pub mod tags;
pub mod tree;
pub mod types;
pub mod utility;
pub mod value;
pub mod wal;
mod whole_rows;
pub mod windows;
pub mod xact;

use pgrx::pg_sys;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the postmaster is loading `shared_preload_libraries` right now.
pub fn preloading() -> bool {
    // SAFETY: a plain global that only the main thread writes.
    unsafe { pg_sys::process_shared_preload_libraries_in_progress }
}

/// Set when this process, or the postmaster it was forked from, loaded the library at server start.
static PRELOADED: AtomicBool = AtomicBool::new(false);

/// Remembers that the library is being loaded at server start.
pub fn note_preload() {
    PRELOADED.store(true, Ordering::Relaxed);
}

/// Whether the library was loaded at server start.
pub fn preloaded() -> bool {
    PRELOADED.load(Ordering::Relaxed)
}
