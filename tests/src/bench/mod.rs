//! `make bench`: what SQL through planner and engine costs beside a program written by hand against
//! differential dataflow, without a server (`engine/*`), and what the whole path costs (`system/*`).
//!
//! `workload` is what every benchmark is made of, `programs` are the benchmarks, `sql_side` and
//! `hand_side` run them; `check` proves that both compute the same, `compare` takes the times batch by
//! batch, `open_loop` on a schedule, `state` looks at loads and memory. `system` needs servers.

mod check;
mod checksum;
mod closed_loop;
mod compare;
mod entry;
mod graph;
mod hand_side;
pub mod machine;
mod open_loop;
mod plot;
mod programs;
pub mod record;
mod results;
mod run;
mod signal;
mod sql_side;
mod state;
mod system;
mod verdict;
mod workload;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{bail, Result};

use crate::installation::Build;
use crate::report::Counts;
use entry::{Entry, Size, ENTRIES};
use record::{Output, Recorder};
use system::System;

#[derive(Clone, Debug, clap::Args)]
pub struct Extent {
    /// Benchmarks: E1, E2 (or closed), reach, labels, tc, join3, open, memory, latency, throughput, growth,
    /// attach, writers, peers, or the groups engine and system; all if none is named. verdicts judges
    /// what earlier runs left in the folder
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
    /// Minutes that the pairs of one batch size may take, judged by the one before; else it is left out
    #[arg(long, default_value_t = 10.0)]
    pub longest: f64,
    /// Swaps of each run whose checksums are compared first, on small tables
    #[arg(long, default_value_t = 20_000)]
    pub checked: u64,
    /// Write the checksum of each time to a file per run
    #[arg(long)]
    pub checksums: bool,
    /// Open loop: swaps or transactions per second, ascending
    #[arg(long, value_delimiter = ',')]
    pub rates: Option<Vec<u64>>,
    /// Length of one measurement
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Rows of the largest base table, where there is a server
    #[arg(long)]
    pub rows: Option<u32>,
    /// Growth: sizes of the graphs in edges, ascending
    #[arg(long, value_delimiter = ',')]
    pub sizes: Option<Vec<u32>>,
    /// Folder for JSON lines and plots
    #[arg(long, default_value = "bench-results")]
    pub output: PathBuf,
}

/// Swaps of one measurement in the short mode, where no batch is larger either.
const QUICK_SWAPS: u64 = 1000;
const RATES: [u64; 8] = [1000, 10_000, 20_000, 50_000, 100_000, 200_000, 300_000, 400_000];
const SECONDS: f64 = 2.0;
const QUICK_RATES: [u64; 2] = [1000, 10_000];
const QUICK_DURATION: Duration = Duration::from_millis(100);

