//! The two kinds of errors: a query that cannot be planned, and data that cannot be computed.

use serde::{Deserialize, Serialize};

/// Why a query is refused. Becomes an SQL error of the creating statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlanError {
    /// What went wrong, by which the caller chooses an SQLSTATE.
    pub kind: PlanErrorKind,
    /// Primary message in PostgreSQL's style: lower case, no full stop; names the construct.
    pub message: String,
    /// What the user can do, as a full sentence.
    pub hint: Option<String>,
    /// The name under which the query reads the relation that it is about, if it is about one.
    pub relation: Option<String>,
}

/// The kinds of [`PlanError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanErrorKind {
    /// Valid SQL that is not supported (0A000).
    Unsupported,
    /// The text does not parse or refers to unknown things; with canonical text this is our bug (XX000).
    Invalid,
}

/// A failure of data inside a dataflow: what PostgreSQL would have raised for the same row.
///
/// Failures are rows of the `errs` collection; they retract when the offending row goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DataError {
    /// Five-character SQLSTATE, e.g. `22012`.
    pub sqlstate: String,
    /// PostgreSQL's primary message, e.g. `division by zero`.
    pub message: String,
}

impl DataError {
    /// An error with a SQLSTATE and PostgreSQL's primary message.
    pub fn new(sqlstate: &str, message: &str) -> DataError {
        DataError { sqlstate: sqlstate.to_owned(), message: message.to_owned() }
    }
}
