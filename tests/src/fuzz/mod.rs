//! Queries that nobody here thought of: a random query generator writes them, and each becomes a view.
//!
//! A query may be refused, but with a proper SQLSTATE and never by an internal error; nothing that it says may
//! end a process; and a view that is accepted must equal its query, at first and after changes of the tables.
//! The oracle draws what views support; this layer draws what users might write.

mod generator;
mod round;
mod schema;
mod shrink;
mod tally;
mod verdict;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use harness::cleanup;
use harness::cluster::{Cluster, Settings};
use harness::report::Counts;

use generator::Vocabulary;
use round::Round;
use tally::Tally;

const DATABASE: &str = "fuzz";

/// What is costly must end, as the queries join at random.
pub const SETTINGS: Settings = &[
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("eddy.memory_limit", "512MB"),
    ("eddy.evaluation_timeout", "2s"),
];

/// Queries asked of the generator for one round.
const BATCH: usize = 40;
/// One round in so many draws from all functions.
const ROUNDS_WITH_EVERYTHING: u64 = 4;
/// One round in so many leaves LIMIT as it is.
const ROUNDS_WITH_LIMITS: u64 = 7;
/// A run in which fewer percent become views shows little.
const LEAST_SHARE: usize = 30;
/// In more percent of the comparisons view and query may not come to errors of their own.
const MOST_OTHER_ERRORS: usize = 1;
/// More of them tell nothing new.
const MAX_CRASHES: usize = 5;

#[derive(Clone, Debug, clap::Args)]
pub struct Extent {
    /// Seed of the first round; each further round adds one
    #[arg(long, default_value_t = Extent::default().seed)]
    pub seed: u64,
    /// How long it lasts
    #[arg(long, default_value_t = Extent::default().minutes)]
    pub minutes: f64,
    /// Rounds after which it ends sooner: the same ones on every machine
    #[arg(long, default_value_t = Extent::default().rounds)]
    pub rounds: u64,
}

impl Extent {
    /// Those of `make test`.
    pub fn short() -> Extent {
        Extent { rounds: 160, ..Extent::default() }
    }
}

impl Default for Extent {
    fn default() -> Extent {
        Extent { seed: 1, minutes: 2.0, rounds: u64::MAX }
    }
}

/// Each query is one test.
pub fn run(cluster: &Cluster, folder: &Path, extent: &Extent) -> Result<Counts> {
    let end = Instant::now() + Duration::from_secs_f64(extent.minutes * 60.0);
    for vocabulary in [Vocabulary::Usual, Vocabulary::Everything] {
        generator::prepare(cluster, vocabulary)?;
    }
    round::prepare(cluster)?;
    let (mut counts, mut tally) = (Counts::default(), Tally::default());
    let mut log = Log { cluster, read: 0 };
    let mut seed = extent.seed;
    let last = extent.seed.saturating_add(extent.rounds);
    while Instant::now() < end && seed < last && tally.crashes < MAX_CRASHES {
        let queries = draw(cluster, folder, seed)?;
        let mut round = Round::start(cluster, seed, &mut tally, &mut counts, end)?;
        let outcome = round.play(&queries);
        let at_work = round.at_work;
        ensure!(!cleanup::is_stopping(), "stopped by a signal; {counts}");
        let crashes = log.crashes()?;
        if outcome.is_err() || !crashes.is_empty() {
            tally.crashes += 1;
            counts.record(false);
            let error = outcome.err().map_or(String::new(), |error| format!("{error:#}"));
            let crash = format!("round of seed {seed}: {error}\n{}", crashes.join("\n"));
            println!("fuzz: {crash}\n-- the last query:\n{at_work}\n-- end of query");
            counts.note(&crash);
        }
        seed += 1;
    }
    println!("fuzz: rounds of seeds {} to {}", extent.seed, seed - 1);
    println!("{tally}");
    counts.check("fuzz: enough is accepted", expect_accepted(&tally));
    counts.check("fuzz: errors are those of PostgreSQL", expect_errors(&tally));
    Ok(counts)
}

fn expect_accepted(tally: &Tally) -> Result<()> {
    let share = tally.accepted_share();
    ensure!(share >= LEAST_SHARE && tally.comparisons > 0, "only {share} %");
    Ok(())
}

/// SQL does not say which condition is tested first, so they need not be the same, but nearly always are.
fn expect_errors(tally: &Tally) -> Result<()> {
    let (others, all) = (tally.other_errors, tally.comparisons);
    ensure!(others * 100 <= all * MOST_OTHER_ERRORS + 500, "{others} others in {all} comparisons");
    Ok(())
}

/// The queries of a round.
fn draw(cluster: &Cluster, folder: &Path, seed: u64) -> Result<Vec<String>> {
    let vocabulary = match seed % ROUNDS_WITH_EVERYTHING {
        0 => Vocabulary::Everything,
        _ => Vocabulary::Usual,
    };
    let queries = generator::queries(cluster, folder, vocabulary, seed, BATCH)?;
    Ok(match seed % ROUNDS_WITH_LIMITS {
        0 => queries,
        _ => queries.iter().map(|query| generator::determined(query)).collect(),
    })
}

/// What the server's log says of processes that died.
struct Log<'a> {
    cluster: &'a Cluster,
    /// Bytes that were looked through.
    read: usize,
}

impl Log<'_> {
    /// Lines since the last time.
    fn crashes(&mut self) -> Result<Vec<String>> {
        let log = self.cluster.log()?;
        let new = log.get(self.read..).unwrap_or_default();
        self.read = log.len();
        let words = ["PANIC", "panicked", "was terminated by", "exited with exit code"];
        let tells = |line: &&str| words.iter().any(|word| line.contains(word));
        Ok(new.lines().filter(tells).map(str::to_owned).collect())
    }
}
