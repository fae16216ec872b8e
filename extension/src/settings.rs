//! The settings (`eddy.*`), each defined once, read through functions that give Rust types.

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};
use std::time::Duration;

/// What a SELECT on an incremental view waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum Freshness {
    /// Everything committed before the statement began.
    #[name = c"fresh"]
    Fresh,
    /// Nothing: the rows stored now.
    #[name = c"stale"]
    Stale,
}

static WORKERS: GucSetting<i32> = GucSetting::<i32>::new(1);
static MAX_RECURSION: GucSetting<i32> = GucSetting::<i32>::new(10_000);
static MEMORY_LIMIT_MB: GucSetting<i32> = GucSetting::<i32>::new(-1);
static READ_TIMEOUT_MS: GucSetting<i32> = GucSetting::<i32>::new(60_000);
static FRESHNESS: GucSetting<Freshness> = GucSetting::<Freshness>::new(Freshness::Fresh);
static MAX_VIEWS: GucSetting<i32> = GucSetting::<i32>::new(1000);

/// Defines the settings. Those that size things at server start exist only when preloaded.
pub fn register() {
    define_for_worker();
    GucRegistry::define_int_guc(
        c"eddy.read_timeout",
        c"Longest time a read of an incremental view waits for the view to be current.",
        c"Then it fails with an error that names the view and its lag. 0 waits for ever.",
        &READ_TIMEOUT_MS,
        0,
        i32::MAX,
        GucContext::Userset,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_enum_guc(
        c"eddy.freshness",
        c"Whether reads of incremental views wait for everything committed before.",
        c"fresh: they do. stale: they see the rows stored now, a past state of the database.",
        &FRESHNESS,
        GucContext::Userset,
        GucFlags::default(),
    );
    if crate::pg::preloading() {
        GucRegistry::define_int_guc(
            c"eddy.max_views",
            c"Number of incremental views that all databases together may maintain.",
            c"",
            &MAX_VIEWS,
            1,
            1_000_000,
            GucContext::Postmaster,
            GucFlags::default(),
        );
    }
}

/// Settings of the worker; a change makes it start its engine afresh.
fn define_for_worker() {
    GucRegistry::define_int_guc(
        c"eddy.workers",
        c"Threads that compute the incremental views of one database.",
        c"",
        &WORKERS,
        1,
        64,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"eddy.max_recursion",
        c"Iterations a recursive incremental view may take.",
        c"A view that needs more goes into error state.",
        &MAX_RECURSION,
        1,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"eddy.memory_limit",
        c"Memory the incremental views of one database may take.",
        c"Beyond it the view that grows goes into error state. 0: no limit, -1: half of the machine's memory.",
        &MEMORY_LIMIT_MB,
        -1,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::UNIT_MB,
    );
}

/// The settings an engine is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineSettings {
    /// Number of threads.
    pub workers: usize,
    /// Iterations allowed.
    pub max_recursion: u64,
    /// Bytes allowed, 0 for no limit.
    pub memory_limit: usize,
}

/// Settings of the engine as they are now.
pub fn engine() -> EngineSettings {
    let memory_limit = match usize::try_from(MEMORY_LIMIT_MB.get()) {
        Ok(megabytes) => megabytes << 20,
        Err(_) => crate::pg::process::physical_memory() / 2,
    };
    EngineSettings {
        workers: WORKERS.get().max(1) as usize,
        max_recursion: MAX_RECURSION.get().max(1) as u64,
        memory_limit,
    }
}

/// Longest wait of a read, `None` for ever.
pub fn read_timeout() -> Option<Duration> {
    match READ_TIMEOUT_MS.get() {
        0 => None,
        ms => Some(Duration::from_millis(ms.max(0) as u64)),
    }
}

/// What reads wait for.
pub fn freshness() -> Freshness {
    FRESHNESS.get()
}

/// Capacity for views in shared memory.
pub fn max_views() -> usize {
    MAX_VIEWS.get().max(1) as usize
}
