//! The test runner of pg_eddy: every layer of tests and the demo.
//!
//! Each subcommand works in a private copy of a PostgreSQL installation and in throwaway clusters;
//! nothing outside a temporary folder is written. `all` runs every layer and prints the counts.

mod benchmarks;
mod chaos;
#[cfg(test)]
mod checkpoint_model;
mod corpus;
mod crash;
mod dbt;
mod demo;
mod docs;
mod frameworks;
mod fuzz;
mod graph;
mod images;
mod independence;
mod installation;
mod ledger;
mod limits;
mod meta;
#[cfg(test)]
mod model;
mod neighbours;
mod operations;
mod oracle;
mod packages;
mod programs;
mod regress;
mod server;
mod snapshots;
mod unit;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{ensure, Result};
use clap::{Parser, Subcommand};
use harness::cleanup;
use harness::cluster::Cluster;
use harness::engines::with_engines;
use harness::installation::{Build, PrivateInstallation};
use harness::report::{exit_code, Counts, Report};
use harness::throwaway::{with_cluster, FAST};

use regress::{Selection, Suite};

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
    /// The layers, or as much of them, as a change of the server's major version can break
    Version {
        /// Only what compares results, for a version between two that get all
        #[arg(long)]
        brief: bool,
    },
    /// SQL files compared with expected output
    Regress(Selection),
    /// Interleaved sessions compared with expected output
    Isolation(Selection),
    /// The SQL of the documentation compared with the output that the pages show
    Docs(docs::Selection),
    /// `make install`, `installcheck` and `uninstall`, by an ordinary user and in a PostgreSQL
    Installation,
    /// The Debian package in a fresh Debian: installed, used, upgraded, removed
    Packages,
    /// The image with that package, and what is made of a data folder by it and without it
    Images,
    /// The regress suite against the running server of an installation
    Installcheck(Selection),
    /// Random views and transactions compared with PostgreSQL's own executor
    Oracle(oracle::Extent),
    /// Ordinary queries of each kind as views while their tables change
    Corpus(corpus::Selection),
    /// Queries of a random query generator as views
    Fuzz(fuzz::Extent),
    /// Settings, several databases, dump and restore, a worker that does not answer
    Server(server::Selection),
    /// Views in trouble, large transactions and much work, beside a view that must not notice
    Independence(independence::Selection),
    /// Other extensions and programs beside this one
    Neighbours(neighbours::Selection),
    /// Projects of Django, SQLAlchemy and Alembic
    Frameworks,
    /// The package for dbt
    Dbt,
    /// Very many and very large things
    Limits(limits::Extent),
    /// Kills under load, then every view must be right again
    Crash(crash::Extent),
    /// Standbys, promotion, backups, subscribers, upgrades: what operators do, and how long views are away
    Operations(operations::Extent),
    /// Every snapshot under load shows a state that really was
    Snapshots,
    /// Disturbances of all kinds at once, while readers check
    Chaos(chaos::Extent),
    /// Recursive views over the package dependencies of Debian 12
    Demo,
    /// psql in a throwaway cluster
    Psql,
}

fn main() -> ExitCode {
    exit_code("eddy-tests", run(Arguments::parse()))
}

