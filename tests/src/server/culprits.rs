//! A view whose upkeep ends the server does so twice, not for ever: then it is in error, and all others are as before.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use postgres::error::Severity;
use postgres::Client;

use super::Record;
use crate::cluster::{wait_for, Cluster};
use crate::installation::Installation;

const PATIENCE: Duration = Duration::from_secs(60);

const SETUP: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE FUNCTION plus_one(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN n + 1; END';
    CREATE TABLE t (n int);
    CREATE INCREMENTAL VIEW witness AS SELECT n FROM t;
    CREATE INCREMENTAL VIEW culprit AS SELECT plus_one(n) AS n FROM t";

/// What a view is at work at when the process ends.
const POINTS: [&str; 5] = ["attach", "thread", "batch", "evaluate", "apply"];

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    match Cluster::start_new(installation, folder, "culprits", &[("fsync", "off")]) {
        Err(error) => record("a server for views that end it", Err(error)),
        Ok(cluster) => {
            for point in POINTS {
                let result = ends_twice(&cluster, point);
                let reset = cluster.configure("eddy.crash_point", "");
                record(&format!("a view that ends the server at {point}"), result.and(reset));
            }
        }
    }
}

fn ends_twice(cluster: &Cluster, point: &str) -> Result<()> {
    let name = format!("ended_at_{point}");
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = cluster.connect(&name)?;
    client.batch_execute(SETUP)?;
    read_both(&mut client)?;
    let aborts = cluster.log()?.matches("terminated by signal 6").count();
    cluster.configure("eddy.crash_point", &format!("{point}/public.culprit=abort"))?;
    wait_for("the crash point to be set", PATIENCE, || {
        let value: String = client.query_one("SHOW eddy.crash_point", &[])?.get(0);
        Ok((!value.is_empty()).then_some(()))
    })?;
    if matches!(point, "attach" | "thread") {
        // Attaches it anew. The server may be gone before it says so.
        let _ = client.batch_execute("REFRESH INCREMENTAL VIEW culprit");
    }
    let mut client = wait_for("the view to be in error", PATIENCE, || {
        let attempt = try_culprit(cluster, &name);
        Ok(attempt.ok().filter(|(_, code)| code == "57P02").map(|(client, _)| client))
    })?;
    let aborts = cluster.log()?.matches("terminated by signal 6").count() - aborts;
    ensure!(aborts == 2, "the server was ended {aborts} times");
    // The witness is maintained all the same.
    client.batch_execute("INSERT INTO t VALUES (7)")?;
    let rows: i64 = client.query_one("SELECT count(*) FROM witness", &[])?.get(0);
    let wanted: i64 = client.query_one("SELECT count(*) FROM t", &[])?.get(0);
    ensure!(rows == wanted, "the witness has {rows} rows of {wanted}");
    cluster.configure("eddy.crash_point", "")?;
    wait_for("the view to be healed by REFRESH", PATIENCE, || {
        client.batch_execute("REFRESH INCREMENTAL VIEW culprit")?;
        Ok(client.query_one("SELECT count(*) FROM culprit", &[]).ok())
    })?;
    read_both(&mut client)?;
    drop(client);
    Ok(cluster.connect("postgres")?.batch_execute(&format!("DROP DATABASE {name}"))?)
}

/// Changes the table and reads the view; answers the session and the SQLSTATE of the read. An error if the server died.
fn try_culprit(cluster: &Cluster, name: &str) -> Result<(Client, String)> {
    let mut client = cluster.connect(name)?;
    client.batch_execute("SET eddy.read_timeout = '5s'; INSERT INTO t VALUES (1)")?;
    let outcome = client.query("SELECT n FROM culprit", &[]);
    let Err(error) = outcome else { return Ok((client, "00000".to_owned())) };
    let report = error.as_db_error().context("the server died")?;
    // A session that ends with the server is told so by the SQLSTATE that the view has.
    ensure!(report.parsed_severity() == Some(Severity::Error), "the server died");
    Ok((client, report.code().code().to_owned()))
}

fn read_both(client: &mut Client) -> Result<()> {
    let sql = "SELECT (SELECT sum(n) FROM witness), (SELECT sum(n - 1) FROM culprit)";
    let row = client.query_one(sql, &[])?;
    let (witness, culprit): (Option<i64>, Option<i64>) = (row.get(0), row.get(1));
    ensure!(witness == culprit, "the views differ: {witness:?}, {culprit:?}");
    Ok(())
}
