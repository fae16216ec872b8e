//! pg_eddy: SQL views that keep themselves up to date, as a PostgreSQL extension.
//!
//! Everything that touches PostgreSQL lives in this crate. `pg/` holds the safe wrappers around the
//! server's C interface, `hooks/` what the server calls, `rewrite/` what is done to its query trees. These three alone
//! have `unsafe` code; the other modules are safe Rust on top.

mod changes;
mod compile;
mod errors;
mod handshake;
mod hooks;
mod outage;
mod pg;
mod reads;
mod rewrite;
mod settings;
mod shared;
mod shared_indexes;
mod statements;
mod status;
mod sub_plans;
mod syntax;
mod worker;

pgrx::pg_module_magic!(name, version);

/// Tells the engine how much memory it holds.
#[global_allocator]
static ALLOCATOR: engine::memory::CountingAllocator = engine::memory::CountingAllocator;

/// `#[pg_guard]` on hand-written extern blocks expands to `crate::ffi::pg_guard_ffi_boundary`.
mod ffi {
    pub use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
}

/// Called by PostgreSQL when the library is loaded: in the postmaster under
/// `shared_preload_libraries`, or later in a session, where only clear refusals are possible.
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    pg::backtrace::keep_from_clients();
    settings::register();
    statements::install();
    if pg::preloading() {
        pg::note_preload();
        shared::request_shmem();
        worker::register();
        syntax::install();
        reads::install();
    }
}
