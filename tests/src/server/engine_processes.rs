//! The engine as a process of its own: what becomes of views when it is killed, stopped, cannot be started or is of another kind.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};
use harness::cluster::{signal_process, wait_for, Cluster};
use harness::engines::engine_of;
use harness::installation::Installation;
use postgres::Client;
use rustix::process::Signal;

use super::check::Record;
use super::indexes::{expect_query, terminate_worker};
use crate::graph::worker_pid;

pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Views of all kinds: recursion, groups, what PostgreSQL evaluates, views over views, changes that are kept.
pub(super) const VIEWS: [(&str, &str, &str); 5] = [
    (
        "paths",
        "",
        "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b) SELECT * FROM r",
    ),
    ("degrees", "WITH (changes = '1 hour')", "SELECT src, count(*) AS n, max(dst) AS most FROM edge GROUP BY src"),
    ("doubled", "", "SELECT src, twice(dst) AS double FROM edge"),
    ("reached", "", "SELECT a, count(*) AS n FROM paths GROUP BY a"),
    ("joined", "", "SELECT e.src, f.dst FROM edge e JOIN edge f ON f.src = e.dst"),
];

pub(super) const TABLES: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE TABLE edge (src int, dst int);
    ALTER TABLE edge REPLICA IDENTITY FULL;
    INSERT INTO edge SELECT i % 50, i FROM generate_series(1, 300) i;
    CREATE FUNCTION twice(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN 2 * n; END'";

pub(super) const CHANGES: [&str; 4] = [
    "INSERT INTO edge VALUES (1, 2), (2, 3), (3, 1), (NULL, 5), (1, 2)",
    "UPDATE edge SET dst = src WHERE dst % 7 = 1",
    "DELETE FROM edge WHERE src = 2",
    "BEGIN; TRUNCATE edge; INSERT INTO edge SELECT i, i + 1 FROM generate_series(1, 40) i; COMMIT",
];

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    let all = with_server(installation, folder, "process", |cluster, client| {
        computes(cluster, client).context("computing")?;
        killed(cluster, client).context("killed")?;
        blamed(client).context("a view that ends it")?;
        stopped(client).context("stopped")?;
        missing(cluster, client).context("missing")?;
        ends_with_worker(cluster, client).context("its worker ended")?;
        changed(cluster, client).context("another kind")
    });
    record("views are computed by a process that may be killed", all);
}

fn with_server(
    installation: &Installation,
    folder: &Path,
    name: &str,
    work: impl FnOnce(&Cluster, &mut Client) -> Result<()>,
) -> Result<()> {
    let settings = [("fsync", "off"), ("eddy.engine", "process")];
    let cluster = Cluster::start_new(installation, folder, name, &settings)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    for (name, options, query) in VIEWS {
        client.batch_execute(&format!("CREATE INCREMENTAL VIEW {name} {options} AS {query}"))?;
    }
    work(&cluster, &mut client)?;
    cluster.print_crashes()
}

pub(super) fn expect_right(client: &mut Client) -> Result<()> {
    VIEWS.iter().try_for_each(|(name, _, query)| expect_query(client, name, query))
}

fn engine(client: &mut Client) -> Result<i32> {
    wait_for("an engine", PATIENCE, || engine_of(worker_pid(client)?))
}

fn computes(_: &Cluster, client: &mut Client) -> Result<()> {
    expect_right(client)?;
    confined(engine(client)?)?;
    for change in CHANGES {
        client.batch_execute(change)?;
        expect_right(client).with_context(|| change.to_owned())?;
    }
    Ok(())
}

/// It has a socket and the server's log, and no more of the server; the kernel may end it first.
fn confined(pid: i32) -> Result<()> {
    let of_process = |file: &str| format!("/proc/{pid}/{file}");
    for entry in fs::read_dir(of_process("fd"))? {
        let target = fs::read_link(entry?.path())?.display().to_string();
        let is_known =
            ["socket:", "pipe:", "/dev/null"].iter().any(|kind| target.starts_with(kind))
                || target.ends_with("/log");
        ensure!(is_known, "it has {target}");
    }
    ensure!(fs::read(of_process("environ"))?.is_empty(), "it has an environment");
    let score = fs::read_to_string(of_process("oom_score_adj"))?;
    ensure!(score.trim() == "1000", "its score is {score}");
    Ok(())
}

fn killed(cluster: &Cluster, client: &mut Client) -> Result<()> {
    let started = "SELECT pg_postmaster_start_time()::text";
    let before: String = client.query_one(started, &[])?.get(0);
    let worker = worker_pid(client)?;
    for (signal, change) in
        [Signal::KILL, Signal::ABORT, Signal::TERM, Signal::INT].into_iter().zip(CHANGES)
    {
        let pid = engine(client)?;
        client.batch_execute(change)?;
        signal_process(pid, signal)?;
        client.batch_execute("INSERT INTO edge VALUES (7, 8)")?;
        expect_right(client).with_context(|| format!("after {signal:?}"))?;
        ensure!(engine(client)? != pid, "it is still there after {signal:?}");
    }
    let after: String = client.query_one(started, &[])?.get(0);
    ensure!(
        before == after && worker == worker_pid(client)?,
        "the server or the worker started again"
    );
    let log = cluster.log()?;
    ensure!(log.matches("the engine of this database has ended").count() == 4, "{log}");
    Ok(())
}

