//! Transactions whose statements share one snapshot (REPEATABLE READ, SERIALIZABLE).
//!
//! Their snapshot is taken when the first statement is analysed, before anybody knows which tables it
//! reads. If that statement reads views it waits for them, and the transaction's snapshot, which nobody
//! has used yet, is replaced by a new one; all views are then known to be current under it, for all
//! statements that follow. If it reads none it does not wait, and neither does the transaction: a dump, say, is
//! not held up by views it never reads. A later statement that reads views cannot have another snapshot
//! any more. It is right if nothing has been written into the views since that the snapshot should show;
//! otherwise it runs the queries of the views, and the session's next transactions wait for these views from the start, so
//! that what took long once does not when it is done again.
//!
//! Under REPEATABLE READ views show at least what was committed before the transaction's first statement began.
//! Under SERIALIZABLE they show exactly what the base tables do, as they do to statements that read both.

use super::snapshot::{are_together, readable_views, shown_views, ShownView};
use super::unfit::Unfit;
use super::views::with_views;
use super::{errors, serializable, wait};
use crate::pg::ids::ViewId;
use crate::pg::read::Read;
use crate::pg::shmem::Database;
use crate::pg::snapshots::Extent;
use crate::pg::xact;
use crate::settings::{self, Freshness};
use crate::shared;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long a transaction tries for a snapshot at which the views show what the tables do, if it has to be one.
const EXACT_WITHIN: Duration = Duration::from_millis(100);

/// What is known of the snapshot of a transaction.
struct State {
    /// Of which one: a statement that ends a transaction that has failed runs after its abort.
    transaction: u32,
    /// Whether a statement has used it, so that it must stay.
    is_used: bool,
    /// A position behind everything that it shows, once it is used.
    needed: u64,
    /// Views that are current under it.
    proven: Vec<ShownView>,
    /// Whether the position is younger than the snapshot, so that they show exactly what the tables do.
    is_exact: bool,
    /// What its snapshot sees.
    extent: Extent,
}

impl State {
    const fn of(transaction: u32) -> State {
        State {
            transaction,
            is_used: false,
            needed: 0,
            proven: Vec::new(),
            is_exact: false,
            extent: Extent::NONE,
        }
    }
}

thread_local! {
    static STATE: RefCell<State> = const { RefCell::new(State::of(0)) };
    /// Views that transactions of this session read too late.
    static READ_LATE: RefCell<BTreeSet<ViewId>> = const { RefCell::new(BTreeSet::new()) };
}

/// What is known of the present transaction's snapshot.
fn with_state<T>(work: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(|state| {
        let transaction = xact::local_id();
        if state.transaction != transaction {
            *state = State::of(transaction);
        }
        work(state)
    })
}

/// Something has used the snapshot.
pub fn note_use() {
    begin_use();
}

/// From here on the snapshot stays, also for statements that are called meanwhile. Says whether it had
/// been used before.
fn begin_use() -> bool {
    let was_used = with_state(|state| std::mem::replace(&mut state.is_used, true));
    if !was_used {
        let needed = shared::my_database().map_or(0, wait::target);
        with_state(|state| {
            state.needed = needed;
            state.is_exact = true;
        });
    }
    was_used
}

/// Whether the views are known to be current under the snapshot of a statement, which need not be the transaction's:
/// a statement may have got it before the transaction got another one.
fn is_proven(read: &Read, views: &[ViewId]) -> bool {
    with_state(|state| {
        state.extent.sees_as_much_as(read.extent())
            && views.iter().all(|view| state.proven.contains(&ShownView::now(*view)))
    })
}

fn set_proven(read: &Read, needed: u64, proven: Vec<ShownView>, is_exact: bool) {
    with_state(|state| {
        state.needed = needed;
        state.proven = proven;
        state.is_exact = is_exact;
        state.extent = read.extent();
    });
}

