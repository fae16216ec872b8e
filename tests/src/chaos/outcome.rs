//! Whether an error that a session got is one that the disturbances explain, and names its culprit.

use std::time::{Duration, Instant};

use postgres::error::DbError;
use postgres::Error;

use super::scene::Scene;

/// Sessions hear of a restart a little later than whoever ordered it.
const SESSION_GRACE: Duration = Duration::from_secs(3);

/// A view, or the worker, is back so long after its trouble. A restart waits for running transactions.
const VIEW_GRACE: Duration = Duration::from_secs(1);

/// A snapshot that is too old: trying again cures it.
pub const SERIALIZATION: &str = "40001";

/// A statement in a transaction that has failed.
const FAILED_TRANSACTION: &str = "25P02";

/// A deadlock, which takes somebody else with a lock.
const DEADLOCK: &str = "40P01";

/// Bugs, but for what a crash point raises.
const INTERNAL: &str = "XX000";

/// How an attempt ended.
pub struct Outcome {
    /// For the counts: a SQLSTATE, or that the session was lost.
    pub name: String,
    /// What nothing explains.
    pub violation: Option<String>,
    /// Whether the session is of no more use.
    pub is_lost: bool,
}

/// Judges the error of a statement that began at `from` and reads some views.
pub fn judge(scene: &Scene, error: &Error, views: &[&str], from: Instant) -> Outcome {
    let Some(report) = error.as_db_error() else {
        return lost("session lost", scene, &error.to_string(), from);
    };
    let code = report.code().code();
    let text = full_text(report);
    if is_end_of_session(report) {
        return lost(code, scene, &text, from);
    }
    // The ROLLBACK of the transaction before was cancelled, too.
    if code == FAILED_TRANSACTION {
        return Outcome { name: code.to_owned(), violation: None, is_lost: true };
    }
    let is_explained = match code {
        SERIALIZATION => true,
        DEADLOCK => scene.was_disturbed(from, VIEW_GRACE),
        INTERNAL if !text.contains("crash point") => false,
        _ => is_cancellation(report) || is_attack(scene, report, &text, views, from),
    };
    let violation = (!is_explained).then(|| format!("{} of {views:?}", text));
    Outcome { name: short_text(report), violation, is_lost: false }
}

/// A session or an attempt to get one that has failed.
pub fn lost(name: &str, scene: &Scene, text: &str, from: Instant) -> Outcome {
    let is_explained = scene.was_server_away(from, SESSION_GRACE);
    let violation = (!is_explained).then(|| format!("a session was lost: {text}"));
    Outcome { name: name.to_owned(), violation, is_lost: true }
}

/// What there is to distinguish in counts: code and message, without names.
fn short_text(report: &DbError) -> String {
    let code = report.code().code();
    if !["55000", DEADLOCK, INTERNAL].contains(&code) {
        return code.to_owned();
    }
    let words: String = report.message().split('"').step_by(2).collect();
    format!("{code} ({})", words.trim())
}

/// Message, detail, hint and context: somewhere the culprit must be named.
pub fn full_text(report: &DbError) -> String {
    let more = [report.detail(), report.hint(), report.where_()];
    let more: Vec<&str> = more.into_iter().flatten().collect();
    format!("{} {}: {}", report.code().code(), report.message(), more.join(" | "))
}

/// The view's own error 57P02 says that it has ended the server, in a session that lives on.
fn is_end_of_session(report: &DbError) -> bool {
    let severity = report.parsed_severity();
    use postgres::error::Severity::{Fatal, Panic};
    matches!(severity, Some(Fatal | Panic)) || report.message().contains("terminating connection")
}

/// The disturbances cancel statements.
fn is_cancellation(report: &DbError) -> bool {
    report.code().code() == "57014" && report.message().contains("user request")
}

fn is_attack(scene: &Scene, report: &DbError, text: &str, views: &[&str], from: Instant) -> bool {
    let code = report.code().code();
    // The name of a view that is renamed, or of a table's column; a row without partition.
    if ["42P01", "42703", "23514"].contains(&code) {
        return scene.was_attacked(views, from, VIEW_GRACE);
    }
    let named: Vec<&str> = views.iter().copied().filter(|view| text.contains(view)).collect();
    let is_behind = code == "55000" && scene.was_worker_away(from, VIEW_GRACE);
    !named.is_empty() && (is_behind || scene.was_attacked(&named, from, VIEW_GRACE))
}
