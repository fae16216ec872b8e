//! Fresh reads: a statement that reads incremental views sees everything in them that was committed
//! before it began, or fails; it never silently sees less.
//!
//! When the views are current this costs a few loads from shared memory. Otherwise the statement
//! waits for the worker (`wait`) and gets a new snapshot. Whether a snapshot shows a view as it must be is
//! decided in one place (`snapshot`). Transactions whose statements share one snapshot get a new one only
//! before they have used it (`single`); serializable ones also tell PostgreSQL what a view stands for
//! (`serializable`). Where the stored rows cannot be what a statement has to see, it runs the queries of the views instead
//! (`unfit`, `computed`): its transaction has changed a table beneath them (`beneath`), or took its snapshot too soon, or the worker
//! waits for this very session. What cannot be shown at all is an error (`errors`).

mod beneath;
mod computed;
mod errors;
mod former;
mod serializable;
mod single;
mod snapshot;
mod unfit;
mod views;
mod wait;

use crate::compile::{self, Known};
use crate::handshake;
use crate::hooks::utility::{self, Observer};
use crate::hooks::{executor, explain, planner};
use crate::pg::ids::ViewId;
use crate::pg::read::Read;
use crate::pg::relation::{i_lock_alone, i_lock_out_writers, is_filled_by_me, is_populated};
use crate::pg::shmem::Database;
use crate::pg::{catalog, entry, inval, process, registry, snapshots, states, wal, xact};
use crate::settings::{self, Freshness, OwnWrites};
use crate::shared;
use beneath::tables_beneath;
use snapshot::ShownView;
use std::cell::RefCell;
use std::time::{Duration, Instant};
use unfit::Unfit;
use views::with_views;

pub use errors::{raise_errors_of, remedy};
pub use wait::{
    is_filled_now, is_served, runs_query_of, wait_current, wait_for_clock, wait_for_lsn,
    wait_for_rows, wait_until_filled,
};

/// Set-up at library load.
pub fn install() {
    executor::install(before_read, before_other);
    computed::install();
    explain::install();
    utility::observe(Observer {
        before_commit_prepared: handshake::before_commit_prepared,
        after_commit_prepared: handshake::after_commit_prepared,
        after_use_of_snapshot: single::note_use,
        before_database_command,
        before_definition: beneath::note_definition,
    });
    xact::register_callback(on_transaction_event);
}

/// How long a statement that reads tables beneath its views tries for a snapshot that shows both at one point.
const BESIDE_TABLES_WITHIN: Duration = Duration::from_millis(100);

thread_local! {
    /// What the last statement with a snapshot of its own was shown.
    static SHOWN: RefCell<Shown> = const { RefCell::new(Shown::NOTHING) };
    /// What statements are shown that were called under an older snapshot, by that snapshot.
    static HELD: RefCell<Shown> = const { RefCell::new(Shown::NOTHING) };
}

/// Views that are shown as they must be, to all who see a snapshot.
struct Shown {
    extent: snapshots::Extent,
    views: Vec<ShownView>,
}

impl Shown {
    const NOTHING: Shown = Shown { extent: snapshots::Extent::NONE, views: Vec::new() };

    fn set(&mut self, extent: snapshots::Extent, views: impl IntoIterator<Item = ShownView>) {
        self.extent = extent;
        self.views.clear();
        self.views.extend(views);
    }

    fn has(&self, extent: snapshots::Extent, views: &[ViewId]) -> bool {
        self.extent == extent
            && views.iter().all(|view| self.views.contains(&ShownView::now(*view)))
    }
}

fn on_transaction_event(event: xact::Event) {
    if event != xact::Event::PreCommit {
        SHOWN.with_borrow_mut(|shown| shown.extent = snapshots::Extent::NONE);
        HELD.with_borrow_mut(|held| held.extent = snapshots::Extent::NONE);
    }
}

fn before_read(read: &mut Read) {
    if process::is_ours() {
        return;
    }
    former::begin_without();
    let mut views = read.materialized_views();
    with_views(|known| views.retain(|view| known.contains(view)));
    if wal::in_recovery() {
        if read.runs() {
            read_on_standby(read, &views);
        }
        return;
    }
    if read.is_fill() {
        // Its range table has the view that it fills.
        views.retain(|view| !i_lock_alone(*view));
    }
    if !read.runs() {
        return before_explain(read, &views);
    }
    if views.is_empty() {
        return before_other(read);
    }
    if !read.is_permitted() || planner::computes_views(read) {
        return;
    }
    former::begin(read);
    // Of a view that was never filled, and of a column that it has just got, there is nothing old to be shown.
    let has_old = || {
        let mut filled =
            views.iter().map(|view| is_populated(*view) && is_seen_filled(read, *view));
        filled.all(|is_filled| is_filled) && former::have_columns(&views)
    };
    if settings::freshness() == Freshness::Stale && has_old() {
        before_other(read);
        return errors::raise_errors_of(&views);
    }
    let outcome = explain::timed(|| make_fit(read, &views));
    if let Err(unfit) = outcome {
        settle(read, &views, unfit);
    }
}

