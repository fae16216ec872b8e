//! SQL functions that read the tables of views' changes.

use crate::errors::{Error, ErrorKind};
use crate::pg::changes_table::{self, Kept};
use crate::pg::ids::ViewId;
use crate::pg::rows::Call;
use crate::pg::{catalog, guc, process, states, times, types, view_settings, wal, xact};
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
        let kept = require_since(view, since)?;
        call.answer_query(&changes_since(view, kept, since));
        Ok(())
    };
    answer().unwrap_or_else(|error: Error| error.raise());
}

/// `eddy.as_of(view anyelement, lsn pg_lsn)`
#[pg_extern]
fn eddy_as_of_lsn(call: Call) {
    let Some(lsn) = call.argument(1) else { return call.answer(&[]) };
    let answer = || {
        let view = view_of_type(&call)?;
        require_kept(view)?;
        if lsn > wal::insert_lsn() {
            let message = format!("position {} has not come yet", wal::display(lsn));
            return Err(Error::new(ErrorKind::InvalidParameter, message));
        }
        wait(lsn)?;
        let kept = require_since(view, lsn)?;
        require_shown(view, lsn)?;
        answer_stored(&call, &as_of(view, kept, lsn));
        Ok(())
    };
    answer().unwrap_or_else(|error| error.raise());
}

/// `eddy.as_of(view anyelement, at timestamptz)`
#[pg_extern]
fn eddy_as_of_time(call: Call) {
    let Some(at) = call.argument(1).map(|at| at as i64) else { return call.answer(&[]) };
    let answer = || {
        let view = view_of_type(&call)?;
        require_kept(view)?;
        if at > xact::now() {
            let message = format!("time {} has not come yet", times::text(at));
            return Err(Error::new(ErrorKind::InvalidParameter, message));
        }
        wait(wal::insert_lsn())?;
        let kept = require_kept(view)?;
        if at < kept.since_at {
            return Err(removed(view, kept, &format!("time {}", times::text(at))));
        }
        let lsn = last_before(kept, at).max(kept.since);
        require_shown(view, lsn)?;
        answer_stored(&call, &as_of(view, kept, lsn));
        Ok(())
    };
    answer().unwrap_or_else(|error| error.raise());
}

/// `eddy.subscribe(view regclass, from_lsn pg_lsn, timeout interval)`
#[pg_extern]
fn eddy_subscribe(call: Call) {
    let Some(view) = call.argument(0).map(|view| ViewId::new(view as u32)) else {
        return call.answer(&[]);
    };
    let answer = || {
        require_kept(view)?;
        let Some(from) = call.argument(1) else {
            wait(wal::insert_lsn())?;
            let position = position_of(view)?;
            answer_stored(&call, &contents(view, position));
            return Ok(());
        };
        let patience = call.interval(2).map(|micros| u64::try_from(micros).unwrap_or(0));
        let patience = patience.map(Duration::from_micros);
        wait_for_changes(view, from, patience)?;
        let position = position_of(view)?;
        let kept = require_since(view, from)?;
        call.answer_query(&changes_between(view, kept, (from, position.max(from))));
        Ok(())
    };
    answer().unwrap_or_else(|error: Error| error.raise());
}

