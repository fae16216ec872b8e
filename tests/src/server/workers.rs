//! A worker that stands still for a while, or ends.

use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use postgres::Client;

use super::check::Check;
use crate::graph::{
    drop_database, expect_alive, expect_rows, graph_database, while_worker_stands_still, worker_pid,
};

/// Checks that share one cluster.
pub const CHECKS: [(&str, Check); 4] = [
    ("a read says when the worker does not answer", read_times_out),
    ("a killed worker comes back", killed_worker_comes_back),
    ("a table that was unlogged for a while is read again", unlogged_table_is_read_again),
    ("rights are granted on a view that is being filled", rights_are_granted_while_filled),
];

fn read_times_out(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "stopped")?;
    expect_alive(&mut client)?;
    while_worker_stands_still(&mut client, reads_of_stopped_worker)??;
    client.batch_execute("RESET eddy.read_timeout")?;
    expect_rows(&mut client, "reach", 9)?;
    drop(client);
    drop_database(cluster, "stopped")
}

fn reads_of_stopped_worker(client: &mut Client) -> Result<()> {
    client.batch_execute("SET eddy.read_timeout = '200ms'; INSERT INTO edge VALUES (3, 1)")?;
    let Err(error) = client.query("SELECT * FROM reach", &[]) else { bail!("read did not fail") };
    let report = error.as_db_error().context("the session was lost")?;
    ensure!(report.message().contains("reach"), "the view is not named: {report}");
    let text = format!("{report} {}", report.detail().unwrap_or_default());
    ensure!(text.contains("behind"), "the lag is not named: {text}");
    client.batch_execute("SET eddy.freshness = 'stale'")?;
    expect_rows(client, "reach", 3)?;
    Ok(client.batch_execute("RESET eddy.freshness")?)
}

fn killed_worker_comes_back(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "killed")?;
    expect_alive(&mut client)?;
    let pid = worker_pid(&mut client)?.context("there is no worker")?;
    // The database system restarts all sessions after a kill -9, but not after a termination.
    client.batch_execute(&format!("SELECT pg_terminate_backend({pid})"))?;
    expect_alive(&mut client)?;
    let after = wait_for("a new worker", Duration::from_secs(30), || worker_pid(&mut client))?;
    ensure!(after != pid, "the worker did not end");
    drop(client);
    drop_database(cluster, "killed")
}

/// What was written meanwhile is nowhere in the WAL, and when the worker looks the table is as it was.
fn unlogged_table_is_read_again(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "unlogged")?;
    expect_alive(&mut client)?;
    while_worker_stands_still(&mut client, |client| {
        client.batch_execute("ALTER TABLE edge SET UNLOGGED")?;
        client.batch_execute("INSERT INTO edge VALUES (3, 1)")?;
        client.batch_execute("ALTER TABLE edge SET LOGGED")
    })??;
    expect_rows(&mut client, "reach", 9)?;
    client.batch_execute("DELETE FROM edge WHERE src = 3")?;
    expect_alive(&mut client)?;
    drop(client);
    drop_database(cluster, "unlogged")
}

fn rights_are_granted_while_filled(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "granted")?;
    expect_alive(&mut client)?;
    let mut other = cluster.connect("granted")?;
    while_worker_stands_still(&mut client, |client| {
        client.batch_execute("CREATE INCREMENTAL VIEW late AS SELECT src FROM edge")?;
        other.batch_execute("BEGIN; GRANT SELECT ON late TO PUBLIC")
    })??;
    // Who does not end the transaction keeps nobody but the readers of that view.
    let reason = "SELECT true FROM eddy.views WHERE relation = 'late'::regclass AND message LIKE '%holds a lock on it'";
    wait_for("the view to be set aside", Duration::from_secs(30), || {
        expect_alive(&mut client)?;
        Ok(client.query_opt(reason, &[])?)
    })?;
    // Whose rights are being changed cannot be filled, so that transaction has its query run.
    expect_rows(&mut other, "late", 2)?;
    other
        .batch_execute("CREATE INCREMENTAL VIEW above AS SELECT count(*) AS n FROM late; COMMIT")?;
    expect_rows(&mut client, "late", 2)?;
    expect_rows(&mut client, "above", 1)?;
    for _ in 0..200 {
        client.batch_execute("CREATE INCREMENTAL VIEW soon AS SELECT dst FROM edge")?;
        client.batch_execute("GRANT SELECT ON soon TO PUBLIC")?;
        expect_rows(&mut client, "soon", 2)?;
        client.batch_execute("DROP INCREMENTAL VIEW soon")?;
    }
    drop((client, other));
    drop_database(cluster, "granted")
}
