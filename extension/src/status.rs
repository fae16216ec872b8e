//! SQL functions behind `eddy.views`, `eddy.arrangements` and `eddy.activity`, and those that wait for or start the worker.

use crate::handshake;
use crate::outage::{self, Reason};
use crate::pg::attaching::Step;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::rows::{Call, Row, Value};
use crate::pg::shmem::{self, Activity, Database, Figures, View};
use crate::pg::{catalog, process, registry, slots, times, wal, xact};
use crate::reads;
use crate::settings;
use crate::shared::{self, DatabaseState, Ending, Point, ViewState};
use crate::shared_indexes;
use pgrx::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::Duration;

/// `eddy.list_views` of version 0.1.0: one row per view of this database that the worker knows.
#[pg_extern]
fn eddy_list_views(call: Call) {
    call.answer(&all_views());
}

/// The same with the columns of version 0.2.0, under a name that an earlier library does not have.
#[pg_extern]
fn eddy_report_views(call: Call) {
    call.answer(&all_views());
}

fn all_views() -> Vec<Row> {
    let database = shared::my_database();
    let outage = outage::explain(database);
    let is_first = database.is_some_and(outage::is_first_start);
    let views: Vec<&View> = shared::views_of(process::database()).collect();
    let known = |relid| views.iter().any(|view| view.id() == relid);
    let unknown = registry::all().into_iter().filter(|relid| !known(*relid));
    let mut rows: Vec<Row> =
        unknown.map(|relid| unknown_view(relid, outage.as_ref(), is_first)).collect();
    let Some(database) = database else { return rows };
    rows.extend(views.iter().map(|view| match &outage {
        Some(reason) => {
            [waiting(view.id(), reason, is_first), counted(view), last_error(view)].concat()
        }
        None => {
            let (state, point) = (state(view, database), point(view, database));
            [state, point, counted(view), progress(view), last_error(view)].concat()
        }
    }));
    rows
}

/// Why a view stays unknown.
const NO_ROOM: &str = "There is no room for another view: see eddy.max_views.";

/// A view that no worker has reported yet.
fn unknown_view(relid: ViewId, outage: Option<&Reason>, is_first: bool) -> Row {
    let is_full = shmem::area().is_some_and(shmem::Area::is_full_of_views);
    match outage {
        Some(reason) => waiting(relid, reason, is_first),
        None => vec![
            ("relation", Some(Value::Oid(relid.to_u32()))),
            ("state", text("attaching")),
            ("phase", text("waiting")),
            ("message", is_full.then(|| Value::Text(NO_ROOM.to_owned()))),
        ],
    }
}

/// A view that nobody maintains, or not yet: when the first worker since the start of the server is on its way.
fn waiting(relid: ViewId, reason: &Reason, is_first: bool) -> Row {
    let is_shown = !reason.quotes_data || catalog::may_select(relid);
    vec![
        ("relation", Some(Value::Oid(relid.to_u32()))),
        ("state", text(if is_first { "attaching" } else { "stopped" })),
        ("phase", text("waiting").filter(|_| is_first)),
        ("message", is_shown.then(|| Value::Text(reason.text.clone()))),
        (
            "since",
            shared::my_database().and_then(|database| time(database.away_since.load(SeqCst))),
        ),
    ]
}

/// How a view is that a worker maintains.
fn state(view: &View, database: &Database) -> Row {
    let (relid, state, figures) = (view.id(), view.state(), view.figures());
    let is_error = state == ViewState::Error;
    // A message may quote data.
    let may_read = catalog::may_select(relid);
    let message = match state {
        ViewState::Live => None,
        ViewState::Attaching if database.ending() == Ending::AfterWal => {
            Some(Value::Text(database.complaint()))
        }
        _ => shown(figures.message.get()).filter(|_| may_read),
    };
    let hint = is_error.then(|| reads::remedy(relid, &figures)).and_then(shown);
    vec![
        ("relation", Some(Value::Oid(relid.to_u32()))),
        ("state", text(state_name(state))),
        ("sqlstate", is_error.then(|| Value::Text(figures.sqlstate.to_string()))),
        ("message", message),
        ("hint", hint.filter(|_| may_read)),
        ("since", time(view.since.load(Relaxed))),
    ]
}