/// Waits until there are changes of a view after a position, or for so long.
fn wait_for_changes(view: ViewId, from: u64, patience: Option<Duration>) -> Result<(), Error> {
    let end = patience.map(|patience| Instant::now() + patience);
    let written = || shared::view(view).map(|cell| cell.changed.load(SeqCst));
    loop {
        let before = written();
        let kept = require_since(view, from)?;
        if has_changes(kept, from) {
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

/// Whether there are any after that position.
fn has_changes(kept: Kept, from: u64) -> bool {
    let query = format!(
        "SELECT 1 FROM {} c WHERE c.lsn OPERATOR(pg_catalog.>) '{}'::pg_catalog.pg_lsn LIMIT 1",
        catalog::qualified_name(kept.table),
        wal::display(from)
    );
    Spi::connect(|client| client.select(&query, Some(1), &[]).map(|rows| !rows.is_empty()))
        .unwrap_or(false)
}

/// The last position at which something was committed by then; 0 for none.
fn last_before(kept: Kept, at: i64) -> u64 {
    let query = format!(
        "SELECT pg_catalog.max(c.lsn)::pg_catalog.text FROM {} c \
         WHERE c.committed_at OPERATOR(pg_catalog.<=) '{}'::pg_catalog.timestamptz",
        catalog::qualified_name(kept.table),
        times::text(at)
    );
    let last = Spi::connect(|client| {
        client.select(&query, Some(1), &[]).and_then(|rows| rows.first().get_one::<String>())
    });
    last.ok().flatten().and_then(|lsn| wal::parse(&lsn)).unwrap_or(0)
}

/// Answers with what is stored in a view and the table of its changes, whoever could say more.
fn answer_stored(call: &Call, query: &str) {
    let level = view_settings::begin();
    guc::set_for_now(c"eddy.freshness", c"stale");
    call.answer_query(query);
    view_settings::end(level);
}

/// The position of which the rows of a view are that this transaction sees.
fn position_of(view: ViewId) -> Result<u64, Error> {
    xact::with_new_snapshot(|| states::position_of(view)).ok_or_else(|| {
        let name = catalog::qualified_name(view);
        Error::state(format!("incremental view {name} is not maintained"))
            .hint("eddy.views says why.")
    })
}

/// The view that is meant by a row of it.
fn view_of_type(call: &Call) -> Result<ViewId, Error> {
    let ty = call.argument_type(0);
    let relation = types::relation_of(ty);
    let name = types::type_name(ty);
    let relation = relation.ok_or_else(|| {
        Error::new(ErrorKind::WrongObjectType, format!("{name} is not an incremental view"))
            .hint("Name the view by a row of it, as in eddy.as_of(NULL::view, ...).")
    })?;
    statements::require_incremental(relation)?;
    Ok(relation.into())
}

fn require_kept(view: ViewId) -> Result<Kept, Error> {
    statements::require_incremental(view.into())?;
    changes_table::kept(view).ok_or_else(|| {
        let name = catalog::qualified_name(view);
        Error::state(format!("changes of incremental view {name} are not kept"))
            .hint(format!("Run ALTER INCREMENTAL VIEW {name} SET (changes = '1 day')."))
    })
}

/// All after that position is still there.
fn require_since(view: ViewId, lsn: u64) -> Result<Kept, Error> {
    let kept = require_kept(view)?;
    match lsn < kept.since {
        true => Err(removed(view, kept, &format!("position {}", wal::display(lsn)))),
        false => Ok(kept),
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

/// What the transaction sees is not before that position.
fn require_shown(view: ViewId, lsn: u64) -> Result<(), Error> {
    match xact::with_new_snapshot(|| states::position_of(view)) {
        Some(position) if position >= lsn => Ok(()),
        _ => {
            let message = format!(
                "this transaction does not see incremental view {} at position {}",
                catalog::qualified_name(view),
                wal::display(lsn)
            );
            Err(Error::new(ErrorKind::SerializationFailure, message)
                .hint("eddy.views says whether the view is behind; a transaction with one snapshot for all statements has to begin later."))
        }
    }
}

/// Waits until views have what was committed before a position. A standby has what has been replayed.
fn wait(lsn: u64) -> Result<(), Error> {
    if wal::in_recovery() || reads::wait_for_lsn(lsn, settings::read_timeout())? {
        return Ok(());
    }
    let message = "incremental views are not current within eddy.read_timeout";
    Err(Error::new(ErrorKind::NotInPrerequisiteState, message)
        .hint("eddy.views says which one is behind."))
}

/// A row of the view, of the columns of `from`.
fn row_of(view: ViewId, from: &str) -> String {
    let described = catalog::describe_relation(view.into());
    let attributes = described.map_or_else(Vec::new, |described| described.attributes);
    let column = |name: &str| format!("{from}.{}", catalog::quoted(name));
    let columns: Vec<String> = attributes.iter().map(|a| column(&a.name)).collect();
    format!("ROW({})::{}", columns.join(", "), catalog::qualified_name(view))
}

/// Changes after a position, in commit order; of each transaction rows that go before those that come.
fn changes_since(view: ViewId, kept: Kept, since: u64) -> String {
    format!(
        "SELECT {OWN}, pg_catalog.to_jsonb({}) FROM {} c \
         WHERE c.lsn OPERATOR(pg_catalog.>) '{}'::pg_catalog.pg_lsn ORDER BY c.lsn, c.diff",
        row_of(view, "c"),
        catalog::qualified_name(kept.table),
        wal::display(since)
    )
}

/// The columns of a table of changes before those of its view.
const OWN: &str = "c.lsn, c.xid, c.committed_at, c.diff";

/// The same up to a position, and then that.
fn changes_between(view: ViewId, kept: Kept, (since, upto): (u64, u64)) -> String {
    format!(
        "(SELECT {OWN}, pg_catalog.to_jsonb({}) FROM {} c \
         WHERE c.lsn OPERATOR(pg_catalog.>) '{}'::pg_catalog.pg_lsn \
         AND c.lsn OPERATOR(pg_catalog.<=) '{}'::pg_catalog.pg_lsn ORDER BY c.lsn, c.diff) \
         UNION ALL {}",
        row_of(view, "c"),
        catalog::qualified_name(kept.table),
        wal::display(since),
        wal::display(upto),
        progress(upto)
    )
}

/// What a view holds at the position at which it is, and then that.
fn contents(view: ViewId, position: u64) -> String {
    format!(
        "SELECT '{}'::pg_catalog.pg_lsn, NULL::pg_catalog.xid8, pg_catalog.clock_timestamp(), 1::pg_catalog.int8, \
         pg_catalog.to_jsonb({}) FROM {} v UNION ALL {}",
        wal::display(position),
        row_of(view, "v"),
        catalog::qualified_name(view),
        progress(position)
    )
}

/// The row that says that there is nothing else up to a position.
fn progress(position: u64) -> String {
    format!(
        "SELECT '{}'::pg_catalog.pg_lsn, NULL, pg_catalog.clock_timestamp(), NULL, NULL",
        wal::display(position)
    )
}

/// What the view holds, without what has been done since. Rows are what is written of them: others are equal, too.
fn as_of(view: ViewId, kept: Kept, lsn: u64) -> String {
    format!(
        "SELECT (s.r).* FROM (
             SELECT (pg_catalog.array_agg(u.r))[1] AS r, pg_catalog.sum(u.n)::pg_catalog.int8 AS n FROM (
                 SELECT {} AS r, 1::pg_catalog.int8 AS n FROM {} v
                 UNION ALL
                 SELECT {}, OPERATOR(pg_catalog.-) c.diff FROM {} c
                 WHERE c.lsn OPERATOR(pg_catalog.>) '{}'::pg_catalog.pg_lsn) u
             GROUP BY u.r::pg_catalog.text) s,
         pg_catalog.generate_series(1, s.n)",
        row_of(view, "v"),
        catalog::qualified_name(view),
        row_of(view, "c"),
        catalog::qualified_name(kept.table),
        wal::display(lsn)
    )
}
