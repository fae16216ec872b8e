//! A standby that is made a logical subscriber: it keeps its views, which from then on follow the subscription.

use std::time::Instant;

use anyhow::Result;
use harness::timing::readable;

use super::site::{Record, Site};
use super::subscriber::{compare, still};
use super::times::Times;
use super::views::{self, DATABASE};
use super::writers::Writers;

/// Versions from this one on have the program for it.
const FIRST: u32 = 17;

pub fn run(site: &Site, times: &mut Times, record: Record) {
    if site.major() >= FIRST {
        record("a standby that is made a subscriber keeps its views", check(site, times));
    }
}

fn check(site: &Site, times: &mut Times) -> Result<()> {
    let publisher = site.start("origin", &[])?;
    views::create(&publisher)?;
    let mut standby = publisher.start_standby(site.folder(), "converted")?;
    let writers = Writers::start(&[&publisher]);
    writers.await_more(100)?;
    standby.stop()?;
    let [data, source, socket] = [
        standby.data().display().to_string(),
        format!("{} dbname={DATABASE}", publisher.connection_text()),
        standby.socket_folder().display().to_string(),
    ];
    let began = Instant::now();
    let arguments = ["--pgdata", &data, "--publisher-server", &source, "--socketdir", &socket];
    let database = ["--database", DATABASE, "--subscriber-username", "postgres"];
    standby.run_as_owner("pg_createsubscriber", &[&arguments[..], &database].concat())?;
    let took = readable(began.elapsed());
    let began = Instant::now();
    standby.start()?;
    let operation =
        format!("first start after pg_createsubscriber (which took {took}), under load");
    times.recovered_under_load(&operation, &standby, began, || still(&writers, &publisher))?;
    writers.await_more(100)?;
    writers.finish()?;
    compare(&publisher, &mut standby.connect(DATABASE)?)
}
