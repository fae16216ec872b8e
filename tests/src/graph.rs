//! A database with a small graph and the view `reach` over it: enough to see whether views are maintained.

use anyhow::{ensure, Context, Result};
use harness::cluster::{signal_process, stop_at_rest, Cluster};
use postgres::Client;
use rustix::process::Signal;

/// The extension, the table and the view, in an empty database.
pub const EDGES: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE TABLE edge (src int, dst int);
    INSERT INTO edge VALUES (1, 2), (2, 3);
    CREATE INCREMENTAL VIEW reach AS
        WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION
            SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b) SELECT a, b FROM r;";

/// A new database with a small graph and the view `reach` over it.
pub fn graph_database(cluster: &Cluster, name: &str) -> Result<Client> {
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = cluster.connect(name)?;
    client.batch_execute(EDGES)?;
    Ok(client)
}

pub fn expect_rows(client: &mut Client, view: &str, rows: i64) -> Result<()> {
    let found: i64 = client.query_one(&format!("SELECT count(*) FROM {view}"), &[])?.get(0);
    ensure!(found == rows, "{view} has {found} rows instead of {rows}");
    Ok(())
}

/// Adds an edge and expects the view to follow: it is alive.
pub fn expect_alive(client: &mut Client) -> Result<()> {
    expect_rows(client, "reach", 3)?;
    client.batch_execute("INSERT INTO edge VALUES (3, 1)")?;
    expect_rows(client, "reach", 9)?;
    client.batch_execute("DELETE FROM edge WHERE src = 3")?;
    expect_rows(client, "reach", 3)
}

pub fn drop_database(cluster: &Cluster, name: &str) -> Result<()> {
    Ok(cluster.connect("postgres")?.batch_execute(&format!("DROP DATABASE {name}"))?)
}

pub fn worker_pid(client: &mut Client) -> Result<Option<i32>> {
    let sql = "SELECT pid FROM pg_stat_activity \
               WHERE backend_type = 'pg_eddy worker' AND datname = current_database()";
    Ok(client.query_opt(sql, &[])?.map(|row| row.get(0)))
}

/// What `action` answers while the worker of the database stands still.
pub fn while_worker_stands_still<T>(
    client: &mut Client,
    action: impl FnOnce(&mut Client) -> T,
) -> Result<T> {
    let pid = worker_pid(client)?.context("there is no worker")?;
    stop_at_rest(client, pid)?;
    let answer = action(client);
    signal_process(pid, Signal::CONT)?;
    Ok(answer)
}
