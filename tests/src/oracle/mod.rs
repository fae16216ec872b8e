//! Random views and transactions, compared with PostgreSQL's own executor after every commit.
//!
//! A round has its own schema, tables, views and transactions, all drawn from one seed, so that a
//! failure is a short script. After every transaction each view must equal its query as a
//! multiset; a query that raises an error must be matched by the same SQLSTATE.

mod aggregate;
mod case;
mod collected;
mod coverage;
mod draws;
mod expression;
mod feature;
mod from;
mod functions;
mod inside;
mod mismatch;
mod order;
mod ordered;
mod plan_nodes;
mod query;
mod recursion;
mod relation;
mod replay;
mod round;
mod row_order;
mod schema;
mod sessions;
pub mod shrink;
mod subquery;
mod types;
mod window;
mod workload;

use anyhow::{ensure, Context, Result};
use harness::cleanup;
use harness::cluster::Cluster;
use harness::comparison::comparison;
use harness::report::Counts;

use case::Case;
use coverage::Coverage;
use mismatch::{Found, Mismatch};
use round::Round;
use sessions::{drop_schema, share_indexes, OF_VIEWS};

/// Short rounds make short scripts.
const TRANSACTIONS_PER_ROUND: usize = 25;
/// One view, and as many as this says, may be too costly to be compared. Of 100,000 transactions it was one.
const TRANSACTIONS_PER_COSTLY_VIEW: usize = 10_000;
/// More failing rounds than this tell nothing new.
const FAILING_ROUNDS: usize = 8;

#[derive(Clone, Debug, clap::Args)]
pub struct Extent {
    /// Seed of the first round; each further round adds one
    #[arg(long, default_value_t = Extent::default().seed)]
    pub seed: u64,
    /// Number of transactions
    #[arg(long, default_value_t = Extent::default().transactions)]
    pub transactions: usize,
    /// Play each round twice: its views keep indexes together, and each its own
    #[arg(long)]
    pub both: bool,
}

impl Default for Extent {
    fn default() -> Extent {
        Extent { seed: 1, transactions: 500, both: false }
    }
}

/// Runs rounds until the wanted number of transactions is reached. Each transaction is one test.
pub fn run(cluster: &Cluster, extent: &Extent) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut failing = 0;
    let (mut differing_texts, mut too_costly) = (0, 0);
    let mut coverage = Coverage::default();
    let mut left = extent.transactions;
    let (mut seed, mut number) = (extent.seed, 0_usize);
    while left > 0 && failing < FAILING_ROUNDS {
        let length = left.min(TRANSACTIONS_PER_ROUND);
        let is_first_half = extent.both && number.is_multiple_of(2);
        let shares = if extent.both { is_first_half } else { seed.is_multiple_of(2) };
        share_indexes(cluster, shares)?;
        let mut round = Round::start(cluster, seed)?;
        let outcome = round.play(length, &mut counts, &mut coverage);
        differing_texts += round.differing_texts;
        too_costly += round.too_costly;
        ensure!(!cleanup::is_stopping(), "stopped by a signal; {counts}");
        let (case, schema) = round.end();
        let dropped = drop_schema(cluster, &schema).context("dropping the schema of a round");
        if let Err(error) = outcome {
            failing += 1;
            counts.record(false);
            println!("seed {seed}: {error:#}");
            let both = if extent.both { " --both" } else { "" };
            let length = length * (1 + usize::from(extent.both && !is_first_half));
            println!("-- repeat with: oracle --seed {seed} --transactions {length}{both}");
            // A server in such a state that this fails has nothing to replay on.
            let found = error.downcast_ref().filter(|_| dropped.is_ok());
            print_script(cluster, seed, &case, found);
        }
        dropped?;
        println!("oracle: seed {seed} done, {counts}");
        left -= length;
        number += 1;
        seed += u64::from(!is_first_half);
    }
    println!("oracle: {differing_texts} rows equal but written differently, such as 1.0 and 1.00");
    println!("oracle: how often what was drawn and planned\n{coverage}");
    // A comparison that never ends must not become the way in which views are right.
    if too_costly > 1 + extent.transactions / TRANSACTIONS_PER_COSTLY_VIEW {
        println!("oracle: {too_costly} views were dropped because their queries took too long");
        counts.record(false);
    }
    // Rounds that are played twice have half as many different views.
    if left == 0 && !extent.both {
        for feature in coverage.missing(extent.transactions) {
            println!("oracle: never had {}: {}", feature.group().title(), feature.name());
            counts.record(false);
        }
    }
    Ok(counts)
}

/// A script for psql, as short as one can be found that shows the same failure.
fn print_script(cluster: &Cluster, seed: u64, case: &Case, found: Option<&Found>) {
    let mut text = case.text();
    if let Some(found) = found {
        let (small, tries) = replay::shrink(cluster, &format!("shrink_{seed}"), case, found);
        match small {
            Some(small) => {
                println!("-- {} of {} statements, {tries} tries", small.len(), case.len());
                text = small.text();
            }
            None => println!("-- replayed, it did not fail again"),
        }
        // A view that was not created cannot be compared: its CREATE is the last statement.
        if !matches!(found.mismatch, Mismatch::NotCreated { .. }) {
            text.push_str(&format!("{};", comparison(&found.view, &found.query)));
        }
    }
    println!("-- script for psql:\n{OF_VIEWS};\n{text}\n-- end of script");
}
