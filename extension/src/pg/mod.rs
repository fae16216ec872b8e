//! Safe wrappers around PostgreSQL's C interface, and nothing else: what they are used for is said in the folders beside
//! this one. `unsafe` code is here, in `hooks/` and in `rewrite/`, and nowhere else.

pub mod alarm;
pub mod attaching;
pub mod backtrace;
pub mod bodies;
pub mod catalog;
pub mod changes_table;
pub mod code;
pub mod companion;
pub mod confinement;
pub mod crash_point;
pub mod creations;
pub mod ddl;
pub mod decoding;
pub mod definition;
pub mod dependencies;
pub mod engine_program;
pub mod entry;
pub mod evaluate;
pub mod guc;
pub mod heap;
pub mod heap_writer;
pub mod held_snapshot;
pub mod ids;
pub mod index_cells;
mod index_entries;
pub mod inval;
pub mod key_scan;
pub mod lists;
pub mod locks;
pub mod markers;
pub mod memory;
pub mod mirror;
pub mod notify;
pub mod origin;
mod own_rows;
pub mod predicate;
pub mod present_words;
pub mod process;
pub mod progress;
pub mod query;
pub mod quiet;
pub mod read;
pub mod records;
pub mod registry;
pub mod relation;
pub mod replica_identity;
pub mod report;
pub mod role_names;
pub mod row_triggers;
pub mod rows;
pub mod scan;
pub mod shmem;
pub mod slots;
pub mod snapshots;
pub mod sort_keys;
pub mod sqlstate;
pub mod states;
pub mod strings;
pub mod summaries;
pub mod times;
pub mod types;
pub mod value;
pub mod versions;
pub mod view_settings;
pub mod view_statistics;
pub mod wal;
pub mod xact;
pub mod zones;

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
