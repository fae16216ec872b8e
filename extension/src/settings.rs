//! The settings (`eddy.*`), each defined once, read through functions that give Rust types.

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};
use rules::security_label as label;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
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

/// Where the dataflows of views run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum EngineKind {
    /// In threads of the worker.
    #[name = c"embedded"]
    Embedded,
    /// In a process of their own.
    #[name = c"process"]
    Process,
    /// In several, of other machines.
    #[name = c"cluster"]
    Cluster,
}

/// What a statement is shown of views whose base tables its transaction has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum OwnWrites {
    /// What their queries return.
    #[name = c"query"]
    Query,
    /// The rows stored: what others have committed.
    #[name = c"stored"]
    Stored,
    /// Nothing: it fails.
    #[name = c"error"]
    Error,
}

/// What `CREATE MATERIALIZED VIEW` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum MaterializedViews {
    /// A plain materialized view.
    #[name = c"plain"]
    Plain,
    /// An incremental one.
    #[name = c"incremental"]
    Incremental,
    /// An incremental one if it can be.
    #[name = c"incremental_or_plain"]
    IncrementalOrPlain,
}

/// What fills a view that is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum Fill {
    /// Its dataflow, unless the statement is part of a transaction that goes on.
    #[name = c"auto"]
    Auto,
    /// Its dataflow, after the transaction has committed.
    #[name = c"dataflow"]
    Dataflow,
    /// Its query, before the statement is over.
    #[name = c"query"]
    Query,
}

/// [`label::Fallback`], as a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
enum Fallback {
    #[name = c"wait"]
    Wait,
    #[name = c"query"]
    Query,
    #[name = c"error"]
    Error,
}

static ENGINE: GucSetting<EngineKind> = GucSetting::<EngineKind>::new(EngineKind::Embedded);
static ENGINE_HOSTS: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static ENGINE_SECRET_FILE: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c"pg_eddy_engine.secret"));
static WORKERS: GucSetting<i32> = GucSetting::<i32>::new(1);
static SHARE_INDEXES: GucSetting<bool> = GucSetting::<bool>::new(true);
static SHARE_PLANS_FROM: GucSetting<i32> = GucSetting::<i32>::new(3);
static MAX_RECURSION: GucSetting<i32> = GucSetting::<i32>::new(10_000);
static MEMORY_LIMIT_MB: GucSetting<i32> = GucSetting::<i32>::new(-1);
static SPILL_DIRECTORY: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c"base/pgsql_tmp"));
static SPILL_LIMIT_MB: GucSetting<i32> = GucSetting::<i32>::new(-1);
static READ_TIMEOUT_MS: GucSetting<i32> = GucSetting::<i32>::new(60_000);
static MAX_RETAINED_WAL_MB: GucSetting<i32> = GucSetting::<i32>::new(-1);
static CHECKPOINT_WAL_MB: GucSetting<i32> = GucSetting::<i32>::new(0);
static FRESHNESS: GucSetting<Freshness> = GucSetting::<Freshness>::new(Freshness::Fresh);
static OWN_WRITES: GucSetting<OwnWrites> = GucSetting::<OwnWrites>::new(OwnWrites::Query);
static FALLBACK: GucSetting<Fallback> = GucSetting::<Fallback>::new(Fallback::Wait);
static FILL: GucSetting<Fill> = GucSetting::<Fill>::new(Fill::Auto);
static MATERIALIZED_VIEWS: GucSetting<MaterializedViews> =
    GucSetting::<MaterializedViews>::new(MaterializedViews::Plain);
static EVALUATION_TIMEOUT_MS: GucSetting<i32> = GucSetting::<i32>::new(10_000);
static COMPUTATION_TIMEOUT_MS: GucSetting<i32> = GucSetting::<i32>::new(3_600_000);
static KEYWORD: GucSetting<bool> = GucSetting::<bool>::new(true);
static MAX_VIEWS: GucSetting<i32> = GucSetting::<i32>::new(1000);
static MAX_DATABASES: GucSetting<i32> = GucSetting::<i32>::new(256);

