//! Promotion of a standby while applications write, the way back of the former primary by pg_rewind, and switching back.

use std::time::Instant;

use anyhow::{ensure, Result};
use harness::cluster::Cluster;
use harness::timing::readable;

use super::lag::await_replay;
use super::site::{Record, Site};
use super::times::Times;
use super::views::{self, DATABASE};
use super::writers::Writers;

pub fn run(site: &Site, times: &mut Times, record: Record) {
    let servers = || -> Result<(Cluster, Cluster)> {
        let first = site.start("first", &[])?;
        views::create(&first)?;
        let second = first.start_standby(site.folder(), "second")?;
        Ok((first, second))
    };
    let (mut first, mut second) = match servers() {
        Ok(servers) => servers,
        Err(error) => return record("two servers", Err(error)),
    };
    let writers = Writers::start(&[&first, &second]);
    let promoted = promote(&mut first, &second, &writers, times);
    let was_promoted = promoted.is_ok();
    record("a standby that is promoted under load has its views, and writers go on", promoted);
    if was_promoted {
        let back = come_back(&mut first, &second, &writers, times);
        let is_back = back.is_ok();
        record("the former primary comes back by pg_rewind, views included", back);
        if is_back {
            let switched = switch_back(&mut first, &mut second, &writers, times);
            record("switching back leaves all views right", switched);
        }
    }
    record("writers go on through all of it", finish(writers, &first, times));
}

/// The primary is gone at once; the standby takes over.
fn promote(
    first: &mut Cluster,
    second: &Cluster,
    writers: &Writers,
    times: &mut Times,
) -> Result<()> {
    // A session that was there before reads what has been replayed, then fresh.
    let mut before = second.connect(DATABASE)?;
    views::expect_whole(&mut before)?;
    writers.await_more(200)?;
    first.stop_immediately()?;
    let began = Instant::now();
    second.promote()?;
    let hold = || Ok(writers.hold());
    times.recovered_under_load("promotion of a standby, under load", second, began, hold)?;
    writers.await_more(200)?;
    let _guard = writers.hold();
    views::expect_right(&mut before)
}

/// What the former primary had beyond the point at which the other took over is lost, as it was for everybody.
fn come_back(
    first: &mut Cluster,
    second: &Cluster,
    writers: &Writers,
    times: &mut Times,
) -> Result<()> {
    // Something that only it has.
    first.start()?;
    let mut client = first.connect(DATABASE)?;
    client.batch_execute("INSERT INTO history VALUES (-1, 0); DELETE FROM edge")?;
    ensure!(client.query_one("SELECT count(*) FROM reach", &[])?.get::<_, i64>(0) == 0);
    drop(client);
    first.stop()?;
    let began = Instant::now();
    first.rewind(second)?;
    first.follow(second)?;
    first.start()?;
    times.readable_standby("pg_rewind of the former primary, as a standby", first, began)?;
    writers.await_more(100)?;
    let _guard = writers.hold();
    let mut client = second.connect(DATABASE)?;
    await_replay(&mut client, first)?;
    let mut replica = first.connect(DATABASE)?;
    views::expect_equal(&mut replica)?;
    let lost = replica.query_one("SELECT count(*) FROM moves WHERE id = -1", &[])?;
    ensure!(lost.get::<_, i64>(0) == 0, "what was lost is in a view");
    views::expect_error(&mut replica)
}

/// An orderly change of roles: nothing is lost, so nothing has to be rewound.
fn switch_back(
    first: &mut Cluster,
    second: &mut Cluster,
    writers: &Writers,
    times: &mut Times,
) -> Result<()> {
    writers.await_more(100)?;
    let began = Instant::now();
    second.stop()?;
    first.promote()?;
    let operation = "switching back (orderly stop, then promotion), under load";
    times.recovered_under_load(operation, first, began, || Ok(writers.hold()))?;
    second.follow(first)?;
    second.start()?;
    writers.await_more(100)?;
    let _guard = writers.hold();
    let mut client = first.connect(DATABASE)?;
    await_replay(&mut client, second)?;
    views::expect_equal(&mut second.connect(DATABASE)?)
}

fn finish(writers: Writers, last: &Cluster, times: &mut Times) -> Result<()> {
    let tally = writers.finish()?;
    times.remark(format!(
        "promotion, rewinding and switching back: writers committed {} transactions, the longest time between two of a session was {}",
        tally.commits,
        readable(tally.pause)
    ));
    let mut client = last.connect(DATABASE)?;
    views::expect_alive(&mut client)
}
