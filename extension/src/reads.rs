//! Fresh reads: a statement that reads incremental views waits until they have everything that was
//! committed before it began.
//!
//! When the views are current this costs a few loads from shared memory. Otherwise the statement
//! waits for the worker and gets a new snapshot. It never waits where the worker could be waiting
//! for this session: locks of the session's own that keep the worker out, an open transaction the
//! worker must see the end of before it can start.

use crate::errors::Error;
use crate::handshake;
use crate::outage;
use crate::pg::command::TransactionStatement;
use crate::pg::executor::{self, Read};
use crate::pg::relation::i_lock_out_writers;
use crate::pg::shmem::{Database, View};
use crate::pg::utility::{self, Observer};
use crate::pg::{catalog, inval, locks, process, registry, report, states, wal, xact};
use crate::settings::{self, Freshness};
use crate::shared::{self, Cause, DatabaseState, ViewState};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::PgSqlErrorCode;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

/// Set-up at library load.
pub fn install() {
    executor::install(before_read);
    utility::observe(Observer {
        before_commit_prepared: handshake::before_commit_prepared,
        after_transaction_statement,
        before_database_command,
    });
}

thread_local! {
    /// The incremental views of this database, with the generation of the caches they are from.
    static VIEWS: RefCell<Option<(u64, BTreeSet<u32>)>> = const { RefCell::new(None) };
    static LISTENING: Cell<bool> = const { Cell::new(false) };
    /// What the last statement with a snapshot of its own saw, which was current for it.
    static LAST_CURRENT: Cell<Option<(u32, u32)>> = const { Cell::new(None) };
    /// Whether this transaction's snapshot was taken without waiting long enough.
    static BEGAN_STALE: Cell<bool> = const { Cell::new(false) };
}

fn before_read(read: &mut Read) {
    if process::is_ours() || xact::is_parallel_worker() || wal::in_recovery() {
        return;
    }
    let mut views = read.materialized_views();
    with_views(|known| views.retain(|view| known.contains(view)));
    if views.is_empty() {
        return;
    }
    let Some(database) = shared::my_database() else { return };
    if may_not_wait(&views) || !read.is_permitted() {
        return;
    }
    if settings::freshness() == Freshness::Fresh {
        views.iter().copied().for_each(require_known);
        make_fresh(read, database, &views);
    }
    for view in views {
        raise_error_of(view);
    }
}

/// Hands the set of incremental views to `work`, after reading it again if it may have changed.
fn with_views(work: impl FnOnce(&BTreeSet<u32>)) {
    if !LISTENING.replace(true) {
        inval::register();
    }
    let generation = inval::generation();
    let is_current =
        VIEWS.with_borrow(|views| views.as_ref().is_some_and(|(of, _)| *of == generation));
    if !is_current {
        let listed = registry::all().into_iter().map(|view| view.to_u32());
        VIEWS.set(Some((generation, listed.collect())));
    }
    VIEWS.with_borrow(|views| {
        if let Some((_, views)) = views {
            work(views);
        }
    });
}

/// Whether the worker could be kept from its work by this very session.
fn may_not_wait(read: &[u32]) -> bool {
    read.iter().any(|view| i_lock_out_writers(*view))
}

fn any_view_is_locked_out() -> bool {
    let mut is_locked_out = false;
    with_views(|views| is_locked_out = views.iter().any(|view| i_lock_out_writers(*view)));
    is_locked_out
}

/// Position that fresh views have reached.
fn target(database: &Database) -> u64 {
    // Between its commit's becoming visible and its note of that, a session is counted.
    match database.committing.load(SeqCst) {
        0 => database.last_commit.load(SeqCst),
        _ => wal::insert_lsn(),
    }
}

fn is_readable(view: u32) -> bool {
    shared::view(view).is_some_and(|cell| cell.state().is_settled())
}

