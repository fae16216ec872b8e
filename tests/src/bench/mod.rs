//! `make bench`: what SQL through planner and engine costs beside a program written by hand against
//! differential dataflow. Needs no server.
//!
//! `workload` is what every benchmark is made of, `programs` are the benchmarks, `sql_side` and
//! `hand_side` run them; `check` proves that both compute the same, `compare` takes the times.

mod check;
mod checksum;
mod compare;
mod entry;
mod graph;
mod hand_side;
mod programs;
mod record;
mod run;
mod signal;
mod sql_side;
mod workload;

use std::path::PathBuf;

use anyhow::{bail, Result};

use crate::report::Counts;
use entry::{Entry, Size, ENTRIES};
use record::Recorder;

#[derive(Clone, Debug, clap::Args)]
pub struct Extent {
    /// Benchmarks, as `E2` or `engine/E2`; all of them if none is named
    pub names: Vec<String>,
    /// Small sizes and few rounds: keeps everything alive, judges no times
    #[arg(long)]
    pub quick: bool,
    /// The largest size of each benchmark
    #[arg(long)]
    pub large: bool,
    /// Nodes of the graph (or rows of the smaller table), instead of the benchmark's own
    #[arg(long)]
    pub nodes: Option<u64>,
    /// Edges of the graph (or rows of the larger table)
    #[arg(long)]
    pub edges: Option<u64>,
    /// Swaps per batch; a swap replaces one base row by another at a time of its own
    #[arg(long, value_delimiter = ',', default_value = "1,10,100,1000,10000,100000,1000000")]
    pub batches: Vec<u64>,
    /// Worker threads
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    pub workers: Vec<usize>,
    /// Pairs of measurements, by hand and SQL in turn, for each batch size
    #[arg(long, default_value_t = 5)]
    pub pairs: usize,
    /// Swaps of one measurement, where they fit in `rounds` batches
    #[arg(long, default_value_t = 20_000)]
    pub swaps: u64,
    /// Most batches of one measurement
    #[arg(long, default_value_t = 1000)]
    pub rounds: u64,
    /// Folder for JSON lines and plots
    #[arg(long, default_value = "bench-results")]
    pub output: PathBuf,
}

impl Extent {
    fn chosen(&self) -> Result<Vec<&'static Entry>> {
        for name in &self.names {
            if !ENTRIES.iter().any(|entry| entry.is_named(name)) {
                let known: Vec<_> = ENTRIES.iter().map(|entry| entry.name).collect();
                bail!("there is no benchmark \"{name}\"; there are {}", known.join(", "));
            }
        }
        let is_chosen = |entry: &&Entry| {
            self.names.is_empty() || self.names.iter().any(|name| entry.is_named(name))
        };
        Ok(ENTRIES.iter().filter(is_chosen).collect())
    }

    /// The short mode takes no longer than its number of swaps.
    fn batches(&self) -> Vec<u64> {
        let longest = if self.quick { QUICK_SWAPS } else { u64::MAX };
        self.batches.iter().copied().filter(|batch| *batch <= longest).collect()
    }

    fn size(&self, entry: &Entry) -> Size {
        let size = match (self.quick, self.large) {
            (true, _) => entry.quick_size,
            (false, true) => entry.sizes[entry.sizes.len() - 1],
            (false, false) => entry.sizes[0],
        };
        Size { nodes: self.nodes.unwrap_or(size.nodes), edges: self.edges.unwrap_or(size.edges) }
    }
}

/// Swaps of one measurement in the short mode.
const QUICK_SWAPS: u64 = 1000;

/// Swaps of each run whose checksums are compared.
const CHECKED_SWAPS: u64 = 2000;

/// The short mode as a layer of tests: equal outputs everywhere.
pub fn run_quick() -> Result<Counts> {
    let mut counts = Counts::default();
    for entry in ENTRIES {
        counts.add(&check_entry(entry)?);
    }
    Ok(counts)
}

fn check_entry(entry: &Entry) -> Result<Counts> {
    let extent = check::Extent {
        size: entry.quick_size,
        batches: &[1, 10, 100, 1000, 10_000, 100_000, 1_000_000],
        workers: &[1, 2],
        swaps: CHECKED_SWAPS,
        rounds: CHECKED_SWAPS,
    };
    check::check(entry, &extent)
}

/// Checks, then measures; false when outputs differ.
pub fn run(extent: &Extent) -> Result<bool> {
    let mut counts = Counts::default();
    for entry in extent.chosen()? {
        counts.add(&check_entry(entry)?);
        let mut recorder = Recorder::create(&extent.output, entry.name)?;
        let compared = compare::Extent {
            size: extent.size(entry),
            batches: &extent.batches(),
            workers: &extent.workers,
            pairs: extent.pairs,
            swaps: if extent.quick { QUICK_SWAPS } else { extent.swaps },
            rounds: extent.rounds,
        };
        compare::compare(entry, &compared, &mut recorder)?;
    }
    println!("{counts}");
    Ok(counts.is_success())
}
