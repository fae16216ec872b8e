//! The WAL that a worker holds back is bounded, even if the worker stands still, and a checkpoint does not wait for it.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{signal_process, stop_at_rest, wait_for, Cluster, Settings};
use harness::installation::Installation;
use postgres::Client;
use rustix::process::Signal;

use super::check::Record;
use crate::graph::{expect_alive, graph_database, worker_pid};

const PATIENCE: Duration = Duration::from_secs(60);

const COMMON: Settings = &[
    ("fsync", "off"),
    ("min_wal_size", "32MB"),
    ("max_wal_size", "48MB"),
    ("checkpoint_timeout", "1h"),
];

/// Bytes of WAL that are written while the worker stands still.
const WRITTEN: usize = 160 << 20;

/// Those that may be left then.
const KEPT: u64 = 112 << 20;

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    let own: &[(&str, &str)] = &[("eddy.max_retained_wal", "32MB")];
    let result = lets_go(installation, folder, "own_limit", own, "eddy.max_retained_wal");
    record("a worker that stands still holds back so much WAL only", result);
    let limits: &[(&str, &str)] =
        &[("eddy.max_retained_wal", "0"), ("max_slot_wal_keep_size", "48MB")];
    let result = lets_go(installation, folder, "server_limit", limits, "max_slot_wal_keep_size");
    record("a worker that stands still does not keep checkpoints waiting", result);
    let result = lets_go_without_writing(installation, folder);
    record("a worker lets go of WAL without the lock that checkpoints need", result);
}

/// The file of the slot stays as it is while the slot moves on: writing it takes a lock that each checkpoint takes too, and
/// a worker may be stopped at any moment.
fn lets_go_without_writing(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "moving", COMMON)?;
    let mut client = graph_database(&cluster, "moving")?;
    expect_alive(&mut client)?;
    let slot = "SELECT slot_name::text, restart_lsn::text, catalog_xmin::text \
                FROM pg_replication_slots";
    let before = client.query_one(slot, &[])?;
    let (name, start, row): (String, String, String) =
        (before.get(0), before.get(1), before.get(2));
    let file = cluster.data().join("pg_replslot").join(name).join("state");
    let written = std::fs::metadata(&file)?.modified()?;
    wait_for("the slot to move on", PATIENCE, || {
        // With the record that a checkpoint writes of running transactions.
        client.batch_execute("CREATE TEMPORARY TABLE t (); DROP TABLE t; CHECKPOINT")?;
        let now = client.query_one(slot, &[])?;
        Ok((now.get::<_, String>(1) != start && now.get::<_, String>(2) != row).then_some(()))
    })?;
    ensure!(std::fs::metadata(&file)?.modified()? == written, "the slot was written to disk");
    Ok(())
}

fn lets_go(
    installation: &Installation,
    folder: &Path,
    name: &str,
    limits: Settings,
    named: &str,
) -> Result<()> {
    let settings: Vec<(&str, &str)> = COMMON.iter().chain(limits).copied().collect();
    let cluster = Cluster::start_new(installation, folder, name, &settings)?;
    let mut client = graph_database(&cluster, "held")?;
    expect_alive(&mut client)?;
    let worker = worker_pid(&mut client)?.context("there is no worker")?;
    stop_at_rest(&mut client, worker)?;
    let bounded = is_bounded(&cluster, &mut client, named);
    signal_process(worker, Signal::CONT)?;
    bounded?;
    expect_alive(&mut client)?;
    let now = worker_pid(&mut client)?.context("there is no worker")?;
    ensure!(now != worker, "the worker goes on with a slot that it has lost");
    ensure!(cluster.log()?.contains("ending worker"), "the log does not say so");
    Ok(())
}

fn is_bounded(cluster: &Cluster, client: &mut Client, named: &str) -> Result<()> {
    let mut writer = cluster.connect("held")?;
    let text = "x".repeat(1 << 20);
    for _ in 0..WRITTEN >> 20 {
        writer.query("SELECT pg_logical_emit_message(false, 'eddy-tests', $1)", &[&text])?;
    }
    // A checkpoint that PostgreSQL does by itself may be at it already: both must come to an end.
    writer.batch_execute("SET statement_timeout = '30s'; CHECKPOINT; CHECKPOINT")?;
    let sql = "SELECT message FROM eddy.views WHERE message IS NOT NULL";
    wait_for("eddy.views to say what has happened", PATIENCE, || {
        let row = client.query_opt(sql, &[])?;
        Ok(row.map(|row| row.get::<_, String>(0)).filter(|message| message.contains(named)))
    })?;
    let held: i64 = client
        .query_one("SELECT count(*) FROM pg_replication_slots WHERE restart_lsn IS NOT NULL", &[])?
        .get(0);
    ensure!(held == 0, "a slot still holds back WAL");
    writer.batch_execute("CHECKPOINT")?;
    let kept: i64 = client.query_one("SELECT sum(size)::bigint FROM pg_ls_waldir()", &[])?.get(0);
    ensure!(u64::try_from(kept)? <= KEPT, "{kept} bytes of WAL are left");
    Ok(())
}
