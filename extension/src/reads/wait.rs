//! Waiting for the worker: what statements wait for, how long, and where waiting would be for ever.

use super::unfit::Unfit;
use super::views::{fallback_of, with_views};
use super::{errors, former, snapshot};
use crate::errors::Error;
use crate::handshake;
use crate::outage;
use crate::pg::ids::ViewId;
use crate::pg::relation::{
    i_lock, i_lock_out_writers, is_filled_by_me, is_populated, with_relation, Lock,
};
use crate::pg::shmem::{Database, View};
use crate::pg::{catalog, inval, locks, process, registry, wal, xact};
use crate::settings;
use crate::shared::{self, DatabaseState, ViewState};
use rules::security_label::Fallback;
use std::cell::Cell;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

pub(super) use super::snapshot::are_current;

/// A wait longer than this is unusual: time to look for a reason in this session.
const PATIENCE: Duration = Duration::from_millis(100);

/// Longest pause between two such looks, which are not for free.
const MAX_PATIENCE: Duration = Duration::from_secs(2);

/// The slot of this database, which has views.
pub(super) fn database() -> &'static Database {
    // What only a restart can change is not waited for.
    if let Err(error) = handshake::require_server() {
        errors::unfit_server(error).raise();
    }
    match asked_for_database() {
        Some(database) => database,
        None => handshake::too_many_databases().raise(),
    }
}

/// Just after the server has started, or a standby was promoted, a database may not have a slot: then the worker is asked for.
fn asked_for_database() -> Option<&'static Database> {
    use DatabaseState::{NoExtension, Unknown};
    let is_asked_for = |slot: &&Database| !matches!(slot.state(), Unknown | NoExtension);
    let slot = shared::my_database().filter(is_asked_for);
    slot.or_else(|| shared::ask_for_worker(process::database()))
}

/// Position that fresh views have reached.
pub(super) fn target(database: &Database) -> u64 {
    // Between its commit's becoming visible and its note of that, a session is counted.
    match database.committing.load(SeqCst) {
        0 => database.last_commit.load(SeqCst),
        _ => wal::insert_lsn(),
    }
}

