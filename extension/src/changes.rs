//! SQL functions that read the tables of views' changes.
//!
//! What is on record of a table, how far a view is, and what both hold is read under one snapshot, which is taken when all that is
//! waited for has come: the worker goes on meanwhile, and removes old changes.

use crate::errors::{Error, ErrorKind};
use crate::pg::changes_table::{self, Kept, COLUMNS};
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::rows::Call;
use crate::pg::xact::SnapshotCopy;
use crate::pg::{catalog, guc, process, progress, states, times, types, view_settings, wal, xact};
use crate::{reads, settings, shared, statements};
use pgrx::prelude::*;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// How soon who waits for changes looks again.
const PAUSE: Duration = Duration::from_millis(10);

/// `eddy.changes_since(view regclass, since pg_lsn)`
#[pg_extern]
fn eddy_changes_since(call: Call) {
    let (Some(view), Some(since)) = (call.argument(0), call.argument(1)) else {
        return call.answer(&[]);
    };
    let view = ViewId::new(view as u32);
    let answer = || {
        require_kept(view)?;
        wait(wal::insert_lsn())?;
        under_one_snapshot(view, |kept| {
            require_since(view, kept, since)?;
            call.answer_query(&changes_since(view, kept, since));
            Ok(())
        })
    };
    or_raise(answer());
}

/// `eddy.as_of(view anyelement, lsn pg_lsn)`
#[pg_extern]
fn eddy_as_of_lsn(call: Call) {
    let Some(lsn) = call.argument(1) else { return call.answer(&[]) };
    let answer = || {
        let view = view_of_type(&call)?;
        require_kept(view)?;
        if lsn > wal::insert_lsn() {
            return Err(not_come(&position(lsn)));
        }
        wait(lsn)?;
        under_one_snapshot(view, |kept| {
            require_since(view, kept, lsn)?;
            require_shown(view, lsn)?;
            call.answer_query(&as_of(view, kept, lsn));
            Ok(())
        })
    };
    or_raise(answer());
}

/// `eddy.as_of(view anyelement, at timestamptz)`
#[pg_extern]
fn eddy_as_of_time(call: Call) {
    let Some(at) = call.argument(1).map(|at| at as i64) else { return call.answer(&[]) };
    let answer = || {
        let view = view_of_type(&call)?;
        require_kept(view)?;
        if at > xact::now() {
            return Err(not_come(&time(at)));
        }
        let present = wal::insert_lsn();
        wait(present)?;
        under_one_snapshot(view, |kept| {
            if at < kept.since_at {
                return Err(removed(view, kept, &time(at)));
            }
            require_shown(view, present)?;
            let lsn = last_before(kept, at).max(kept.since);
            call.answer_query(&as_of(view, kept, lsn));
            Ok(())
        })
    };
    or_raise(answer());
}

/// `eddy.subscribe(view regclass, from_lsn pg_lsn, timeout interval)`
#[pg_extern]
fn eddy_subscribe(call: Call) {
    let Some(view) = call.argument(0).map(|view| ViewId::new(view as u32)) else {
        return call.answer(&[]);
    };
    let answer = || {
        require_kept(view)?;
        let from = call.argument(1);
        match from {
            None => wait(wal::insert_lsn())?,
            Some(from) => {
                wait_for_changes(view, from, call.interval(2).map(times::duration))?;
            }
        }
        under_one_snapshot(view, |kept| {
            let present = position_of(view)?;
            match from {
                None => call.answer_query(&contents(view, present)),
                Some(from) => {
                    require_since(view, kept, from)?;
                    let end = present.max(from);
                    call.answer_query(&changes_between(view, kept, (from, end)));
                }
            }
            Ok(())
        })
    };
    or_raise(answer());
}

fn or_raise(answered: Result<(), Error>) {
    answered.unwrap_or_else(|error| error.raise());
}

/// Positions and times in messages.
fn position(lsn: u64) -> String {
    format!("position {}", wal::display(lsn))
}

fn time(at: i64) -> String {
    format!("time {}", times::text(at))
}

fn not_come(what: &str) -> Error {
    Error::new(ErrorKind::InvalidParameter, format!("{what} has not come yet"))
}

/// Reads the table of a view's changes and what is on record of it under one snapshot that is taken now. Of the view what is stored
/// is read, whoever could say more; policies of rows would make a mixture of it, and so are an error.
fn under_one_snapshot<R>(
    view: ViewId,
    read: impl FnOnce(Kept) -> Result<R, Error>,
) -> Result<R, Error> {
    let level = view_settings::begin();
    guc::set_for_now(c"eddy.freshness", c"stale");
    guc::set_for_now(c"row_security", c"off");
    // Whether there is anything after a position is what summaries of blocks say, not the first blocks.
    guc::set_for_now(c"enable_seqscan", c"off");
    // Rows are told apart by what is written of them.
    guc::set_for_now(c"extra_float_digits", c"1");
    let result = xact::with_new_snapshot(|| {
        // It may have been dropped while it was waited for.
        statements::require_incremental(view.into())?;
        read(changes_table::kept(view).ok_or_else(|| not_kept(view))?)
    });
    view_settings::end(level);
    result
}

