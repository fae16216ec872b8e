//! What writers pay: pgbench's transactions with ten views over its tables, with one, and with none.
//!
//! The same load runs against three databases in turn. After each run the views catch up before the
//! next one begins, and how long that takes is shown: a worker that does its work afterwards has
//! not cost the writers less.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use harness::cluster::Cluster;
use harness::load::Load;
use harness::timing::{median, readable, timed};
use postgres::Client;
use serde_json::json;

use super::pgbench::{create_database, load, VIEWS};
use super::setting::{verify, wait_for_views, Setting};
use crate::compare::Ratio;
use crate::record::Recorder;

pub const NAME: &str = "system/writers";

const SCALE: u32 = 10;
const QUICK_SCALE: u32 = 1;
const SECONDS: f64 = 20.0;
const QUICK_SECONDS: f64 = 1.0;

/// Numbers of views that are compared; the first is what the others are compared with.
const NUMBERS: [usize; 3] = [0, 1, 10];

/// A database with some of the views.
struct Side {
    views: usize,
    load: Load,
    client: Client,
    rates: Vec<f64>,
    delays: Vec<Duration>,
}

/// Prints the runs and the ratios, and records them.
pub fn measure(setting: &Setting, recorder: &mut Recorder) -> Result<()> {
    println!("{NAME}: pgbench's TPC-B-like transactions per second, 8 clients");
    setting.with_cluster(&[], |cluster, folder| {
        let scale = setting.choose(SCALE, QUICK_SCALE);
        let sides = NUMBERS.iter().map(|views| Side::create(cluster, folder, *views, scale));
        let mut sides = sides.collect::<Result<Vec<Side>>>()?;
        let seconds = setting.duration(SECONDS, QUICK_SECONDS)?.as_secs().max(1) as u32;
        for pair in 0..setting.pairs() {
            for index in turn(pair, sides.len()) {
                let side = &mut sides[index];
                side.run(cluster, seconds)?;
                recorder.write(&json!({
                    "kind": "writers", "name": NAME, "views": side.views, "scale": scale,
                    "run": pair, "seconds": seconds, "transactions_per_second": side.rates[pair],
                    "catch_up_seconds": side.delays[pair].as_secs_f64(),
                }))?;
            }
        }
        for side in &mut sides {
            for (view, _) in &VIEWS[..side.views] {
                verify(&mut side.client, view)?;
            }
        }
        print(&sides, recorder)
    })
}

/// Another one begins each time: what a run leaves to the next one, such as pages to be written to
/// disk, must not always fall on the same.
pub fn turn(number: usize, sides: usize) -> impl Iterator<Item = usize> {
    (0..sides).map(move |index| (number + index) % sides)
}

impl Side {
    fn create(cluster: &Cluster, folder: &Path, views: usize, scale: u32) -> Result<Side> {
        let database = format!("views_{views}");
        create_database(cluster, &database, scale)?;
        let mut client = cluster.connect(&database)?;
        client.batch_execute("SET client_min_messages = warning")?;
        if views > 0 {
            client.batch_execute("CREATE EXTENSION pg_eddy")?;
        }
        for (name, query) in &VIEWS[..views] {
            client.batch_execute(&format!("CREATE INCREMENTAL VIEW {name} AS {query}"))?;
        }
        let load = load(folder, &database, scale)?;
        let mut side = Side { views, load, client, rates: vec![], delays: vec![] };
        side.settle()?;
        // Warms the caches, and the pages have free space afterwards, as they always do in the end.
        side.load.run(cluster, 1)?;
        side.settle()?;
        Ok(side)
    }

    fn run(&mut self, cluster: &Cluster, seconds: u32) -> Result<()> {
        self.rates.push(self.load.run(cluster, seconds)?);
        let delay = timed(|| self.settle())?.1;
        self.delays.push(delay);
        Ok(())
    }

    /// The next run must not share the machine with what is left of this one.
    fn settle(&mut self) -> Result<()> {
        for (name, _) in &VIEWS[..self.views] {
            self.client.execute(&format!("SELECT FROM {name} LIMIT 1"), &[])?;
        }
        if self.views > 0 {
            wait_for_views(&mut self.client)?;
        }
        Ok(())
    }
}

fn print(sides: &[Side], recorder: &mut Recorder) -> Result<()> {
    println!("{:>6} {:>9} {:>6}  {:<14} {:>10}", "views", "tps", "ratio", "spread", "behind by");
    let Some(none) = sides.first() else { return Ok(()) };
    for side in sides {
        let ratio = Ratio::of_pairs(&side.rates, &none.rates);
        println!(
            "{:>6} {:>9.0} {:<22} {:>10}",
            side.views,
            median(&side.rates),
            ratio.to_string(),
            readable(median(&side.delays)),
        );
        recorder.write(&json!({
            "kind": "writers ratio", "name": NAME, "views": side.views, "ratio": ratio.median,
            "spread": [ratio.least, ratio.greatest],
        }))?;
    }
    println!("(ratios to no views, by pairs; behind by: time to catch up after the load's end)\n");
    Ok(())
}