fn are_current(database: &Database, views: &[u32], target: u64) -> bool {
    database.applied.load(SeqCst) >= target
        && views.iter().all(|view| is_readable(*view))
        && (!views.iter().any(|view| reads_clock(*view)) || is_in_time(database))
}

fn reads_clock(view: u32) -> bool {
    shared::view(view).is_some_and(|cell| cell.reads_clock.load(SeqCst) != 0)
}

/// Whether the worker has told the present time, which it does every second, not long ago.
fn is_in_time(database: &Database) -> bool {
    const LATE: i64 = 2_000_000;
    xact::now() - database.clock.load(SeqCst) <= LATE
}

/// A label makes a view incremental when its transaction commits. Until then its rows may be old, and
/// nobody can make them new.
fn require_known(view: u32) {
    if registry::is_labelled_now(view) {
        let name = catalog::qualified_name(view);
        let message = format!("incremental view \"{name}\" is not maintained yet");
        let error = Error::state(message).detail("This transaction has labelled it.");
        error.hint("Commit, or set eddy.freshness = 'stale' to read the stored rows.").raise();
    }
}

fn make_fresh(read: &mut Read, database: &'static Database, views: &[u32]) {
    // A statement called by another sees what that one sees: fresh enough if that one was.
    let is_own = read.has_own_snapshot();
    if !is_own && LAST_CURRENT.get() == Some(read.snapshot_extent()) {
        return;
    }
    let target = target(database);
    if xact::uses_one_snapshot() && xact::in_block() {
        if BEGAN_STALE.get() {
            timeout_error(database, views, target).raise();
        }
        if !are_together(read, views) {
            not_together(views).raise();
        }
        return;
    }
    if !are_current(database, views, target) && !wait(database, views, target) {
        return;
    }
    let sees_last = read.sees(database.apply_xid.load(SeqCst));
    if !sees_last {
        // The worker may just have filled a view that the relation cache knows as unpopulated.
        inval::accept();
    }
    if !sees_last && !xact::is_serializable() {
        read.renew_snapshot();
    }
    if !come_together(read, database, views, target) {
        return;
    }
    if is_own {
        LAST_CURRENT.set(Some(read.snapshot_extent()));
    }
}

/// Whether the statement's snapshot sees the views at one point of commit order. What the worker has published may be
/// older or newer than the snapshot, so rows written in the transactions that change the views decide.
fn are_together(read: &Read, views: &[u32]) -> bool {
    views.len() < 2 || !read.with_snapshot(|| views.iter().any(|view| states::is_behind(*view)))
}

/// Gives the statement a snapshot that sees the views at one point; false if waiting for it might be for ever.
fn come_together(read: &mut Read, database: &'static Database, views: &[u32], target: u64) -> bool {
    const MOMENT: Duration = Duration::from_millis(1);
    let began = Instant::now();
    while !are_together(read, views) {
        if settings::read_timeout().is_some_and(|timeout| began.elapsed() > timeout) {
            timeout_error(database, views, target).raise();
        }
        // One has just been left behind or come back, which will be published in a moment.
        if are_current(database, views, target) {
            database.advanced.wait_until(Some(MOMENT), || false);
        } else if !wait(database, views, target) {
            return false;
        }
        inval::accept();
        read.renew_snapshot();
    }
    true
}

fn not_together(views: &[u32]) -> Error {
    let names: Vec<String> =
        views.iter().map(|view| format!("\"{}\"", catalog::qualified_name(*view))).collect();
    Error::state(format!("incremental views {} are not at one point", names.join(", ")))
        .detail("One of them was set aside when the snapshot of this transaction was taken.")
        .hint("Run the transaction again, or set eddy.freshness = 'stale' to read the stored rows.")
}