/// Waits until there are changes of a view after a position, or for so long. No lock is held meanwhile.
fn wait_for_changes(view: ViewId, from: u64, patience: Option<Duration>) -> Result<(), Error> {
    let end = patience.map(|patience| Instant::now() + patience);
    let written = || shared::view(view).map(|cell| cell.changed.load(SeqCst));
    loop {
        let before = written();
        let look = || {
            under_one_snapshot(view, |kept| {
                require_since(view, kept, from)?;
                position_of(view)?;
                Ok(has_changes(kept, from))
            })
        };
        if xact::undone(look)? {
            return Ok(());
        }
        while written() == before {
            if end.is_some_and(|end| end <= Instant::now()) {
                return Ok(());
            }
            process::wait_for_latch(PAUSE);
            process::reset_latch();
            process::check_interrupts();
        }
    }
}

/// The view that is meant by a row of it.
fn view_of_type(call: &Call) -> Result<ViewId, Error> {
    let ty = call.argument_type(0);
    let relation = types::relation_of(ty).ok_or_else(|| {
        let message = format!("{} is not an incremental view", types::type_name(ty));
        Error::new(ErrorKind::WrongObjectType, message)
            .hint("Name the view by a row of it, as in eddy.as_of(NULL::view, ...).")
    })?;
    statements::require_incremental(relation)?;
    Ok(relation.into())
}

/// Changes of the view are kept.
fn require_kept(view: ViewId) -> Result<(), Error> {
    statements::require_incremental(view.into())?;
    match changes_table::of(view) {
        Some(_) => Ok(()),
        None => Err(not_kept(view)),
    }
}

fn not_kept(view: ViewId) -> Error {
    let name = catalog::qualified_name(view);
    Error::state(format!("changes of incremental view {name} are not kept"))
        .hint(format!("Run ALTER INCREMENTAL VIEW {name} SET (changes = '1 day')."))
}

/// All after that position is still there.
fn require_since(view: ViewId, kept: Kept, lsn: u64) -> Result<(), Error> {
    match lsn < kept.since {
        true => Err(removed(view, kept, &position(lsn))),
        false => Ok(()),
    }
}

fn removed(view: ViewId, kept: Kept, what: &str) -> Error {
    let name = catalog::qualified_name(view);
    let message = format!("changes of incremental view {name} since {what} are not kept any more");
    Error::new(ErrorKind::Removed, message).detail(format!(
        "They are kept since position {}, {}.",
        wal::display(kept.since),
        times::text(kept.since_at)
    ))
}

/// The active snapshot shows all changes of the view up to a position, which has been waited for.
fn require_shown(view: ViewId, lsn: u64) -> Result<(), Error> {
    if let Some(state) = states::read_one(view) {
        return match state.applied_lsn {
            Some(position) if position >= lsn => Ok(()),
            _ => Err(not_maintained(view)),
        };
    }
    // What has changed the view last may be long before that position.
    let changed = || shared::view(view).map(|cell| cell.changed.load(SeqCst));
    let is_shown = progress::read().is_some_and(|position| position >= lsn)
        || !xact::uses_one_snapshot() && !wal::in_recovery()
        || changed().is_some_and(|xid| SnapshotCopy::of_active().sees(xid as u32));
    match is_shown {
        true => Ok(()),
        false => {
            let name = catalog::qualified_name(view);
            let message = format!(
                "the snapshot of this transaction is older than incremental view {name} must be"
            );
            Err(Error::new(ErrorKind::SerializationFailure, message)
                .hint("Begin a new transaction."))
        }
    }
}

/// The position of which the rows of a view are that the active snapshot sees.
fn position_of(view: ViewId) -> Result<u64, Error> {
    states::position_of(view).ok_or_else(|| not_maintained(view))
}

fn not_maintained(view: ViewId) -> Error {
    let name = catalog::qualified_name(view);
    Error::state(format!("incremental view {name} is not current")).hint("eddy.views says why.")
}

/// Waits until views have what was committed before a position. A standby has what has been replayed.
fn wait(lsn: u64) -> Result<(), Error> {
    if wal::in_recovery() || reads::wait_for_lsn(lsn, settings::read_timeout())? {
        return Ok(());
    }
    let message = "incremental views are not current within eddy.read_timeout";
    Err(Error::state(message).hint("eddy.views says which one is behind."))
}

/// Whether there are any after that position.
fn has_changes(kept: Kept, from: u64) -> bool {
    let [lsn, ..] = own_columns(kept.table);
    let query = format!(
        "SELECT 1 FROM {} c WHERE {lsn} OPERATOR(pg_catalog.>) '{}'::pg_catalog.pg_lsn LIMIT 1",
        catalog::qualified_name(kept.table),
        wal::display(from)
    );
    Spi::connect(|client| client.select(&query, Some(1), &[]).map(|rows| !rows.is_empty()))
        .unwrap_or(false)
}