thread_local! {
    /// Whether a view was found in error since this was last reset.
    static ERROR_SEEN: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; answers whether it found a view in error. The error may be gone by then, because the view is attached again or
/// the worker has ended: then it is to be waited for, but nobody who looks now can know that it has not been.
pub(super) fn finds_error(work: impl FnOnce()) -> bool {
    ERROR_SEEN.set(false);
    work();
    ERROR_SEEN.get()
}

/// Whether a view has an error that is not about to be looked at again, or need not be waited for.
pub(super) fn is_readable(view: ViewId) -> bool {
    let cell = shared::view(view).filter(|cell| former::serves(view, cell));
    cell.is_some_and(|cell| match cell.state() {
        ViewState::Error if cell.in_doubt.load(SeqCst) != 0 => false,
        ViewState::Error => {
            ERROR_SEEN.set(true);
            true
        }
        state => state == ViewState::Live && has_known_file(view, cell),
    })
}

/// Whether a view has the file in which the worker wrote it last, as far as this session, by a lock, can know. REFRESH makes
/// another one, with rows that every snapshot sees; until the worker has compared them they are of some other point.
fn has_known_file(view: ViewId, cell: &View) -> bool {
    !i_lock(view) || file_of(view) == cell.file.load(SeqCst)
}

/// The file of a view that this session has a lock on.
pub(super) fn file_of(view: ViewId) -> u32 {
    with_relation(view, Lock::AccessShare, |relation| relation.file()).unwrap_or(0)
}

pub(super) fn reads_clock(view: ViewId) -> bool {
    shared::view(view).is_some_and(|cell| cell.reads_clock.load(SeqCst) != 0)
}

/// Whether the worker has told the present time, which it does every second, not long ago.
pub(super) fn is_in_time(database: &Database) -> bool {
    const LATE: i64 = 2_000_000;
    xact::now() - database.clock.load(SeqCst) <= LATE
}

/// Has views reach a position for a statement that reads them: it waits, unless `eddy.fallback` has it do something else.
pub(super) fn until_current(
    database: &'static Database,
    views: &[ViewId],
    target: u64,
) -> Result<(), Unfit> {
    match fallback(views) {
        Fallback::Wait => wait_for(database, views, target),
        _ if are_current(database, views, target) => Ok(()),
        Fallback::Query => Err(Unfit::NotCurrent(errors::not_current(views))),
        Fallback::Error => Err(Unfit::TooLate(errors::not_current(views))),
    }
}

/// What the session wants, or else the first view that wants something.
fn fallback(views: &[ViewId]) -> Fallback {
    match settings::fallback() {
        Fallback::Wait => {
            let mut wanted = views.iter().filter_map(|view| fallback_of(*view));
            wanted.find(|fallback| *fallback != Fallback::Wait).unwrap_or(Fallback::Wait)
        }
        wanted => wanted,
    }
}

/// Waits for views to reach a position. An error if they cannot, or not within `eddy.read_timeout`.
fn wait_for(database: &'static Database, views: &[ViewId], target: u64) -> Result<(), Unfit> {
    let done = || are_current(database, views, target);
    let began = Instant::now();
    let mut patience = PATIENCE;
    loop {
        let left = settings::read_timeout().map(|timeout| timeout.saturating_sub(began.elapsed()));
        let pause = left.map_or(patience, |left| left.min(patience));
        if wait_until(database, target, Some(pause), done) {
            return Ok(());
        }
        if let Some(error) = obstacle(database, views) {
            return Err(Unfit::Stuck(error));
        }
        if left.is_some_and(|left| left <= pause) {
            return Err(too_late(database, views, target));
        }
        patience = (patience * 2).min(MAX_PATIENCE);
    }
}

/// The views have not become current in time.
pub(super) fn too_late(database: &Database, views: &[ViewId], target: u64) -> Unfit {
    let behind = views.iter().find(|view| !is_readable(**view)).or(views.first());
    Unfit::TooLate(errors::timeout(database, behind, target))
}

/// What of this very session keeps the worker from going on, so that waiting would be for ever.
fn obstacle(database: &Database, views: &[ViewId]) -> Option<Error> {
    use DatabaseState::*;
    if xact::has_xid() && matches!(database.state(), Starting | Preparing) {
        return Some(errors::own_transaction(views));
    }
    is_waited_for(database, views).then(|| errors::own_lock(views))
}

/// Whether the worker waits, directly or not, for a lock of this session: to attach a view it reads
/// its base tables, to apply what it has computed it writes the view. A lock that others only wait for keeps it
/// out as well, and they may wait for this session.
fn is_waited_for(database: &Database, views: &[ViewId]) -> bool {
    // A worker that is away waits for nothing; the next one may find things changed.
    let worker = database.pid.load(SeqCst);
    worker != 0 && locks::blocked_by_me(worker, &catalog::tables_beneath(views), views)
}

/// Lets a moment pass in which the worker publishes what it has done.
pub(super) fn pause(database: &'static Database) {
    const MOMENT: Duration = Duration::from_millis(1);
    database.advanced.wait_until(Some(MOMENT), || false);
}

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

/// All views of this database, but for those that nobody can write before this transaction ends.
fn awaited_views() -> Vec<ViewId> {
    let mut views: Vec<ViewId> = Vec::new();
    with_views(|known| views.extend(known));
    views.retain(|view| !(i_lock_out_writers(*view) && is_filled_by_me(*view)));
    views
}

/// Waits until all views of this database have everything committed before now.
pub fn wait_current() -> Result<(), Error> {
    if process::is_ours() {
        return Ok(());
    }
    former::begin_exact();
    let views = awaited_views();
    let database = database();
    let target = target(database);
    match snapshot::are_current(database, &views, target) {
        true => Ok(()),
        false => wait_for(database, &views, target).map_err(|unfit| unfit.error(&views)),
    }
}

/// Waits, as a read would, until a view has rows, if only none. Who cannot wait for them goes on with what there is.
pub fn wait_until_filled(view: ViewId) {
    if process::is_ours() || wal::in_recovery() {
        return;
    }
    let is_populated = is_populated(view);
    if is_populated && former::has_all_columns(view) {
        return;
    }
    // Nothing fills a view before its transaction has committed.
    if is_filled_by_me(view) || registry::is_labelled_now(view) {
        return;
    }
    let server = handshake::require_server().ok();
    if let Some(database) = server.and_then(|()| asked_for_database()) {
        // An index, or statistics, of no rows are better than none.
        former::begin_exact();
        // Of columns that it has got the worker must know.
        let target = if is_populated { target(database) } else { 0 };
        let _ = wait_for(database, &[view], target);
        inval::accept();
    }
}

/// Waits until a view has everything committed before now; false if it has to be filled anew for that. Who cannot wait, because the
/// worker waits for this very session, goes on with what there is.
pub fn wait_for_rows(view: ViewId) -> Result<bool, Error> {
    if process::is_ours() || wal::in_recovery() || !is_populated(view) {
        return Ok(false);
    }
    if is_filled_by_me(view) || registry::is_labelled_now(view) {
        return Ok(false);
    }
    former::begin_exact();
    let (database, views) = (database(), [view]);
    let target = target(database);
    if xact::has_xid() {
        // What this transaction has done may be in the worker's way, and its own reads find that out.
        let done = || are_current(database, &views, target);
        wait_until(database, target, Some(MAX_PATIENCE), done);
        return Ok(!errors::is_in_error(view));
    }
    match wait_for(database, &views, target) {
        Ok(()) => Ok(!errors::is_in_error(view)),
        Err(Unfit::Stuck(_)) => Ok(true),
        Err(unfit) => Err(unfit.error(&views)),
    }
}

/// Whether this transaction itself has filled a view.
pub fn is_filled_now(view: ViewId) -> bool {
    is_populated(view) && is_filled_by_me(view)
}

/// Whether this transaction's own reads of a view, which has rows, run its query, because of what the transaction has done to it.
pub fn runs_query_of(view: ViewId) -> bool {
    is_populated(view) && registry::is_labelled_now(view) && !is_filled_by_me(view)
}

/// Whether the worker maintains a view, which has the rows that readers get, and no error.
pub fn is_served(view: ViewId) -> bool {
    let is_mine = || is_filled_by_me(view) || registry::is_labelled_now(view);
    if process::is_ours() || wal::in_recovery() || !is_populated(view) || is_mine() {
        return false;
    }
    let is_well = |cell: &View| matches!(cell.state(), ViewState::Live | ViewState::Behind);
    let database =
        shared::my_database().filter(|database| outage::explain(Some(database)).is_none());
    database.is_some() && shared::view(view).is_some_and(is_well)
}

/// Waits until everything up to an LSN is applied; false at the timeout. A standby has nobody who could say so: there a position
/// of the primary at which its views had everything is to be replayed.
pub fn wait_for_lsn(lsn: u64, timeout: Option<Duration>) -> Result<bool, Error> {
    if wal::in_recovery() {
        let error = Error::state("a standby has no worker that maintains incremental views");
        return Err(error.hint(
            "Call eddy.wait_for_lsn on the primary, then wait for pg_last_wal_replay_lsn() on the standby to reach the primary's pg_current_wal_insert_lsn().",
        ));
    }
    handshake::require_server()?;
    let Some(database) = shared::my_database() else {
        let error = Error::state("no worker maintains incremental views in this database");
        return Err(match outage::explain(None) {
            Some(reason) => error.detail(reason.text),
            None => error,
        });
    };
    let views = awaited_views();
    let done = || are_current(database, &views, lsn);
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