/// A statement that is shown only waits for nothing, but is planned as it would be run, as far as that is known.
fn before_explain(read: &mut Read, views: &[ViewId]) {
    let is_stored = views.is_empty()
        || !read.is_permitted()
        || planner::computes_views(read)
        || settings::freshness() == Freshness::Stale
        || settings::own_writes() != OwnWrites::Query;
    if is_stored {
        return;
    }
    if let Some(change) = beneath::changed_by_me(views) {
        settle(read, views, Unfit::OwnChanges(change));
    }
}

/// Has a statement run the queries of the views that it reads, or raises why it is not shown their rows.
fn settle(read: &mut Read, views: &[ViewId], unfit: Unfit) {
    let Some(reason) = unfit.reason() else { unfit.error(views).raise() };
    // Its query would show what the session does not want to see yet.
    if settings::own_writes() != OwnWrites::Query && beneath::changed_by_me(views).is_some() {
        unfit.error(views).raise();
    }
    match planner::compute_views(read, reason) {
        // What it reads, it reads under the snapshot that it has.
        Ok(true) if xact::uses_one_snapshot() => single::note_use(),
        Ok(true) => {}
        Ok(false) => unfit.error(views).raise(),
        Err(error) => error.raise(),
    }
}

/// Has a statement see what it must in the rows stored in views.
fn make_fit(read: &mut Read, views: &[ViewId]) -> Result<(), Unfit> {
    if let Some(change) = beneath::changed_by_me(views).filter(|_| !read.is_fill()) {
        match settings::own_writes() {
            OwnWrites::Query => return Err(Unfit::OwnChanges(change)),
            OwnWrites::Error => errors::own_changes(views, change).raise(),
            // That would not be serializable.
            OwnWrites::Stored if xact::is_serializable() => {
                errors::own_changes(views, change).raise()
            }
            OwnWrites::Stored => {}
        }
    }
    // What was found in error, and is not any more, has to be waited for.
    loop {
        let mut outcome = Ok(());
        let finds_error = wait::finds_error(|| outcome = make_fresh(read, views));
        if outcome.is_err() || !finds_error {
            return outcome;
        }
        errors::raise_errors_of(views);
        wait::pause(wait::database());
    }
}

/// Whether the snapshot of a statement shows a view as filled, which it is: it may be older than the transaction that filled it, of
/// which the catalogs tell already.
fn is_seen_filled(read: &Read, view: ViewId) -> bool {
    let is_newer = entry::changed_by(view).is_some_and(|xid| !read.sees(xact::full_xid(xid)));
    !is_newer || read.with_snapshot(|| catalog::was_populated(view.into()))
}

/// A standby has no worker: it shows what has been replayed, errors included.
fn read_on_standby(read: &Read, views: &[ViewId]) {
    if !read.is_permitted() {
        return;
    }
    for view in views {
        if !is_seen_filled(read, *view) {
            errors::not_populated(*view).raise();
        }
        if let Some(state) = read.with_snapshot(|| states::read_one(*view)) {
            errors::raise_recorded(*view, state);
        }
    }
}

/// A statement that is not to be kept waiting.
fn before_other(read: &mut Read) {
    if xact::uses_one_snapshot() && !process::is_ours() && !xact::is_parallel_worker() {
        single::before_other(read);
    }
}

fn make_fresh(read: &mut Read, views: &[ViewId]) -> Result<(), Unfit> {
    // Nothing fills a view before the transaction has committed that made it, or changed rights on it.
    let is_mine = |view: ViewId| is_filled_by_me(view) || entry::is_changed_by_me(view);
    let is_empty = |view: &&ViewId| is_mine(**view) && !is_populated(**view);
    if let Some(view) = views.iter().find(is_empty).filter(|view| may_run_query(**view)) {
        return Err(Unfit::LabelledNow(*view));
    }
    let mut views = views.to_vec();
    // What this transaction has filled itself is as it was then, and nobody else's business yet.
    views.retain(|view| !(i_lock_out_writers(*view) && is_filled_by_me(*view)));
    if views.is_empty() {
        before_other(read);
        return Ok(());
    }
    // A label makes a view incremental when its transaction commits. Until then its rows may be old, and
    // nobody can make them new.
    if let Some(view) = views.iter().find(|view| registry::is_labelled_now(**view)) {
        return Err(Unfit::LabelledNow(*view));
    }
    let database = wait::database();
    if xact::is_parallel_worker() {
        if !snapshot::shows(read, database, &views, wait::target(database)) {
            return Err(Unfit::Stuck(errors::in_parallel_worker(&views)));
        }
    } else if xact::uses_one_snapshot() {
        let reads_beneath = reads_beneath(read, &views);
        single::make_fresh(read, database, &views, reads_beneath)?;
    } else if read.has_own_snapshot() {
        make_own_fresh(read, database, &views)?;
    } else {
        make_called_fresh(read, database, &views)?;
    }
    // The worker may have filled a view since the statement was planned, when it was unpopulated.
    inval::accept();
    Ok(())
}

