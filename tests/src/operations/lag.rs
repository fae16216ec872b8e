//! How far a standby is behind its primary, and waiting for it.

use std::time::{Duration, Instant};

use anyhow::Result;
use harness::cluster::{wait_for, Cluster};
use harness::timing::{median, readable};
use postgres::Client;

use super::views::DATABASE;

const PATIENCE: Duration = Duration::from_secs(60);

/// Commits whose way is timed.
const SAMPLES: i64 = 30;

/// Waits until the views of a standby have everything that the session's server had committed, as the book says: its
/// worker has written it, then the standby has replayed that.
pub fn await_replay(client: &mut Client, standby: &Cluster) -> Result<()> {
    await_replayed(client, &mut standby.connect(DATABASE)?)
}

/// The same, asked for in a session of the standby.
pub fn await_replayed(client: &mut Client, replica: &mut Client) -> Result<()> {
    client.query_one("SELECT eddy.wait_for_lsn(pg_current_wal_lsn())", &[])?;
    let sql = "SELECT pg_current_wal_insert_lsn()::text";
    let written: String = client.query_one(sql, &[])?.get(0);
    let sql = "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn";
    wait_for("the standby to catch up", PATIENCE, || {
        Ok(replica.query_one(sql, &[&written])?.get::<_, bool>(0).then_some(()))
    })
}

/// Time from a commit on the primary until the views of the standby show it: the middle one and the longest.
pub fn measure(primary: &Cluster, standby: &Cluster) -> Result<String> {
    let mut client = primary.connect(DATABASE)?;
    let mut replica = standby.connect(DATABASE)?;
    let sql = replica.prepare("SELECT EXISTS (SELECT FROM moves WHERE id = $1)")?;
    let mut took = Vec::new();
    for sample in 1..=SAMPLES {
        let id = -sample;
        client.execute("INSERT INTO history VALUES ($1, 0)", &[&id])?;
        let began = Instant::now();
        while !replica.query_one(&sql, &[&id])?.get::<_, bool>(0) {
            anyhow::ensure!(began.elapsed() < PATIENCE, "the standby does not follow");
        }
        took.push(began.elapsed());
    }
    client.execute("DELETE FROM history WHERE id < 0", &[])?;
    let longest = took.iter().max().copied().unwrap_or_default();
    Ok(format!("{} (median of {SAMPLES}; longest {})", readable(median(&took)), readable(longest)))
}
