//! What checkpoints cost while the tables change as fast as the views follow: rows a second, the latency of a change of one row
//! among them, and bytes that are written for each changed row; on a server that takes them and on one that does not.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::scope;
use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use harness::timing::{median, readable, timed};
use hdrhistogram::Histogram;
use postgres::Client;
use serde_json::json;

use super::orders;
use super::setting::{verify, wait_for_views, Setting};
use super::writers::turn;
use crate::compare::Ratio;
use crate::record::{percentiles, Recorder};
use crate::run::new_histogram;

pub const NAME: &str = "system/checkpoints";

const ROWS: u32 = 1_000_000;
const QUICK_ROWS: u32 = 10_000;
/// WAL after which a checkpoint is due: several come in each run.
const EVERY: &str = "128MB";
const QUICK_EVERY: &str = "1MB";
/// How long a run is.
const TIME: Duration = Duration::from_secs(15);
const QUICK_TIME: Duration = Duration::from_secs(1);
/// Rows of a transaction that makes the load.
const TOGETHER: u32 = 1000;

const WITHIN: Duration = Duration::from_secs(120);

const VIEWS: [(&str, &str); 2] = [
    (
        "takings",
        "SELECT status, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY status",
    ),
    (
        "order_names",
        "SELECT o.id, o.amount, c.name FROM orders o JOIN customers c ON c.id = o.customer",
    ),
];

/// A server.
struct Side<'a> {
    name: &'static str,
    cluster: &'a Cluster,
    runs: Vec<Run>,
}

/// What a run has come to.
struct Run {
    rows: u64,
    seconds: f64,
    latency: Histogram<u64>,
    checkpoints: Taken,
}

/// Checkpoints, and what was written for them.
#[derive(Clone, Copy, Default)]
struct Taken {
    count: u64,
    bytes: u64,
}

/// Prints a table and records every run.
pub fn measure(setting: &Setting, recorder: &mut Recorder) -> Result<()> {
    let rows = setting.rows(ROWS, QUICK_ROWS);
    let every = setting.choose(EVERY, QUICK_EVERY);
    println!("{NAME}: two views over {rows} orders, a checkpoint after each {every} of WAL");
    setting.with_cluster(&[], |without, _| {
        setting.with_cluster(&[("eddy.checkpoint_wal", every)], |with, _| {
            let mut sides = [("without", &*without), ("with", &*with)]
                .map(|(name, cluster)| Side { name, cluster, runs: Vec::new() });
            sides.iter().try_for_each(|side| side.create(rows))?;
            // The first run warms caches.
            for run in 0..=setting.pairs() {
                for number in turn(run, sides.len()) {
                    let time = setting.choose(TIME, QUICK_TIME);
                    let result = sides[number].run(rows, time)?;
                    if run > 0 {
                        sides[number].runs.push(result);
                    }
                }
            }
            for side in &sides {
                let mut client = side.connect()?;
                VIEWS.iter().try_for_each(|(view, _)| verify(&mut client, view))?;
            }
            print(&sides, recorder)
        })
    })
}

