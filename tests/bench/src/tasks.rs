//! The benchmarks by name, and how each is run.

use std::time::Duration;

use anyhow::{bail, Result};
use harness::installation::Build;
use harness::report::Counts;

use crate::check::{check_entry, QUICK_CHECKED};
use crate::entry::{out_degrees, Entry, ENTRIES};
use crate::extent::{Extent, QUICK_SWAPS};
use crate::record::{Output, Recorder};
use crate::system::{self, System};
use crate::{closed_loop, compare, machine, open_loop, spread, state, verdict};

const RATES: [u64; 8] = [1000, 10_000, 20_000, 50_000, 100_000, 200_000, 300_000, 400_000];
const SECONDS: f64 = 2.0;
const QUICK_RATES: [u64; 2] = [1000, 10_000];
const QUICK_DURATION: Duration = Duration::from_millis(100);

/// Runs the benchmarks that are named; false when outputs differ.
pub fn run(build: &Build, extent: &Extent) -> Result<bool> {
    let output = Output { folder: extent.folder(), machine: machine::describe(build) };
    let is_verdict = |name: &String| name == verdict::NAME;
    if !extent.names.is_empty() && extent.names.iter().all(is_verdict) {
        return verdict::judge(&output.folder).map(|()| true);
    }
    let mut counts = Counts::default();
    for task in tasks(extent)? {
        counts.add(&task.run(build, extent, &output)?);
    }
    if !extent.quick {
        verdict::judge(&output.folder)?;
    }
    println!("{counts}");
    Ok(counts.is_success())
}

/// A benchmark of one kind or another.
enum Task {
    Compare(&'static Entry),
    OpenLoop(&'static Entry),
    State,
    Spread,
    System(&'static System),
}

/// What is run, in order.
fn tasks(extent: &Extent) -> Result<Vec<Task>> {
    let mut tasks: Vec<(&str, Task)> =
        ENTRIES.iter().map(|entry| (entry.name, Task::Compare(entry))).collect();
    tasks.push((open_loop::NAME, Task::OpenLoop(out_degrees())));
    tasks.push((state::NAME, Task::State));
    tasks.push((spread::NAME, Task::Spread));
    tasks.extend(system::ALL.iter().map(|system| (system.name, Task::System(system))));
    for name in &extent.names {
        if !tasks.iter().any(|(task, _)| is_named(task, name)) {
            let known: Vec<_> = tasks.iter().map(|(task, _)| *task).collect();
            bail!("there is no benchmark \"{name}\"; there are {}", known.join(", "));
        }
    }
    tasks.retain(|(task, _)| {
        extent.names.is_empty() || extent.names.iter().any(|name| is_named(task, name))
    });
    Ok(tasks.into_iter().map(|(_, task)| task).collect())
}

/// `engine/E2` is named by `engine/E2`, `E2` and `engine`, the closed loop's main figure by `closed`.
fn is_named(task: &str, name: &str) -> bool {
    let parts = task.split_once('/');
    let is_part = parts.is_some_and(|(group, short)| group == name || short == name);
    task == name || is_part || (task == out_degrees().name && name == "closed")
}

impl Task {
    fn run(&self, build: &Build, extent: &Extent, output: &Output) -> Result<Counts> {
        match self {
            Task::System(system) => system.run(build, extent, output).map(|()| Counts::new(1, 0)),
            Task::Compare(entry) => run_comparison(extent, entry, output),
            Task::OpenLoop(entry) => run_open_loop(extent, entry, output),
            Task::State => run_state(extent, output),
            Task::Spread => run_spread(build, extent, output),
        }
    }
}

fn run_comparison(extent: &Extent, entry: &Entry, output: &Output) -> Result<Counts> {
    let checked = if extent.quick { QUICK_CHECKED } else { extent.checked };
    let name = extent.file_of(entry.name);
    let mut recorder = Recorder::create(output, &name)?;
    let folder = extent.checksums.then_some(output.folder.as_path());
    let counts = check_entry(entry, checked, extent.rounds, folder)?;
    let compared = compare::Extent {
        size: extent.size(entry),
        batches: &extent.batches(),
        workers: &extent.workers,
        pairs: extent.pairs,
        swaps: if extent.quick { QUICK_SWAPS } else { extent.swaps },
        rounds: extent.rounds,
        longest: Duration::try_from_secs_f64(60.0 * extent.longest)?,
    };
    let rows = compare::compare(entry, &compared, &mut recorder)?;
    closed_loop::draw_curve(&name, &rows, &output.folder)?;
    Ok(counts)
}

fn run_open_loop(extent: &Extent, entry: &Entry, output: &Output) -> Result<Counts> {
    let mut recorder = Recorder::create(output, &extent.file_of(open_loop::NAME))?;
    let duration = Duration::try_from_secs_f64(extent.seconds.unwrap_or(SECONDS))?;
    let rates: &[u64] = if extent.quick { &QUICK_RATES } else { &RATES };
    let measured = open_loop::Extent {
        size: extent.size(entry),
        rates: extent.rates.as_deref().unwrap_or(rates),
        duration: if extent.quick { QUICK_DURATION } else { duration },
        workers: &extent.workers,
        pairs: extent.pairs,
    };
    open_loop::measure(entry, &measured, &mut recorder, &output.folder)?;
    Ok(Counts::new(1, 0))
}

fn run_state(extent: &Extent, output: &Output) -> Result<Counts> {
    let mut recorder = Recorder::create(output, &extent.file_of(state::NAME))?;
    state::print_header();
    for entry in ENTRIES {
        let measured = state::Extent {
            size: extent.size(entry),
            workers: &extent.workers,
            pairs: extent.pairs,
        };
        state::measure(entry, &measured, &mut recorder)?;
    }
    println!();
    Ok(Counts::new(1, 0))
}

fn run_spread(build: &Build, extent: &Extent, output: &Output) -> Result<Counts> {
    const SPREAD: [&str; 2] = ["engine/E1", "engine/reach"];
    let mut recorder = Recorder::create(output, &extent.file_of(spread::NAME))?;
    for entry in ENTRIES.iter().filter(|entry| SPREAD.contains(&entry.name)) {
        let measured = spread::Extent {
            size: extent.size(entry),
            batches: &extent.batches(),
            pairs: extent.pairs,
            swaps: if extent.quick { QUICK_SWAPS } else { extent.swaps },
        };
        spread::measure(build, entry, &measured, &mut recorder)?;
    }
    Ok(Counts::new(1, 0))
}
