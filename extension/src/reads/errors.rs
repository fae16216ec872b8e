//! What reads of views raise.

use super::beneath::Change;
use crate::errors::{Error, ErrorKind};
use crate::outage;
use crate::pg::ids::ViewId;
use crate::pg::shmem::{Database, Figures};
use crate::pg::sqlstate::SqlState;
use crate::pg::states::StateRow;
use crate::pg::{catalog, report, xact};
use crate::shared::{self, Cause, DatabaseState, ViewState};
use pgrx::pg_sys::panic::ErrorReport;
use std::sync::atomic::Ordering::SeqCst;

/// The way out of each error of this file.
const OR_STALE: &str = "set eddy.freshness = 'stale' to read the stored rows.";

/// Whom an error is about: what is waited for need not be a view.
fn subject(views: &[ViewId]) -> String {
    match views.first() {
        Some(view) => format!("incremental view \"{}\"", catalog::qualified_name(*view)),
        None => "the worker of this database".to_owned(),
    }
}

fn name_of(views: &[ViewId]) -> String {
    catalog::qualified_name(views.first().copied().unwrap_or_default())
}

/// Views are not current in time; one of them, if there is one, that is behind.
pub fn timeout(database: &Database, behind: Option<&ViewId>, target: u64) -> Error {
    let applied = database.applied.load(SeqCst);
    let lag = target.saturating_sub(applied);
    let since = xact::milliseconds_since(database.applied_at.load(SeqCst));
    let state = match database.state() {
        DatabaseState::Running if lag == 0 => behind.copied().map_or(String::new(), why_away),
        DatabaseState::Running => {
            format!("It is {lag} bytes of WAL behind, {since} ms after its last progress.")
        }
        _ => outage::explain(Some(database)).map_or(String::new(), |reason| reason.text),
    };
    let subject = subject(behind.map_or(&[], std::slice::from_ref));
    let error = Error::state(format!("{subject} is not current within eddy.read_timeout"));
    let error = if state.is_empty() { error } else { error.detail(state) };
    match behind {
        Some(_) => error.hint(format!("Raise eddy.read_timeout, or {OR_STALE}")),
        None => error.hint("Raise eddy.read_timeout."),
    }
}

/// Why a view is away that its database's worker has come to.
fn why_away(view: ViewId) -> String {
    let cell = shared::view(view);
    let reason = cell.filter(|cell| cell.state() == ViewState::Behind);
    let reason = reason.map(|cell| cell.figures().message.get());
    let reason = reason.filter(|reason| !reason.is_empty());
    format!("Set aside: {}.", reason.unwrap_or_else(|| "it is being attached".into()))
}

/// A server that cannot maintain views.
pub fn unfit_server(error: Error) -> Error {
    error.detail(format!("Nobody keeps incremental views up to date until then: {OR_STALE}"))
}

/// A view that this transaction has labelled.
pub fn labelled_now(view: ViewId) -> Error {
    Error::state(format!("incremental view \"{}\" is not maintained yet", name_of(&[view])))
        .detail("This transaction has labelled it, or changed its settings.")
        .hint(format!("Commit, or {OR_STALE}"))
}

/// A view that a snapshot on a standby shows as it was before it was filled.
pub fn not_populated(view: ViewId) -> Error {
    Error::state(format!(
        "materialized view \"{}\" has not been populated",
        catalog::relation_name(view.into())
    ))
    .detail("It had not been when the snapshot was taken.")
    .hint("Try again.")
}

fn stuck(views: &[ViewId], detail: &str) -> Error {
    let subject = subject(views);
    let message = format!("{subject} cannot become current while this transaction is open");
    Error::new(ErrorKind::Deadlock, message).detail(detail).hint(match views {
        [] => "End the transaction and wait then.".to_owned(),
        _ => format!("End the transaction and read the view then, or {OR_STALE}"),
    })
}

