//! Why a view cannot be read: what readers are told, and what kind of problem it is.

use crate::errors::{Error, ErrorKind};
use crate::pg::sqlstate::SqlState;
use crate::pg::xact::Caught;
use crate::shared::Cause;
use plan::error::DataError;

/// Why a view cannot be read, until it is attached again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// SQLSTATE that reads raise.
    pub sqlstate: SqlState,
    /// Message that reads raise.
    pub message: String,
    /// What the error says itself about what happened.
    pub detail: Option<String>,
    /// What can be done about this very problem.
    pub hint: Option<String>,
    /// What kind of problem it is.
    pub cause: Cause,
}

impl Problem {
    /// The view's rows could not be written: no table beside it is as it has to be, or something in an index is in the way.
    pub fn of_write(caught: Caught) -> Problem {
        let cause = match caught.sqlstate == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE {
            true => Cause::Tables,
            false => Cause::Write,
        };
        Problem { cause, ..caught.into() }
    }

    /// The query raises an error on the present data.
    pub fn of_query(error: DataError) -> Problem {
        Problem { cause: Cause::Query, ..error.into() }
    }

    /// The problem of a view that reads one with this name and this SQLSTATE. The reason is told to those who may read that one.
    pub fn of_view(name: &str, sqlstate: SqlState) -> Problem {
        Problem {
            sqlstate,
            message: format!("incremental view \"{name}\" is in error"),
            detail: None,
            hint: Some("Reading that view tells the reason.".into()),
            cause: Cause::Beneath,
        }
    }

    /// The same for a view that reads the one with this name, whose problem this is.
    pub fn beneath(&self, name: &str) -> Problem {
        match self.cause {
            Cause::Beneath => self.clone(),
            _ => Problem::of_view(name, self.sqlstate),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let cause = match error.kind {
            ErrorKind::InsufficientPrivilege => Cause::Rights,
            ErrorKind::Canceled
            | ErrorKind::Crash
            | ErrorKind::StatementTooComplex
            | ErrorKind::OutOfMemory
            | ErrorKind::LimitExceeded
            | ErrorKind::Io => Cause::Limit,
            _ => Cause::Tables,
        };
        let sqlstate = error.kind.sqlstate();
        // What it means for the view is said of all errors of a cause.
        Problem { sqlstate, message: error.message, detail: None, hint: error.hint, cause }
    }
}

impl From<Caught> for Problem {
    fn from(caught: Caught) -> Problem {
        let Caught { sqlstate, message, detail, hint } = caught;
        Problem { sqlstate, message, detail, hint, cause: Cause::Tables }
    }
}

/// A value met while base tables or their changes are read.
impl From<DataError> for Problem {
    fn from(error: DataError) -> Problem {
        Problem { cause: Cause::Value, ..Caught::from(error).into() }
    }
}
