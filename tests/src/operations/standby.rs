//! A streaming standby under load: each of its reads shows one whole state, and who wants more than that waits for a position.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::{signal_process, stop_at_rest, wait_for, Cluster};
use postgres::Client;
use rustix::process::Signal;

use super::lag::{await_replay, measure};
use super::site::{Record, Site};
use super::times::Times;
use super::views::{self, DATABASE};
use super::writers::Writers;
use crate::graph::worker_pid;

/// Reads of the standby while the primary is written to.
const READS: usize = 100;

pub fn run(site: &Site, times: &mut Times, record: Record) {
    match servers(site) {
        Err(error) => record("a primary and a standby", Err(error)),
        Ok((primary, standby)) => {
            let whole = reads_are_whole(&primary, &standby, times);
            record("each read of a standby under load shows a whole state", whole);
            let equal = views_follow(&primary, &standby);
            record("a standby that has caught up has the views, right, errors included", equal);
            let refused = waiting_is_refused(&standby);
            record("eddy.wait_for_lsn says on a standby how to wait there", refused);
            let settings = freshness_makes_no_difference(&primary, &standby);
            record("a standby's reads do not wait, whatever eddy.freshness is", settings);
        }
    }
}

fn servers(site: &Site) -> Result<(Cluster, Cluster)> {
    let primary = site.start("primary", &[])?;
    views::create(&primary)?;
    let standby = primary.start_standby(site.folder(), "standby")?;
    Ok((primary, standby))
}

fn reads_are_whole(primary: &Cluster, standby: &Cluster, times: &mut Times) -> Result<()> {
    let mut replica = standby.connect(DATABASE)?;
    let writers = Writers::start(&[primary]);
    writers.await_more(100)?;
    let began = Instant::now();
    let mut states = std::collections::BTreeSet::new();
    for _ in 0..READS {
        views::expect_whole(&mut replica)?;
        // Closed under joining with edges as they were: the recursion is whole, too.
        let sql = "SELECT (SELECT max(id) FROM moves), NOT EXISTS (SELECT r.a, s.b FROM reach r \
                   JOIN reach s ON s.a = r.b EXCEPT SELECT a, b FROM reach)";
        let row = replica.query_one(sql, &[])?;
        ensure!(row.get::<_, bool>(1), "the recursive view is not closed");
        states.insert(row.get::<_, Option<i64>>(0));
    }
    ensure!(states.len() > 1, "the standby stood still");
    let rate = READS as f64 / began.elapsed().as_secs_f64();
    let lag = measure(primary, standby)?;
    let tally = writers.finish()?;
    times.remark(format!(
        "standby under load: a commit on the primary is in the views of the standby after {lag}; {READS} pairs of reads \
         at {rate:.0} a second, each of a whole state, while {} transactions were written",
        tally.commits
    ));
    Ok(())
}

fn views_follow(primary: &Cluster, standby: &Cluster) -> Result<()> {
    let mut client = primary.connect(DATABASE)?;
    views::expect_alive(&mut client)?;
    await_replay(&mut client, standby)?;
    let mut replica = standby.connect(DATABASE)?;
    views::expect_whole(&mut replica)?;
    views::expect_equal(&mut replica)?;
    views::expect_error(&mut replica)
}

fn waiting_is_refused(standby: &Cluster) -> Result<()> {
    let mut replica = standby.connect(DATABASE)?;
    let Err(error) = replica.query("SELECT eddy.wait_for_lsn('0/1')", &[]) else {
        bail!("there is no error")
    };
    let report = error.as_db_error().context("the session was lost")?;
    ensure!(report.code().code() == "55000", "{report}");
    ensure!(
        report.hint().is_some_and(|hint| hint.contains("pg_last_wal_replay_lsn")),
        "{report:?}"
    );
    Ok(())
}

/// The primary's worker stands still: the standby has base tables that its views do not show, and does not wait for it.
fn freshness_makes_no_difference(primary: &Cluster, standby: &Cluster) -> Result<()> {
    let mut client = primary.connect(DATABASE)?;
    await_replay(&mut client, standby)?;
    let pid = worker_pid(&mut client)?.context("the primary has no worker")?;
    stop_at_rest(&mut client, pid)?;
    let result = read_behind(&mut client, standby);
    signal_process(pid, Signal::CONT)?;
    result?;
    await_replay(&mut client, standby)?;
    let mut replica = standby.connect(DATABASE)?;
    ensure!(missing_moves(&mut replica)? == 0, "the view did not catch up");
    Ok(())
}

fn read_behind(client: &mut Client, standby: &Cluster) -> Result<()> {
    client.batch_execute("INSERT INTO history (moved) VALUES (1)")?;
    let lsn: String = client.query_one("SELECT pg_current_wal_lsn()::text", &[])?.get(0);
    let mut replica = standby.connect(DATABASE)?;
    let replayed = "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn";
    wait_for("the table to be replayed", Duration::from_secs(60), || {
        Ok(replica.query_one(replayed, &[&lsn])?.get::<_, bool>(0).then_some(()))
    })?;
    for freshness in ["fresh", "stale"] {
        replica.batch_execute(&format!("SET eddy.freshness = '{freshness}'"))?;
        let missing = missing_moves(&mut replica)?;
        ensure!(missing == 1, "{missing} rows are missing with eddy.freshness = {freshness}");
    }
    Ok(())
}

fn missing_moves(client: &mut Client) -> Result<i64> {
    let sql = "SELECT (SELECT count(*) FROM history) - (SELECT count(*) FROM moves)";
    Ok(client.query_one(sql, &[])?.get(0))
}
