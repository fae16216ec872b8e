//! The two sides in turn, A B A B …, so that what else the machine does falls on both alike: the
//! ratio of each pair is what counts, absolute times are only shown.

use anyhow::{ensure, Result};
use serde_json::json;

use super::entry::{Entry, Size};
use super::record::{percentiles, Recorder};
use super::run::{Run, Segment};
use super::workload::SideName;
use crate::timing::{median, readable};

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
}

/// The medians for one batch size.
pub struct Row {
    pub batch: u64,
    /// By side: hand, SQL.
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
    fn of(ratios: &[f64]) -> Ratio {
        Ratio {
            least: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            median: median(ratios),
            greatest: ratios.iter().copied().fold(0.0, f64::max),
        }
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:>6.2}  {:>5.2} – {:.2}", self.median, self.least, self.greatest)
    }
}

/// Prints a table and records every measurement; an error if the outputs differ.
pub fn compare(entry: &Entry, extent: &Extent, recorder: &mut Recorder) -> Result<()> {
    for workers in extent.workers {
        let mut runs = start_both(entry, extent, *workers, recorder)?;
        println!(
            "{:>9}  {:>10} {:>10}  {:>10} {:>10}  {:>6}  spread of {} pairs",
            "batch", "by hand", "swaps/s", "SQL", "swaps/s", "ratio", extent.pairs
        );
        for batch in extent.batches {
            let row = compare_batch(entry, extent, *workers, *batch, &mut runs, recorder)?;
            println!(
                "{:>9}  {:>10} {:>10.0}  {:>10} {:>10.0}  {}",
                row.batch,
                nanoseconds(row.latency[0]),
                row.swaps_per_second[0],
                nanoseconds(row.latency[1]),
                row.swaps_per_second[1],
                row.ratio,
            );
        }
        println!("outputs equal at all {} times\n", runs[0].frontier() - 1);
    }
    Ok(())
}

/// Loads both sides and shows what that took.
fn start_both(
    entry: &Entry,
    extent: &Extent,
    workers: usize,
    recorder: &mut Recorder,
) -> Result<[Run; 2]> {
    let workload = entry.workload(extent.size);
    let size = workload.load_size();
    let start = |side| Run::start(|| workload.start(side, workers), size);
    let runs = [start(SideName::Hand)?, start(SideName::Sql)?];
    ensure_equal(entry, &runs)?;
    println!(
        "{}: {}; {} base rows, {} output rows, {workers} worker(s)",
        entry.name,
        workload.about(),
        size,
        runs[0].checksums.rows
    );
    for (side, run) in SideName::BOTH.into_iter().zip(&runs) {
        println!(
            "  load {:>4}: {:>8}, {:>6.1} bytes of state per base row, {:>8.1} per output row",
            side.as_str(),
            readable(run.load),
            run.loaded_bytes as f64 / size as f64,
            run.loaded_bytes as f64 / run.checksums.rows as f64,
        );
        recorder.write(&json!({
            "kind": "load", "name": entry.name, "side": side.as_str(), "workers": workers,
            "nodes": extent.size.nodes, "edges": extent.size.edges,
            "base_rows": size, "output_rows": run.checksums.rows,
            "seconds": run.load.as_secs_f64(), "bytes": run.loaded_bytes,
        }))?;
    }
    Ok(runs)
}

fn compare_batch(
    entry: &Entry,
    extent: &Extent,
    workers: usize,
    batch: u64,
    runs: &mut [Run; 2],
    recorder: &mut Recorder,
) -> Result<Row> {
    let rounds = (extent.swaps / batch).clamp(1, extent.rounds);
    let (mut latencies, mut rates) = ([vec![], vec![]], [vec![], vec![]]);
    let mut ratios = Vec::new();
    for pair in 0..extent.pairs {
        for (i, side) in SideName::BOTH.into_iter().enumerate() {
            let segment = runs[i].batches(batch, rounds)?;
            latencies[i].push(segment.latencies.value_at_quantile(0.5) as f64);
            rates[i].push(segment.swaps as f64 / segment.elapsed.as_secs_f64());
            recorder.write(&describe(entry, extent, side, workers, batch, pair, &segment))?;
        }
        ratios.push(rates[0][pair] / rates[1][pair]);
    }
    ensure_equal(entry, runs)?;
    Ok(Row {
        batch,
        latency: [median(&latencies[0]), median(&latencies[1])],
        swaps_per_second: [median(&rates[0]), median(&rates[1])],
        ratio: Ratio::of(&ratios),
    })
}

fn describe(
    entry: &Entry,
    extent: &Extent,
    side: SideName,
    workers: usize,
    batch: u64,
    pair: usize,
    segment: &Segment,
) -> serde_json::Value {
    json!({
        "kind": "batches", "name": entry.name, "side": side.as_str(), "workers": workers,
        "nodes": extent.size.nodes, "edges": extent.size.edges,
        "batch": batch, "pair": pair, "swaps": segment.swaps,
        "seconds": segment.elapsed.as_secs_f64(),
        "swaps_per_second": segment.swaps as f64 / segment.elapsed.as_secs_f64(),
        "latency_ns": percentiles(&segment.latencies),
    })
}

fn ensure_equal(entry: &Entry, runs: &[Run; 2]) -> Result<()> {
    let end = runs[0].frontier();
    let difference = runs[0].checksums.first_difference(&runs[1].checksums, end);
    ensure!(difference.is_none(), "{}: outputs differ at time {difference:?}", entry.name);
    Ok(())
}

/// As people read it.
pub fn nanoseconds(value: f64) -> String {
    match value {
        v if v < 1e4 => format!("{:.1} µs", v / 1e3),
        v if v < 1e6 => format!("{:.0} µs", v / 1e3),
        v if v < 1e9 => format!("{:.1} ms", v / 1e6),
        v => format!("{:.2} s", v / 1e9),
    }
}
