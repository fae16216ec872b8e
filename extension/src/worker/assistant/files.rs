//! Where the files are in which a worker and its assistants tell each other of a job: its order and its result.

use crate::pg::markers;
use std::path::PathBuf;

/// The files of one job.
#[derive(Clone, Debug)]
pub struct Files {
    name: String,
}

impl Files {
    /// Of a job of this database's worker.
    pub fn new(database: u32, worker: i32, number: u64) -> Files {
        Files { name: format!("{database}.{worker}.{number}") }
    }

    /// By their common name.
    pub fn named(name: String) -> Files {
        Files { name }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn path(&self, kind: &str) -> PathBuf {
        markers::folder().join(format!("{}.{kind}", self.name))
    }

    /// What is to be done.
    pub fn order(&self) -> PathBuf {
        self.path("order")
    }

    /// What came of it, before the assistant's transaction has committed.
    pub fn draft(&self) -> PathBuf {
        self.path("draft")
    }

    /// The same after that.
    pub fn result(&self) -> PathBuf {
        self.path("result")
    }

    /// Nobody needs them any more.
    pub fn remove(&self) {
        for path in [self.order(), self.draft(), self.result()] {
            // Mostly one of them was never written.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes what workers of a database, which are gone, have left behind.
pub fn remove_of(database: u32) {
    let prefix = format!("{database}.");
    let entries = std::fs::read_dir(markers::folder()).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)) {
        if let Err(error) = std::fs::remove_file(entry.path()) {
            pgrx::log!("pg_eddy: could not remove \"{}\": {error}", entry.path().display());
        }
    }
}
