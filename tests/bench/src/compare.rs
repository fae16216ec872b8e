//! The two sides in turn, A B A B …, so that what else the machine does falls on both alike: the
//! ratio of each pair is what counts, absolute times are only shown.

use std::time::Duration;

use anyhow::{ensure, Result};
use harness::timing::{median, readable};
use serde_json::json;

use crate::checksum::Checksums;
use crate::entry::{Entry, Size};
use crate::record::{percentiles, Recorder};
use crate::run::{Loaded, Run, Segment};
use crate::workload::{SideName, Time, LOAD_TIME};

/// What is to be compared.
pub struct Extent<'a> {
    pub size: Size,
    pub batches: &'a [u64],
    pub workers: &'a [usize],
    /// Pairs of segments for each batch size.
    pub pairs: usize,
    /// Swaps of a segment, if they fit in `rounds` batches; one batch is the least.
    pub swaps: u64,
    pub rounds: u64,
    /// A batch size is left out whose pairs would take longer.
    pub longest: Duration,
}

impl Extent<'_> {
    fn rounds(&self, batch: u64) -> u64 {
        (self.swaps / batch).clamp(1, self.rounds)
    }

    /// How long the pairs of a batch size take at the pace of another one.
    fn estimate(&self, batch: u64, pace: &Row) -> Duration {
        let swaps = (batch * self.rounds(batch)) as f64 * self.pairs as f64;
        let seconds: f64 = pace.swaps_per_second.iter().map(|rate| swaps / rate).sum();
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// The medians for one number of workers and one batch size.
pub struct Row {
    pub workers: usize,
    pub batch: u64,
    /// By side: hand, SQL. Nanoseconds.
    pub latency: [f64; 2],
    pub swaps_per_second: [f64; 2],
    /// Time of SQL divided by that of the hand-written program.
    pub ratio: Ratio,
}

/// Median of the pairs' ratios, with the least and the greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub least: f64,
    pub median: f64,
    pub greatest: f64,
}

impl Ratio {
    /// Of figures that were taken in pairs.
    pub fn of_pairs(these: &[f64], those: &[f64]) -> Ratio {
        let ratios: Vec<f64> = these.iter().zip(those).map(|(a, b)| a / b).collect();
        Ratio {
            least: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            median: median(&ratios),
            greatest: ratios.iter().copied().fold(0.0, f64::max),
        }
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:>6.2}  {:>5.2} – {:<5.2}", self.median, self.least, self.greatest)
    }
}

/// Prints a table and records every measurement; an error if the outputs differ.
pub fn compare(entry: &Entry, extent: &Extent, recorder: &mut Recorder) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for workers in extent.workers {
        let mut runs = start_both(entry, extent.size, *workers, recorder)?;
        println!(
            "{:>9}  {:>10} {:>10}  {:>10} {:>10}  {:>6}  spread of {} pairs",
            "batch", "by hand", "swaps/s", "SQL", "swaps/s", "ratio", extent.pairs
        );
        for (index, batch) in extent.batches.iter().enumerate() {
            let pace = rows.last().filter(|_| index > 0);
            let estimate = pace.map_or(Duration::ZERO, |pace| extent.estimate(*batch, pace));
            if estimate > extent.longest {
                let seconds = estimate.as_secs_f64();
                println!("{batch:>9}  left out: would take {seconds:.0} seconds (see --longest)");
                continue;
            }
            let row = compare_batch(entry, extent, (*workers, *batch), &mut runs, recorder)?;
            println!(
                "{:>9}  {:>10} {:>10.0}  {:>10} {:>10.0}  {}",
                row.batch,
                nanoseconds(row.latency[0]),
                row.swaps_per_second[0],
                nanoseconds(row.latency[1]),
                row.swaps_per_second[1],
                row.ratio,
            );
            rows.push(row);
        }
        let (end, times) = (runs[0].frontier(), runs[0].frontier() - LOAD_TIME);
        let checksum = format!("{:016x}", runs[0].checksums.digest(end));
        println!("outputs equal at all {times} times, checksum {checksum}\n");
        recorder.write(&json!({
            "kind": "equal", "name": entry.name, "workers": workers, "times": times,
            "output_updates": runs[0].checksums.updates, "checksum": checksum,
        }))?;
    }
    Ok(rows)
}

