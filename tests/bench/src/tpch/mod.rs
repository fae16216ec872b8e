//! `make bench-tpch`: the 22 queries of TPC-H as incremental views, over tables that change.
//!
//! The tables (`schema.sql`, `generator`, `load`) are made once, as a template; each query (`query`) gets a
//! copy as a database of its own (`run`), in which its view is created and then followed through the refresh functions
//! (`load`) and through transactions of one row (`churn`). After each the view must equal its query.

mod churn;
mod generator;
mod load;
mod outcome;
mod query;
mod row;
mod run;
mod words;

use std::path::PathBuf;

use anyhow::{ensure, Result};
use harness::cleanup;
use harness::cluster::Cluster;
use harness::dice::Dice;
use harness::installation::Build;
use harness::report::Counts;
use harness::timing::{readable, timed};
use serde_json::json;

use crate::machine;
use crate::record::{Output, Recorder};
use generator::Sizes;
use outcome::Outcome;
use query::Query;
use run::Changes;

#[derive(Clone, Debug, clap::Args)]
pub struct Extent {
    /// Small tables and few changes: whether the views are right, no times
    #[arg(long)]
    pub quick: bool,
    /// Scale factor; 1 means 6,000,000 lineitems. 0.1 if not given, 0.01 with --quick
    #[arg(long)]
    pub scale: Option<f64>,
    /// Transactions of one row for each query; 100 if not given, 20 with --quick
    #[arg(long)]
    pub churn: Option<u32>,
    /// Numbers of the queries to run; all if none is given
    #[arg(long = "query", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=22))]
    pub queries: Vec<u8>,
    /// What fills the views that are created
    #[arg(long, default_value = "query", value_parser = ["query", "dataflow"])]
    pub fill: String,
    /// Seed of the tables and of their changes
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Seed of another order of the tables in each FROM; they are as they are written if not given
    #[arg(long)]
    pub shuffle: Option<u64>,
    /// Folder for JSON lines; none are written if not given
    #[arg(long)]
    pub output: Option<PathBuf>,
}

const TEMPLATE: &str = "tpch";

impl Extent {
    fn scale(&self) -> f64 {
        self.scale.unwrap_or(if self.quick { 0.01 } else { 0.1 })
    }

    fn changes(&self) -> Changes {
        Changes {
            sizes: Sizes::of(self.scale()),
            seed: self.seed,
            churn: self.churn.unwrap_or(if self.quick { 20 } else { 100 }),
        }
    }

    fn queries(&self, build: &Build) -> Result<Vec<Query>> {
        let is_chosen = |number: &u8| self.queries.is_empty() || self.queries.contains(number);
        let read = |number: u8| {
            let query = Query::read(build, number)?;
            Ok(match self.shuffle {
                Some(seed) => query.shuffled(&mut Dice::new(seed + u64::from(number))),
                None => query,
            })
        };
        (1..=query::COUNT).filter(is_chosen).map(read).collect()
    }

    /// The short mode's measurements are kept apart: they are not to be judged.
    fn recorder(&self, build: &Build) -> Result<Option<Recorder>> {
        let Some(folder) = &self.output else { return Ok(None) };
        let folder = if self.quick { folder.join("quick") } else { folder.clone() };
        let output = Output { folder, machine: machine::describe(build) };
        Recorder::create(&output, TEMPLATE).map(Some)
    }
}

/// Each query is one check.
pub fn run(cluster: &Cluster, build: &Build, extent: &Extent) -> Result<Counts> {
    let queries = extent.queries(build)?;
    let mut recorder = extent.recorder(build)?;
    let mut record = |value| recorder.iter_mut().try_for_each(|recorder| recorder.write(&value));
    let changes = extent.changes();
    create_template(cluster, changes)?;
    Outcome::print_header();
    let mut counts = Counts::default();
    for query in &queries {
        let outcome = run_query(cluster, query, &extent.fill, changes)?;
        ensure!(!cleanup::is_stopping(), "stopped by a signal; {counts}");
        outcome.print(query);
        record(outcome.describe(query))?;
        counts.record(outcome.is_success());
    }
    let Counts { passed, .. } = counts;
    println!("{passed} of {} maintained", queries.len());
    println!(
        "(live: first read after CREATE; RF1, RF2: from COMMIT to a fresh read; a row: the same,"
    );
    println!(
        " median of the changes of one row that changed the view; visible: how many of them did)"
    );
    record(json!({
        "kind": "summary", "scale": extent.scale(), "seed": extent.seed, "churn": changes.churn,
        "fill": extent.fill, "shuffle": extent.shuffle, "queries": queries.len(), "maintained": passed,
    }))?;
    Ok(counts)
}

fn create_template(cluster: &Cluster, changes: Changes) -> Result<()> {
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {TEMPLATE}"))?;
    let mut client = cluster.connect(TEMPLATE)?;
    let (lines, time) = timed(|| load::create_tables(&mut client, changes.sizes, changes.seed))?;
    println!("{} orders with {lines} lines, made in {}", changes.sizes.orders, readable(time));
    Ok(())
}

/// In a copy of the template, which is gone afterwards.
fn run_query(cluster: &Cluster, query: &Query, fill: &str, changes: Changes) -> Result<Outcome> {
    let name = query.name();
    let mut client = cluster.connect_when_ready("postgres")?;
    client
        .batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY file_copy"))?;
    let outcome = run::run(cluster.connect(&name)?, query, fill, changes);
    cluster.connect_when_ready("postgres")?.batch_execute(&format!("DROP DATABASE {name}"))?;
    Ok(outcome)
}
