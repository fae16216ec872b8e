//! The launcher and the workers: however few places there are for them, and however they end, a database has one worker,
//! and its views are right.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{signal_process, stop_at_rest, wait_for, Cluster, Settings};
use harness::installation::Installation;
use postgres::Client;
use rustix::process::Signal;

use super::check::{expect_hint, Record};
use crate::graph::{drop_database, expect_alive, expect_rows, graph_database, worker_pid, EDGES};

const PATIENCE: Duration = Duration::from_secs(60);

/// What a server has that nobody has configured.
const STOCK: Settings =
    &[("max_worker_processes", "8"), ("max_replication_slots", "10"), ("fsync", "off")];

/// Crash points and what happens there; those of sessions have tests of their own.
const ENDS: [(&str, Victim); 14] = [
    ("launcher_scan=error", Victim::Launcher),
    ("launcher_scan=terminate", Victim::Launcher),
    ("launcher_start=fatal", Victim::Both),
    ("launcher_start=kill", Victim::Both),
    ("worker_connect=error", Victim::Worker),
    ("worker_connect=fatal", Victim::Worker),
    ("worker_own=error", Victim::Worker),
    ("worker_own=terminate", Victim::Worker),
    ("worker_slot=fatal", Victim::Worker),
    ("worker_slot=abort", Victim::Worker),
    ("worker_slot=terminate", Victim::Worker),
    ("worker_run=error", Victim::Worker),
    ("worker_run=panic", Victim::Worker),
    ("worker_run=kill", Victim::Worker),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Launcher,
    Worker,
    Both,
}

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    record("ten databases on a stock server", ten_databases(installation, folder));
    record("more databases than eddy.max_databases", too_many_databases(installation, folder));
    record("nothing runs during pg_upgrade", idle_in_binary_upgrade(installation, folder));
    let cluster = Cluster::start_new(installation, folder, "processes", &[("fsync", "off")]);
    match cluster {
        Err(error) => record("a server to end processes in", Err(error)),
        Ok(cluster) => {
            record("a new launcher goes on with the workers", launcher_is_replaced(&cluster));
            record("sessions leave no counts behind", sessions_leave_no_counts(&cluster));
            for (point, victim) in ENDS {
                record(&format!("one worker after {point}"), survives(&cluster, point, victim));
            }
        }
    }
}

/// The extension in none of ten databases, then in one, in seven, in ten.
fn ten_databases(installation: &Installation, folder: &Path) -> Result<()> {
    let mut cluster = Cluster::start_new(installation, folder, "stock", STOCK)?;
    let mut admin = cluster.connect("postgres")?;
    for number in 0..8 {
        admin.batch_execute(&format!("CREATE DATABASE d{number}"))?;
    }
    drop(admin);
    cluster.restart_with(&[])?;
    // Found by a scout, or by the one who asks: either way without the places that others need.
    expect_created(&cluster, "d0", 0)?;
    cluster.restart_with(&[])?;
    expect_alive(&mut cluster.connect("d0")?)?;
    ensure!(!cluster.log()?.contains("no free background worker"), "scouts took all places");
    for number in 1..6 {
        expect_created(&cluster, &format!("d{number}"), number)?;
    }
    // Eight places: the launchers of PostgreSQL and ours, and six workers.
    let mut seventh = cluster.connect("d6")?;
    seventh.batch_execute("CREATE EXTENSION pg_eddy; CREATE TABLE t (a int)")?;
    let create = "CREATE INCREMENTAL VIEW v AS SELECT a FROM t";
    expect_hint(&mut seventh, create, "max_worker_processes")?;
    cluster.connect("d0")?.batch_execute("DROP EXTENSION pg_eddy CASCADE")?;
    wait_for(
        "the place of another worker",
        PATIENCE,
        || Ok(worker_pid(&mut seventh)?.map(|_| ())),
    )?;
    seventh.batch_execute(create)?;
    expect_rows(&mut seventh, "v", 0)?;
    drop(seventh);
    eighth_says_what_is_missing(&mut cluster)
}

fn expect_created(cluster: &Cluster, database: &str, number: i32) -> Result<()> {
    let mut client = cluster.connect(database)?;
    client.batch_execute(EDGES).with_context(|| format!("database {number}"))?;
    expect_alive(&mut client)
}

