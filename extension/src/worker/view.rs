//! The worker's side of one incremental view.

use super::stored::{Delta, StoredRows};
use crate::compile::CompiledView;
use crate::errors::{Error, ErrorKind};
use crate::pg::shmem;
use crate::pg::xact::{sqlstate_text, Caught};
use crate::shared::{self, Cause, ViewState};
use engine::DataflowId;
use planner::error::DataError;
use planner::plan::Diff;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Why a view cannot be read, until it is attached again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// SQLSTATE that reads raise.
    pub sqlstate: String,
    /// Message that reads raise.
    pub message: String,
    /// What can be done about this very problem.
    pub hint: Option<String>,
    /// What kind of problem it is.
    pub cause: Cause,
}

impl Problem {
    /// The view's rows could not be written.
    pub fn of_write(caught: Caught) -> Problem {
        Problem { cause: Cause::Write, ..caught.into() }
    }

    /// The query raises an error on the present data.
    fn of_query(error: DataError) -> Problem {
        Problem { cause: Cause::Query, ..error.into() }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let cause = match error.kind {
            ErrorKind::InsufficientPrivilege => Cause::Rights,
            ErrorKind::StatementTooComplex
            | ErrorKind::OutOfMemory
            | ErrorKind::LimitExceeded
            | ErrorKind::Io => Cause::Limit,
            _ => Cause::Tables,
        };
        let sqlstate = sqlstate_text(error.kind.sqlstate() as i32);
        Problem { sqlstate, message: error.message, hint: error.hint, cause }
    }
}

impl From<Caught> for Problem {
    fn from(caught: Caught) -> Problem {
        let Caught { sqlstate, message } = caught;
        Problem { sqlstate, message, hint: None, cause: Cause::Tables }
    }
}

/// A value met while base tables or their changes are read.
impl From<DataError> for Problem {
    fn from(error: DataError) -> Problem {
        let DataError { sqlstate, message } = error;
        Problem { sqlstate, message, hint: None, cause: Cause::Value }
    }
}

/// Where a view stands.
#[derive(Debug)]
pub enum Phase {
    /// To be attached, not before that time (its tables may have been locked).
    Waiting { not_before: Instant, attempts: u32 },
    /// Its dataflow runs.
    Attached(Box<Attachment>),
    /// It cannot be maintained until something changes.
    Failed { problem: Problem, heals: Heals },
}

impl Phase {
    /// To be attached at once.
    pub fn waiting() -> Phase {
        Phase::Waiting { not_before: Instant::now(), attempts: 0 }
    }
}

/// What may heal a failed view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heals {
    /// Any DDL: what it depends on is not known, or rights and tables may come and go.
    OnDdl,
    /// Only a new file of the view, as REFRESH makes it, or a restart: trying again is costly.
    OnRefresh { file: u32 },
}

/// A running dataflow and what is known of its output.
#[derive(Debug)]
pub struct Attachment {
    /// Its name in the engine.
    pub dataflow: DataflowId,
    /// What the plan was made from, to see whether it would be made the same again.
    pub compiled: CompiledView,
    /// The base tables with all their partitions and children.
    pub members: Vec<BTreeSet<u32>>,
    /// Output not yet applied.
    pub delta: Delta,
    /// How many source transactions the output not yet applied is of.
    pub transactions: u64,
    /// Errors of the query on the present data, with multiplicities.
    pub errs: BTreeMap<DataError, Diff>,
    /// The rows in the heap, once compared.
    pub stored: Option<StoredRows>,
    /// When it was attached, for the log.
    pub since: Instant,
}

/// One incremental view.
pub struct View {
    /// The view.
    pub relid: u32,
    /// `schema.name`, for messages.
    pub name: String,
    /// Where it stands.
    pub phase: Phase,
    /// Whether it has outgrown memory before, so that its state goes to disk.
    pub spills: bool,
    /// What a change of may concern it: itself, its base tables, views in between.
    pub depends: BTreeSet<u32>,
    /// Figures of the engine as published last: it counts them after it has answered.
    pub published: Cell<engine::DataflowStats>,
    /// Its cell in shared memory.
    pub cell: Option<&'static shmem::View>,
    /// Source transactions that changed it.
    pub transactions: u64,
    /// Rows inserted, updated and deleted.
    pub updates: u64,
    /// When it was last tried to attach it.
    pub attempted: Instant,
    /// The problem logged last, so that each is logged once.
    pub last_problem: Option<Problem>,
}

impl View {
    /// A view that has not been looked at.
    pub fn new(relid: u32) -> View {
        View {
            relid,
            name: relid.to_string(),
            phase: Phase::waiting(),
            spills: false,
            depends: BTreeSet::from([relid]),
            published: Cell::default(),
            cell: shared::view_or_new(relid),
            transactions: 0,
            updates: 0,
            attempted: Instant::now(),
            last_problem: None,
        }
    }

    /// Its running dataflow.
    pub fn attachment(&mut self) -> Option<&mut Attachment> {
        match &mut self.phase {
            Phase::Attached(attachment) => Some(attachment),
            _ => None,
        }
    }

    /// The error reads shall raise, if any: a lasting problem, or the least error of the query.
    fn problem(&self) -> Option<Problem> {
        match &self.phase {
            Phase::Waiting { .. } => None,
            Phase::Failed { problem, .. } => Some(problem.clone()),
            Phase::Attached(attachment) => {
                attachment.errs.keys().next().cloned().map(Problem::of_query)
            }
        }
    }

    /// Its state as others see it.
    pub fn state(&self) -> ViewState {
        match &self.phase {
            _ if self.problem().is_some() => ViewState::Error,
            Phase::Attached(attachment) if attachment.stored.is_some() => ViewState::Live,
            _ => ViewState::Attaching,
        }
    }

    /// Publishes its state; figures of the engine are given by the caller.
    pub fn publish(&self, stats: engine::DataflowStats) {
        self.published.set(stats);
        let Some(cell) = self.cell else { return };
        let problem = self.problem();
        let rows = match &self.phase {
            Phase::Attached(attachment) => attachment.stored.as_ref().map(StoredRows::len),
            _ => None,
        };
        cell.update(|figures| {
            figures.sqlstate = [0; 5];
            figures.message.set("");
            if let Some(problem) = &problem {
                let code = problem.sqlstate.as_bytes();
                figures.sqlstate.copy_from_slice(code.get(..5).unwrap_or(b"XX000"));
                figures.message.set(&problem.message);
                figures.hint.set(problem.hint.as_deref().unwrap_or_default());
                figures.cause = problem.cause as u32;
            }
            if let Some(rows) = rows {
                figures.rows = rows as i64;
            }
            figures.transactions = self.transactions;
            figures.updates = self.updates;
            figures.iterations = stats.iterations;
            figures.state_bytes = stats.state_bytes as u64;
            figures.spilled_bytes = stats.spilled_bytes as u64;
        });
        cell.set_state(self.state());
    }
}
