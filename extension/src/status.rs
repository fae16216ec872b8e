//! SQL functions behind `eddy.views`, and those that wait for or start the worker.

use crate::handshake;
use crate::outage::{self, Reason};
use crate::pg::ids::ViewId;
use crate::pg::shmem::{Database, View};
use crate::pg::{catalog, process, registry, xact};
use crate::reads;
use crate::settings;
use crate::shared::{self, DatabaseState, Ending, ViewState};
use pgrx::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::Duration;

/// One row per view of this database that the worker knows.
#[pg_extern]
#[allow(clippy::type_complexity)]
fn eddy_list_views() -> TableIterator<
    'static,
    (
        name!(relation, pg_sys::Oid),
        name!(state, String),
        name!(sqlstate, Option<String>),
        name!(message, Option<String>),
        name!(rows, i64),
        name!(applied_lsn, i64),
        name!(lag_bytes, i64),
        name!(lag_ms, i64),
        name!(transactions, i64),
        name!(updates, i64),
        name!(iterations, i64),
        name!(state_bytes, i64),
        name!(spilled_bytes, i64),
    ),
> {
    let database = shared::my_database();
    let outage = outage::explain(database);
    let views: Vec<&View> = shared::views_of(process::database()).collect();
    let known = |relid| views.iter().any(|view| view.id() == relid);
    let unknown = registry::all().into_iter().filter(|relid| !known(*relid));
    let mut rows: Vec<_> = unknown.map(|relid| unknown_status(relid, outage.as_ref())).collect();
    let reported = views.iter().filter_map(|view| Some(status(view, database?, outage.as_ref())));
    rows.extend(reported);
    TableIterator::new(rows)
}

/// A view that no worker has reported yet.
fn unknown_status(relid: ViewId, outage: Option<&Reason>) -> Status {
    let state = if outage.is_some() { "stopped" } else { "attaching" };
    let message = outage.and_then(|reason| shown(reason, relid));
    (pg_sys::Oid::from(relid), state.into(), None, message, 0, 0, 0, 0, 0, 0, 0, 0, 0)
}

fn shown(reason: &Reason, relid: ViewId) -> Option<String> {
    (!reason.quotes_data || catalog::may_select(relid)).then(|| reason.text.clone())
}

type Status = (
    pg_sys::Oid,
    String,
    Option<String>,
    Option<String>,
    i64,
    i64,
    i64,
    i64,
    i64,
    i64,
    i64,
    i64,
    i64,
);

fn status(view: &View, database: &Database, outage: Option<&Reason>) -> Status {
    let relid = view.id();
    let figures = view.figures();
    let applied = database.applied.load(SeqCst);
    let lag_bytes = database.last_commit.load(SeqCst).saturating_sub(applied);
    let lag_ms = match lag_bytes {
        0 => 0,
        _ => xact::milliseconds_since(database.applied_at.load(SeqCst)),
    };
    let is_error = outage.is_none() && view.state() == ViewState::Error;
    let has_message = view.state() != ViewState::Live;
    let is_attaching = view.state() == ViewState::Attaching;
    (
        pg_sys::Oid::from(relid),
        outage.map_or_else(|| state_name(view), |_| "stopped").to_owned(),
        is_error.then(|| figures.sqlstate.to_string()),
        match outage {
            Some(reason) => shown(reason, relid),
            None if is_attaching && database.ending() == Ending::AfterWal => {
                Some(database.complaint())
            }
            // A message may quote data.
            None => (has_message && catalog::may_select(relid))
                .then(|| figures.message.get())
                .filter(|message| !message.is_empty()),
        },
        figures.rows,
        applied as i64,
        lag_bytes as i64,
        lag_ms,
        figures.transactions as i64,
        figures.updates as i64,
        figures.iterations as i64,
        figures.state_bytes as i64,
        figures.spilled_bytes as i64,
    )
}

fn state_name(view: &View) -> &'static str {
    match view.state() {
        ViewState::Attaching => "attaching",
        ViewState::Live => "live",
        ViewState::Error => "error",
        ViewState::Behind => "behind",
    }
}

/// What the worker of this database has done since it started; no row without a worker.
#[pg_extern]
#[allow(clippy::type_complexity)]
fn eddy_show_activity() -> TableIterator<
    'static,
    (
        name!(pid, i32),
        name!(since, TimestampWithTimeZone),
        name!(applied_lsn, i64),
        name!(steps, i64),
        name!(transactions, i64),
        name!(changes, i64),
        name!(decode_ms, f64),
        name!(attach_ms, f64),
        name!(engine_ms, f64),
        name!(apply_ms, f64),
    ),
> {
    let database = shared::my_database();
    let running = database.filter(|database| database.state() == DatabaseState::Running);
    TableIterator::new(running.and_then(activity))
}

type ActivityRow = (i32, TimestampWithTimeZone, i64, i64, i64, i64, f64, f64, f64, f64);

fn activity(database: &Database) -> Option<ActivityRow> {
    let figures = &database.activity;
    let count = |counter: &AtomicU64| counter.load(Relaxed) as i64;
    let milliseconds = |counter: &AtomicU64| counter.load(Relaxed) as f64 / 1e3;
    Some((
        database.pid.load(SeqCst),
        TimestampWithTimeZone::try_from(figures.since.load(Relaxed)).ok()?,
        database.applied.load(SeqCst) as i64,
        count(&figures.steps),
        count(&figures.transactions),
        count(&figures.changes),
        milliseconds(&figures.decode),
        milliseconds(&figures.attach),
        milliseconds(&figures.engine),
        milliseconds(&figures.apply),
    ))
}

/// Waits until all live views have everything committed before an LSN; false at the timeout, NULL for no LSN.
#[pg_extern]
fn eddy_wait_for_lsn(lsn: Option<i64>, timeout: Option<Interval>) -> Option<bool> {
    let lsn = lsn?;
    let timeout = match timeout {
        None => settings::read_timeout(),
        Some(timeout) => Some(to_duration(timeout)),
    };
    match reads::wait_for_lsn(lsn as u64, timeout) {
        Ok(reached) => Some(reached),
        Err(error) => error.raise(),
    }
}

fn to_duration(interval: Interval) -> Duration {
    const DAY: i128 = 86_400_000_000;
    let days = i128::from(interval.months()) * 30 + i128::from(interval.days());
    let microseconds = days * DAY + i128::from(interval.micros());
    Duration::from_micros(u64::try_from(microseconds.max(0)).unwrap_or(u64::MAX))
}

/// Has the worker of this database started when the transaction commits. The script that installs the extension calls it: there may
/// be a reason why no view could be created, to be known now.
#[pg_extern]
fn eddy_start_worker() {
    if let Err(error) = handshake::require_server() {
        error.warn();
    }
    handshake::start_at_commit();
}