/// Loads both sides and shows what that took.
pub fn start_both(
    entry: &Entry,
    size: Size,
    workers: usize,
    recorder: &mut Recorder,
) -> Result<[Run; 2]> {
    let workload = entry.workload(size);
    let start = |side| Run::start(workload.as_ref(), side, workers);
    let runs = [start(SideName::Hand)?, start(SideName::Sql)?];
    ensure_runs_equal(entry, &runs)?;
    let Loaded { base_rows, output_rows, .. } = runs[0].loaded;
    println!(
        "{}: {}; {base_rows} base rows, {output_rows} output rows, {}",
        entry.name,
        workload.about(),
        worker_count(workers),
    );
    for (side, run) in SideName::BOTH.into_iter().zip(&runs) {
        println!(
            "  load {:<8} {:>8}, {:>6.1} bytes of state per base row, {:>8.1} per output row",
            format!("{}:", side.title()),
            readable(run.loaded.time),
            run.loaded.bytes as f64 / base_rows as f64,
            run.loaded.bytes as f64 / output_rows as f64,
        );
        recorder.write(&run.loaded.describe(entry, size, side, workers))?;
    }
    Ok(runs)
}

fn compare_batch(
    entry: &Entry,
    extent: &Extent,
    (workers, batch): (usize, u64),
    runs: &mut [Run; 2],
    recorder: &mut Recorder,
) -> Result<Row> {
    let rounds = extent.rounds(batch);
    let (mut latencies, mut rates) = ([vec![], vec![]], [vec![], vec![]]);
    for pair in 0..extent.pairs {
        for (i, side) in SideName::BOTH.into_iter().enumerate() {
            let segment = runs[i].batches(batch, rounds)?;
            latencies[i].push(segment.latencies.value_at_quantile(0.5) as f64);
            rates[i].push(segment.swaps_per_second());
            recorder.write(&describe(entry, extent, side, (workers, batch, pair), &segment))?;
        }
    }
    ensure_runs_equal(entry, runs)?;
    Ok(Row {
        workers,
        batch,
        latency: [median(&latencies[0]), median(&latencies[1])],
        swaps_per_second: [median(&rates[0]), median(&rates[1])],
        ratio: Ratio::of_pairs(&rates[0], &rates[1]),
    })
}

fn describe(
    entry: &Entry,
    extent: &Extent,
    side: SideName,
    (workers, batch, pair): (usize, u64, usize),
    segment: &Segment,
) -> serde_json::Value {
    json!({
        "kind": "closed", "name": entry.name, "side": side.as_str(), "workers": workers,
        "nodes": extent.size.nodes, "edges": extent.size.edges,
        "batch": batch, "pair": pair, "swaps": segment.swaps,
        "seconds": segment.elapsed.as_secs_f64(),
        "swaps_per_second": segment.swaps_per_second(),
        "latency_ns": percentiles(&segment.latencies),
    })
}

/// An error if two runs that have come equally far have not output the same.
pub fn ensure_runs_equal(entry: &Entry, [hand, sql]: &[Run; 2]) -> Result<()> {
    ensure_equal(entry, &hand.checksums, &sql.checksums, hand.frontier())
}

pub fn ensure_equal(entry: &Entry, hand: &Checksums, sql: &Checksums, end: Time) -> Result<()> {
    let difference = hand.first_difference(sql, end);
    ensure!(difference.is_none(), "{}: outputs differ at time {difference:?}", entry.name);
    Ok(())
}

pub fn worker_count(workers: usize) -> String {
    if workers == 1 {
        "1 worker".to_owned()
    } else {
        format!("{workers} workers")
    }
}

/// As people read it.
pub fn nanoseconds(value: f64) -> String {
    match value {
        v if v < 1e4 => format!("{:.1} µs", v / 1e3),
        v if v < 1e6 => format!("{:.0} µs", v / 1e3),
        v if v < 1e7 => format!("{:.1} ms", v / 1e6),
        v if v < 1e9 => format!("{:.0} ms", v / 1e6),
        v => format!("{:.2} s", v / 1e9),
    }
}
