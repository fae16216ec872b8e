//! Attach: base rows per second until a view follows its tables.
//!
//! Three ways to get there: after CREATE has filled the view by running its query once (from there on
//! the worker reads the tables, computes, and compares with what is stored); WITH NO DATA, where it
//! writes the view's rows as well; and after a restart of the server, counted from before its start.

use std::time::{Duration, Instant};

use anyhow::Result;
use harness::cluster::Cluster;
use harness::timing::{median, readable, timed};
use postgres::Client;
use serde_json::json;

use super::setting::{verify, Setting};
use super::subject::{Subject, ALL, VIEW};
use crate::record::Recorder;

pub const NAME: &str = "system/attach";

const ROWS: u32 = 2_000_000;
const QUICK_ROWS: u32 = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Filled,
    Empty,
    Restart,
}

impl Way {
    const ALL: [Way; 3] = [Way::Filled, Way::Empty, Way::Restart];

    fn as_str(self) -> &'static str {
        match self {
            Way::Filled => "first, filled",
            Way::Empty => "first, no data",
            Way::Restart => "restart",
        }
    }
}

/// Prints a table and records every attach.
pub fn measure(setting: &Setting, recorder: &mut Recorder) -> Result<()> {
    println!("{NAME}: base rows per second until the view follows its tables");
    println!(
        "{:<10} {:<15} {:>9} {:>9} {:>10} {:>21}",
        "view", "attach", "rows", "time", "rows/s", "spread"
    );
    for subject in ALL {
        setting
            .with_cluster(&[], |cluster, _| measure_subject(setting, cluster, subject, recorder))?;
    }
    println!();
    Ok(())
}

fn measure_subject(
    setting: &Setting,
    cluster: &mut Cluster,
    subject: &Subject,
    recorder: &mut Recorder,
) -> Result<()> {
    let rows = setting.rows(ROWS, QUICK_ROWS);
    let mut client = cluster.connect("postgres")?;
    subject.create_tables(&mut client, rows)?;
    // Sets the replica identity, and warms the caches.
    subject.create_view(&mut client)?;
    let mut times = Way::ALL.map(|_| Vec::new());
    for run in 0..setting.pairs() {
        for (way, times) in Way::ALL.into_iter().zip(&mut times) {
            let time = attach(cluster, subject, way)?;
            recorder.write(&json!({
                "kind": "attach", "name": NAME, "view": subject.name, "attach": way.as_str(),
                "rows": rows, "run": run, "seconds": time.as_secs_f64(),
                "rows_per_second": f64::from(rows) / time.as_secs_f64(),
            }))?;
            times.push(time);
        }
    }
    verify(&mut cluster.connect("postgres")?, VIEW)?;
    for (way, times) in Way::ALL.into_iter().zip(&times) {
        let rate = |time: Duration| f64::from(rows) / time.as_secs_f64();
        let rates: Vec<f64> = times.iter().map(|time| rate(*time)).collect();
        println!(
            "{:<10} {:<15} {rows:>9} {:>9} {:>10.0} {:>9.0} – {:>9.0}",
            subject.name,
            way.as_str(),
            readable(median(times)),
            median(&rates),
            rates.iter().copied().fold(f64::INFINITY, f64::min),
            rates.iter().copied().fold(0.0, f64::max),
        );
    }
    Ok(())
}

fn attach(cluster: &mut Cluster, subject: &Subject, way: Way) -> Result<Duration> {
    let no_data = match way {
        Way::Filled => "",
        Way::Empty => "WITH NO DATA",
        Way::Restart => return restart(cluster),
    };
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(&format!(
        "SET client_min_messages = warning; SET eddy.read_timeout = '10min';
         DROP MATERIALIZED VIEW {VIEW};
         CREATE INCREMENTAL VIEW {VIEW} AS {} {no_data}",
        subject.query
    ))?;
    Ok(timed(|| read(&mut client))?.1)
}

fn restart(cluster: &mut Cluster) -> Result<Duration> {
    cluster.stop()?;
    let start = Instant::now();
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("SET eddy.read_timeout = '10min'")?;
    read(&mut client)?;
    Ok(start.elapsed())
}

/// A fresh read of the view, which waits until the view is live.
fn read(client: &mut Client) -> Result<()> {
    client.execute(&format!("SELECT FROM {VIEW} LIMIT 1"), &[])?;
    Ok(())
}
