//! A standby of a standby: it has the views, and keeps them when the server in the middle is promoted.

use std::time::Instant;

use anyhow::{ensure, Context, Result};

use super::lag::{await_replay, measure};
use super::site::{Record, Site};
use super::times::Times;
use super::views::{self, DATABASE};
use super::writers::Writers;

pub fn run(site: &Site, times: &mut Times, record: Record) {
    record(
        "a cascading standby has the views, through a promotion of its upstream",
        check(site, times),
    );
}

fn check(site: &Site, times: &mut Times) -> Result<()> {
    let mut first = site.start("top", &[])?;
    views::create(&first)?;
    let middle = first.start_standby(site.folder(), "middle")?;
    let last = middle.start_standby(site.folder(), "last")?;
    let writers = Writers::start(&[&first, &middle]);
    writers.await_more(100)?;
    let mut replica = last.connect(DATABASE)?;
    for _ in 0..50 {
        views::expect_whole(&mut replica)?;
    }
    let lag = measure(&first, &last)?;
    times.remark(format!("cascading standby: a commit on the primary is in its views after {lag}"));
    first.stop_immediately()?;
    let began = Instant::now();
    middle.promote()?;
    let hold = || Ok(writers.hold());
    times.recovered_under_load(
        "promotion of a standby that has a standby",
        &middle,
        began,
        hold,
    )?;
    writers.await_more(100)?;
    writers.finish()?;
    let mut client = middle.connect(DATABASE)?;
    views::expect_alive(&mut client)?;
    await_replay(&mut client, &last).context("on the other side of the promotion")?;
    views::expect_equal(&mut replica)?;
    views::expect_error(&mut replica)?;
    let is_standby: bool = replica.query_one("SELECT pg_is_in_recovery()", &[])?.get(0);
    ensure!(is_standby, "the last server is no standby any more");
    Ok(())
}
