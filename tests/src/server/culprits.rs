//! A view whose upkeep ends the server does so twice, not for ever: then it is in error, and all others are as before.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use harness::installation::Installation;
use postgres::error::Severity;
use postgres::Client;

use super::check::Record;

const PATIENCE: Duration = Duration::from_secs(60);

const SETUP: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE FUNCTION plus_one(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN n + 1; END';
    CREATE FUNCTION slowly(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(0.2); RETURN n + 1; END';
    CREATE TABLE t (n int);
    CREATE INCREMENTAL VIEW witness AS SELECT n FROM t";

/// A view, and where the process ends that works for it.
struct Culprit {
    name: &'static str,
    /// Name of the crash point at which it ends.
    point: &'static str,
    query: &'static str,
    /// What leads to it, beside a row more.
    provoked_by: &'static str,
    /// Which processes that are, the first time and the second.
    ended: [&'static str; 2],
}

const WORKER: &str = "pg_eddy worker";
const ASSISTANT: &str = "pg_eddy assistant";

const REFRESH: &str = "REFRESH INCREMENTAL VIEW culprit";
const QUICK: &str = "SELECT plus_one(n) AS n FROM t";

const fn culprit(point: &'static str, provoked_by: &'static str) -> Culprit {
    Culprit { name: point, point, query: QUICK, provoked_by, ended: [WORKER; 2] }
}

const CULPRITS: [Culprit; 7] = [
    culprit("attach", REFRESH),
    culprit("thread", REFRESH),
    culprit("batch", ""),
    // A suspect's expressions are evaluated by an assistant.
    Culprit { ended: [WORKER, ASSISTANT], ..culprit("evaluate", "") },
    culprit("apply", ""),
    Culprit {
        name: "evaluate by an assistant",
        point: "evaluate",
        query: "SELECT slowly(n) AS n FROM t",
        provoked_by: "",
        ended: [ASSISTANT; 2],
    },
    Culprit {
        name: "apply by an assistant",
        point: "apply",
        query: "SELECT t.n + 1 AS n FROM t, generate_series(1, 30000)",
        provoked_by: "",
        ended: [ASSISTANT; 2],
    },
];

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    match Cluster::start_new(installation, folder, "culprits", &[("fsync", "off")]) {
        Err(error) => record("a server for views that end it", Err(error)),
        Ok(cluster) => {
            for (number, culprit) in CULPRITS.iter().enumerate() {
                let result = ends_twice(&cluster, &format!("ended{number}"), culprit);
                let reset = cluster.configure("eddy.crash_point", "");
                let name = format!("a view that ends the server at {}", culprit.name);
                record(&name, result.and(reset));
            }
            let result = nobody_is_to_blame(&cluster);
            let reset = cluster.configure("eddy.crash_point", "");
            record("views that are killed in turn are not to blame", result.and(reset));
            record("marks of views go with them", marks_go(&cluster));
        }
    }
}

fn ends_twice(cluster: &Cluster, name: &str, culprit: &Culprit) -> Result<()> {
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = cluster.connect(name)?;
    client.batch_execute(SETUP)?;
    client.batch_execute(&format!("CREATE INCREMENTAL VIEW culprit AS {}", culprit.query))?;
    client.batch_execute("TABLE culprit; INSERT INTO t VALUES (0)")?;
    read_both(&mut client, culprit)?;
    let before = cluster.log()?.len();
    let point = format!("{}/public.culprit=abort", culprit.point);
    cluster.configure_and_wait(&mut client, "eddy.crash_point", &point)?;
    if !culprit.provoked_by.is_empty() {
        // A worker that has not read the setting yet gets through with it.
        wait_for("the server to be ended", PATIENCE, || {
            let provoked = client.batch_execute(culprit.provoked_by).map_err(Into::into);
            let survived = provoked.and_then(|()| read_both(&mut client, culprit));
            Ok(survived.is_err().then_some(()))
        })?;
    }
    let mut client = wait_for("the view to be in error", PATIENCE, || {
        let attempt = try_culprit(cluster, name);
        Ok(attempt.ok().filter(|(_, code)| code == "57P02").map(|(client, _)| client))
    })?;
    let log = cluster.log()?;
    let ends: Vec<&str> =
        log[before..].lines().filter(|line| line.contains("terminated by signal 6")).collect();
    ensure!(ends.len() == 2, "the server was ended {} times: {ends:#?}", ends.len());
    for (line, ended) in ends.iter().zip(culprit.ended) {
        ensure!(line.contains(&format!("\"{ended}\"")), "it was not the {ended}: {ends:#?}");
    }
    // The witness is maintained all the same.
    client.batch_execute("INSERT INTO t VALUES (7)")?;
    let rows: i64 = client.query_one("SELECT count(*) FROM witness", &[])?.get(0);
    let wanted: i64 = client.query_one("SELECT count(*) FROM t", &[])?.get(0);
    ensure!(rows == wanted, "the witness has {rows} rows of {wanted}");
    cluster.configure("eddy.crash_point", "")?;
    drop(client);
    // A worker that has not read the settings yet may end the server once more.
    let mut client = wait_for("the view to be healed by REFRESH", PATIENCE, || {
        let heal = || -> Result<Client> {
            let mut client = cluster.connect(name)?;
            client.batch_execute(REFRESH)?;
            client.query_one("SELECT count(*) FROM culprit", &[])?;
            Ok(client)
        };
        Ok(heal().ok())
    })?;
    read_both(&mut client, culprit)?;
    drop(client);
    Ok(cluster.connect("postgres")?.batch_execute(&format!("DROP DATABASE {name}"))?)
}

/// The worker is killed time and again while it attaches one of several views, and nothing says which of them is to blame.
fn nobody_is_to_blame(cluster: &Cluster) -> Result<()> {
    /// A view would be taken for the cause if it were the one each time.
    const KILLS: usize = 7;
    let name = "killed";
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = cluster.connect(name)?;
    client.batch_execute(SETUP)?;
    client.batch_execute(
        "CREATE INCREMENTAL VIEW second AS SELECT count(*) FROM t;
         CREATE INCREMENTAL VIEW third AS SELECT max(n) FROM t",
    )?;
    client.batch_execute("TABLE witness; TABLE second; TABLE third")?;
    let before = cluster.log()?.len();
    cluster.configure_and_wait(&mut client, "eddy.crash_point", "attach=kill")?;
    wait_for("the worker to have been killed", PATIENCE, || {
        let log = cluster.log()?;
        let kills = log[before..].matches("terminated by signal 9").count();
        if kills == 0 {
            // The worker may not have read the setting yet, and the server may be gone before it says so.
            let _ = client.batch_execute("REFRESH INCREMENTAL VIEW witness");
        }
        Ok((kills >= KILLS).then_some(()))
    })?;
    cluster.configure("eddy.crash_point", "")?;
    for view in ["witness", "second", "third"] {
        wait_for("the server to be back", PATIENCE, || {
            let Ok(mut client) = cluster.connect(name) else { return Ok(None) };
            match client.query(&format!("TABLE {view}"), &[]) {
                Err(error) if error.code().is_some_and(|code| code.code() == "57P02") => {
                    Err(error).context("a view is taken for the cause")
                }
                rows => Ok(rows.ok()),
            }
        })?;
    }
    Ok(cluster.connect("postgres")?.batch_execute(&format!("DROP DATABASE {name}"))?)
}

/// What outlives the worker has room for views of today, however many there were before.
fn marks_go(cluster: &Cluster) -> Result<()> {
    let name = "marked";
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = cluster.connect(name)?;
    client.batch_execute(SETUP)?;
    let database: u32 = client
        .query_one("SELECT oid FROM pg_database WHERE datname = current_database()", &[])?
        .get(0);
    let file = cluster.data().join("pg_eddy").join(database.to_string());
    let marked = |relids: &[u32]| -> Result<usize> {
        let bytes = std::fs::read(&file)?;
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        Ok(relids.iter().filter(|relid| words.contains(relid)).count())
    };
    let mut relids = Vec::new();
    for number in 0..5 {
        let view = format!("v{number}");
        client.batch_execute(&format!(
            "CREATE INCREMENTAL VIEW {view} AS SELECT plus_one(n) AS n FROM t; TABLE {view}"
        ))?;
        let row = client.query_one("SELECT $1::text::regclass::oid", &[&view])?;
        relids.push(row.get::<_, u32>(0));
    }
    wait_for("the marks", PATIENCE, || Ok((marked(&relids)? == relids.len()).then_some(())))?;
    client.batch_execute("DROP INCREMENTAL VIEW v0, v1, v2, v3, v4")?;
    wait_for("the marks to go", PATIENCE, || Ok((marked(&relids)? == 0).then_some(())))?;
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

fn read_both(client: &mut Client, culprit: &Culprit) -> Result<()> {
    let query = culprit.query;
    let sql = format!(
        "SELECT (SELECT sum(n) FROM witness) IS NOT DISTINCT FROM (SELECT sum(n) FROM t),
             (SELECT sum(n) FROM culprit) IS NOT DISTINCT FROM (SELECT sum(n) FROM ({query}) q)"
    );
    let row = client.query_one(&sql, &[])?;
    ensure!(row.get::<_, bool>(0), "the witness is wrong");
    ensure!(row.get::<_, bool>(1), "the culprit is wrong");
    Ok(())
}