/// Defines the settings. Those that size things at server start exist only when preloaded.
pub fn register() {
    define_for_sharing();
    define_for_worker();
    crate::pg::crash_point::register();
    define_for_reads();
    define_for_creation();
    GucRegistry::define_int_guc(
        c"eddy.max_retained_wal",
        c"WAL that the worker of one database may hold back.",
        c"Beyond it the worker ends, and all views of the database start afresh. 0: no limit, -1: half of what the file system of the WAL has free for it, at most 64 GB.",
        &MAX_RETAINED_WAL_MB,
        -1,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::UNIT_MB,
    );
    if crate::pg::preloading() {
        define_for_start();
    }
}

fn define_for_reads() {
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
    GucRegistry::define_enum_guc(
        c"eddy.own_writes",
        c"What a transaction that has changed base tables of an incremental view reads from it.",
        c"query: what the view's query returns, own changes included. stored: what others have committed. error: nothing.",
        &OWN_WRITES,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_enum_guc(
        c"eddy.fallback",
        c"What reads of incremental views that are not current do.",
        c"wait: they wait. query: they run the queries of the views. error: they fail.",
        &FALLBACK,
        GucContext::Userset,
        GucFlags::default(),
    );
}

fn define_for_creation() {
    GucRegistry::define_enum_guc(
        c"eddy.fill",
        c"What fills an incremental view that is created.",
        c"query: its query, before the statement is over. dataflow: its dataflow, and the first read waits for it. auto: its dataflow, but within a transaction block its query.",
        &FILL,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_enum_guc(
        c"eddy.materialized_views",
        c"What CREATE MATERIALIZED VIEW makes that does not say whether the view is incremental.",
        c"\"plain\" makes a plain materialized view, \"incremental\" an incremental one, \"incremental_or_plain\" an incremental one if it can be.",
        &MATERIALIZED_VIEWS,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// Settings that count once, when the server starts.
fn define_for_start() {
    GucRegistry::define_bool_guc(
        c"eddy.keyword",
        c"Whether the server knows the keyword INCREMENTAL.",
        c"Off leaves the server's table of keywords alone. Then CREATE MATERIALIZED VIEW ... WITH (incremental) is the only syntax.",
        &KEYWORD,
        GucContext::Postmaster,
        GucFlags::default(),
    );
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
    GucRegistry::define_int_guc(
        c"eddy.checkpoint_wal",
        c"WAL after which the state of views is saved, so that they need not be computed again after a restart.",
        c"A replication slot then holds the WAL from there on, also while the server is down. 0: nothing is saved.",
        &CHECKPOINT_WAL_MB,
        0,
        i32::MAX,
        GucContext::Postmaster,
        GucFlags::UNIT_MB,
    );
    GucRegistry::define_int_guc(
        c"eddy.max_databases",
        c"Number of databases that may have incremental views at the same time.",
        c"",
        &MAX_DATABASES,
        1,
        100_000,
        GucContext::Postmaster,
        GucFlags::default(),
    );
}

/// What views have in common; a change makes the worker start its engine afresh.
fn define_for_sharing() {
    GucRegistry::define_bool_guc(
        c"eddy.share_indexes",
        c"Whether views that look up the same columns of a table keep one index of it together.",
        c"Off gives each view indexes of its own.",
        &SHARE_INDEXES,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"eddy.share_plans_from",
        c"Views from which on a join or a sub-plan that they have in common is computed once for all of them.",
        c"What it puts out is kept for them, which takes memory. 0: each view computes all of its plan.",
        &SHARE_PLANS_FROM,
        0,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::default(),
    );
}

/// Settings of the worker; a change makes it start its engine afresh.
fn define_for_worker() {
    GucRegistry::define_enum_guc(
        c"eddy.engine",
        c"Where incremental views are computed.",
        c"embedded: in threads of the worker. process: in a process of their own, whose end takes nobody with it. cluster: in those that listen at eddy.engine_hosts.",
        &ENGINE,
        GucContext::Sighup,
        GucFlags::default(),
    );
    define_for_cluster();
    GucRegistry::define_int_guc(
        c"eddy.workers",
        c"Threads that compute each incremental view.",
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
        c"Beyond it state goes to eddy.spill_directory, or the view that grows goes into error state. 0: no limit, -1: half of the memory of the machine, or of the control group.",
        &MEMORY_LIMIT_MB,
        -1,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::UNIT_MB,
    );
    GucRegistry::define_int_guc(
        c"eddy.evaluation_timeout",
        c"Longest time that evaluating an expression for one row of an incremental view may take.",
        c"What takes longer is that row's error. 0: no limit.",
        &EVALUATION_TIMEOUT_MS,
        0,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_int_guc(
        c"eddy.computation_timeout",
        c"Longest time that computing one batch of changes of an incremental view may take.",
        c"A view that takes longer goes into error state. 0: no limit.",
        &COMPUTATION_TIMEOUT_MS,
        0,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::UNIT_MS,
    );
    define_for_spilling();
}

fn define_for_cluster() {
    GucRegistry::define_string_guc(
        c"eddy.engine_hosts",
        c"Where the engines listen over which incremental views are spread.",
        c"Addresses with ports, separated by commas: 'a:7101, b:7101'. Read where eddy.engine is cluster.",
        &ENGINE_HOSTS,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_string_guc(
        c"eddy.engine_secret_file",
        c"File with the secret that these engines have, too.",
        c"A path that is not absolute is below the data directory.",
        &ENGINE_SECRET_FILE,
        GucContext::Sighup,
        GucFlags::SUPERUSER_ONLY,
    );
}

fn define_for_spilling() {
    GucRegistry::define_string_guc(
        c"eddy.spill_directory",
        c"Where the state of incremental views goes that passes eddy.memory_limit.",
        c"A path that is not absolute is below the data directory. Empty: nowhere.",
        &SPILL_DIRECTORY,
        GucContext::Sighup,
        GucFlags::SUPERUSER_ONLY,
    );
    GucRegistry::define_int_guc(
        c"eddy.spill_limit",
        c"Space that the views of one database may take in eddy.spill_directory.",
        c"Beyond it the view that grows goes into error state. 0: no limit, -1: twice eddy.memory_limit, but at most half of what is free.",
        &SPILL_LIMIT_MB,
        -1,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::UNIT_MB,
    );
}

/// The settings an engine is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineSettings {
    pub kind: EngineKind,
    /// Where the engines of a cluster listen; none of another kind.
    pub hosts: Vec<String>,
    /// What they have to have, too.
    pub secret_file: PathBuf,
    /// Threads of each dataflow, in each process.
    pub workers: usize,
    /// Whether views keep indexes of tables together.
    pub shares_indexes: bool,
    /// Views from which on a part of their plans that they have in common is computed once; 0 for never.
    pub shares_plans_from: usize,
    pub max_recursion: u64,
    /// Bytes allowed, 0 for no limit.
    pub memory_limit: usize,
    /// Directory for state beyond that, if any.
    pub spill_directory: Option<PathBuf>,
    /// Bytes allowed there: `None` to choose by what is free, `u64::MAX` for no limit.
    pub spill_limit: Option<u64>,
}

/// Where state may go to disk, a recursion may have so many times `eddy.memory_limit` of rows while
/// PostgreSQL runs the query itself.
const FILL_BEYOND_MEMORY: usize = 16;

impl EngineSettings {
    /// Threads of each dataflow.
    pub fn all_workers(&self) -> usize {
        self.workers * self.hosts.len().max(1)
    }

    /// Bytes of rows that a recursion may have while PostgreSQL runs the query, 0 for no limit. It keeps
    /// them in memory where duplicates are dropped, so not more than the limit's default.
    pub fn fill_limit(&self) -> usize {
        match self.spill_directory {
            Some(_) => {
                let more = self.memory_limit.saturating_mul(FILL_BEYOND_MEMORY);
                more.min(default_memory_limit()).max(self.memory_limit)
            }
            None => self.memory_limit,
        }
    }

    /// Where the engine may put state that outgrows memory. Asks how much is free.
    pub fn spill(&self) -> Option<engine::Spill> {
        // Of its own, and with a name by which PostgreSQL removes what is left in its directories.
        let directory = self.spill_directory.as_ref()?.join("pgsql_tmp_eddy");
        let limit = self.spill_limit.unwrap_or_else(|| {
            let free = crate::pg::process::free_space(self.spill_directory.as_deref());
            (2 * self.memory_limit as u64).min(free / 2)
        });
        Some(engine::Spill { directory, above: self.memory_limit / 2, limit })
    }
}

/// Settings of the engine as they are now.
pub fn engine() -> EngineSettings {
    let memory_limit = memory_limit();
    let directory = SPILL_DIRECTORY.get().filter(|path| memory_limit > 0 && !path.is_empty());
    let spill_limit = match u64::try_from(SPILL_LIMIT_MB.get()) {
        Err(_) => None,
        Ok(0) => Some(u64::MAX),
        Ok(megabytes) => Some(megabytes << 20),
    };
    let kind = ENGINE.get();
    EngineSettings {
        kind,
        hosts: if kind == EngineKind::Cluster { hosts() } else { Vec::new() },
        secret_file: path(ENGINE_SECRET_FILE.get().unwrap_or_default()),
        workers: WORKERS.get().max(1) as usize,
        shares_indexes: SHARE_INDEXES.get(),
        shares_plans_from: SHARE_PLANS_FROM.get() as usize,
        max_recursion: max_recursion(),
        memory_limit,
        spill_directory: directory.map(path),
        spill_limit,
    }
}

fn path(path: CString) -> PathBuf {
    OsString::from_vec(path.into_bytes()).into()
}

fn hosts() -> Vec<String> {
    let hosts = ENGINE_HOSTS.get().unwrap_or_default();
    let hosts = hosts.to_string_lossy();
    let hosts = hosts.split(',').map(|host| host.trim().to_owned());
    hosts.filter(|host| !host.is_empty()).collect()
}

/// Iterations a recursion may take.
pub fn max_recursion() -> u64 {
    MAX_RECURSION.get().max(1) as u64
}

/// Bytes the views of a database may take, 0 for no limit.
pub fn memory_limit() -> usize {
    match usize::try_from(MEMORY_LIMIT_MB.get()) {
        Ok(megabytes) => megabytes << 20,
        Err(_) => default_memory_limit(),
    }
}

fn default_memory_limit() -> usize {
    crate::pg::process::usable_memory() / 2
}

/// Longest wait of a read, `None` for ever.
pub fn read_timeout() -> Option<Duration> {
    limit_of(&READ_TIMEOUT_MS)
}

/// Longest time for one row of what PostgreSQL evaluates, `None` for no limit.
pub fn evaluation_timeout() -> Option<Duration> {
    limit_of(&EVALUATION_TIMEOUT_MS)
}

/// Longest time for one batch of a view's changes, `None` for no limit.
pub fn computation_timeout() -> Option<Duration> {
    limit_of(&COMPUTATION_TIMEOUT_MS)
}

fn limit_of(setting: &GucSetting<i32>) -> Option<Duration> {
    match setting.get() {
        0 => None,
        ms => Some(Duration::from_millis(ms.max(0) as u64)),
    }
}

/// What reads wait for.
pub fn freshness() -> Freshness {
    FRESHNESS.get()
}

/// What a transaction that has changed base tables reads.
pub fn own_writes() -> OwnWrites {
    OWN_WRITES.get()
}

/// What reads do of what is not current.
pub fn fallback() -> label::Fallback {
    match FALLBACK.get() {
        Fallback::Wait => label::Fallback::Wait,
        Fallback::Query => label::Fallback::Query,
        Fallback::Error => label::Fallback::Error,
    }
}

/// What fills a view that is created.
pub fn fill() -> Fill {
    FILL.get()
}

/// Whether the server is to know the keyword INCREMENTAL.
pub fn keyword() -> bool {
    KEYWORD.get()
}

/// What `CREATE MATERIALIZED VIEW` makes that does not say.
pub fn materialized_views() -> MaterializedViews {
    MATERIALIZED_VIEWS.get()
}

/// Capacity for views in shared memory.
pub fn max_views() -> usize {
    MAX_VIEWS.get().max(1) as usize
}

/// Capacity for databases in shared memory.
pub fn max_databases() -> usize {
    MAX_DATABASES.get().max(1) as usize
}

/// Bytes of WAL after which views are saved; `None` if they are not.
pub fn checkpoint_wal() -> Option<u64> {
    u64::try_from(CHECKPOINT_WAL_MB.get())
        .ok()
        .filter(|megabytes| *megabytes > 0)
        .map(|megabytes| megabytes << 20)
}

/// Most that -1 means for `eddy.max_retained_wal`: reading it again would take longer than starting afresh.
const MOST_RETAINED: u64 = 64 << 30;

/// Bytes of WAL that a worker may hold back; `space` says how many there are for it.
pub fn max_retained_wal(space: impl FnOnce() -> u64) -> u64 {
    match u64::try_from(MAX_RETAINED_WAL_MB.get()) {
        Ok(0) => u64::MAX,
        Ok(megabytes) => megabytes << 20,
        Err(_) => (space() / 2).min(MOST_RETAINED),
    }
}