/// Whether the query of a view ends where its dataflow does.
fn may_run_query(view: ViewId) -> bool {
    let compiled = compile::compile_view_by(view, Known::Now);
    compiled.is_ok_and(|compiled| !compile::is_beyond_sql(&compiled.query))
}

/// A statement with a snapshot of its own.
fn make_own_fresh(
    read: &mut Read,
    database: &'static Database,
    views: &[ViewId],
) -> Result<(), Unfit> {
    let target = wait::target(database);
    if !snapshot::shows(read, database, views, target) {
        if !wait_or_give_up(read, database, views, target)? {
            return Ok(());
        }
        if !snapshot::shows_changes(read, views) {
            read.renew_snapshot();
        }
        if !come_together(read, database, views, target, Read::renew_snapshot)? {
            return Ok(());
        }
        if reads_beneath(read, views) && !come_to_tables(read, database, views)? {
            return Ok(());
        }
    }
    former::note_current(views);
    if !views.iter().any(|view| errors::is_in_error(*view)) {
        SHOWN.with_borrow_mut(|shown| {
            shown.set(read.extent(), views.iter().copied().map(ShownView::now))
        });
    }
    Ok(())
}

/// A statement called by another, with that one's snapshot, as those of STABLE functions are. Where that is
/// older than the views must be, all that the other calls share one that is taken now.
fn make_called_fresh(
    read: &mut Read,
    database: &'static Database,
    views: &[ViewId],
) -> Result<(), Unfit> {
    let extent = read.extent();
    if SHOWN.with_borrow(|shown| shown.has(extent, views)) && !reads_beneath(read, views) {
        return Ok(());
    }
    let renew = |read: &mut Read| {
        read.hold_new_snapshot();
        read.use_held_snapshot();
    };
    let target = wait::target(database);
    if HELD.with_borrow(|held| held.has(extent, views)) {
        read.use_held_snapshot();
        if !come_together(read, database, views, target, renew)? {
            return Ok(());
        }
        return require_exact(read, database, views);
    }
    if snapshot::shows(read, database, views, target)
        || !wait_or_give_up(read, database, views, target)?
    {
        return Ok(());
    }
    let readable = snapshot::readable_views(database);
    HELD.with_borrow_mut(|held| held.set(extent, readable));
    renew(read);
    match come_together(read, database, views, target, renew)? {
        true => require_exact(read, database, views),
        false => Ok(()),
    }
}

/// Gives the statement a snapshot that shows the views at one point; false if it has to do without.
fn come_together(
    read: &mut Read,
    database: &'static Database,
    views: &[ViewId],
    target: u64,
    renew: impl Fn(&mut Read),
) -> Result<bool, Unfit> {
    let began = Instant::now();
    while !snapshot::are_together(read, views) {
        if settings::read_timeout().is_some_and(|timeout| began.elapsed() > timeout) {
            return Err(wait::too_late(database, views, target));
        }
        wait::pause(database);
        if !wait_or_give_up(read, database, views, target)? {
            return Ok(false);
        }
        renew(read);
    }
    Ok(true)
}

/// Whether a statement reads tables beneath its views, too.
fn reads_beneath(read: &Read, views: &[ViewId]) -> bool {
    !read.is_fill() && read.reads_tables() && read.reads_any(&tables_beneath(views))
}

/// Gives a statement that reads tables beneath its views a snapshot that shows these and those at one point of commit order; false
/// if it has to do without.
fn come_to_tables(
    read: &mut Read,
    database: &'static Database,
    views: &[ViewId],
) -> Result<bool, Unfit> {
    let began = Instant::now();
    loop {
        // Younger than the snapshot.
        let target = wait::target(database);
        if snapshot::shows(read, database, views, target) {
            return Ok(true);
        }
        if began.elapsed() > BESIDE_TABLES_WITHIN {
            return Err(Unfit::NeverExact);
        }
        if !wait_or_give_up(read, database, views, target)? {
            return Ok(false);
        }
        read.renew_snapshot();
    }
}

/// The same, for one whose snapshot is not its own to choose.
fn require_exact(read: &Read, database: &'static Database, views: &[ViewId]) -> Result<(), Unfit> {
    let is_exact = || snapshot::shows(read, database, views, wait::target(database));
    match !reads_beneath(read, views) || is_exact() {
        true => Ok(()),
        false => Err(Unfit::NeverExact),
    }
}

/// Waits for the views; or says what keeps them from being current. A view in error is not waited for. What fills another view
/// gives up: the worker puts that right.
fn wait_or_give_up(
    read: &Read,
    database: &'static Database,
    views: &[ViewId],
    target: u64,
) -> Result<bool, Unfit> {
    match wait::until_current(database, views, target) {
        Ok(()) => Ok(!views.iter().any(|view| errors::is_in_error(*view))),
        Err(_) if read.is_fill() => Ok(false),
        Err(unfit) => Err(unfit),
    }
}

fn before_database_command(database: u32) {
    handshake::rescan_at_commit();
    if let Err(error) = shared::stop_worker_for_database(database) {
        error.raise();
    }
}