/// Nobody else finds this deadlock, as what the session would wait for is not a lock.
pub fn own_lock(views: &[ViewId]) -> Error {
    stuck(views, "The worker waits, directly or not, for a lock of this session.")
}

/// A worker that starts waits for the end of those who write.
pub fn own_transaction(views: &[ViewId]) -> Error {
    stuck(views, "The worker is starting, and waits for the end of transactions that have written something.")
}

/// A transaction that has one snapshot for all of its statements took it too early.
pub fn read_late(views: &[ViewId]) -> Error {
    let message = format!(
        "the snapshot of this transaction is older than incremental view \"{}\" must be",
        name_of(views)
    );
    Error::new(ErrorKind::SerializationFailure, message)
        .detail("Its first statement read something else, so it did not wait for the view, or somebody has refreshed the view since.")
        .hint(format!(
            "Try again: the next transactions of this session wait for the view when they begin. Or let the first statement read the view, or {OR_STALE}"
        ))
}

/// The view is never quite where the tables are.
pub fn never_exact(views: &[ViewId]) -> Error {
    let message = format!(
        "incremental view \"{}\" never was at the snapshot of the transaction",
        name_of(views)
    );
    Error::new(ErrorKind::SerializationFailure, message)
        .detail("Changes are committed faster than they arrive in the view.")
        .hint("Try again, or read the view at another isolation level.")
}

/// The query of the view would see what the view does not have.
pub fn own_changes(views: &[ViewId], change: Change) -> Error {
    let message = format!(
        "cannot read incremental view \"{}\" in a transaction that has changed its base tables",
        name_of(views)
    );
    let what = match change {
        Change::Table(table) => format!("changes of \"{}\"", catalog::qualified_name(table)),
        Change::Definition => "definitions".to_owned(),
        Change::Unknown => "changes, whatever they are,".to_owned(),
    };
    Error::state(message)
        .detail(format!("The transaction's own {what} are not yet in the view."))
        .hint(format!("Set eddy.own_writes = 'query' to run the view's query, or {OR_STALE}"))
}

/// The query of the view calls functions of users, in a session of somebody who is not its owner.
pub fn code_of_owner(view: ViewId) -> Error {
    let name = catalog::qualified_name(view);
    let message = format!("cannot run the query of incremental view \"{name}\" for this user");
    Error::new(ErrorKind::InsufficientPrivilege, message)
        .detail("The stored rows are not what this statement has to see, and the query calls functions, operators or types of users, which run as the view's owner.")
        .hint(format!("Read the view before the transaction changes its base tables, as a role that may act as its owner, or with eddy.own_writes = 'stored'; or {OR_STALE}"))
}

/// The query of the view has what PostgreSQL has not.
pub fn beyond_sql(view: ViewId) -> Error {
    let name = catalog::qualified_name(view);
    let message = format!("PostgreSQL cannot run the query of incremental view \"{name}\"");
    Error::unsupported(message)
        .detail("The stored rows are not what this statement has to see, and only the view's dataflow computes eddy.recursive().")
        .hint(format!("Read the view before the transaction changes its base tables, or with eddy.own_writes = 'stored'; or {OR_STALE}"))
}

/// The session does not wait for views.
pub fn not_current(views: &[ViewId]) -> Error {
    Error::state(format!("{} is not current", subject(views)))
        .detail("The setting eddy.fallback, or the option fallback of the view, says that reads do not wait.")
        .hint(format!("Set that to 'wait' or 'query', or {OR_STALE}"))
}

/// A transaction that has one snapshot for all of its statements took it while one view was away.
pub fn not_together(views: &[ViewId]) -> Error {
    let names: Vec<String> =
        views.iter().map(|view| format!("\"{}\"", catalog::qualified_name(*view))).collect();
    Error::state(format!("incremental views {} are not at one point", names.join(", ")))
        .detail("One of them was set aside when the snapshot of this transaction was taken.")
        .hint(format!("Run the transaction again, or {OR_STALE}"))
}