/// Waits for the views; false if waiting might be for ever, raises an error at the timeout.
fn wait(database: &'static Database, views: &[u32], target: u64) -> bool {
    let is_starting = || {
        use DatabaseState::*;
        !matches!(database.state(), Running | NoExtension)
    };
    if any_view_is_locked_out() || (xact::has_xid() && is_starting()) {
        return false;
    }
    let done = || are_current(database, views, target);
    let began = Instant::now();
    let mut patience = PATIENCE;
    loop {
        let left = settings::read_timeout().map(|timeout| timeout.saturating_sub(began.elapsed()));
        let pause = left.map_or(patience, |left| left.min(patience));
        if wait_until(database, target, Some(pause), done) {
            return true;
        }
        if is_waited_for(database, views) {
            return false;
        }
        if left.is_some_and(|left| left <= pause) {
            timeout_error(database, views, target).raise();
        }
        patience = (patience * 2).min(MAX_PATIENCE);
    }
}

/// Whether the worker waits, directly or not, for a lock of this session: to attach a view it reads
/// its base tables, to go on at all it writes any view. A lock that others only wait for keeps it
/// out as well, and they may wait for this session.
fn is_waited_for(database: &Database, views: &[u32]) -> bool {
    let mut written: Vec<u32> = Vec::new();
    with_views(|known| written.extend(known));
    let read = catalog::tables_beneath(views);
    locks::blocked_by_me(database.pid.load(SeqCst), &read, &written)
}

/// A wait longer than this is unusual: time to look for a reason in this session.
const PATIENCE: Duration = Duration::from_millis(100);

/// Longest pause between two such looks, which are not for free.
const MAX_PATIENCE: Duration = Duration::from_secs(2);

fn wait_until(
    database: &'static Database,
    target: u64,
    timeout: Option<Duration>,
    done: impl FnMut() -> bool,
) -> bool {
    let mut done = done;
    if done() {
        return true;
    }
    database.wanted.fetch_max(target, SeqCst);
    database.worker.wake();
    database.advanced.wait_until(timeout, done)
}

fn timeout_error(database: &Database, views: &[u32], target: u64) -> Error {
    let behind = views.iter().find(|view| !is_readable(**view)).or(views.first());
    let name = catalog::qualified_name(behind.copied().unwrap_or_default());
    let applied = database.applied.load(SeqCst);
    let lag = target.saturating_sub(applied);
    let since = xact::milliseconds_since(database.applied_at.load(SeqCst));
    let state = match database.state() {
        DatabaseState::Running if lag == 0 => "It is being attached.".to_owned(),
        DatabaseState::Running => {
            format!("It is {lag} bytes of WAL behind, {since} ms after its last progress.")
        }
        _ => outage::explain(Some(database)).map_or(String::new(), |reason| reason.text),
    };
    Error::state(format!("incremental view \"{name}\" is not current within eddy.read_timeout"))
        .detail(state)
        .hint("Raise eddy.read_timeout, or set eddy.freshness = 'stale' to read the stored rows.")
}

/// Reads of a view that cannot be computed raise its error.
fn raise_error_of(view: u32) {
    let Some(cell) = shared::view(view).filter(|cell| cell.state() == ViewState::Error) else {
        return;
    };
    let figures = cell.figures();
    let (meaning, advice) = explain(Cause::from_u32(figures.cause), &catalog::qualified_name(view));
    let hints = [figures.hint.get(), advice].into_iter().filter(|hint| !hint.is_empty());
    let hint = hints.collect::<Vec<_>>().join(" ");
    // What the error says itself comes first; what that means for the view is its context then.
    let own = Some(figures.detail.get()).filter(|detail| !detail.is_empty());
    let context = own.is_some().then_some(meaning.as_str());
    report::set_code(xact::sqlstate_packed(&figures.sqlstate), context);
    let detail = own.as_ref().unwrap_or(&meaning).as_str();
    let code = PgSqlErrorCode::ERRCODE_INTERNAL_ERROR;
    let mut report = ErrorReport::new(code, figures.message.get(), "pg_eddy").set_detail(detail);
    if !hint.is_empty() {
        report = report.set_hint(hint);
    }
    std::panic::panic_any(report);
}

