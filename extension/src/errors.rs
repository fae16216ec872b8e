//! The extension's error type and the one place that decides SQLSTATEs.

use crate::pg::sqlstate::SqlState;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::PgLogLevel;
use plan::error::DataError;
use planner::error::{PlanError, PlanErrorKind};
use rules::security_label::{Fault, INCREMENTAL};
use rules::view_settings;

/// What kind of failure it is; decides the SQLSTATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Valid SQL that is not supported (0A000).
    Unsupported,
    /// The object is of another kind (42809).
    WrongObjectType,
    /// No collation is given, or different ones are (42P22).
    IndeterminateCollation,
    /// Columns are said to be of other types than they are (42804).
    DatatypeMismatch,
    /// The named object does not exist (42704).
    UndefinedObject,
    /// Settings or state of the server or of an object forbid it now (55000).
    NotInPrerequisiteState,
    /// Others have committed what the transaction's snapshot does not show; may be tried again (40001).
    SerializationFailure,
    /// Waiting would be for ever; may be tried again (40P01).
    Deadlock,
    /// The user or the view's owner lacks a right (42501).
    InsufficientPrivilege,
    /// A statement has an option that there is not (42601).
    Syntax,
    /// A statement's option has a bad value (22023).
    InvalidParameter,
    /// A relation cannot have these columns (42P16).
    InvalidTableDefinition,
    /// It has a column of that name (42701).
    DuplicateColumn,
    /// An object would depend on itself (42P17).
    InvalidObjectDefinition,
    /// A limit on recursion, or on how deeply a query nests, was passed (54001).
    StatementTooComplex,
    /// A limit on memory was passed, or a result cannot be held in any memory (53200).
    OutOfMemory,
    /// A limit on disk space was passed (53400).
    LimitExceeded,
    /// A file could not be written or read (58030).
    Io,
    /// What is asked for was kept for a while and has been removed (72000).
    Removed,
    /// It was stopped because it took too long (57014).
    Canceled,
    /// The view has ended the server before (57P02).
    Crash,
    /// Our bug (XX000).
    Internal,
}

impl ErrorKind {
    /// The SQLSTATE clients see.
    pub fn sqlstate(self) -> SqlState {
        match self {
            Self::Unsupported => SqlState::FEATURE_NOT_SUPPORTED,
            Self::WrongObjectType => SqlState::WRONG_OBJECT_TYPE,
            Self::IndeterminateCollation => SqlState::INDETERMINATE_COLLATION,
            Self::DatatypeMismatch => SqlState::DATATYPE_MISMATCH,
            Self::UndefinedObject => SqlState::UNDEFINED_OBJECT,
            Self::NotInPrerequisiteState => SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            Self::SerializationFailure => SqlState::T_R_SERIALIZATION_FAILURE,
            Self::Deadlock => SqlState::T_R_DEADLOCK_DETECTED,
            Self::InsufficientPrivilege => SqlState::INSUFFICIENT_PRIVILEGE,
            Self::Syntax => SqlState::SYNTAX_ERROR,
            Self::InvalidParameter => SqlState::INVALID_PARAMETER_VALUE,
            Self::InvalidTableDefinition => SqlState::INVALID_TABLE_DEFINITION,
            Self::DuplicateColumn => SqlState::DUPLICATE_COLUMN,
            Self::InvalidObjectDefinition => SqlState::INVALID_OBJECT_DEFINITION,
            Self::StatementTooComplex => SqlState::STATEMENT_TOO_COMPLEX,
            Self::OutOfMemory => SqlState::OUT_OF_MEMORY,
            Self::LimitExceeded => SqlState::CONFIGURATION_LIMIT_EXCEEDED,
            Self::Removed => SqlState::SNAPSHOT_TOO_OLD,
            Self::Canceled => SqlState::QUERY_CANCELED,
            Self::Crash => SqlState::CRASH_SHUTDOWN,
            Self::Io => SqlState::IO_ERROR,
            Self::Internal => SqlState::INTERNAL_ERROR,
        }
    }
}