/// What is run, in order.
enum Task {
    Compare(&'static Entry),
    OpenLoop(&'static Entry),
    State,
    System(&'static System),
}

impl Extent {
    fn tasks(&self) -> Result<Vec<Task>> {
        let mut tasks: Vec<(&str, Task)> =
            ENTRIES.iter().map(|entry| (entry.name, Task::Compare(entry))).collect();
        tasks.push((open_loop::NAME, Task::OpenLoop(entry::out_degrees())));
        tasks.push((state::NAME, Task::State));
        tasks.extend(system::ALL.iter().map(|system| (system.name, Task::System(system))));
        for name in &self.names {
            if !tasks.iter().any(|(task, _)| is_named(task, name)) {
                let known: Vec<_> = tasks.iter().map(|(task, _)| *task).collect();
                bail!("there is no benchmark \"{name}\"; there are {}", known.join(", "));
            }
        }
        tasks.retain(|(task, _)| {
            self.names.is_empty() || self.names.iter().any(|name| is_named(task, name))
        });
        Ok(tasks.into_iter().map(|(_, task)| task).collect())
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

    /// Measurements of the large sizes do not take the place of the others.
    fn file_of(&self, name: &str) -> String {
        format!("{name}{}", if self.large { "-large" } else { "" })
    }

    /// The short mode's measurements are kept apart: they are not to be judged.
    fn folder(&self) -> PathBuf {
        if self.quick {
            self.output.join("quick")
        } else {
            self.output.clone()
        }
    }

    fn run(&self, build: &Build, output: &Output, task: &Task) -> Result<Counts> {
        match task {
            Task::System(system) => system.run(build, self, output).map(|()| Counts::new(1, 0)),
            Task::Compare(entry) => self.run_comparison(entry, output),
            Task::OpenLoop(entry) => self.run_open_loop(entry, output),
            Task::State => self.run_state(output),
        }
    }

    fn run_comparison(&self, entry: &Entry, output: &Output) -> Result<Counts> {
        let checked = if self.quick { QUICK_CHECKED } else { self.checked };
        let mut recorder = Recorder::create(output, &self.file_of(entry.name))?;
        let folder = self.checksums.then_some(output.folder.as_path());
        let counts = check_entry(entry, checked, self.rounds, folder)?;
        let extent = compare::Extent {
            size: self.size(entry),
            batches: &self.batches(),
            workers: &self.workers,
            pairs: self.pairs,
            swaps: if self.quick { QUICK_SWAPS } else { self.swaps },
            rounds: self.rounds,
            longest: Duration::try_from_secs_f64(60.0 * self.longest)?,
        };
        let rows = compare::compare(entry, &extent, &mut recorder)?;
        closed_loop::draw_curve(&self.file_of(entry.name), &rows, &output.folder)?;
        Ok(counts)
    }

    fn run_open_loop(&self, entry: &Entry, output: &Output) -> Result<Counts> {
        let mut recorder = Recorder::create(output, &self.file_of(open_loop::NAME))?;
        let duration = Duration::try_from_secs_f64(self.seconds.unwrap_or(SECONDS))?;
        let rates: &[u64] = if self.quick { &QUICK_RATES } else { &RATES };
        let extent = open_loop::Extent {
            size: self.size(entry),
            rates: self.rates.as_deref().unwrap_or(rates),
            duration: if self.quick { QUICK_DURATION } else { duration },
            workers: &self.workers,
            pairs: self.pairs,
        };
        open_loop::measure(entry, &extent, &mut recorder, &output.folder)?;
        Ok(Counts::new(1, 0))
    }

    fn run_state(&self, output: &Output) -> Result<Counts> {
        let mut recorder = Recorder::create(output, &self.file_of(state::NAME))?;
        state::print_header();
        for entry in ENTRIES {
            let extent =
                state::Extent { size: self.size(entry), workers: &self.workers, pairs: self.pairs };
            state::measure(entry, &extent, &mut recorder)?;
        }
        println!();
        Ok(Counts::new(1, 0))
    }
}

/// `engine/E2` is named by `engine/E2`, `E2` and `engine`, the closed loop's main figure by `closed`.
fn is_named(task: &str, name: &str) -> bool {
    let parts = task.split_once('/');
    let is_part = parts.is_some_and(|(group, short)| group == name || short == name);
    task == name || is_part || (task == entry::out_degrees().name && name == "closed")
}

/// Swaps of each run whose checksums are compared in the short mode.
const QUICK_CHECKED: u64 = 2000;

/// The short mode as a layer of tests: equal outputs everywhere.
pub fn run_quick() -> Result<Counts> {
    let mut counts = Counts::default();
    for entry in ENTRIES {
        counts.add(&check_entry(entry, QUICK_CHECKED, u64::MAX, None)?);
    }
    Ok(counts)
}

fn check_entry(entry: &Entry, swaps: u64, rounds: u64, checksums: Option<&Path>) -> Result<Counts> {
    let powers_of_ten = std::iter::successors(Some(1), |batch: &u64| Some(batch * 10));
    let mut batches: Vec<u64> = powers_of_ten.take_while(|batch| *batch < swaps).collect();
    // All of them in one batch.
    batches.push(swaps);
    let extent = check::Extent {
        size: entry.quick_size,
        batches: &batches,
        workers: &[1, 2],
        swaps,
        rounds,
        checksums,
    };
    check::check(entry, &extent)
}

/// Runs the benchmarks that are named; false when outputs differ.
pub fn run(build: &Build, extent: &Extent) -> Result<bool> {
    let output = Output { folder: extent.folder(), machine: machine::describe(build) };
    let is_verdict = |name: &String| name == verdict::NAME;
    if !extent.names.is_empty() && extent.names.iter().all(is_verdict) {
        return verdict::judge(&output.folder).map(|()| true);
    }
    let mut counts = Counts::default();
    for task in extent.tasks()? {
        counts.add(&extent.run(build, &output, &task)?);
    }
    if !extent.quick {
        verdict::judge(&output.folder)?;
    }
    println!("{counts}");
    Ok(counts.is_success())
}