/// What an error means for a view, and how the view heals if not by itself.
fn explain(cause: Cause, view: &str) -> (String, String) {
    let refresh = format!("run REFRESH INCREMENTAL VIEW {view}.");
    match cause {
        Cause::Query => (
            format!("Incremental view \"{view}\" cannot be computed from the present data."),
            String::new(),
        ),
        Cause::Rights => (
            format!("The owner of incremental view \"{view}\" may not read all that it reads."),
            "Grant the right to the owner of the view.".into(),
        ),
        Cause::Tables => (
            format!("Incremental view \"{view}\" cannot be kept up to date as things are."),
            String::new(),
        ),
        Cause::Value => (
            format!("Incremental view \"{view}\" cannot take over a value of a base table."),
            format!("Change or remove the value, then {refresh}"),
        ),
        Cause::Limit => (
            format!("Incremental view \"{view}\" is not kept up to date any more."),
            format!("When the data have changed, {refresh}"),
        ),
        Cause::Write => (
            format!("The rows of incremental view \"{view}\" could not be written."),
            format!("Remove what refuses them, such as a unique index, then {refresh}"),
        ),
    }
}

/// Waits until all views of this database have everything committed before now.
pub fn wait_current() -> Result<(), Error> {
    let Some(database) = shared::my_database() else { return Ok(()) };
    if process::is_ours() || any_view_is_locked_out() {
        return Ok(());
    }
    let target = target(database);
    let mut views: Vec<u32> = Vec::new();
    with_views(|known| views.extend(known));
    if !are_current(database, &views, target) {
        wait(database, &views, target);
    }
    Ok(())
}

/// Waits until everything up to an LSN is applied; false at the timeout.
pub fn wait_for_lsn(lsn: u64, timeout: Option<Duration>) -> Result<bool, Error> {
    let Some(database) = shared::my_database() else {
        return Err(Error::state("no worker maintains incremental views in this database"));
    };
    let done = || database.applied.load(SeqCst) >= lsn;
    Ok(wait_until(database, lsn.min(wal::insert_lsn()), timeout, done))
}

/// The present time of views that the worker cannot write now: it may still have to say what it has written.
pub fn wait_for_clock(database: &'static Database) -> Result<i64, Error> {
    const TIMEOUT: Duration = Duration::from_secs(10);
    let is_said = || database.next_clock.load(SeqCst) == database.clock.load(SeqCst);
    match wait_until(database, 0, Some(TIMEOUT), is_said) {
        true => Ok(database.clock.load(SeqCst)),
        false => Err(Error::state("the worker of this database does not go on")),
    }
}

fn after_transaction_statement(statement: TransactionStatement) {
    match statement {
        TransactionStatement::CommitPrepared => handshake::after_commit_prepared(),
        TransactionStatement::Begin => before_single_snapshot(),
    }
}

/// A transaction that will read everything under one snapshot waits before it takes it. If that
/// takes too long the transaction goes on: only its reads of views are refused then.
fn before_single_snapshot() {
    if !xact::in_block() || !xact::uses_one_snapshot() || xact::has_snapshot() {
        return;
    }
    BEGAN_STALE.set(false);
    if process::is_ours() || settings::freshness() == Freshness::Stale {
        return;
    }
    let Some(database) = shared::my_database() else { return };
    if database.state() != DatabaseState::Running || any_view_is_locked_out() {
        return;
    }
    let target = target(database);
    let is_attached = |cell: &View| cell.state().is_settled();
    let done = || {
        database.applied.load(SeqCst) >= target
            && shared::views_of(process::database()).all(is_attached)
    };
    BEGAN_STALE.set(!wait_until(database, target, settings::read_timeout(), done));
}

fn before_database_command(database: u32) {
    handshake::rescan_at_commit();
    if let Err(error) = shared::stop_worker_for_database(database) {
        error.raise();
    }
}
