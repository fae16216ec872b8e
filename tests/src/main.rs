//! The test runner of pg_eddy: every layer that needs a server, the demo and the measurements.
//!
//! Each subcommand works in a private copy of a PostgreSQL installation and in throwaway clusters;
//! nothing outside a temporary folder is written. `all` runs every layer and prints the counts.

mod bench;
mod chains;
mod chaos;
mod cleanup;
mod cluster;
mod compare;
mod crash;
mod demo;
mod dice;
mod dumps;
mod fuzz;
mod independence;
mod installation;
mod load;
#[cfg(test)]
mod model;
mod oracle;
mod publications;
mod regress;
mod report;
mod server;
mod snapshots;
mod spill;
mod standbys;
mod timing;
mod tpch;
mod unit;
mod user;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{ensure, Result};
use clap::{Parser, Subcommand};

use cluster::{Cluster, Settings};
use engine::memory::CountingAllocator;
use installation::{Build, PrivateInstallation};
use regress::{Selection, Suite};
use report::{Counts, Report};

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
    /// Every layer of tests, then the counts
    All {
        /// Number of transactions that the oracle compares
        #[arg(long, default_value_t = oracle::Extent::default().transactions)]
        oracle_transactions: usize,
    },
    /// SQL files compared with expected output
    Regress(Selection),
    /// Interleaved sessions compared with expected output
    Isolation(Selection),
    /// The regress suite against the running server of an installation
    Installcheck(Selection),
    /// Random views and transactions compared with PostgreSQL's own executor
    Oracle(oracle::Extent),
    /// Queries of a random query generator as views
    Fuzz(fuzz::Extent),
    /// Settings, several databases, dump and restore, a worker that does not answer
    Server(server::Selection),
    /// Views in trouble, large transactions and much work, beside a view that must not notice
    Independence(independence::Selection),
    /// Kills under load, then every view must be right again
    Crash(crash::Extent),
    /// Every snapshot under load shows a state that really was
    Snapshots,
    /// Disturbances of all kinds at once, while readers check
    Chaos(chaos::Extent),
    /// Recursive views over the package dependencies of Debian 12
    Demo,
    /// The engine beside programs written by hand, and the whole path in throwaway clusters
    Bench(Box<bench::Extent>),
    /// The queries of TPC-H as incremental views while their tables change
    Tpch(tpch::Extent),
    /// psql in a throwaway cluster
    Psql,
}

/// Tests may lose their data when the machine dies; nothing else about the server changes.
const FAST: Settings = &[("fsync", "off"), ("full_page_writes", "off")];

/// Measurements need no checkpoint in the middle and room for their tables.
const LARGE: Settings = &[("max_wal_size", "8GB"), ("shared_buffers", "512MB")];

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("eddy-tests: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<bool> {
    cleanup::install_handler()?;
    let build = &arguments.build;
    match arguments.task {
        Task::All { oracle_transactions: transactions } => {
            run_all(build, &oracle::Extent { transactions, ..oracle::Extent::default() })
        }
        Task::Regress(selection) => run_suite(build, Suite::Regress, &selection).map(show),
        Task::Isolation(selection) => run_suite(build, Suite::Isolation, &selection).map(show),
        Task::Installcheck(selection) => {
            let output = tempfile::tempdir()?;
            regress::run_installed(build, output.path(), &selection).map(show)
        }
        Task::Oracle(extent) => run_oracle(build, &extent).map(show),
        Task::Fuzz(extent) => run_fuzz(build, &extent).map(show),
        Task::Server(selection) => run_server(build, &selection).map(show),
        Task::Independence(selection) => run_independence(build, &selection).map(show),
        Task::Crash(extent) => run_crash(build, &extent).map(show),
        Task::Snapshots => run_snapshots(build).map(show),
        Task::Chaos(extent) => run_chaos(build, &extent).map(show),
        Task::Demo => with_cluster(build, &[], |cluster, _| demo::run(cluster, build)),
        Task::Bench(extent) => bench::run(build, &extent),
        Task::Tpch(extent) => run_tpch(build, &extent).map(show),
        Task::Psql => run_psql(build),
    }
}

/// One layer's name and what runs it.
type Layer<'a> = (&'a str, Box<dyn Fn() -> Result<Counts> + 'a>);