fn run(arguments: Arguments) -> Result<bool> {
    cleanup::install_handler()?;
    let build = &arguments.build;
    match arguments.task {
        Task::All { oracle_transactions: transactions } => {
            run_all(build, &oracle::Extent { transactions, ..oracle::Extent::default() })
        }
        Task::Version { brief } => run_layers(of_version(build, brief)),
        Task::Regress(selection) => {
            run_suite(build, Suite::Regress, &selection).map(Counts::verdict)
        }
        Task::Isolation(selection) => {
            run_suite(build, Suite::Isolation, &selection).map(Counts::verdict)
        }
        Task::Docs(selection) => run_docs(build, &selection).map(Counts::verdict),
        Task::Installation => installation::run(build).map(Counts::verdict),
        Task::Packages => packages::run(build).map(Counts::verdict),
        Task::Images => images::run(build).map(Counts::verdict),
        Task::Installcheck(selection) => {
            let output = tempfile::tempdir()?;
            regress::run_installed(build, output.path(), &selection).map(Counts::verdict)
        }
        Task::Oracle(extent) => run_oracle(build, &extent).map(Counts::verdict),
        Task::Corpus(selection) => run_corpus(build, &selection).map(Counts::verdict),
        Task::Fuzz(extent) => run_fuzz(build, &extent).map(Counts::verdict),
        Task::Server(selection) => run_server(build, &selection).map(Counts::verdict),
        Task::Independence(selection) => run_independence(build, &selection).map(Counts::verdict),
        Task::Neighbours(selection) => run_neighbours(build, &selection).map(Counts::verdict),
        Task::Dbt => run_dbt(build).map(Counts::verdict),
        Task::Frameworks => run_frameworks(build).map(Counts::verdict),
        Task::Limits(extent) => run_limits(build, &extent).map(Counts::verdict),
        Task::Crash(extent) => run_crash(build, &extent).map(Counts::verdict),
        Task::Operations(extent) => operations::run(build, &extent).map(Counts::verdict),
        Task::Snapshots => run_snapshots(build).map(Counts::verdict),
        Task::Chaos(extent) => run_chaos(build, &extent).map(Counts::verdict),
        Task::Demo => with_cluster(build, &[], |cluster, _| demo::run(cluster, build)),
        Task::Psql => run_psql(build),
    }
}

/// One layer's name and what runs it.
type Layer<'a> = (&'a str, Box<dyn Fn() -> Result<Counts> + 'a>);

fn run_all(build: &Build, oracle: &oracle::Extent) -> Result<bool> {
    let programs = unit::build(build)?;
    let units = unit::crates(&programs)
        .into_iter()
        .map(|krate| -> Layer { (krate, Box::new(|| unit::run(&programs, krate))) });
    run_layers(units.chain(layers(build, oracle)))
}