fn state_name(state: ViewState) -> &'static str {
    match state {
        ViewState::Attaching => "attaching",
        ViewState::Live => "live",
        ViewState::Error => "error",
        ViewState::Behind => "behind",
    }
}

/// What has been counted of a view.
fn counted(view: &View) -> Row {
    let figures = view.figures();
    vec![
        ("rows", count(figures.rows.max(0) as u64)),
        ("transactions", count(figures.transactions)),
        ("updates", count(figures.updates)),
        ("iterations", count(figures.iterations)),
        ("state_bytes", count(figures.state_bytes)),
        ("spilled_bytes", count(figures.spilled_bytes)),
        ("starts", count(view.attaching.starts())),
        ("query_reads", count(view.query_reads.load(Relaxed))),
    ]
}

/// How the start of a view goes on.
fn progress(view: &View) -> Row {
    let step = view.attaching.step();
    let Some(phase) = step.name() else { return Row::new() };
    let mut row = vec![("phase", text(phase))];
    if step != Step::Waiting {
        let progress = view.attaching.progress(xact::now());
        row.push(("rows_read", count(progress.done)));
        row.push(("rows_estimated", count(progress.estimated)));
        if step == Step::Reading {
            row.push(("rows_per_second", progress.rows_per_second().map(Value::Number)));
            row.push(("seconds_left", progress.seconds_left().map(Value::Number)));
        }
    }
    row
}

/// What went wrong with a view last.
fn last_error(view: &View) -> Row {
    let error = view.figures().last_error;
    if error.at == 0 {
        return Row::new();
    }
    let mut row = vec![
        ("last_error_at", time(error.at)),
        ("last_sqlstate", Some(Value::Text(error.sqlstate.to_string()))),
    ];
    if catalog::may_select(view.id()) {
        row.push(("last_error", shown(error.message.get())));
        row.push(("last_hint", shown(error.hint.get())));
    }
    row
}

/// How far a view is; nothing before its rows have been compared.
fn point(view: &View, database: &Database) -> Row {
    let (position, since) = match view.point() {
        Point::Unknown => return Row::new(),
        Point::WithOthers => (database.applied.load(SeqCst), database.applied_at.load(SeqCst)),
        Point::Apart { position, since } => (position, since),
    };
    let (bytes, milliseconds) = lag(database, position, since);
    vec![
        ("applied_lsn", Some(Value::Lsn(position))),
        ("lag_bytes", count(bytes)),
        ("lag_ms", count(milliseconds)),
    ]
}

/// Bytes of WAL up to the last commit, and milliseconds since a position was reached.
fn lag(database: &Database, position: u64, since: i64) -> (u64, u64) {
    match database.last_commit.load(SeqCst).saturating_sub(position) {
        0 => (0, 0),
        bytes => (bytes, u64::try_from(xact::milliseconds_since(since)).unwrap_or(0)),
    }
}

fn text(text: &str) -> Option<Value> {
    Some(Value::Text(text.to_owned()))
}

fn shown(text: String) -> Option<Value> {
    Some(text).filter(|text| !text.is_empty()).map(Value::Text)
}

fn count(count: u64) -> Option<Value> {
    Some(Value::Count(count))
}

fn time(time: i64) -> Option<Value> {
    Some(time).filter(|time| *time != 0).map(Value::Time)
}

/// `eddy.report_arrangements`: what views of this database keep together, a row for each of its readers.
#[pg_extern]
fn eddy_report_arrangements(call: Call) {
    let mut rows = Vec::new();
    for (number, (index, readers)) in (1..).zip(shared_indexes::all(process::database())) {
        let of_table = |table: RelationId| Some(table).filter(|table| *table != RelationId::NONE);
        let (table, joined) = (of_table(index.table), of_table(index.joined));
        rows.extend(readers.into_iter().map(|reader| {
            vec![
                ("number", Some(Value::Integer(number))),
                ("kind", text(index.kind.name())),
                ("relation", table.map(|table| Value::Oid(table.to_u32()))),
                ("key", table.map(|_| Value::Columns(index.key().to_vec()))),
                ("columns", table.map(|_| Value::Columns(index.columns.numbers()))),
                ("joined", joined.map(|table| Value::Oid(table.to_u32()))),
                ("joined_columns", joined.map(|_| Value::Columns(index.joined_columns.numbers()))),
                (
                    "relations",
                    Some(Value::Oids(index.tables().iter().map(|t| t.to_u32()).collect())),
                ),
                ("rows", count(index.rows)),
                ("state_bytes", count(index.bytes)),
                ("used_by", Some(Value::Oid(reader.to_u32()))),
            ]
        }));
    }
    call.answer(&rows);
}