/// With the extension in more databases than there are places, those without a worker say why.
fn eighth_says_what_is_missing(cluster: &mut Cluster) -> Result<()> {
    for name in ["d0", "d7", "template1", "postgres"] {
        let sql = "CREATE EXTENSION pg_eddy; CREATE TABLE t (a int)";
        cluster.connect(name)?.batch_execute(sql)?;
        let create = "CREATE INCREMENTAL VIEW v AS SELECT a FROM t";
        expect_hint(&mut cluster.connect(name)?, create, "max_worker_processes")?;
    }
    cluster.restart_with(&[])?;
    let mut served = 0;
    let mut told = 0;
    for number in 1..7 {
        let mut client = cluster.connect(&format!("d{number}"))?;
        let view = if number == 6 { "v" } else { "reach" };
        let sql = "SELECT state, coalesce(message, '') FROM eddy.views";
        let state = wait_for("a worker, or to be told why there is none", PATIENCE, || {
            let row = client.query_one(sql, &[])?;
            let (state, message): (String, String) = (row.get(0), row.get(1));
            let is_told = message.contains("max_worker_processes");
            Ok((state == "live" || is_told).then_some(state))
        })?;
        match state.as_str() {
            "live" => served += 1,
            _ => told += 1,
        }
        client.batch_execute("SET eddy.read_timeout = '200ms'")?;
        let read = client.query(&format!("SELECT * FROM {view}"), &[]);
        ensure!(read.is_ok() == (state == "live"), "{state}, but a read ends with {read:?}");
    }
    ensure!(served + told == 6 && served > 0, "{served} served, {told} told why not");
    ensure!(!cluster.log()?.contains("was terminated by signal"), "a process crashed");
    Ok(())
}

fn too_many_databases(installation: &Installation, folder: &Path) -> Result<()> {
    let settings = &[("eddy.max_databases", "2"), ("fsync", "off")];
    let cluster = Cluster::start_new(installation, folder, "few", settings)?;
    let mut one = graph_database(&cluster, "one")?;
    let mut two = graph_database(&cluster, "two")?;
    cluster.connect("postgres")?.batch_execute("CREATE DATABASE three")?;
    let mut three = cluster.connect("three")?;
    three.batch_execute("CREATE EXTENSION pg_eddy; CREATE TABLE t (a int)")?;
    let create = "CREATE INCREMENTAL VIEW v AS SELECT a FROM t";
    expect_hint(&mut three, create, "eddy.max_databases")?;
    expect_alive(&mut one)?;
    expect_alive(&mut two)?;
    one.batch_execute("DROP EXTENSION pg_eddy CASCADE")?;
    wait_for("a place in shared memory", PATIENCE, || Ok(three.batch_execute(create).ok()))?;
    expect_rows(&mut three, "v", 0)
}

fn idle_in_binary_upgrade(installation: &Installation, folder: &Path) -> Result<()> {
    let mut cluster = Cluster::start_new(installation, folder, "upgraded", &[("fsync", "off")])?;
    let mut client = graph_database(&cluster, "kept")?;
    expect_alive(&mut client)?;
    drop(client);
    cluster.restart_with(&["-b"])?;
    // The launcher would be registered before anybody can connect.
    let registered = "SELECT count(*) FROM pg_stat_activity WHERE backend_type ILIKE '%eddy%'";
    let log_before = cluster.log()?.len();
    let mut client = cluster.connect("kept")?;
    let found: i64 = client.query_one(registered, &[])?.get(0);
    ensure!(found == 0, "{found} processes run");
    let message: String = client.query_one("SELECT message FROM eddy.views", &[])?.get(0);
    ensure!(message.contains("launcher"), "eddy.views says: {message}");
    drop(client);
    ensure!(!cluster.log()?[log_before..].contains("worker follows"), "a worker ran");
    cluster.restart_with(&[])?;
    expect_alive(&mut cluster.connect("kept")?)
}

fn pids(client: &mut Client, kind: &str) -> Result<Vec<i32>> {
    let sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = $1 \
               AND (datname IS NULL OR datname = current_database()) ORDER BY pid";
    Ok(client.query(sql, &[&kind])?.iter().map(|row| row.get(0)).collect())
}

fn await_one(client: &mut Client, kind: &str, other_than: i32) -> Result<i32> {
    wait_for(kind, PATIENCE, || match pids(client, kind)?[..] {
        [pid] if pid != other_than => Ok(Some(pid)),
        _ => Ok(None),
    })
}

