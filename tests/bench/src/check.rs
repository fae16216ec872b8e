//! Equal outputs: the two sides, every batch size and every number of workers must give the same
//! deltas at the same times.

use std::fs;
use std::path::Path;

use anyhow::{ensure, Result};
use harness::report::Counts;

use crate::compare::worker_count;
use crate::entry::{Entry, Size, ENTRIES};
use crate::record::file_stem;
use crate::run::Run;
use crate::workload::{SideName, LOAD_TIME};

/// Swaps of each run whose checksums are compared in the short mode.
pub const QUICK_CHECKED: u64 = 2000;

/// Equal outputs everywhere, nothing timed.
pub fn check_all() -> Result<Counts> {
    let mut counts = Counts::default();
    for entry in ENTRIES {
        counts.add(&check_entry(entry, QUICK_CHECKED, u64::MAX, None)?);
    }
    Ok(counts)
}

/// Each power of ten below `swaps` is a size of batches.
pub fn check_entry(
    entry: &Entry,
    swaps: u64,
    rounds: u64,
    checksums: Option<&Path>,
) -> Result<Counts> {
    let powers_of_ten = std::iter::successors(Some(1), |batch: &u64| Some(batch * 10));
    let mut batches: Vec<u64> = powers_of_ten.take_while(|batch| *batch < swaps).collect();
    // All of them in one batch.
    batches.push(swaps);
    let extent = Extent {
        size: entry.quick_size,
        batches: &batches,
        workers: &[1, 2],
        swaps,
        rounds,
        checksums,
    };
    check(entry, &extent)
}

/// What is to be compared.
struct Extent<'a> {
    size: Size,
    batches: &'a [u64],
    workers: &'a [usize],
    /// Swaps of every run, as far as they fit in `rounds` batches; no batch is larger.
    swaps: u64,
    rounds: u64,
    /// Where to write each side's checksum of each time, for `diff`.
    checksums: Option<&'a Path>,
}

/// Runs everything against the first run; each run is a check.
fn check(entry: &Entry, extent: &Extent) -> Result<Counts> {
    let mut counts = Counts::default();
    let reference = reference(entry, extent)?;
    ensure!(reference.checksums.updates > 0, "{}: nothing is output", entry.name);
    for workers in extent.workers {
        for batch in extent.batches {
            for side in SideName::BOTH {
                counts.record(is_equal(entry, extent, &reference, (side, *workers, *batch))?);
            }
        }
    }
    let end = reference.frontier();
    println!(
        "{}: {} output updates at {} times, checksum {:016x}; {} of {} runs equal",
        entry.name,
        reference.checksums.updates,
        end - LOAD_TIME,
        reference.checksums.digest(end),
        counts.passed,
        counts.passed + counts.failed,
    );
    Ok(counts)
}

fn is_equal(
    entry: &Entry,
    extent: &Extent,
    reference: &Run,
    (side, workers, batch): (SideName, usize, u64),
) -> Result<bool> {
    let run = run(entry, extent, side, workers, batch)?;
    if let Some(folder) = extent.checksums {
        let name =
            format!("{}-{}-{workers}-{batch}.checksums", file_stem(entry.name), side.as_str());
        fs::write(folder.join(name), run.checksums.by_time(run.frontier()))?;
    }
    let end = run.frontier().min(reference.frontier());
    let difference = run.checksums.first_difference(&reference.checksums, end);
    if let Some(time) = difference {
        println!(
            "{}: {} with {} in batches of {batch} differs at time {time}",
            entry.name,
            side.title(),
            worker_count(workers),
        );
    }
    Ok(difference.is_none())
}

/// The hand-written program with one worker, all swaps in one batch.
fn reference(entry: &Entry, extent: &Extent) -> Result<Run> {
    run(entry, extent, SideName::Hand, 1, extent.swaps)
}

fn run(entry: &Entry, extent: &Extent, side: SideName, workers: usize, batch: u64) -> Result<Run> {
    let mut run = Run::start(entry.workload(extent.size).as_ref(), side, workers)?;
    run.batches(batch, (extent.swaps / batch).min(extent.rounds))?;
    Ok(run)
}
