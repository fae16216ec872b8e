//! State that outgrows `eddy.memory_limit` goes to disk; the view stays right under changes, and neither a
//! killed worker nor a killed postmaster leaves files.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{signal_process, wait_for, Cluster, Settings};
use harness::comparison::comparison;
use harness::installation::Installation;
use postgres::Client;
use rustix::process::Signal;

use crate::graph::worker_pid;

const LIMIT_MB: i64 = 16;

const SETTINGS: Settings = &[
    ("fsync", "off"),
    ("eddy.memory_limit", "16MB"),
    ("eddy.read_timeout", "10min"),
    ("max_wal_size", "4GB"),
];

const TABLES: &str = "
    CREATE EXTENSION pg_eddy;
    CREATE TABLE item (id int NOT NULL, grp int NOT NULL);
    CREATE TABLE price (id int NOT NULL, cents int NOT NULL);
    INSERT INTO item SELECT i, i % 1000 FROM generate_series(1, 900000) i;
    INSERT INTO price SELECT i, i % 77 FROM generate_series(1, 900000) i;";

/// Views whose state is about the same, by name.
const VIEWS: [(&str, &str); 2] = [
    (
        "groups",
        "SELECT grp, count(*) AS n, sum(cents) AS total FROM (SELECT DISTINCT i.id, i.grp, p.cents \
         FROM item i JOIN price p ON p.id = i.id) d GROUP BY grp",
    ),
    (
        "tree",
        "WITH RECURSIVE r(id) AS (SELECT 0 UNION SELECT i.id FROM r JOIN item i ON i.id / 3 = r.id) \
         SELECT count(*) AS n, sum(id) AS total FROM r",
    ),
];

/// A change of either table, with keys that were there and keys that come back.
const CHANGES: [&str; 5] = [
    "DELETE FROM item WHERE id % 100003 = 7",
    "UPDATE price SET cents = cents + 1 WHERE id % 50021 = 3",
    "INSERT INTO item SELECT i, i % 1000 FROM generate_series(1, 900000, 100003) i",
    "DELETE FROM price WHERE id BETWEEN 600000 AND 600100",
    "INSERT INTO price SELECT i, 5 FROM generate_series(600000, 600100) i",
];

/// Two views, the state of each ten times the limit.
pub fn check(installation: &Installation, folder: &Path) -> Result<()> {
    let mut cluster = Cluster::start_new(installation, folder, "spill", SETTINGS)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    for (view, query) in VIEWS {
        client.batch_execute(&format!("CREATE INCREMENTAL VIEW {view} AS {query}"))?;
    }
    expect_right(&mut client)?;
    expect_spilled(&mut client)?;
    for change in CHANGES {
        client.batch_execute(change)?;
        expect_right(&mut client).context(change)?;
    }
    expect_no_files(&cluster)?;
    let worker = worker_pid(&mut client)?.context("there is no worker")?;
    signal_process(worker, Signal::KILL)?;
    wait_for("the end of all sessions", Duration::from_secs(60), || {
        Ok(client.simple_query("").is_err().then_some(()))
    })?;
    let mut client = cluster.connect_when_ready("postgres")?;
    expect_right(&mut client).context("after the worker was killed")?;
    expect_spilled(&mut client)?;
    drop(client);
    cluster.kill()?;
    cluster.start()?;
    let mut client = cluster.connect_when_ready("postgres")?;
    expect_right(&mut client).context("after the postmaster was killed")?;
    expect_no_files(&cluster)?;
    cluster.print_crashes()
}

fn expect_right(client: &mut Client) -> Result<()> {
    for (view, query) in VIEWS {
        let row = client.query_one(&comparison(view, query), &[]).context(view)?;
        let wrong: (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        ensure!(wrong == (0, 0, 0), "{view}: rows missing, surplus, different: {wrong:?}");
    }
    Ok(())
}

fn expect_spilled(client: &mut Client) -> Result<()> {
    let sql =
        "SELECT state_bytes, spilled_bytes FROM eddy.views WHERE relation = $1::text::regclass";
    for (view, _) in VIEWS {
        let (state, spilled) = wait_for("figures of the view", Duration::from_secs(30), || {
            let row = client.query_one(sql, &[&view])?;
            let (state, spilled): (i64, i64) = (row.get(0), row.get(1));
            Ok((state > 0).then_some((state, spilled)))
        })?;
        ensure!(state > 10 * (LIMIT_MB << 20), "{view}: {state} bytes of state");
        ensure!(spilled > 1 << 20, "{view}: only {spilled} bytes on disk");
        let sql = "SELECT level, message FROM eddy.check() WHERE subject = $1";
        let row = client.query_one(sql, &[&view])?;
        let (level, message): (String, String) = (row.get(0), row.get(1));
        ensure!(
            level == "notice" && message.contains("of its state are on disk"),
            "eddy.check(): {level}: {message}"
        );
    }
    Ok(())
}

/// Files of a running engine have no names.
fn expect_no_files(cluster: &Cluster) -> Result<()> {
    let directory = cluster.data().join("base/pgsql_tmp/pgsql_tmp_eddy");
    let files = std::fs::read_dir(&directory)?.count();
    ensure!(files == 0, "{files} files in {}", directory.display());
    Ok(())
}