impl Side<'_> {
    fn connect(&self) -> Result<Client> {
        let mut client = self.cluster.connect("postgres")?;
        client.batch_execute(
            "SET client_min_messages = warning; SET synchronous_commit = off; SET eddy.read_timeout = '10min'",
        )?;
        Ok(client)
    }

    fn create(&self, rows: u32) -> Result<()> {
        let mut client = self.connect()?;
        client.batch_execute("CREATE EXTENSION pg_eddy")?;
        orders::create_tables(&mut client, rows)?;
        for (view, query) in VIEWS {
            client.batch_execute(&format!("CREATE INCREMENTAL VIEW {view} AS {query}"))?;
        }
        wait_for_views(&mut client)?;
        if self.name == "with" {
            wait_for("a checkpoint", WITHIN, || Ok((self.taken()?.count > 0).then_some(())))?;
        }
        Ok(())
    }

    fn run(&self, rows: u32, time: Duration) -> Result<Run> {
        let before = self.taken()?;
        let is_over = AtomicBool::new(false);
        let mut client = self.connect()?;
        let mut latency = new_histogram();
        let began = Instant::now();
        let changed = scope(|scope| {
            let load = scope.spawn(|| self.change_until(rows, &is_over));
            let mut id = 0;
            while began.elapsed() < time {
                id = id % rows + 1;
                let change = format!("UPDATE orders SET amount = amount + 1 WHERE id = {id}");
                client.batch_execute(&change)?;
                let visible = timed(|| wait_for_views(&mut client))?.1;
                latency.record(visible.as_nanos() as u64)?;
            }
            is_over.store(true, SeqCst);
            load.join().expect("no writer panics")
        })?;
        let seconds = began.elapsed().as_secs_f64();
        let after = self.taken()?;
        let checkpoints =
            Taken { count: after.count - before.count, bytes: after.bytes - before.bytes };
        Ok(Run { rows: changed, seconds, latency, checkpoints })
    }

    /// Changes as many rows as the views follow; answers how many.
    fn change_until(&self, rows: u32, is_over: &AtomicBool) -> Result<u64> {
        let mut client = self.connect()?;
        let (mut from, mut changed) = (0, 0);
        while !is_over.load(SeqCst) {
            let change = "UPDATE orders SET amount = amount + 1 WHERE id > $1 AND id <= $2";
            changed += client.execute(change, &[&(from as i32), &((from + TOGETHER) as i32)])?;
            wait_for_views(&mut client)?;
            from = (from + TOGETHER) % rows;
        }
        Ok(changed)
    }

    /// What the server has written so far.
    fn taken(&self) -> Result<Taken> {
        let log = self.cluster.log()?;
        let mut taken = Taken::default();
        for line in log.lines().filter(|line| line.contains("pg_eddy: checkpoint at")) {
            let bytes = line.split(' ').rev().skip_while(|word| *word != "bytes,").nth(1);
            taken.bytes += bytes.context("a checkpoint without its size")?.parse::<u64>()?;
            taken.count += 1;
        }
        Ok(taken)
    }
}

fn print(sides: &[Side<'_>], recorder: &mut Recorder) -> Result<()> {
    println!(
        "{:<8} {:>9} {:>6} {:>9} {:>9} {:>6} {:>11} {:>10}",
        "", "rows/s", "ratio", "median", "99 %", "ratio", "checkpoints", "bytes/row"
    );
    let rate = |run: &Run| run.rows as f64 / run.seconds;
    let at = |part: f64| move |run: &Run| run.latency.value_at_quantile(part) as f64;
    let of = |side: &Side<'_>, figure: &dyn Fn(&Run) -> f64| -> Vec<f64> {
        side.runs.iter().map(figure).collect()
    };
    for side in sides {
        let (rates, last) = (of(side, &rate), of(side, &at(0.99)));
        // Of rates, more is better; of latencies, less.
        let throughput = Ratio::of_pairs(&rates, &of(&sides[0], &rate));
        let latency = Ratio::of_pairs(&last, &of(&sides[0], &at(0.99)));
        let checkpoints: u64 = side.runs.iter().map(|run| run.checkpoints.count).sum();
        let bytes: u64 = side.runs.iter().map(|run| run.checkpoints.bytes).sum();
        let rows: u64 = side.runs.iter().map(|run| run.rows).sum();
        let bytes_per_row = bytes as f64 / rows as f64;
        println!(
            "{:<8} {:>9.0} {:>6.2} {:>9} {:>9} {:>6.2} {:>11} {:>10.1}",
            side.name,
            median(&rates),
            throughput.median,
            readable(Duration::from_nanos(median(&of(side, &at(0.5))) as u64)),
            readable(Duration::from_nanos(median(&last) as u64)),
            latency.median,
            checkpoints,
            bytes_per_row,
        );
        let latencies = side.runs.iter().map(|run| percentiles(&run.latency));
        recorder.write(&json!({
            "kind": "checkpoints", "name": NAME, "side": side.name, "rows_per_second": rates,
            "latency_ns": latencies.collect::<Vec<_>>(), "throughput_ratio": throughput.median,
            "latency_ratio": latency.median, "checkpoints": checkpoints, "bytes": bytes, "rows": rows,
            "bytes_per_row": bytes_per_row,
        }))?;
    }
    ensure!(sides[1].runs.iter().any(|run| run.checkpoints.count > 0), "no checkpoint was taken");
    println!("(ratio: to the server without checkpoints, by pairs)\n");
    Ok(())
}
