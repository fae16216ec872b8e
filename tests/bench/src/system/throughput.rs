//! The highest rate of row changes that the whole path sustains.
//!
//! Writers commit transactions of a fixed number of rows as fast as they can; the clock runs from
//! their start until the view has all of it, so a backlog counts. They do not wait for the disk
//! (`synchronous_commit = off`), or transactions of one row would measure that. Beside it: what the
//! writers did as long as they ran, and the share of time that the worker spent decoding, in the
//! dataflow and applying (`eddy.activity`), the rest being naps and waits for more.

use std::thread::scope;
use std::time::{Duration, Instant};

use anyhow::Result;
use harness::cluster::Cluster;
use harness::timing::median;
use postgres::Client;
use serde_json::{json, Value};

use super::activity::Activity;
use super::setting::{verify, wait_for_views, Setting};
use super::subject::{Subject, ALL, VIEW};
use crate::plot::{draw, short, Line, Panel, Series};
use crate::record::Recorder;

pub const NAME: &str = "system/throughput";

/// Rows per transaction, and sessions that write: bulk loads come from few, single rows from many.
const LOADS: [Load; 3] = [
    Load { rows: 1, sessions: 8 },
    Load { rows: 100, sessions: 4 },
    Load { rows: 10_000, sessions: 2 },
];
const SECONDS: f64 = 3.0;
const QUICK_SECONDS: f64 = 0.2;
const ROWS: u32 = 1_000_000;
const QUICK_ROWS: u32 = 20_000;

#[derive(Clone, Copy)]
struct Load {
    rows: u32,
    sessions: u32,
}

struct Measured {
    changes: u64,
    /// Until the last COMMIT, and until all was visible.
    writing: Duration,
    elapsed: Duration,
    activity: Activity,
}

impl Measured {
    fn rate(&self) -> f64 {
        self.changes as f64 / self.elapsed.as_secs_f64()
    }

    fn written_rate(&self) -> f64 {
        self.changes as f64 / self.writing.as_secs_f64()
    }

    /// Share of the run's time.
    fn share(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.elapsed.as_secs_f64()
    }

    /// Row changes per second of the worker's own time: what it could do without writers beside it.
    fn worker_rate(&self) -> f64 {
        self.changes as f64 / self.activity.busy().as_secs_f64()
    }
}

/// Prints a table, records every run and draws the rates.
pub fn measure(setting: &Setting, recorder: &mut Recorder) -> Result<()> {
    println!("{NAME}: row changes per second, from the first COMMIT until all are visible");
    println!(
        "{:<10} {:>8} {:>9} {:>19}  {:>9}  {:>7} {:>7} {:>7}  {:>10}",
        "view", "rows/tx", "median", "spread", "writers", "decode", "engine", "apply", "worker"
    );
    let mut series = Vec::new();
    for (colour, subject) in ALL.into_iter().enumerate() {
        let points = setting
            .with_cluster(&[], |cluster, _| measure_subject(setting, cluster, subject, recorder))?;
        series.push(Series { label: subject.name.to_owned(), colour, line: Line::Solid, points });
    }
    let panel = Panel {
        title: format!("{NAME}: until visible"),
        x: "rows per transaction",
        y: "row changes per second",
        unit: short,
        series,
    };
    println!("(worker: row changes per second of the worker's own time)");
    draw(setting.output, NAME, &[panel])
}

fn measure_subject(
    setting: &Setting,
    cluster: &Cluster,
    subject: &Subject,
    recorder: &mut Recorder,
) -> Result<Vec<(f64, f64)>> {
    let rows = setting.rows(ROWS, QUICK_ROWS);
    let mut client = cluster.connect("postgres")?;
    subject.create_tables(&mut client, rows)?;
    subject.create_view(&mut client)?;
    let mut points = Vec::new();
    for load in LOADS {
        let mut runs = Vec::new();
        for pair in 0..setting.pairs() {
            // Dead rows of the runs before are no part of this one.
            client.batch_execute(&format!("VACUUM {}, {VIEW}", subject.table))?;
            let measured = run(setting, cluster, subject, rows, load)?;
            recorder.write(&describe(subject, rows, load, pair, &measured))?;
            runs.push(measured);
        }
        print(subject, load, &runs);
        points.push((f64::from(load.rows), median_of(&runs, Measured::rate)));
    }
    verify(&mut client, VIEW)?;
    Ok(points)
}

