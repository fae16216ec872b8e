//! What views are said to take is what the worker has, and it goes when they go.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use harness::installation::Installation;
use postgres::Client;

use super::check::Record;
use super::orders;
use crate::graph::worker_pid;

/// A worker that rests gives memory back within a minute; the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

const VIEWS: i32 = 5;

/// What a worker has beside its views, in bytes.
const BESIDE: i64 = 32 << 20;

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    record("views take what they say, and give it back", reports(installation, folder));
    record("the order of values that have gone is forgotten", forgets(installation, folder));
}

fn reports(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "memory", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(&orders::create(50_000, 500_000))?;
    for view in 0..VIEWS {
        client.batch_execute(&format!(
            "CREATE INCREMENTAL VIEW v{view} AS SELECT c.country, count(*) AS n, sum(o.amount) AS total
                 FROM ordered o JOIN customer c ON c.id = o.customer WHERE o.amount >= {view} GROUP BY c.country"
        ))?;
    }
    expect_honest(&mut client, 4 << 20).context("with all views")?;
    for view in 1..VIEWS {
        client.batch_execute(&format!("DROP INCREMENTAL VIEW v{view}"))?;
    }
    expect_honest(&mut client, 4 << 20).context("with one view")?;
    cluster.print_crashes()
}

const ADDRESSES: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE TABLE seen (address inet NOT NULL);
    INSERT INTO seen VALUES ('10.0.0.1');
    CREATE INCREMENTAL VIEW highest AS SELECT count(*) AS n, max(address) AS address FROM seen;
    TABLE highest";

/// Rounds of values that come and go, and how many there are of them at a time.
const ROUNDS: i32 = 5;
const VALUES: i32 = 100_000;

fn forgets(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "addresses", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(ADDRESSES)?;
    for round in 0..ROUNDS {
        // In no order.
        client.batch_execute(&format!(
            "INSERT INTO seen SELECT '0.0.0.0'::inet + ({round} * {VALUES}::bigint + i) * 2654435761 % 4294967296 \
             FROM generate_series(1, {VALUES}) i"
        ))?;
        let rows: i64 = client.query_one("SELECT n FROM highest", &[])?.get(0);
        ensure!(rows == i64::from(VALUES) + 1, "{rows} rows");
        client.batch_execute("DELETE FROM seen WHERE address <> '10.0.0.1'")?;
        let row = client.query_one("SELECT n, host(address) FROM highest", &[])?;
        let left: (i64, String) = (row.get(0), row.get(1));
        ensure!(left == (1, "10.0.0.1".to_owned()), "{left:?}");
    }
    ensure!(cluster.log()?.contains("of sort keys"), "the view did not start afresh");
    cluster.print_crashes()
}

/// The figures of all views together are at least so much, and the worker comes to have little more.
fn expect_honest(client: &mut Client, least: i64) -> Result<()> {
    let views = "SELECT format('TABLE %s', relation) FROM eddy.views";
    for row in client.query(views, &[])? {
        client.batch_execute(&row.get::<_, String>(0))?;
    }
    let (mut state, mut resident) = (0, 0);
    let honest = wait_for("the worker to have little more than its views", PATIENCE, || {
        let sum = "SELECT coalesce(sum(state_bytes), 0)::bigint FROM eddy.views";
        state = client.query_one(sum, &[])?.get(0);
        resident = resident_memory(worker_pid(client)?.context("there is no worker")?)?;
        Ok((resident <= state + state / 4 + BESIDE).then_some(()))
    });
    let figures = format!("{} MB reported, {} MB resident", state >> 20, resident >> 20);
    println!("server: {figures}");
    honest.context(figures.clone())?;
    // What a dataflow has taken and not used yet is in no page.
    ensure!(state >= least && state <= resident + resident / 20, "{figures}");
    Ok(())
}

/// Bytes of its own that a process has in memory.
fn resident_memory(pid: i32) -> Result<i64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.context("no figure")?.trim().trim_end_matches(" kB");
    Ok(kilobytes.parse::<i64>()? << 10)
}
