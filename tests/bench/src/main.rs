//! Measurements: what SQL through planner and engine costs beside a program written by hand against
//! differential dataflow, without a server (`engine/*`), what the whole path costs (`system/*`), and TPC-H.
//!
//! `workload` is what every benchmark without a server is made of, `programs` are these benchmarks,
//! `sql_side` and `hand_side` run them; `check` proves that both compute the same, `compare` takes the times
//! batch by batch, `open_loop` on a schedule, `state` looks at loads and memory. `system` and `tpch` need
//! throwaway clusters. `tasks` has the benchmarks by name, `verdict` judges what they have measured.

mod check;
mod checksum;
mod closed_loop;
mod compare;
mod copy;
mod entry;
mod extent;
mod graph;
mod hand_side;
mod machine;
mod open_loop;
mod plot;
mod programs;
mod record;
mod results;
mod run;
mod signal;
mod spread;
mod sql_side;
mod state;
mod system;
mod tasks;
mod tpch;
mod verdict;
mod workload;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use engine::memory::CountingAllocator;
use harness::cleanup;
use harness::installation::Build;
use harness::report::{exit_code, Counts};
use harness::throwaway::{with_cluster, FAST, LARGE};

/// Counts the bytes that the benchmarks' dataflows hold.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(Parser)]
#[command(about, disable_help_subcommand = true)]
struct Arguments {
    #[command(flatten)]
    build: Build,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// The engine beside programs written by hand, and the whole path in throwaway clusters
    Run(Box<extent::Extent>),
    /// The queries of TPC-H as incremental views while their tables change
    Tpch(tpch::Extent),
    /// Whether SQL and the programs written by hand give the same; nothing is timed
    Check,
}

fn main() -> ExitCode {
    exit_code("eddy-bench", run(Arguments::parse()))
}

fn run(arguments: Arguments) -> Result<bool> {
    cleanup::install_handler()?;
    let build = &arguments.build;
    match arguments.task {
        Task::Run(extent) => tasks::run(build, &extent),
        Task::Tpch(extent) => run_tpch(build, &extent).map(Counts::verdict),
        Task::Check => check::check_all().map(Counts::verdict),
    }
}

fn run_tpch(build: &Build, extent: &tpch::Extent) -> Result<Counts> {
    let settings = if extent.quick { FAST } else { LARGE };
    with_cluster(build, settings, |cluster, _| tpch::run(cluster, build, extent))
}
