//! What is measured of each case.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use harness::cluster::{wait_for, Cluster};
use postgres::Client;

/// Longest wait until all views are readable.
const PATIENCE: Duration = Duration::from_secs(600);

/// Changes whose way into a view is timed.
const CHANGES: u32 = 15;

pub struct Figures {
    /// Creating the views, filled.
    pub creation: Duration,
    /// From the start of the server until all views are live.
    pub start: Duration,
    /// Memory of the workers' own, in bytes, at the end.
    pub memory: u64,
    /// From the end of a COMMIT to the end of a read that shows the change: in the middle, and the longest.
    pub latency: (Duration, Duration),
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let milliseconds = |duration: Duration| duration.as_secs_f64() * 1e3;
        write!(
            f,
            "created in {:.1} s, live {:.1} s after a start, {} MB, {:.1} ms from COMMIT to read ({:.1} ms at most)",
            self.creation.as_secs_f64(),
            self.start.as_secs_f64(),
            self.memory >> 20,
            milliseconds(self.latency.0),
            milliseconds(self.latency.1)
        )
    }
}

/// Starts the server anew; the time until so many views of each database are live.
pub fn restart(cluster: &mut Cluster, databases: &[String], views: i64) -> Result<Duration> {
    cluster.stop()?;
    let began = Instant::now();
    cluster.start()?;
    let live = "SELECT count(*) FILTER (WHERE state = 'live') FROM eddy.views";
    for database in databases {
        let mut client = cluster.connect(database)?;
        wait_for(&format!("all views of {database} to be live"), PATIENCE, || {
            let found: i64 = client.query_one(live, &[])?.get(0);
            Ok((found == views).then_some(()))
        })?;
    }
    Ok(began.elapsed())
}

/// Changes something and reads it, again and again. The read gets the number of the change, too.
pub fn latency(
    client: &mut Client,
    mut change: impl FnMut(&mut Client, u32) -> Result<()>,
    mut read: impl FnMut(&mut Client, u32) -> Result<()>,
) -> Result<(Duration, Duration)> {
    let mut times = Vec::new();
    for number in 1..=CHANGES {
        change(client, number)?;
        let began = Instant::now();
        read(client, number)?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok((times[times.len() / 2], times[times.len() - 1]))
}

/// Memory that the workers of all databases have for themselves, without what is shared.
pub fn memory(client: &mut Client) -> Result<u64> {
    let sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_eddy worker'";
    let workers = client.query(sql, &[])?;
    workers.iter().map(|row| memory_of(row.get(0))).sum()
}

fn memory_of(process: i32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kilobytes.context("no RssAnon")?.parse::<u64>()? << 10)
}