/// A function called in a parallel worker has no snapshot but that of the statement that called it.
pub fn in_parallel_worker(views: &[ViewId]) -> Error {
    let message =
        format!("cannot wait for incremental view \"{}\" in a parallel worker", name_of(views));
    Error::state(message).detail("A function that reads it was called there.").hint(format!(
        "Mark the function PARALLEL RESTRICTED, which is right for all that read incremental views, or {OR_STALE}"
    ))
}

/// Whether a view cannot be computed now.
pub fn is_in_error(view: ViewId) -> bool {
    shared::view(view).is_some_and(|cell| cell.state() == ViewState::Error)
}

/// Reads of views that cannot be computed raise their errors.
pub fn raise_errors_of(views: &[ViewId]) {
    views.iter().copied().for_each(raise_error_of);
}

fn raise_error_of(view: ViewId) {
    let Some(cell) = shared::view(view).filter(|cell| cell.state() == ViewState::Error) else {
        return;
    };
    let figures = cell.figures();
    if !catalog::may_select(view) {
        raise_hidden(view, figures.sqlstate);
    }
    let (meaning, advice) = explain(Cause::from_u32(figures.cause), &catalog::qualified_name(view));
    let hint = joined(figures.hint.get(), advice);
    // What the error says itself comes first; what that means for the view is its context then.
    let own = Some(figures.detail.get()).filter(|detail| !detail.is_empty());
    let context = own.is_some().then_some(meaning.as_str());
    report::set_code(figures.sqlstate.packed(), context);
    let detail = own.as_ref().unwrap_or(&meaning).as_str();
    let code = SqlState::INTERNAL_ERROR.for_pgrx();
    let mut report = ErrorReport::new(code, figures.message.get(), "pg_eddy").set_detail(detail);
    if !hint.is_empty() {
        report = report.set_hint(hint);
    }
    std::panic::panic_any(report);
}

/// An error may quote values of base tables. Who reads the view through something else, or not all of its columns, need
/// not have a right to these.
fn raise_hidden(view: ViewId, sqlstate: SqlState) -> ! {
    report::set_code(sqlstate.packed(), None);
    let name = catalog::qualified_name(view);
    Error::internal(format!("incremental view \"{name}\" is in error"))
        .hint("The reason is told to roles with the right to SELECT from the view.")
        .raise()
}

/// What can be done about the error of a view, empty if it goes by itself.
pub fn remedy(view: ViewId, figures: &Figures) -> String {
    let (_, advice) = explain(Cause::from_u32(figures.cause), &catalog::qualified_name(view));
    joined(figures.hint.get(), advice)
}

fn joined(hint: String, advice: String) -> String {
    let hints = [hint, advice].into_iter().filter(|hint| !hint.is_empty());
    hints.collect::<Vec<_>>().join(" ")
}

/// Reads of a view raise the error that the primary has recorded for it, if any.
pub fn raise_recorded(view: ViewId, row: StateRow) {
    let Some(sqlstate) = row.sqlstate else { return };
    if !catalog::may_select(view) {
        raise_hidden(view, sqlstate);
    }
    report::set_code(sqlstate.packed(), None);
    let name = catalog::qualified_name(view);
    let meaning = || format!("Incremental view \"{name}\" is in error on the primary.");
    let message = row.message.unwrap_or_default();
    let error = Error::internal(message).detail(row.detail.unwrap_or_else(meaning));
    match row.hint {
        Some(hint) => error.hint(hint).raise(),
        None => error.raise(),
    }
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
            format!("Incremental view \"{view}\" cannot be kept up to date without this right."),
            String::new(),
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
        Cause::Beneath => (
            format!("Incremental view \"{view}\" reads it, directly or by way of other views."),
            String::new(),
        ),
        Cause::Write => (
            format!("The rows of incremental view \"{view}\" could not be written."),
            format!("Drop the index or trigger that refuses them; or remove what else does, then {refresh}"),
        ),
    }
}