fn launcher_is_replaced(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "adopted")?;
    expect_alive(&mut client)?;
    let worker = await_one(&mut client, "pg_eddy worker", 0)?;
    let mut launcher = await_one(&mut client, "pg_eddy launcher", 0)?;
    for _ in 0..3 {
        signal_process(launcher, Signal::TERM)?;
        launcher = await_one(&mut client, "pg_eddy launcher", launcher)?;
        // It has looked around when it has served a new database.
        drop(graph_database(cluster, "another")?);
        // One that it starts to see what is in the database leaves it to the worker.
        wait_for("the worker to be alone again", PATIENCE, || {
            Ok((pids(&mut client, "pg_eddy worker")? == [worker]).then_some(()))
        })?;
        expect_alive(&mut client)?;
        drop_database(cluster, "another")?;
    }
    // The new launcher looks after a worker that the old one started.
    signal_process(worker, Signal::TERM)?;
    await_one(&mut client, "pg_eddy worker", worker)?;
    expect_alive(&mut client)?;
    drop(client);
    drop_database(cluster, "adopted")
}

/// After processes have ended at a crash point, the database has one worker that sessions find.
fn survives(cluster: &Cluster, point: &str, victim: Victim) -> Result<()> {
    let mut client = graph_database(cluster, "ended")?;
    expect_alive(&mut client)?;
    let before = cluster.log()?.len();
    cluster.configure_and_wait(&mut client, "eddy.crash_point", point)?;
    let mut victims = Vec::new();
    if victim != Victim::Launcher {
        victims.extend(pids(&mut client, "pg_eddy worker")?);
    }
    if victim != Victim::Worker {
        victims.extend(pids(&mut client, "pg_eddy launcher")?);
    }
    ensure!(!victims.is_empty(), "there is nobody to end");
    for pid in &victims {
        signal_process(*pid, Signal::TERM)?;
    }
    wait_for("a process to end at the crash point", PATIENCE, || {
        let log = cluster.log()?;
        let ends = ["reached crash point", "terminated by signal", "exited with exit code 1"];
        let found: usize = ends.iter().map(|end| log[before..].matches(end).count()).sum();
        // Those that were ended by signal do not count.
        Ok((found > victims.len()).then_some(()))
    })?;
    cluster.configure("eddy.crash_point", "")?;
    // Lost if the server has restarted, and in the way of the DROP at the end if it has not.
    drop(client);
    let mut client = wait_for("the server to stay", PATIENCE, || {
        let Ok(mut client) = cluster.connect("ended") else { return Ok(None) };
        let value =
            client.query_one("SHOW eddy.crash_point", &[]).map(|row| row.get::<_, String>(0));
        Ok(value.is_ok_and(|value| value.is_empty()).then_some(client))
    })?;
    expect_alive(&mut client)?;
    await_one(&mut client, "pg_eddy worker", 0)?;
    await_one(&mut client, "pg_eddy launcher", 0)?;
    expect_alive(&mut client)?;
    drop(client);
    drop_database(cluster, "ended")
}

/// A session that dies while it is counted as committing, or as keeping a worker away, is not counted for ever.
fn sessions_leave_no_counts(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "counted")?;
    expect_alive(&mut client)?;
    let mut committer = cluster.connect("counted")?;
    committer.batch_execute("SET eddy.crash_point = 'commit=fatal'")?;
    let commit = committer.batch_execute("INSERT INTO edge VALUES (7, 7)");
    ensure!(commit.is_err(), "the crash point was not reached");
    expect_reads_ignore_open_transactions(cluster, &mut client)?;
    for action in ["fatal", "error"] {
        let mut admin = cluster.connect("postgres")?;
        admin.batch_execute(&format!("SET eddy.crash_point = 'hold={action}'"))?;
        let rename = admin.batch_execute("ALTER DATABASE counted RENAME TO other");
        ensure!(rename.is_err(), "the crash point was not reached");
        expect_alive(&mut client)?;
    }
    drop(client);
    drop_database(cluster, "counted")
}

/// While nobody commits, reads do not wait for what is in the WAL.
fn expect_reads_ignore_open_transactions(cluster: &Cluster, client: &mut Client) -> Result<()> {
    expect_alive(client)?;
    let worker = worker_pid(client)?.context("there is no worker")?;
    stop_at_rest(client, worker)?;
    let read = (|| {
        let mut writer = cluster.connect("counted")?;
        writer
            .batch_execute("BEGIN; INSERT INTO edge SELECT i, i FROM generate_series(8, 999) i")?;
        client.batch_execute("SET eddy.read_timeout = '500ms'")?;
        expect_rows(client, "reach", 3)
    })();
    signal_process(worker, Signal::CONT)?;
    client.batch_execute("RESET eddy.read_timeout")?;
    read.context("a session that has gone is still counted as committing")
}
