//! Base backups of a primary that is written to, whole and incremental: a server that starts from one has all views.

use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};
use harness::cluster::{is_stopped, signal_process, wait_for, Cluster};
use rustix::process::Signal;

use super::site::{Record, Site};
use super::times::Times;
use super::views::{self, DATABASE};
use super::writers::Writers;
use crate::graph::worker_pid;

/// Versions from this one on make incremental backups.
const INCREMENTAL: u32 = 17;

const PATIENCE: Duration = Duration::from_secs(60);

pub fn run(site: &Site, times: &mut Times, record: Record) {
    let summaries = [("summarize_wal", "on")];
    let settings = if site.major() >= INCREMENTAL { &summaries[..] } else { &[] };
    let primary = match site.start("busy", settings) {
        Ok(primary) => primary,
        Err(error) => return record("a server to back up", Err(error)),
    };
    let whole = views::create(&primary).and_then(|_| whole(site, &primary, times));
    record("a base backup of a busy primary has its views", whole);
    let accused = accuses_nobody(site, &primary);
    record("a base backup accuses no view of having ended a process", accused);
    if site.major() >= INCREMENTAL {
        let combined = incremental(site, &primary, times);
        record("an incremental backup, combined, has the views", combined);
    }
}

/// The backup is taken while views are written, and starts as a server of its own.
fn whole(site: &Site, primary: &Cluster, times: &mut Times) -> Result<()> {
    let writers = Writers::start(&[primary]);
    writers.await_more(200)?;
    let copy = primary.back_up(site.folder(), "copy", &[])?;
    writers.await_more(50)?;
    writers.finish()?;
    verify(&copy)?;
    let copy = start(copy, "start of a base backup of a busy primary", times)?;
    views::expect_alive(&mut copy.connect(DATABASE)?)?;
    // Nothing of the one is in the other.
    views::expect_right(&mut primary.connect(DATABASE)?)
}

/// A worker that is at work for a view says so in the data directory. In a backup that is no sign of a crash.
fn accuses_nobody(site: &Site, primary: &Cluster) -> Result<()> {
    let mut client = primary.connect(DATABASE)?;
    let pid = worker_pid(&mut client)?.context("the primary has no worker")?;
    primary.configure_and_wait(&mut client, "eddy.crash_point", "apply/public.by_branch=stop")?;
    client.batch_execute("UPDATE account SET balance = balance + id * 2 - 3 WHERE id IN (1, 2)")?;
    wait_for("the worker to stand still", PATIENCE, || Ok(is_stopped(pid).then_some(())))?;
    let copy = primary.back_up(site.folder(), "accused", &[]);
    primary.configure("eddy.crash_point", "")?;
    signal_process(pid, Signal::CONT)?;
    let mut copy = copy?;
    copy.set(&[("eddy.crash_point", "")])?;
    copy.start()?;
    views::expect_right(&mut copy.connect(DATABASE)?)?;
    let accused = copy.log()?.contains("was at work when a process ended");
    ensure!(!accused, "the backup says that a view was at work when a process ended");
    views::expect_right(&mut client)
}

/// A whole backup, then what has changed since, put together.
fn incremental(site: &Site, primary: &Cluster, times: &mut Times) -> Result<()> {
    let parts = primary.prepare_beside(site.folder(), "parts")?;
    let [first, second] = ["first", "second"].map(|name| parts.socket_folder().join(name));
    let writers = Writers::start(&[primary]);
    writers.await_more(100)?;
    primary.back_up_into(&first, &[])?;
    writers.await_more(100)?;
    let manifest = format!("--incremental={}", first.join("backup_manifest").display());
    primary.back_up_into(&second, &[&manifest])?;
    writers.finish()?;
    let combined = primary.prepare_beside(site.folder(), "combined")?;
    let folders = [&first, &second, &combined.data()].map(|path| path.display().to_string());
    let [first, second, output] = folders;
    primary
        .run_as_owner("pg_combinebackup", &["--no-sync", &first, &second, "--output", &output])?;
    verify(&combined)?;
    combined.set(&[])?;
    let combined =
        start(combined, "start of a base backup and an incremental one, combined", times)?;
    views::expect_alive(&mut combined.connect(DATABASE)?)
}

/// All files have the contents that the manifest says, those of the extension included. The server is told after that where its
/// socket is, and its configuration is not looked at.
fn verify(copy: &Cluster) -> Result<()> {
    let data = copy.data().display().to_string();
    copy.run_as_owner("pg_verifybackup", &["--ignore=postgresql.conf", &data])
}

fn start(mut copy: Cluster, operation: &str, times: &mut Times) -> Result<Cluster> {
    let began = Instant::now();
    copy.start()?;
    times.recovered(operation, &copy, began)?;
    Ok(copy)
}