/// `eddy.show_activity` of version 0.1.0: what the worker of this database has done since it started; no row without a
/// worker.
#[pg_extern]
fn eddy_show_activity(call: Call) {
    call.answer(&all_activity());
}

/// The same with the columns of version 0.2.0.
#[pg_extern]
fn eddy_report_activity(call: Call) {
    call.answer(&all_activity());
}

fn all_activity() -> Vec<Row> {
    let database = shared::my_database();
    let running = database.filter(|database| database.state() == DatabaseState::Running);
    let row = |database: &Database| [done(&database.activity), worker(database), limits()].concat();
    running.map(row).into_iter().collect()
}

fn done(activity: &Activity) -> Row {
    let counted = |counter: &AtomicU64| count(counter.load(Relaxed));
    let spent = |counter: &AtomicU64| Some(Value::Number(counter.load(Relaxed) as f64 / 1e3));
    vec![
        ("since", time(activity.since.load(Relaxed))),
        ("steps", counted(&activity.steps)),
        ("transactions", counted(&activity.transactions)),
        ("changes", counted(&activity.changes)),
        ("decode_ms", spent(&activity.decode)),
        ("attach_ms", spent(&activity.attach)),
        ("engine_ms", spent(&activity.engine)),
        ("apply_ms", spent(&activity.apply)),
        ("memory_bytes", counted(&activity.memory)),
    ]
}

/// How far a worker is, and what came before it.
fn worker(database: &Database) -> Row {
    let (pid, applied) = (database.pid.load(SeqCst), database.applied.load(SeqCst));
    let (bytes, milliseconds) = lag(database, applied, database.applied_at.load(SeqCst));
    let held = slots::held_from(pid).map_or(0, |start| wal::insert_lsn().saturating_sub(start));
    let ending = match database.ending() {
        Ending::Quiet => String::new(),
        Ending::Asked => "It was asked to end.".into(),
        // A message may quote data.
        Ending::Error if !catalog::is_superuser() => "It ended by an error.".into(),
        Ending::Error => format!("It ended by an error: {}", database.complaint()),
        Ending::Engine => format!("Its engine had ended: {}.", database.complaint()),
        Ending::Wal | Ending::AfterWal => database.complaint(),
    };
    let limit = settings::max_retained_wal(|| wal::free_space().saturating_add(held));
    let limit = slots::server_limit().map_or(limit, |servers| limit.min(servers));
    vec![
        ("pid", Some(Value::Integer(pid))),
        ("applied_lsn", Some(Value::Lsn(applied))),
        ("lag_bytes", count(bytes)),
        ("lag_ms", count(milliseconds)),
        ("held_wal_bytes", count(held)),
        ("held_wal_limit_bytes", limited(limit)),
        ("starts", count(database.starts.load(SeqCst))),
        ("state_bytes", sum(|figures| figures.state_bytes)),
        ("spilled_bytes", sum(|figures| figures.spilled_bytes)),
        ("last_end_at", time(database.ended_at.load(SeqCst)).filter(|_| !ending.is_empty())),
        ("last_end", shown(ending)),
    ]
}

/// A figure of all views together.
fn sum(figure: impl Fn(&Figures) -> u64) -> Option<Value> {
    count(shared::views_of(process::database()).map(|view| figure(&view.figures())).sum())
}

/// What the views of a database may take.
fn limits() -> Row {
    let settings = settings::engine();
    vec![
        ("memory_limit_bytes", limited(settings.memory_limit as u64)),
        ("spill_limit_bytes", settings.spill().and_then(|spill| limited(spill.limit))),
    ]
}

/// A limit, null if there is none.
fn limited(bytes: u64) -> Option<Value> {
    count(bytes).filter(|_| bytes != 0 && bytes != u64::MAX)
}

/// Version of the library. What it is called here says, to whoever misses it in the library of a server, what to do.
#[pg_extern]
fn eddy_0_2_is_loaded_when_the_server_restarts() -> &'static str {
    env!("CARGO_PKG_VERSION")
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
    let (months, days) = (interval.months(), interval.days());
    times::duration(times::micros_of_parts(months, days, interval.micros()))
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
