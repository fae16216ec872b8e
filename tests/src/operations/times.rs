//! How long views were away, operation by operation, as a table of Markdown.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use harness::cluster::{wait_for, Cluster};
use harness::timing::readable;

use super::views::{self, DATABASE};

const PATIENCE: Duration = Duration::from_secs(120);

/// One operation, all times from its last command on.
struct Entry {
    operation: String,
    /// The server accepts writes.
    open: Duration,
    /// A fresh read of a view has returned.
    readable: Duration,
    /// All views have been compared with their queries, and verified.
    right: Duration,
}

#[derive(Default)]
pub struct Times {
    entries: Vec<Entry>,
    /// What else was measured.
    remarks: Vec<String>,
}

impl Times {
    /// Waits until a server that is on its way since `began` accepts writes and has all its views, readable and right.
    pub fn recovered(&mut self, operation: &str, cluster: &Cluster, began: Instant) -> Result<()> {
        self.recovered_under_load(operation, cluster, began, || Ok(()))
    }

    /// The same while others write, who are held by `hold` when views are compared with base tables.
    pub fn recovered_under_load<Guard>(
        &mut self,
        operation: &str,
        cluster: &Cluster,
        began: Instant,
        hold: impl FnOnce() -> Result<Guard>,
    ) -> Result<()> {
        let mut client = wait_for("the server to accept writes", PATIENCE, || {
            let Ok(mut client) = cluster.connect(DATABASE) else { return Ok(None) };
            let row = client.query_one("SELECT NOT pg_is_in_recovery()", &[])?;
            Ok(row.get::<_, bool>(0).then_some(client))
        })?;
        let open = began.elapsed();
        views::expect_whole(&mut client)?;
        let readable = began.elapsed();
        let _guard = hold()?;
        views::expect_right(&mut client)?;
        let right = began.elapsed();
        self.entries.push(Entry { operation: operation.into(), open, readable, right });
        Ok(())
    }

    /// Waits until a standby that is on its way since `began` shows whole views.
    pub fn readable_standby(
        &mut self,
        operation: &str,
        standby: &Cluster,
        began: Instant,
    ) -> Result<()> {
        let mut client = standby.connect_when_ready(DATABASE)?;
        views::expect_whole(&mut client)?;
        self.remark(format!("{operation}: readable after {}", readable(began.elapsed())));
        Ok(())
    }

    pub fn remark(&mut self, remark: String) {
        self.remarks.push(remark);
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if !self.entries.is_empty() {
            writeln!(f, "| operation | accepts writes | first fresh read | all views right |")?;
            writeln!(f, "|---|---|---|---|")?;
        }
        for Entry { operation, open, readable: read, right } in &self.entries {
            let [open, read, right] = [open, read, right].map(|time| readable(*time));
            writeln!(f, "| {operation} | {open} | {read} | {right} |")?;
        }
        for remark in &self.remarks {
            writeln!(f, "- {remark}")?;
        }
        Ok(())
    }
}