/// A layer that cannot run counts as one failure and does not keep the others from running.
fn run_all(build: &Build, oracle: &oracle::Extent) -> Result<bool> {
    let programs = unit::build(build)?;
    let layers: Vec<Layer> = vec![
        ("plan", Box::new(|| unit::run(&programs, "plan"))),
        ("planner", Box::new(|| unit::run(&programs, "planner"))),
        ("engine", Box::new(|| unit::run(&programs, "engine"))),
        ("rules", Box::new(|| unit::run(&programs, "rules"))),
        ("runner", Box::new(|| unit::run(&programs, "tests"))),
        ("bench", Box::new(bench::run_quick)),
        ("regress", Box::new(|| run_suite(build, Suite::Regress, &Selection::default()))),
        ("isolation", Box::new(|| run_suite(build, Suite::Isolation, &Selection::default()))),
        ("server", Box::new(|| run_server(build, &server::Selection::default()))),
        ("independence", Box::new(|| run_independence(build, &Default::default()))),
        ("oracle", Box::new(|| run_oracle(build, oracle))),
        ("fuzz", Box::new(|| run_fuzz(build, &fuzz::Extent::short()))),
        ("snapshots", Box::new(|| run_snapshots(build))),
        ("tpch", Box::new(|| run_tpch(build, &tpch::Extent::short()))),
        ("crash", Box::new(|| run_crash(build, &crash::Extent::default()))),
        ("chaos", Box::new(|| run_chaos(build, &chaos::Extent::default()))),
    ];
    let mut report = Report::default();
    for (name, layer) in &layers {
        println!("== {name}");
        let started = Instant::now();
        let counts = layer().unwrap_or_else(|error| {
            let mut counts = Counts::default();
            counts.check(name, Err(error));
            counts
        });
        println!("{name}: {counts}");
        report.push(name, counts, started.elapsed());
    }
    println!("== result");
    println!("{report}");
    Ok(report.is_success())
}

fn show(counts: Counts) -> bool {
    println!("{counts}");
    counts.is_success()
}

fn run_suite(build: &Build, suite: Suite, selection: &Selection) -> Result<Counts> {
    with_cluster(build, FAST, |cluster, folder| {
        let counts = regress::run(suite, build, cluster, &folder.join("output"), selection)?;
        cluster.print_crashes()?;
        Ok(counts)
    })
}

fn run_oracle(build: &Build, extent: &oracle::Extent) -> Result<Counts> {
    // Its larger transactions come in pieces.
    with_cluster(build, independence::IN_PIECES, |cluster, _| oracle::run(cluster, extent))
}

fn run_fuzz(build: &Build, extent: &fuzz::Extent) -> Result<Counts> {
    with_cluster(build, fuzz::SETTINGS, |cluster, folder| fuzz::run(cluster, folder, extent))
}

fn run_crash(build: &Build, extent: &crash::Extent) -> Result<Counts> {
    with_cluster(build, FAST, |cluster, folder| crash::run(cluster, folder, extent))
}

fn run_server(build: &Build, selection: &server::Selection) -> Result<Counts> {
    let private = PrivateInstallation::create(build)?;
    server::run(&private.installation, private.folder(), selection)
}

fn run_independence(build: &Build, selection: &independence::Selection) -> Result<Counts> {
    let run = |cluster: &mut Cluster, folder: &Path| independence::run(cluster, folder, selection);
    let mut counts = with_cluster(build, FAST, run)?;
    let run = |cluster: &mut Cluster, _: &Path| independence::run_in_pieces(cluster, selection);
    counts.add(&with_cluster(build, independence::IN_PIECES, run)?);
    Ok(counts)
}

fn run_snapshots(build: &Build) -> Result<Counts> {
    with_cluster(build, FAST, |cluster, folder| snapshots::run(cluster, folder))
}

fn run_chaos(build: &Build, extent: &chaos::Extent) -> Result<Counts> {
    with_cluster(build, chaos::SETTINGS, |cluster, folder| chaos::run(cluster, folder, extent))
}

fn run_tpch(build: &Build, extent: &tpch::Extent) -> Result<Counts> {
    let settings = if extent.quick { FAST } else { LARGE };
    with_cluster(build, settings, |cluster, _| tpch::run(cluster, build, extent))
}

fn run_psql(build: &Build) -> Result<bool> {
    with_cluster(build, &[], |cluster, _| {
        cluster.connect("postgres")?.batch_execute("CREATE EXTENSION pg_eddy")?;
        println!("server log: {}", cluster.log_file().display());
        cleanup::leave_interrupts_to_child();
        let psql = cluster.installation().program("psql");
        let status = cluster.client_program(&psql).arg("postgres").status()?;
        ensure!(status.success(), "psql ended with {status}");
        Ok(true)
    })
}

/// Runs `body` with a fresh cluster, which is gone afterwards whatever happens.
fn with_cluster<T>(
    build: &Build,
    settings: Settings,
    body: impl FnOnce(&mut Cluster, &Path) -> Result<T>,
) -> Result<T> {
    let private = PrivateInstallation::create(build)?;
    let mut cluster =
        Cluster::start_new(&private.installation, private.folder(), "cluster", settings)?;
    let result = body(&mut cluster, private.folder());
    if result.is_err() {
        eprintln!("the server's log ends with:\n{}", cluster.log_tail());
    }
    cluster.stop()?;
    result
}
