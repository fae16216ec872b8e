//! Equal outputs: the two sides, every batch size and every number of workers must give the same
//! deltas at the same times.

use anyhow::Result;

use super::entry::{Entry, Size};
use super::run::Run;
use super::workload::{SideName, LOAD_TIME};
use crate::report::Counts;

/// What is to be compared.
pub struct Extent<'a> {
    pub size: Size,
    pub batches: &'a [u64],
    pub workers: &'a [usize],
    /// Swaps of every run, as far as they fit in `rounds` batches; no batch is larger.
    pub swaps: u64,
    pub rounds: u64,
}

/// Runs everything against the first run; each run is a check.
pub fn check(entry: &Entry, extent: &Extent) -> Result<Counts> {
    let mut counts = Counts::default();
    let reference = reference(entry, extent)?;
    for workers in extent.workers {
        for batch in extent.batches {
            for side in SideName::BOTH {
                let run = run(entry, extent, side, *workers, *batch)?;
                let end = run.frontier().min(reference.frontier());
                let difference = run.checksums.first_difference(&reference.checksums, end);
                counts.record(difference.is_none());
                if let Some(time) = difference {
                    println!(
                        "{}: {} with {workers} workers in batches of {batch} differs at time {time}",
                        entry.name,
                        side.as_str(),
                    );
                }
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

/// The hand-written program with one worker, all swaps in one batch.
fn reference(entry: &Entry, extent: &Extent) -> Result<Run> {
    run(entry, extent, SideName::Hand, 1, extent.swaps)
}

fn run(entry: &Entry, extent: &Extent, side: SideName, workers: usize, batch: u64) -> Result<Run> {
    let mut run = Run::start(entry.workload(extent.size).as_ref(), side, workers)?;
    run.batches(batch, (extent.swaps / batch).min(extent.rounds))?;
    Ok(run)
}
