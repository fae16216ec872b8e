//! What a load takes: time, and bytes of state per base row and per output row. Each measurement
//! starts a side afresh, the two in turn, never both at once.

use anyhow::Result;
use harness::timing::{median, readable};

use crate::checksum::Checksums;
use crate::compare::{ensure_equal, Ratio};
use crate::entry::{Entry, Size};
use crate::record::Recorder;
use crate::run::{Loaded, Run};
use crate::workload::{SideName, FIRST_SWAP};

pub const NAME: &str = "engine/memory";

/// What is to be measured.
pub struct Extent<'a> {
    pub size: Size,
    pub workers: &'a [usize],
    pub pairs: usize,
}

pub fn print_header() {
    println!(
        "{:<14} {:>7} {:>9} {:>9}  {:>17}  {:>17}  {:>6}  {:<14}  {:>8} {:>8}  {:>6}  spread",
        "bytes of state",
        "workers",
        "base rows",
        "output",
        "hand: /base, /out",
        "SQL: /base, /out",
        "ratio",
        "spread",
        "load",
        "SQL",
        "ratio",
    );
}

/// Prints a line per number of workers and records every load.
pub fn measure(entry: &Entry, extent: &Extent, recorder: &mut Recorder) -> Result<()> {
    for workers in extent.workers {
        let mut loads = [vec![], vec![]];
        for _ in 0..extent.pairs {
            let (hand, hand_checksums) = load(entry, extent.size, SideName::Hand, *workers)?;
            let (sql, sql_checksums) = load(entry, extent.size, SideName::Sql, *workers)?;
            ensure_equal(entry, &hand_checksums, &sql_checksums, FIRST_SWAP)?;
            for (side, loaded) in [(SideName::Hand, hand), (SideName::Sql, sql)] {
                recorder.write(&loaded.describe(entry, extent.size, side, *workers))?;
                loads[side as usize].push(loaded);
            }
        }
        print_line(entry, *workers, &loads);
    }
    Ok(())
}

fn load(entry: &Entry, size: Size, side: SideName, workers: usize) -> Result<(Loaded, Checksums)> {
    let run = Run::start(entry.workload(size).as_ref(), side, workers)?;
    Ok((run.loaded, run.checksums))
}

fn print_line(entry: &Entry, workers: usize, loads: &[Vec<Loaded>; 2]) {
    let bytes = loads.each_ref().map(|loads| figures(loads, |loaded| loaded.bytes as f64));
    let times = loads.each_ref().map(|loads| figures(loads, |loaded| loaded.time.as_secs_f64()));
    let (base, output) = (loads[0][0].base_rows, loads[0][0].output_rows);
    let state = |side: usize| {
        let bytes = median(&bytes[side]);
        format!("{:>8.1} {:>8.1}", bytes / base as f64, bytes / output as f64)
    };
    let time = |side: usize| readable(std::time::Duration::from_secs_f64(median(&times[side])));
    println!(
        "{:<14} {workers:>7} {base:>9} {output:>9}  {}  {}  {:<22}  {:>8} {:>8}  {}",
        entry.name,
        state(0),
        state(1),
        Ratio::of_pairs(&bytes[1], &bytes[0]).to_string(),
        time(0),
        time(1),
        Ratio::of_pairs(&times[1], &times[0]),
    );
}

fn figures(loads: &[Loaded], figure: impl Fn(&Loaded) -> f64) -> Vec<f64> {
    loads.iter().map(figure).collect()
}
