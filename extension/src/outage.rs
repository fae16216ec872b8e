//! Why nobody maintains the views of this database at the moment, in words: for `eddy.views` and for the errors of those
//! who wait. It follows from what holds now, not from what somebody noted once.

use crate::pg::shmem::{self, Database};
use crate::pg::{locks, wal};
use crate::shared::{DatabaseState, Ending, Failure};
use std::sync::atomic::Ordering::*;

/// A reason, full sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// What is the matter.
    pub text: String,
    /// Whether it may quote data, which not everybody may see.
    pub quotes_data: bool,
}

impl From<String> for Reason {
    fn from(text: String) -> Reason {
        Reason { text, quotes_data: false }
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Reason {
        text.to_owned().into()
    }
}

/// Why the views of a database are not maintained, `None` if they are. Needs a transaction.
pub fn explain(database: Option<&Database>) -> Option<Reason> {
    let Some(area) = shmem::area() else {
        return Some("The library pg_eddy is not in shared_preload_libraries.".into());
    };
    match database {
        // A worker that stands still cannot say what has become of it.
        Some(database) if database.ending() == Ending::Wal => return Some(ending(database)),
        Some(database) if database.state() == DatabaseState::Running => return None,
        _ => {}
    }
    if wal::in_recovery() {
        return Some("A standby has no worker.".into());
    }
    if !wal::level_is_logical() {
        return Some("The setting wal_level is not logical.".into());
    }
    if !area.launcher.is_set() {
        return Some(
            "The launcher of pg_eddy does not run; it needs one of max_worker_processes.".into(),
        );
    }
    match database {
        Some(database) => Some(explain_state(database)),
        None if area.lacks_workers.load(SeqCst) != 0 => Some(failure(Failure::NoWorkerSlot)),
        None => Some("The launcher of pg_eddy has not come to this database yet.".into()),
    }
}

/// Whether the first worker of a database since the start of the server is on its way.
pub fn is_first_start(database: &Database) -> bool {
    use DatabaseState::*;
    let is_on_its_way = matches!(database.state(), Requested | Starting | Preparing);
    is_on_its_way && database.starts.load(SeqCst) <= 1 && database.holders.load(SeqCst) == 0
}

fn explain_state(database: &Database) -> Reason {
    use DatabaseState::*;
    if database.holders.load(SeqCst) > 0 {
        return "A command that needs the database for itself keeps its worker away.".into();
    }
    match database.state() {
        Failed => failure(database.failure().unwrap_or(Failure::NoWorkerSlot)),
        NoExtension => "The worker of this database found no extension pg_eddy.".into(),
        Preparing => waiting(database).into(),
        Unknown => "The launcher of pg_eddy has not come to this database yet.".into(),
        Requested | Starting | Stopped | Running => ending(database),
    }
}

/// What could not be had.
fn failure(failure: Failure) -> Reason {
    match failure {
        Failure::NoWorkerSlot => {
            "There is no free background worker for this database; see max_worker_processes.".into()
        }
        Failure::NoReplicationSlot => {
            "There is no free replication slot for this database; see max_replication_slots.".into()
        }
        Failure::LaterObjects => {
            "The extension's objects in this database are of a later version than the library that the server has loaded.".into()
        }
    }
}

/// A worker that starts has to see the end of all transactions that write at that moment, in any database.
fn waiting(database: &Database) -> String {
    let holder = database.living_worker().and_then(locks::transaction_waited_for);
    match holder {
        Some(holder) => {
            format!("The worker of this database is about to start and waits for {holder} to end.")
        }
        None => "The worker of this database is about to start.".into(),
    }
}

fn ending(database: &Database) -> Reason {
    match database.ending() {
        Ending::Quiet => "The worker of this database is being started.".into(),
        Ending::Asked => {
            "The worker of this database was asked to end and is being started again.".into()
        }
        Ending::Engine => format!(
            "The engine of this database has ended ({}), and its worker is being started again.",
            database.complaint()
        )
        .into(),
        Ending::Wal | Ending::AfterWal => database.complaint().into(),
        Ending::Error => Reason {
            text: format!(
                "The worker of this database ended by an error and is being started again: {}",
                database.complaint()
            ),
            quotes_data: true,
        },
    }
}
