//! The view that nobody attacks, changed and read while others are in trouble.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};
use harness::cluster::Cluster;
use harness::timing::burden;
use postgres::Client;

/// A database with the view.
pub const SETUP: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE TABLE witnessed (n int NOT NULL);
    CREATE INCREMENTAL VIEW witness AS SELECT count(*) AS n FROM witnessed;
    TABLE witness;";

/// Longest time in which it may be away.
const AWAY: Duration = Duration::from_secs(2);

/// Changes it and reads it: it must follow at once.
pub fn expect_witness(client: &mut Client) -> Result<()> {
    let away = follow(client)?;
    ensure!(away < AWAY, "the witness was away for {away:?}");
    Ok(())
}

/// Changes it and reads it; answers how long that takes.
fn follow(client: &mut Client) -> Result<Duration> {
    let rows: i64 = client.query_one("SELECT n FROM witness", &[])?.get(0);
    let began = Instant::now();
    client.batch_execute("INSERT INTO witnessed VALUES (1)")?;
    let after: i64 = client.query_one("SELECT n FROM witness", &[])?.get(0);
    ensure!(after == rows + 1, "the witness has {after} rows instead of {}", rows + 1);
    Ok(began.elapsed())
}

/// How long the witness was away while something else was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Absence {
    pub longest: Duration,
    /// How often it was read.
    pub reads: usize,
}

/// Runs `work` while another session of the same database changes and reads the witness.
pub fn beside<T>(
    cluster: &Cluster,
    client: &mut Client,
    work: impl FnOnce(&mut Client) -> Result<T>,
) -> Result<(T, Absence)> {
    let mut prober = cluster.connect_beside(client)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let is_seen = Arc::clone(&is_over);
    let probing = std::thread::spawn(move || -> Result<Absence> {
        let mut absence = Absence::default();
        while !is_seen.load(SeqCst) {
            absence.longest = absence.longest.max(follow(&mut prober)?);
            absence.reads += 1;
        }
        Ok(absence)
    });
    let outcome = work(client);
    is_over.store(true, SeqCst);
    let absence = probing.join().ok().context("the prober was lost")??;
    Ok((outcome?, absence))
}

/// The same, and the witness may be away for no longer than that, on a machine that does little else.
pub fn undisturbed<T>(
    cluster: &Cluster,
    client: &mut Client,
    away: Duration,
    work: impl FnOnce(&mut Client) -> Result<T>,
) -> Result<T> {
    let (result, Absence { longest, .. }) = beside(cluster, client, work)?;
    ensure!(longest < away.mul_f64(burden()), "the witness was away for {longest:?}");
    Ok(result)
}