/// A statement that reads no views, or takes them as they are.
pub fn before_other(read: &mut Read) {
    if begin_use() {
        return;
    }
    let Some(database) = shared::my_database() else { return };
    let mut late: Vec<ViewId> = READ_LATE.with_borrow(|late| late.iter().copied().collect());
    if !late.is_empty() {
        with_views(|known| late.retain(|view| known.contains(view)));
    }
    if !late.is_empty() && settings::freshness() == Freshness::Fresh {
        // It is not this statement that would have to fail. Nor are the next ones to wait in vain.
        if use_fresh_snapshot(read, database, &late, false).is_err() {
            READ_LATE.with_borrow_mut(BTreeSet::clear);
        }
    } else {
        let needed = with_state(|state| state.needed);
        set_proven(read, needed, shown_views(read, database, needed), true);
    }
}

/// A statement that reads views, and perhaps tables beneath them.
pub fn make_fresh(
    read: &mut Read,
    database: &'static Database,
    views: &[ViewId],
    reads_beneath: bool,
) -> Result<(), Unfit> {
    let was_used = begin_use();
    let is_exact = || with_state(|state| state.is_exact);
    if is_proven(read, views)
        && !xact::is_serializable()
        && views.len() < 2
        && (!reads_beneath || is_exact())
    {
        return Ok(());
    }
    let outcome = match was_used {
        false => use_fresh_snapshot(read, database, views, reads_beneath),
        true => prove_later(read, database, views),
    };
    match outcome {
        Ok(()) if was_used && !are_together(read, views) => Err(Unfit::NotTogether),
        Ok(()) if reads_beneath && !is_exact() => Err(Unfit::NeverExact),
        Ok(()) if xact::is_serializable() => {
            serializable::note_read(read, views);
            Ok(())
        }
        Err(_) if read.is_fill() => Ok(()),
        outcome => outcome,
    }
}

/// Lets the transaction, of which this is the first statement, have a snapshot that shows the views as they must be.
fn use_fresh_snapshot(
    read: &mut Read,
    database: &'static Database,
    views: &[ViewId],
    reads_beneath: bool,
) -> Result<(), Unfit> {
    let began = Instant::now();
    loop {
        let target = wait::target(database);
        let shown = shown_views(read, database, target);
        // The target is younger than this session's locks: a file that came before them is known by now.
        let is_shown = |view: &ViewId| shown.iter().any(|shown| shown.relid == *view);
        let are_all = || readable_views(database).iter().all(|view| is_shown(&view.relid));
        // With all of them shown, later statements may read any.
        if views.iter().all(is_shown) && (xact::is_serializable() || are_all()) {
            set_proven(read, target, shown, true);
            return Ok(());
        }
        if began.elapsed() > EXACT_WITHIN && xact::is_serializable() {
            return Err(Unfit::NeverExact);
        }
        wait::until_current(database, views, target)?;
        errors::raise_errors_of(views);
        let readable = readable_views(database);
        if !read.renew_transaction_snapshot() {
            return prove_later(read, database, views);
        }
        // What comes of it: a later statement looks at what is behind the new one.
        set_proven(read, wait::target(database), Vec::new(), true);
        if xact::is_serializable() || reads_beneath && began.elapsed() <= EXACT_WITHIN {
            continue;
        }
        if are_together(read, views) {
            set_proven(read, target, readable, false);
            return Ok(());
        }
        if settings::read_timeout().is_some_and(|timeout| began.elapsed() > timeout) {
            return Err(wait::too_late(database, views, target));
        }
        wait::pause(database);
    }
}

/// Whether the snapshot that the transaction has shows the views as they must be.
fn prove_later(read: &Read, database: &'static Database, views: &[ViewId]) -> Result<(), Unfit> {
    if is_proven(read, views) {
        return Ok(());
    }
    let needed = with_state(|state| state.needed);
    wait::until_current(database, views, needed)?;
    errors::raise_errors_of(views);
    let shown = shown_views(read, database, needed);
    if views.iter().all(|view| shown.iter().any(|shown| shown.relid == *view)) {
        with_state(|state| {
            if !state.extent.sees_as_much_as(read.extent()) {
                state.proven.clear();
                state.extent = read.extent();
            }
            state.proven.extend(views.iter().map(|view| ShownView::now(*view)));
        });
        return Ok(());
    }
    READ_LATE.with_borrow_mut(|late| late.extend(views));
    Err(Unfit::ReadLate)
}