fn run(
    setting: &Setting,
    cluster: &Cluster,
    subject: &Subject,
    rows: u32,
    load: Load,
) -> Result<Measured> {
    let duration = setting.duration(SECONDS, QUICK_SECONDS)?;
    let mut control = cluster.connect("postgres")?;
    let mut clients = Vec::new();
    for _ in 0..load.sessions {
        clients.push(cluster.connect("postgres")?);
    }
    wait_for_views(&mut control)?;
    let before = Activity::read(&mut control)?;
    let start = Instant::now();
    let written = scope(|scope| {
        let mut writers = Vec::new();
        for (number, client) in clients.iter_mut().enumerate() {
            // Each writer has rows of its own, so that none waits for another.
            let share = rows / load.sessions;
            let own = (number as u32 * share + 1, share);
            writers.push(scope.spawn(move || write(client, subject, own, load, start + duration)));
        }
        let written = writers.into_iter().map(|writer| writer.join().expect("no writer panics"));
        written.sum::<Result<u64>>()
    });
    let (changes, writing) = (written?, start.elapsed());
    wait_for_views(&mut control)?;
    let elapsed = start.elapsed();
    let activity = Activity::read(&mut control)?.since(&before);
    Ok(Measured { changes, writing, elapsed, activity })
}

/// Changes the rows from `first` on, `share` of them, over and over; answers how many were changed.
fn write(
    client: &mut Client,
    subject: &Subject,
    (first, share): (u32, u32),
    load: Load,
    until: Instant,
) -> Result<u64> {
    client.batch_execute("SET synchronous_commit = off")?;
    let statement = client.prepare(&subject.change_many())?;
    let (mut changes, mut at) = (0, 0);
    while Instant::now() < until {
        if at + load.rows > share {
            at = 0;
        }
        let (from, to) = (i32::try_from(first + at)?, i32::try_from(first + at + load.rows - 1)?);
        changes += client.execute(&statement, &[&from, &to])?;
        // Single rows are visited all over the table, as users do; the stride is odd.
        at += if load.rows == 1 { 7919 } else { load.rows };
        at %= share;
    }
    Ok(changes)
}

fn median_of(runs: &[Measured], figure: impl Fn(&Measured) -> f64) -> f64 {
    median(&runs.iter().map(figure).collect::<Vec<f64>>())
}

fn print(subject: &Subject, load: Load, runs: &[Measured]) {
    let rates = runs.iter().map(Measured::rate);
    let least = rates.clone().fold(f64::INFINITY, f64::min);
    let greatest = rates.fold(0.0, f64::max);
    let share = |time: fn(&Activity) -> Duration| {
        100.0 * median_of(runs, |run| run.share(time(&run.activity)))
    };
    println!(
        "{:<10} {:>8} {:>9.0} {:>8.0} – {:>8.0}  {:>9.0}  {:>5.0} % {:>5.0} % {:>5.0} %  {:>10.0}",
        subject.name,
        load.rows,
        median_of(runs, Measured::rate),
        least,
        greatest,
        median_of(runs, Measured::written_rate),
        share(|activity| activity.decode),
        share(|activity| activity.engine),
        share(|activity| activity.apply),
        median_of(runs, Measured::worker_rate),
    );
}

fn describe(subject: &Subject, rows: u32, load: Load, pair: usize, run: &Measured) -> Value {
    json!({
        "kind": "throughput", "name": NAME, "view": subject.name, "rows": rows,
        "rows_per_transaction": load.rows, "sessions": load.sessions, "run": pair,
        "changes": run.changes, "seconds": run.elapsed.as_secs_f64(),
        "seconds_writing": run.writing.as_secs_f64(), "changes_per_second": run.rate(),
        "written_per_second": run.written_rate(), "changes_per_worker_second": run.worker_rate(),
        "steps": run.activity.steps, "share_decode": run.share(run.activity.decode),
        "share_engine": run.share(run.activity.engine), "share_apply": run.share(run.activity.apply),
    })
}