/// An error of a statement or of the upkeep of one view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Decides the SQLSTATE.
    pub kind: ErrorKind,
    /// Primary message: lower case, no full stop.
    pub message: String,
    /// More about what happened, full sentences.
    pub detail: Option<String>,
    /// What the user can do, full sentences.
    pub hint: Option<String>,
    /// Byte offset into the statement's source text.
    pub location: Option<usize>,
}

/// What `fallback` may be.
pub const FALLBACKS: &str = "Available values: wait, query, error.";

/// Where the rows of a view can be kept.
pub const STORAGES: &str = "Available values: view, table.";

/// Bytes of a row without columns: its header and its pointer in the page.
const LEAST_ROW_BYTES: u128 = 28;

impl Error {
    /// An error with a message and nothing else.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), detail: None, hint: None, location: None }
    }

    /// [`ErrorKind::Unsupported`].
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// [`ErrorKind::NotInPrerequisiteState`].
    pub fn state(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotInPrerequisiteState, message)
    }

    /// [`ErrorKind::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// A relation, by its kind and name, is somebody else's.
    pub fn not_owner(kind: &str, name: &str) -> Self {
        Self::new(ErrorKind::InsufficientPrivilege, format!("must be owner of {kind} {name}"))
    }

    /// A relation of that name is of another kind.
    pub fn not_incremental(name: &str) -> Self {
        Self::new(ErrorKind::WrongObjectType, format!("\"{name}\" is not an incremental view"))
    }

    /// There is no relation of that number.
    pub fn no_relation(oid: u32) -> Self {
        Self::new(ErrorKind::UndefinedObject, format!("relation with OID {oid} does not exist"))
    }

    /// A table whose replica identity does not suffice, by its name and as SQL spells it; `then` ends the hint.
    pub fn replica_identity(name: &str, qualified: &str, then: &str) -> Self {
        let message =
            format!("replica identity of table \"{name}\" does not cover the columns needed");
        Self::state(message)
            .hint(format!("Run ALTER TABLE {qualified} REPLICA IDENTITY FULL{then}"))
    }

    /// A view whose changes are to be kept has no table for them; by its name as SQL spells it.
    pub fn no_changes_table(view: &str) -> Self {
        Self::state("the table of the view's changes is missing")
            .hint(format!("Run REFRESH INCREMENTAL VIEW {view}."))
    }

    /// The table of a view's changes, by its name, is not what it was made as.
    pub fn changes_table_altered(table: &str) -> Self {
        Self::state(format!(
            "table \"{table}\" has been altered and cannot take the view's changes"
        ))
        .hint("Undo that, or have the view RESET (changes) and SET it again.")
    }

    /// A view whose rows are to be in a table, too, has none; by its name as SQL spells it.
    pub fn no_mirror(view: &str) -> Self {
        Self::state("the table with the view's rows is missing")
            .hint(format!("Run REFRESH INCREMENTAL VIEW {view}."))
    }

    /// The table with a view's rows, by its name, is not what it was made as.
    pub fn mirror_altered(table: &str) -> Self {
        Self::state(format!("table \"{table}\" has been altered and cannot take the view's rows"))
            .hint("Undo that and REFRESH the view, or have it RESET (storage) and SET it again.")
    }

    /// It lacks what its rows are found by: a unique index of these columns.
    pub fn mirror_without_key(table: &str, columns: &str) -> Self {
        Self::state(format!("table {table} has no unique index on the view's key ({columns})"))
            .hint("Create one, or have the view RESET (storage) and SET it again.")
    }

    /// It has other rows than it was given.
    pub fn mirror_written(table: &str) -> Self {
        Self::state(format!(
            "table \"{table}\" lacks rows of the view: somebody else has written it"
        ))
        .hint("REFRESH INCREMENTAL VIEW fills both anew.")
    }

    /// Nothing tells the rows of a view apart.
    pub fn no_key(view: &str) -> Self {
        Self::unsupported(format!(
            "the rows of incremental view \"{view}\" cannot be kept in a table: they have no key"
        ))
        .detail("Neither primary keys, GROUP BY, DISTINCT nor UNION tell its rows apart by at most 32 columns.")
        .hint("Add a primary key of each of its tables to the columns, or DISTINCT.")
    }

    /// A security label that makes no view incremental.
    pub fn label(label: &str, fault: Fault) -> Self {
        let invalid = |message| Self::new(ErrorKind::InvalidParameter, message);
        match fault {
            Fault::Invalid => invalid(format!("invalid label \"{label}\""))
                .hint(format!("The label of an incremental view begins with \"{INCREMENTAL}\".")),
            Fault::LaterVersion(version) => {
                Self::unsupported(format!("labels of version {version} are not known"))
                    .hint("Install a later version of pg_eddy.")
            }
            Fault::UnknownOption(name) => {
                invalid(format!("unrecognized option \"{name}\" of an incremental view"))
            }
            Fault::Fallback => {
                invalid("invalid fallback of an incremental view".to_owned()).hint(FALLBACKS)
            }
            Fault::Changes => {
                invalid("invalid time for which changes of an incremental view are kept".to_owned())
            }
            Fault::Notify => {
                invalid("option \"notify\" of an incremental view is true or false".to_owned())
            }
            Fault::Storage => {
                invalid("invalid storage of an incremental view".to_owned()).hint(STORAGES)
            }
            Fault::Settings(view_settings::Fault::Invalid) => {
                invalid("the settings of an incremental view must be texts".to_owned())
            }
            Fault::Settings(view_settings::Fault::Unknown(name)) => {
                invalid(format!("unrecognized setting \"{name}\" of an incremental view"))
            }
            Fault::Settings(view_settings::Fault::Missing(name)) => {
                invalid(format!("setting \"{name}\" of an incremental view is missing"))
            }
        }
    }

    /// A text that means the present time.
    pub fn present_word() -> Self {
        let message = "a date or time made of a text such as 'now' or 'today' is not supported in an incremental view";
        Self::unsupported(message).hint("Store the date or time that is meant.")
    }

    /// A recursion that passed `eddy.max_recursion`.
    pub fn recursion_limit(iteration: u64) -> Self {
        let message =
            format!("recursion was stopped at iteration {iteration}, beyond eddy.max_recursion");
        Self::new(ErrorKind::StatementTooComplex, message)
            .hint("Bound the recursion in the query, or raise eddy.max_recursion.")
    }

    /// A view that ended the server, or the worker, or the engine's process, whenever it was attached.
    pub fn ended(what: &str, times: u32) -> Self {
        Self::new(ErrorKind::Crash, format!("maintaining the view ended {what} {times} times"))
            .hint("This is an error of pg_eddy, or of a function that the view calls: see the server log.")
    }

    /// The processes that did a job for a view came to nothing.
    pub fn assistant_failed(times: u32, reason: &str) -> Self {
        let message = format!("a process that works for the view failed {times} times: {reason}");
        Self::new(ErrorKind::Crash, message).hint("Look into the server log, then run REFRESH.")
    }

    /// What PostgreSQL evaluates for a view did not end in time.
    pub fn evaluation_timeout() -> Self {
        let message =
            "evaluating an expression for one row took longer than eddy.evaluation_timeout";
        Self::new(ErrorKind::Canceled, message)
            .hint("Make the function faster, or raise eddy.evaluation_timeout.")
    }

    /// The rows of a view were not written in time.
    pub fn writing_timeout() -> Self {
        let message = "writing the view's rows took longer than eddy.evaluation_timeout";
        Self::new(ErrorKind::Canceled, message).hint(
            "Look at the functions of its indexes and triggers, or raise eddy.evaluation_timeout; then run REFRESH.",
        )
    }

    /// A dataflow that did not put out a batch in time.
    pub fn computation_timeout() -> Self {
        let message = "computing the view took longer than eddy.computation_timeout";
        Self::new(ErrorKind::Canceled, message).hint(
            "Look at the rows that changed, or raise eddy.computation_timeout; then run REFRESH.",
        )
    }

    /// A dataflow that was lost.
    pub fn engine_failed(message: &str) -> Self {
        Self::internal(format!("the view's dataflow failed: {message}"))
            .hint("This is an error of pg_eddy: please report it.")
    }

    /// There is no engine that could compute the view.
    pub fn no_engine(reason: &str) -> Self {
        Self::state(format!("the engine that computes the view could not be started: {reason}"))
            .hint(
                "It is tried again. See that the program is there, or set eddy.engine = embedded.",
            )
    }

    /// A recursion whose best values have no end.
    pub fn endless(iteration: u64) -> Self {
        let message = format!(
            "recursion was stopped at iteration {iteration}: its least or greatest values have no end"
        );
        Self::new(ErrorKind::StatementTooComplex, message)
            .hint("Look for a cycle along which the value falls (for min) or rises (for max).")
    }

    /// A recursion that passed `eddy.memory_limit`.
    pub fn memory_limit(iteration: u64, bytes: usize) -> Self {
        if iteration == 0 {
            return Self::rows_beyond_memory(bytes);
        }
        let message = format!(
            "recursion was stopped at iteration {iteration} with {bytes} bytes in use, beyond eddy.memory_limit"
        );
        Self::new(ErrorKind::OutOfMemory, message)
            .hint("Bound the recursion in the query, or raise eddy.memory_limit.")
    }

    /// A view whose rows, without any recursion, pass `eddy.memory_limit`.
    pub fn rows_beyond_memory(bytes: usize) -> Self {
        let message =
            format!("view was stopped with {bytes} bytes in use, beyond eddy.memory_limit");
        Self::new(ErrorKind::OutOfMemory, message).hint("Raise eddy.memory_limit.")
    }

    /// A view whose state passes `eddy.spill_limit`.
    pub fn spill_limit(bytes: u64) -> Self {
        let message = format!(
            "view was stopped: the views of this database have {bytes} bytes on disk, as many as they may"
        );
        Self::new(ErrorKind::LimitExceeded, message).hint(
            "Raise eddy.memory_limit or eddy.spill_limit, or bound the recursion in the query.",
        )
    }

    /// A view whose state cannot be on disk.
    pub fn spill_failed(message: String) -> Self {
        Self::new(ErrorKind::Io, message)
            .hint("See to the directory, or set eddy.spill_directory to another one.")
    }

    /// A row with more copies than can be stored. As a multiplicity they take no memory, so this is
    /// found out at a number of copies, whatever `eddy.memory_limit` is.
    pub fn too_many_copies(iteration: u64, copies: u64) -> Self {
        let bytes = u128::from(copies) * LEAST_ROW_BYTES;
        let what = format!("{copies} copies of one row would take {bytes} bytes");
        let (message, hint) = match iteration {
            0 => (format!("view was stopped: {what}"), "Let the query have fewer equal rows."),
            _ => (
                format!("recursion was stopped at iteration {iteration}: {what}"),
                "Bound the recursion in the query, or use UNION in place of UNION ALL.",
            ),
        };
        Self::new(ErrorKind::OutOfMemory, message).hint(hint)
    }

    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a position from a parse node's location (negative: unknown).
    pub fn at(mut self, location: i32) -> Self {
        self.location = usize::try_from(location).ok();
        self
    }

    /// Raises it as an SQL error. The position is shown only within a statement hook
    /// (see `hooks::utility`).
    pub fn raise(self) -> ! {
        if let Some(location) = self.location {
            crate::pg::report::set_location(location);
        }
        std::panic::panic_any(self.into_report())
    }

    /// Tells the client, and lets the statement go on.
    pub fn warn(self) {
        self.into_report().report(PgLogLevel::WARNING);
    }

    /// As pgrx's report, which keeps everything but the position.
    pub fn into_report(self) -> ErrorReport {
        let mut report = ErrorReport::new(self.kind.sqlstate().for_pgrx(), self.message, "pg_eddy");
        if let Some(detail) = self.detail {
            report = report.set_detail(detail);
        }
        if let Some(hint) = self.hint {
            report = report.set_hint(hint);
        }
        report
    }
}

impl From<Error> for DataError {
    fn from(error: Error) -> DataError {
        DataError::new(error.kind.sqlstate().as_str(), &error.message)
            .with(error.detail, error.hint)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        let kind = match error.kind {
            PlanErrorKind::Unsupported => ErrorKind::Unsupported,
            PlanErrorKind::TooComplex => ErrorKind::StatementTooComplex,
            PlanErrorKind::Invalid => ErrorKind::Internal,
        };
        Self { kind, message: error.message, detail: None, hint: error.hint, location: None }
    }
}