/// A layer that cannot run counts as one failure and does not keep the others from running.
fn run_layers<'a>(layers: impl IntoIterator<Item = Layer<'a>>) -> Result<bool> {
    let mut report = Report::default();
    for (name, layer) in layers {
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

/// A part of what the oracle compares.
const LITTLE: oracle::Extent = oracle::Extent { seed: 1, transactions: 300, both: false };

fn minutes(minutes: f64) -> chaos::Extent {
    chaos::Extent { minutes, ..chaos::Extent::default() }
}

/// The same, computed by a process of its own.
fn in_process(build: &Build) -> Build {
    with_setting(build, "eddy.engine", "process")
}

/// The same, where views go on with what was saved.
fn saving(build: &Build) -> Build {
    with_setting(build, "eddy.checkpoint_wal", "1MB")
}

fn with_setting(build: &Build, name: &str, value: &str) -> Build {
    let mut build = build.clone();
    build.settings.push((name.to_owned(), value.to_owned()));
    build
}

/// The layers behind the tests of the crates themselves.
fn layers<'a>(build: &'a Build, oracle: &'a oracle::Extent) -> Vec<Layer<'a>> {
    vec![
        ("bench", Box::new(|| benchmarks::run(build, &["check"]))),
        ("regress", Box::new(|| run_suite(build, Suite::Regress, &Selection::default()))),
        ("isolation", Box::new(|| run_suite(build, Suite::Isolation, &Selection::default()))),
        ("docs", Box::new(|| run_docs(build, &docs::Selection::default()))),
        ("server", Box::new(|| run_server(build, &server::Selection::default()))),
        ("installation", Box::new(|| installation::run(build))),
        ("neighbours", Box::new(|| run_neighbours(build, &Default::default()))),
        ("dbt", Box::new(|| run_dbt(build))),
        ("frameworks", Box::new(|| run_frameworks(build))),
        ("limits", Box::new(|| run_limits(build, &limits::Extent::default()))),
        ("independence", Box::new(|| run_independence(build, &Default::default()))),
        ("corpus", Box::new(|| run_corpus(build, &corpus::Selection::default()))),
        ("oracle", Box::new(|| run_oracle(build, oracle))),
        ("oracle-process", Box::new(|| run_oracle(&in_process(build), &LITTLE))),
        ("oracle-cluster", Box::new(|| with_engines(build, 3, |build| run_oracle(build, &LITTLE)))),
        ("fuzz", Box::new(|| run_fuzz(build, &fuzz::Extent::short()))),
        ("snapshots", Box::new(|| run_snapshots(build))),
        ("tpch", Box::new(|| benchmarks::run(build, &["tpch", "--quick"]))),
        ("crash", Box::new(|| run_crash(build, &crash::Extent::default()))),
        ("crash-checkpoints", Box::new(|| run_crash(&saving(build), &crash::Extent::default()))),
        ("operations", Box::new(|| operations::run(build, &operations::Extent::default()))),
        ("chaos", Box::new(|| run_chaos(build, &minutes(2.0)))),
        ("chaos-process", Box::new(|| run_chaos(&in_process(build), &minutes(1.0)))),
    ]
}

/// The layers that ask most of what differs between versions of the server, and about a minute of each random one; if `brief`
/// those that compare results.
fn of_version(build: &Build, brief: bool) -> Vec<Layer<'_>> {
    const ORACLE: oracle::Extent = oracle::Extent { seed: 1, transactions: 1000, both: false };
    let mut layers: Vec<Layer<'_>> = vec![
        ("regress", Box::new(|| run_suite(build, Suite::Regress, &Selection::default()))),
        ("isolation", Box::new(|| run_suite(build, Suite::Isolation, &Selection::default()))),
    ];
    if brief {
        layers.push(("oracle", Box::new(|| run_oracle(build, &LITTLE))));
        return layers;
    }
    let more: Vec<Layer<'_>> = vec![
        ("corpus", Box::new(|| run_corpus(build, &corpus::Selection::default()))),
        ("oracle", Box::new(|| run_oracle(build, &ORACLE))),
        ("server", Box::new(|| run_server(build, &server::Selection::of_version()))),
        ("operations", Box::new(|| operations::run(build, &operations::Extent::of_newer()))),
        ("chaos", Box::new(|| run_chaos(build, &minutes(1.0)))),
    ];
    layers.extend(more);
    layers
}

fn run_suite(build: &Build, suite: Suite, selection: &Selection) -> Result<Counts> {
    with_cluster(build, FAST, |cluster, folder| {
        let counts = regress::run(suite, build, cluster, &folder.join("output"), selection)?;
        cluster.print_crashes()?;
        Ok(counts)
    })
}

fn run_docs(build: &Build, selection: &docs::Selection) -> Result<Counts> {
    with_cluster(build, FAST, |cluster, _| docs::run(cluster, build, selection))
}

fn run_dbt(build: &Build) -> Result<Counts> {
    with_cluster(build, FAST, |cluster, folder| dbt::run(cluster, folder, build))
}

fn run_frameworks(build: &Build) -> Result<Counts> {
    with_cluster(build, FAST, |cluster, _| frameworks::run(cluster, build))
}

fn run_oracle(build: &Build, extent: &oracle::Extent) -> Result<Counts> {
    // Its larger transactions come in pieces.
    with_cluster(build, independence::IN_PIECES, |cluster, _| oracle::run(cluster, extent))
}

fn run_corpus(build: &Build, selection: &corpus::Selection) -> Result<Counts> {
    with_cluster(build, FAST, |cluster, _| corpus::run(cluster, &build.project, selection))
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

fn run_neighbours(build: &Build, selection: &neighbours::Selection) -> Result<Counts> {
    let private = PrivateInstallation::create(build)?;
    neighbours::run(&private.installation, private.folder(), selection)
}

fn run_limits(build: &Build, extent: &limits::Extent) -> Result<Counts> {
    let private = PrivateInstallation::create(build)?;
    limits::run(&private.installation, private.folder(), extent)
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
