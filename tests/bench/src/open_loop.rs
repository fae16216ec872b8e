//! Open loop: swaps are due on a schedule, whatever the program does, and each one's latency counts
//! from the moment it was due. A program that is behind finds a larger batch waiting.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;
use serde_json::json;

use crate::compare::{ensure_runs_equal, nanoseconds, start_both, worker_count, Ratio};
use crate::entry::{Entry, Size};
use crate::plot::{draw, Line, Panel, Series};
use crate::record::{percentiles, Recorder};
use crate::run::{new_histogram, Run};
use crate::workload::SideName;

pub const NAME: &str = "engine/open";

/// What is to be measured.
pub struct Extent<'a> {
    pub size: Size,
    /// Swaps per second, ascending.
    pub rates: &'a [u64],
    /// Length of each measurement.
    pub duration: Duration,
    pub workers: &'a [usize],
    /// Pairs of measurements for each rate.
    pub pairs: usize,
}

/// All pairs of one rate together.
struct Row {
    rate: u64,
    /// By side; `None` beyond what the side sustains.
    latencies: [Option<Histogram<u64>>; 2],
    ratio: Option<Ratio>,
}

/// A side that needs longer than this multiple of the schedule does not sustain the rate.
const SUSTAINED: f64 = 1.2;

/// Prints a table per number of workers, records every measurement and draws the percentiles.
pub fn measure(
    entry: &Entry,
    extent: &Extent,
    recorder: &mut Recorder,
    folder: &Path,
) -> Result<()> {
    let mut panels = Vec::new();
    for workers in extent.workers {
        let mut runs = start_both(entry, extent.size, *workers, recorder)?;
        println!(
            "{:>9}  {:^32}  {:^32}  {:>6}  spread of {} pairs",
            "swaps/s", "by hand: median, 99 %, maximum", "SQL", "ratio", extent.pairs
        );
        let mut rows = Vec::new();
        let mut sustained = [true, true];
        for rate in extent.rates {
            let at = (*workers, *rate);
            let row = measure_rate(entry, extent, at, &mut runs, &mut sustained, recorder)?;
            print(&row);
            rows.push(row);
        }
        println!("(– : more than was sustained; the ratio is that of the medians)\n");
        panels.push(panel(*workers, &rows));
    }
    draw(folder, NAME, &panels)
}

fn measure_rate(
    entry: &Entry,
    extent: &Extent,
    (workers, rate): (usize, u64),
    runs: &mut [Run; 2],
    sustained: &mut [bool; 2],
    recorder: &mut Recorder,
) -> Result<Row> {
    let mut merged = [new_histogram(), new_histogram()];
    let mut medians = [vec![], vec![]];
    for pair in 0..extent.pairs {
        for (i, side) in SideName::BOTH.into_iter().enumerate() {
            if !sustained[i] {
                continue;
            }
            let segment = runs[i].scheduled(rate, extent.duration)?;
            let seconds = segment.elapsed.as_secs_f64();
            sustained[i] = seconds <= SUSTAINED * extent.duration.as_secs_f64();
            recorder.write(&json!({
                "kind": "open", "name": entry.name, "side": side.as_str(), "workers": workers,
                "nodes": extent.size.nodes, "edges": extent.size.edges, "offered_per_second": rate,
                "pair": pair, "swaps": segment.swaps, "seconds": seconds,
                "swaps_per_second": segment.swaps as f64 / seconds, "sustained": sustained[i],
                "latency_ns": percentiles(&segment.latencies),
            }))?;
            medians[i].push(segment.latencies.value_at_quantile(0.5) as f64);
            merged[i].add(&segment.latencies)?;
        }
    }
    catch_up(runs)?;
    ensure_runs_equal(entry, runs)?;
    let [hand, sql] = merged;
    let latencies = [sustained[0].then_some(hand), sustained[1].then_some(sql)];
    let both = latencies.iter().all(Option::is_some);
    Ok(Row { rate, latencies, ratio: both.then(|| Ratio::of_pairs(&medians[1], &medians[0])) })
}

/// A side that was not measured any more gets the swaps that the other one got.
fn catch_up(runs: &mut [Run; 2]) -> Result<()> {
    let end = runs[0].frontier().max(runs[1].frontier());
    for run in runs {
        let missing = end - run.frontier();
        if missing > 0 {
            run.batches(missing, 1)?;
        }
    }
    Ok(())
}

fn print(row: &Row) {
    let show = |latencies: &Option<Histogram<u64>>| match latencies {
        None => "–".to_owned(),
        Some(all) => format!(
            "{:>10}{:>11}{:>11}",
            nanoseconds(all.value_at_quantile(0.5) as f64),
            nanoseconds(all.value_at_quantile(0.99) as f64),
            nanoseconds(all.max() as f64),
        ),
    };
    let ratio = row.ratio.map(|ratio| ratio.to_string()).unwrap_or_default();
    println!(
        "{:>9}  {:>32}  {:>32}  {ratio}",
        row.rate,
        show(&row.latencies[0]),
        show(&row.latencies[1])
    );
}

fn panel(workers: usize, rows: &[Row]) -> Panel {
    let mut series = Vec::new();
    for (colour, side) in SideName::BOTH.into_iter().enumerate() {
        for (line, quantile, label) in [
            (Line::Solid, 0.5, "median"),
            (Line::Dashed, 0.99, "99 %"),
            (Line::Dotted, 1.0, "maximum"),
        ] {
            let point = |row: &Row| {
                let latencies = row.latencies[colour].as_ref()?;
                Some((row.rate as f64, latencies.value_at_quantile(quantile) as f64))
            };
            let points = rows.iter().filter_map(point).collect();
            let label = format!("{}, {label}", side.title());
            series.push(Series { label, colour, line, points });
        }
    }
    Panel {
        title: format!("Open loop, out-degree distribution, {}", worker_count(workers)),
        x: "offered swaps per second",
        y: "latency from the scheduled moment",
        unit: nanoseconds,
        series,
    }
}