/// A view that is being attached whenever the engine ends is in error in the end, and the others stay.
fn blamed(client: &mut Client) -> Result<()> {
    const MOST: usize = 12;
    client.batch_execute(
        "CREATE FUNCTION slowly(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.3); RETURN n; END';
         CREATE TABLE few (n int PRIMARY KEY);
         INSERT INTO few VALUES (1), (2), (3);
         SET eddy.fill = 'dataflow';
         CREATE INCREMENTAL VIEW deadly AS SELECT slowly(n) AS n FROM few",
    )?;
    let state = "SELECT state, coalesce(phase = 'computing', false), sqlstate FROM eddy.views WHERE relation = 'deadly'::regclass";
    for _ in 0..MOST {
        let is_over = wait_for("the view to be at work", PATIENCE, || {
            let row = client.query_one(state, &[])?;
            let is_in_error = row.get::<_, String>(0) == "error";
            Ok((is_in_error || row.get(1)).then_some(is_in_error))
        })?;
        if is_over {
            break;
        }
        if let Some(pid) = engine_of(worker_pid(client)?)? {
            signal_process(pid, Signal::KILL)?;
        }
        wait_for("another engine", PATIENCE, || {
            let row = client.query_one(state, &[])?;
            Ok((row.get::<_, String>(0) == "error" || !row.get::<_, bool>(1)).then_some(()))
        })?;
    }
    let row = client.query_one(state, &[])?;
    ensure!(row.get::<_, Option<String>>(2).as_deref() == Some("57P02"), "{row:?}");
    let error = client.batch_execute("TABLE deadly").expect_err("an error");
    ensure!(
        error.as_db_error().is_some_and(|e| e.message().contains("ended its engine")),
        "{error}"
    );
    expect_right(client)?;
    client.batch_execute("REFRESH INCREMENTAL VIEW deadly")?;
    expect_query(client, "deadly", "SELECT n FROM few")?;
    client.batch_execute("DROP INCREMENTAL VIEW deadly; DROP TABLE few; RESET eddy.fill")?;
    expect_right(client)
}

/// One that does not work any more is killed. Until then the worker has an ear for others, whatever it has to say to it.
fn stopped(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE wide (t text); ALTER TABLE wide REPLICA IDENTITY FULL;
         CREATE INCREMENTAL VIEW widths AS SELECT length(t), count(*) FROM wide GROUP BY 1; TABLE widths",
    )?;
    let pid = engine(client)?;
    signal_process(pid, Signal::STOP)?;
    client.batch_execute(
        "INSERT INTO wide SELECT repeat('x', 600) || i FROM generate_series(1, 40000) i",
    )?;
    client.batch_execute("INSERT INTO edge VALUES (9, 10)")?;
    let before = Instant::now();
    client.batch_execute("CREATE DATABASE beside")?;
    client.batch_execute("DROP DATABASE beside")?;
    let took = before.elapsed();
    ensure!(took < PATIENCE / 6, "another database is dropped after {took:?}");
    expect_right(client)?;
    ensure!(engine(client)? != pid, "it is still there");
    client.batch_execute("DROP INCREMENTAL VIEW widths; DROP TABLE wide")?;
    Ok(())
}

/// Where there is no program, views say so, and go on when there is.
fn missing(cluster: &Cluster, client: &mut Client) -> Result<()> {
    let program = cluster.installation().lib.join("pg_eddy_engine");
    let aside = program.with_extension("aside");
    fs::rename(&program, &aside)?;
    let pid = engine(client)?;
    signal_process(pid, Signal::KILL)?;
    let state =
        "SELECT state || ': ' || message FROM eddy.views WHERE relation = 'joined'::regclass";
    let expected = "error: the engine that computes the view could not be started";
    let shown = wait_for("the error", PATIENCE, || {
        let row = client.query_one(state, &[])?;
        Ok(row.get::<_, Option<String>>(0).filter(|state| state.starts_with("error")))
    })?;
    ensure!(shown.starts_with(expected) && shown.contains("No such file"), "{shown}");
    expect_error(client, expected.trim_start_matches("error: "))?;
    fs::rename(&aside, &program)?;
    wait_for("the views", PATIENCE, || Ok(client.batch_execute("TABLE joined").ok()))?;
    expect_right(client)
}

/// Whoever reads is told soon, and not after `eddy.read_timeout`.
pub(super) fn expect_error(client: &mut Client, message: &str) -> Result<()> {
    let before = Instant::now();
    let error = client.batch_execute("TABLE joined").expect_err("an error");
    let took = before.elapsed();
    let error = error.as_db_error().context("an error of the server")?;
    let is_expected = error.code().code() == "55000" && error.message().starts_with(message);
    ensure!(is_expected && took < PATIENCE / 2, "after {took:?}: {error}");
    Ok(())
}

fn ends_with_worker(_: &Cluster, client: &mut Client) -> Result<()> {
    for is_stopped in [false, true] {
        let pid = engine(client)?;
        if is_stopped {
            signal_process(pid, Signal::STOP)?;
        }
        terminate_worker(client)?;
        wait_for("the engine to end", PATIENCE, || {
            Ok((!Path::new(&format!("/proc/{pid}")).exists()).then_some(()))
        })?;
    }
    client.batch_execute("INSERT INTO edge VALUES (8, 9)")?;
    expect_right(client)
}

fn changed(cluster: &Cluster, client: &mut Client) -> Result<()> {
    for kind in ["embedded", "process"] {
        cluster.configure_and_wait(client, "eddy.engine", kind)?;
        client.batch_execute(CHANGES[0])?;
        expect_right(client).context(kind)?;
        let worker = worker_pid(client)?;
        let is_process = kind == "process";
        wait_for("the engine of that kind", PATIENCE, || {
            Ok((engine_of(worker)?.is_some() == is_process).then_some(()))
        })?;
    }
    Ok(())
}