/// The last position at which something was committed by then; 0 for none.
fn last_before(kept: Kept, at: i64) -> u64 {
    let [lsn, _, committed_at, _] = own_columns(kept.table);
    let query = format!(
        "SELECT pg_catalog.max({lsn})::pg_catalog.text FROM {} c \
         WHERE {committed_at} OPERATOR(pg_catalog.<=) '{}'::pg_catalog.timestamptz",
        catalog::qualified_name(kept.table),
        times::text(at)
    );
    let last = Spi::connect(|client| {
        client.select(&query, Some(1), &[]).and_then(|rows| rows.first().get_one::<String>())
    });
    last.ok().flatten().and_then(|lsn| wal::parse(&lsn)).unwrap_or(0)
}

/// The columns of a relation, by the alias `alias`.
fn columns_of(relation: impl Into<RelationId>, alias: &str) -> Vec<String> {
    let described = catalog::describe_relation(relation.into().into());
    let attributes = described.map_or_else(Vec::new, |described| described.attributes);
    attributes.iter().map(|a| format!("{alias}.{}", catalog::quoted(&a.name))).collect()
}

/// The columns of a table of changes before those of its view, whatever they are called by now.
fn own_columns(table: RelationId) -> [String; COLUMNS.len()] {
    let mut columns = columns_of(table, "c").into_iter();
    std::array::from_fn(|_| columns.next().unwrap_or_default())
}

/// A row of the view, of the table of its changes.
fn changed_row(view: ViewId, kept: Kept) -> String {
    let width = columns_of(view, "v").len();
    let columns = columns_of(kept.table, "c").into_iter().skip(COLUMNS.len()).take(width);
    row_of(view, &columns.collect::<Vec<_>>())
}

fn row_of(view: ViewId, columns: &[String]) -> String {
    format!("ROW({})::{}", columns.join(", "), catalog::qualified_name(view))
}

/// Changes for which a condition holds, as a query without an order.
fn changes(view: ViewId, kept: Kept, condition: &str) -> String {
    format!(
        "SELECT {}, pg_catalog.to_jsonb({}) FROM {} c WHERE {condition}",
        own_columns(kept.table).join(", "),
        changed_row(view, kept),
        catalog::qualified_name(kept.table),
    )
}

fn is_after(kept: Kept, lsn: u64) -> String {
    let [column, ..] = own_columns(kept.table);
    format!("{column} OPERATOR(pg_catalog.>) '{}'::pg_catalog.pg_lsn", wal::display(lsn))
}

/// Changes after a position, in commit order; of each transaction rows that go before those that come.
fn changes_since(view: ViewId, kept: Kept, since: u64) -> String {
    format!("{} ORDER BY 1, 4", changes(view, kept, &is_after(kept, since)))
}

/// The same up to a position, and then that.
fn changes_between(view: ViewId, kept: Kept, (since, end): (u64, u64)) -> String {
    let condition = format!("{} AND NOT {}", is_after(kept, since), is_after(kept, end));
    format!("({} ORDER BY 1, 4) UNION ALL {}", changes(view, kept, &condition), progress_row(end))
}

/// What a view holds at the position at which it is, and then that.
fn contents(view: ViewId, position: u64) -> String {
    format!(
        "SELECT '{}'::pg_catalog.pg_lsn, NULL::pg_catalog.xid8, pg_catalog.clock_timestamp(), 1::pg_catalog.int8, \
         pg_catalog.to_jsonb({}) FROM {} v UNION ALL {}",
        wal::display(position),
        row_of(view, &columns_of(view, "v")),
        catalog::qualified_name(view),
        progress_row(position)
    )
}

/// The row that says that there is nothing else up to a position.
fn progress_row(position: u64) -> String {
    format!(
        "SELECT '{}'::pg_catalog.pg_lsn, NULL, pg_catalog.clock_timestamp(), NULL, NULL",
        wal::display(position)
    )
}

/// What the view holds, without what has been done since. Rows are what is written of them: others are equal, too.
fn as_of(view: ViewId, kept: Kept, lsn: u64) -> String {
    let [.., diff] = own_columns(kept.table);
    format!(
        "SELECT (s.r).* FROM (
             SELECT (pg_catalog.array_agg(u.r))[1] AS r, pg_catalog.sum(u.n)::pg_catalog.int8 AS n FROM (
                 SELECT {} AS r, 1::pg_catalog.int8 AS n FROM {} v
                 UNION ALL
                 SELECT {}, OPERATOR(pg_catalog.-) {diff} FROM {} c WHERE {}) u
             GROUP BY u.r::pg_catalog.text) s,
         pg_catalog.generate_series(1, s.n)",
        row_of(view, &columns_of(view, "v")),
        catalog::qualified_name(view),
        changed_row(view, kept),
        catalog::qualified_name(kept.table),
        is_after(kept, lsn)
    )
}
