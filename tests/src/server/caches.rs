//! Decoding sees the catalogs as they were at the record being read, all else as they are now; the worker's caches serve
//! both. What decoding has left in them must not serve who reads a table.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use harness::cluster::{is_stopped, signal_process, stop_at_rest, wait_for, Cluster};
use harness::installation::Installation;
use rustix::process::Signal;

use super::check::Record;
use crate::graph::{expect_alive, expect_rows, graph_database, worker_pid};

const PATIENCE: Duration = Duration::from_secs(60);

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    match Cluster::start_new(installation, folder, "caches", &[("fsync", "off")]) {
        Err(error) => record("a server to decode in", Err(error)),
        Ok(cluster) => {
            let result = truncated_while_decoding(&cluster);
            record("a table truncated while the worker decodes is read from its new file", result);
        }
    }
}

/// Between two transactions that the worker decodes in one go the table gets another file, and the view is to be filled
/// anew. The second transaction's beginning tells the worker of the file, and its rows make it look up the old one.
fn truncated_while_decoding(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "truncated")?;
    expect_alive(&mut client)?;
    let worker = worker_pid(&mut client)?.context("there is no worker")?;
    stop_at_rest(&mut client, worker)?;
    cluster.configure_and_wait(&mut client, "eddy.crash_point", "decode=stop")?;
    client.batch_execute("INSERT INTO edge VALUES (8, 9)")?;
    client.batch_execute("INSERT INTO edge VALUES (9, 10)")?;
    signal_process(worker, Signal::CONT)?;
    wait_for("the worker to stop in the middle of decoding", PATIENCE, || {
        Ok(is_stopped(worker).then_some(()))
    })?;
    cluster.configure("eddy.crash_point", "")?;
    let changed = client
        .batch_execute("TRUNCATE edge")
        .and_then(|()| client.batch_execute("INSERT INTO edge VALUES (1, 2), (2, 3)"))
        .and_then(|()| client.batch_execute("REFRESH INCREMENTAL VIEW reach"));
    client.batch_execute("SET eddy.read_timeout = '500ms'")?;
    // It stops again at the end of each transaction, until it has decoded all that was there and looks at its settings.
    wait_for("the worker to have decoded all", PATIENCE, || {
        signal_process(worker, Signal::CONT)?;
        Ok(client.query("TABLE reach", &[]).ok())
    })?;
    changed?;
    client.batch_execute("RESET eddy.read_timeout")?;
    expect_rows(&mut client, "reach", 3)?;
    expect_alive(&mut client)
}
