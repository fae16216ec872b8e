//! The ways in which a server can read from disk (`io_method`): views are filled, attached and maintained in each of them, with
//! fewer buffers than their tables take.

use std::path::Path;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::{signal_process, wait_for, Cluster};
use harness::installation::Installation;
use postgres::Client;
use rustix::process::Signal;

use super::check::Record;
use crate::graph::worker_pid;
use crate::ledger::{differences, View};

/// Versions from this one on have more ways than one.
const FIRST: u32 = 18;

const PATIENCE: Duration = Duration::from_secs(60);

/// Those that a server may be built without, and what it says at its start where the kernel does not allow them.
const OF_KERNEL: &str = "io_uring";
const NOT_ALLOWED: [&str; 2] = ["Operation not permitted", "Function not implemented"];

/// Ten times the buffers. One view has rows as wide as the table's, one depends on a function that raises an error.
const SETUP: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE TABLE item (id int PRIMARY KEY, parent int, n int NOT NULL, filler text NOT NULL);
    INSERT INTO item SELECT i, i / 2, i % 100 + 1, repeat('x', 500) FROM generate_series(1, 5000) i;
    CREATE FUNCTION share(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 1000 / n; END'";

const VIEWS: [View; 4] = [
    ("sums", "SELECT n, count(*), sum(id) FROM item GROUP BY n"),
    ("wide", "SELECT id, filler FROM item WHERE n < 90"),
    (
        "below",
        "WITH RECURSIVE r(id) AS (SELECT id FROM item WHERE id = 2 UNION ALL \
         SELECT i.id FROM r JOIN item i ON i.parent = r.id) SELECT id FROM r",
    ),
    ("shares", "SELECT share(n) AS share, count(*) FROM item GROUP BY 1"),
];

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    if installation.major < FIRST {
        return;
    }
    let methods = match methods(installation, folder) {
        Ok(methods) => methods,
        Err(error) => return record("a server that tells its ways of reading", Err(error)),
    };
    for method in methods {
        match start(installation, folder, &method) {
            Ok(Some(mut cluster)) => {
                record(&format!("views with io_method = {method}"), check(&mut cluster))
            }
            Ok(None) => println!("server: io_method = {method}: not run, the kernel forbids it"),
            Err(error) => record(&format!("a server with io_method = {method}"), Err(error)),
        }
    }
}

/// What the server was built with.
fn methods(installation: &Installation, folder: &Path) -> Result<Vec<String>> {
    let cluster = Cluster::start_new(installation, folder, "methods", &[("fsync", "off")])?;
    let sql = "SELECT enumvals FROM pg_settings WHERE name = 'io_method'";
    let methods: Vec<String> = cluster.connect("postgres")?.query_one(sql, &[])?.get(0);
    if !methods.iter().any(|method| method == OF_KERNEL) {
        println!("server: io_method = {OF_KERNEL}: not run, the server was built without it");
    }
    Ok(methods)
}

/// `None` where the kernel does not let it run.
fn start(installation: &Installation, folder: &Path, method: &str) -> Result<Option<Cluster>> {
    let settings = [("fsync", "off"), ("io_method", method), ("shared_buffers", "256kB")];
    match Cluster::start_new(installation, folder, method, &settings) {
        Ok(cluster) => Ok(Some(cluster)),
        Err(error) => {
            let text = format!("{error:#}");
            let is_forbidden = method == OF_KERNEL
                && text.contains("io_uring")
                && NOT_ALLOWED.iter().any(|reason| text.contains(reason));
            match is_forbidden {
                true => Ok(None),
                false => bail!(error),
            }
        }
    }
}

fn check(cluster: &mut Cluster) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(SETUP)?;
    for (name, query) in VIEWS {
        client.batch_execute(&format!("CREATE INCREMENTAL VIEW {name} AS {query}"))?;
    }
    client.batch_execute("CREATE UNIQUE INDEX ON wide (id)")?;
    expect_maintained(&mut client).context("after CREATE")?;
    // A worker of its own reads all tables and all views.
    let pid = worker_pid(&mut client)?.context("there is no worker")?;
    signal_process(pid, Signal::TERM)?;
    wait_for("the worker to end", PATIENCE, || {
        Ok((worker_pid(&mut client)? != Some(pid)).then_some(()))
    })?;
    expect_maintained(&mut client).context("with another worker")?;
    expect_read(&mut client)?;
    // Nothing is in memory, and recovery reads, too.
    cluster.stop_immediately()?;
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    expect_maintained(&mut client).context("after recovery")?;
    cluster.print_crashes()
}

/// Changes rows here and there, and raises the error of a view and heals it.
fn expect_maintained(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "UPDATE item SET n = 101 - n WHERE id % 7 = 0;
         DELETE FROM item WHERE id % 1001 = 1000;
         INSERT INTO item SELECT max(id) + 1, 2, 5, 'y' FROM item",
    )?;
    client.batch_execute("UPDATE item SET n = 0 WHERE id = 20")?;
    let error = client.query("SELECT * FROM shares", &[]).err().context("there is no error")?;
    ensure!(error.code().is_some_and(|code| code.code() == "22012"), "{error:?}");
    client.batch_execute("UPDATE item SET n = 50 WHERE id = 20")?;
    expect_right(client)
}

fn expect_right(client: &mut Client) -> Result<()> {
    let wrong = differences(client, &VIEWS)?;
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}

/// The worker was among those who read from disk.
fn expect_read(client: &mut Client) -> Result<()> {
    let reads = "SELECT coalesce(sum(reads), 0) > 0 FROM pg_stat_io \
                 WHERE backend_type = 'background worker' AND object = 'relation'";
    wait_for("the worker to have read", PATIENCE, || {
        Ok(client.query_one(reads, &[])?.get::<_, bool>(0).then_some(()))
    })
}
