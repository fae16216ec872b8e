//! PostgreSQL's own statistics: transactions of a database, and replication slots.

use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{signal_process, wait_for, Cluster};
use postgres::Client;
use rustix::process::Signal;

use crate::graph::{expect_alive, expect_rows, graph_database, worker_pid};

const PATIENCE: Duration = Duration::from_secs(60);

/// Transactions of the test; each is decoded, one after the other.
const WRITES: i64 = 200;

pub fn rollbacks(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "rolled")?;
    expect_alive(&mut client)?;
    let before = transactions(&mut client)?;
    for number in 0..WRITES {
        client.execute("INSERT INTO edge VALUES ($1, $1)", &[&(10 + number as i32)])?;
        expect_rows(&mut client, "reach", 4 + number)?;
    }
    let after = wait_for("the statistics of all transactions", PATIENCE, || {
        let after = transactions(&mut client)?;
        Ok((after.0 - before.0 > 3 * WRITES).then_some(after))
    })?;
    let (committed, rolled_back) = (after.0 - before.0, after.1 - before.1);
    println!(
        "statistics: {WRITES} writes and reads: {committed} committed, {rolled_back} rolled back"
    );
    ensure!(rolled_back == 0, "{rolled_back} transactions were rolled back, of {WRITES} writes");
    // The writes, the reads, and what the worker does for each: it decodes, computes and writes.
    ensure!(committed < 8 * WRITES, "{committed} transactions for {WRITES} writes and reads");
    Ok(())
}

/// Transactions of the database that were committed and rolled back.
fn transactions(client: &mut Client) -> Result<(i64, i64)> {
    let sql = "SELECT xact_commit, xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    client.batch_execute("SELECT pg_stat_clear_snapshot()")?;
    let row = client.query_one(sql, &[])?;
    Ok((row.get(0), row.get(1)))
}

/// The slots of this database, with the processes that have them.
fn slots(client: &mut Client) -> Result<Vec<(String, i32)>> {
    let sql = "SELECT slot_name::text, active_pid FROM pg_replication_slots
               WHERE database = current_database() AND active_pid IS NOT NULL";
    let slots = client.query(sql, &[])?;
    Ok(slots.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Ends the worker; the name of the next one's slot.
fn restarted(client: &mut Client) -> Result<String> {
    let old = worker_pid(client)?.context("there is no worker")?;
    signal_process(old, Signal::TERM)?;
    wait_for("another worker", PATIENCE, || Ok(worker_pid(client)?.filter(|new| *new != old)))?;
    expect_alive(client)?;
    name_of_slot(client)
}

fn name_of_slot(client: &mut Client) -> Result<String> {
    let worker = worker_pid(client)?.context("there is no worker")?;
    let slots = slots(client)?;
    let slot = slots.into_iter().find(|(_, pid)| *pid == worker);
    Ok(slot.context("the worker has no slot")?.0)
}

pub fn slot_names(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "named")?;
    expect_alive(&mut client)?;
    let sql = "SELECT 'pg_eddy_' || oid FROM pg_database WHERE datname = current_database()";
    let expected: String = client.query_one(sql, &[])?.get(0);
    let first = name_of_slot(&mut client)?;
    ensure!(first == expected, "the slot is {first} instead of {expected}");
    for _ in 0..3 {
        let next = restarted(&mut client)?;
        ensure!(next == expected, "after a restart the slot is {next} instead of {expected}");
    }
    Ok(())
}

/// Somebody else has a slot of that name: views are maintained all the same.
pub fn taken_name(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "taken")?;
    expect_alive(&mut client)?;
    let name = name_of_slot(&mut client)?;
    let old = worker_pid(&mut client)?.context("there is no worker")?;
    client.batch_execute(&format!(
        "SELECT pg_terminate_backend({old}, 10000);
         SELECT pg_create_physical_replication_slot('{name}')"
    ))?;
    expect_alive(&mut client)?;
    let other = name_of_slot(&mut client)?;
    ensure!(other.starts_with(&format!("{name}_")), "the slot is {other}");
    client.batch_execute(&format!("SELECT pg_drop_replication_slot('{name}')"))?;
    let next = restarted(&mut client)?;
    ensure!(next == name, "after a restart the slot is {next} instead of {name}");
    Ok(())
}
