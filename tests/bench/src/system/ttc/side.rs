//! One query, kept up to date in one way, in a database of its own.

use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use harness::timing::{median, timed};
use hdrhistogram::Histogram;
use postgres::{Client, Statement};
use serde_json::{json, Value};

use super::change::next_transaction;
use super::network::{Network, Sizes};
use super::NAME;
use crate::record::{add_time, percentiles};
use crate::run::new_histogram;
use crate::system::setting::wait_for_views;

/// Transactions after which the query is run afresh.
const AFRESH_RUNS: usize = 3;
/// What is repeated is not repeated any more after so long.
const LONGEST: Duration = Duration::from_secs(30);

/// A query of the contest, as text.
pub struct Query {
    pub name: &'static str,
    pub sql: &'static str,
    /// Makes the table `by_hand` that triggers keep up to date.
    pub by_hand: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    View,
    Triggers,
}

impl Way {
    pub fn as_str(self) -> &'static str {
        match self {
            Way::View => "view",
            Way::Triggers => "triggers",
        }
    }

    fn relation(self) -> &'static str {
        match self {
            Way::View => "answer",
            Way::Triggers => "by_hand",
        }
    }
}

/// How much is done.
#[derive(Clone, Copy)]
pub struct Extent {
    /// How often the view is created.
    pub creations: usize,
    /// Transactions that warm caches and plans, and those that count.
    pub warming: usize,
    pub counted: usize,
    /// Whether the query is run after each of them, or after the last ones only.
    pub checks_all: bool,
}

/// The first three, by number, with their scores.
pub type Answer = Vec<(i64, i64)>;

pub struct Measured {
    pub way: Way,
    /// From CREATE to the end of the first read.
    pub first_reads: Vec<Duration>,
    /// The same WITH NO DATA; of views only.
    pub no_data: Option<Duration>,
    /// From BEGIN to COMMIT.
    pub writes: Histogram<u64>,
    /// From COMMIT to the end of a fresh read.
    pub reads: Histogram<u64>,
    pub both: Histogram<u64>,
    /// The query after a change; of views only.
    pub afresh: Vec<Duration>,
    /// After each transaction.
    pub answers: Vec<Answer>,
}

struct Side<'a> {
    client: Client,
    query: &'a Query,
    way: Way,
    network: Network,
}

/// Creates what is to be measured in a database that has the tables, and changes these.
pub fn run(
    client: Client,
    query: &Query,
    way: Way,
    network: Network,
    extent: Extent,
) -> Result<Measured> {
    let mut side = Side { client, query, way, network };
    // A fair opponent: compiling queries of this size costs more than it saves.
    side.client.batch_execute(
        "SET client_min_messages = warning; SET jit = off; SET eddy.read_timeout = '10min'",
    )?;
    let (no_data, first_reads) = side.create_all(extent.creations)?;
    let mut measured = Measured {
        way,
        first_reads,
        no_data,
        writes: new_histogram(),
        reads: new_histogram(),
        both: new_histogram(),
        afresh: Vec::new(),
        answers: Vec::new(),
    };
    side.follow(extent, &mut measured)?;
    if way == Way::View {
        measured.afresh = side.compare_afresh()?;
    }
    Ok(measured)
}

impl Side<'_> {
    /// How long it took WITH NO DATA, and as people create views, until the first read had its answer.
    fn create_all(&mut self, creations: usize) -> Result<(Option<Duration>, Vec<Duration>)> {
        if self.way == Way::Triggers {
            let by_hand = self.query.by_hand.unwrap_or_default();
            let time = timed(|| Ok(self.client.batch_execute(by_hand)?))?.1;
            return Ok((None, vec![time]));
        }
        self.client.batch_execute("CREATE EXTENSION pg_eddy")?;
        // Starts the worker, too.
        let no_data = self.create("WITH NO DATA")?;
        let (start, mut times) = (Instant::now(), Vec::new());
        while times.is_empty() || (times.len() < creations && start.elapsed() < LONGEST) {
            self.client.batch_execute("DROP INCREMENTAL VIEW answer")?;
            times.push(self.create("")?);
        }
        Ok((Some(no_data), times))
    }

    fn create(&mut self, data: &str) -> Result<Duration> {
        let create = format!("CREATE INCREMENTAL VIEW answer AS {} {data}", self.query.sql);
        let work = || {
            self.client.batch_execute(&create)?;
            Ok(self.client.execute("SELECT FROM answer", &[])?)
        };
        Ok(timed(work)?.1)
    }

    fn follow(&mut self, extent: Extent, measured: &mut Measured) -> Result<()> {
        let read = self.client.prepare(&format!(
            "SELECT id, score FROM {} ORDER BY score DESC, written DESC LIMIT 3",
            self.way.relation()
        ))?;
        for number in 0..extent.warming + extent.counted {
            let transaction = next_transaction(&mut self.network);
            let write = timed(|| Ok(self.client.batch_execute(&transaction)?))?.1;
            let (answer, reading) = timed(|| self.read(&read))?;
            if number >= extent.warming {
                add_time(&mut measured.writes, write);
                add_time(&mut measured.reads, reading);
                add_time(&mut measured.both, write + reading);
            }
            if extent.checks_all && self.way == Way::View {
                self.check(&answer, &transaction)?;
            }
            measured.answers.push(answer);
        }
        Ok(())
    }

    fn read(&mut self, statement: &Statement) -> Result<Answer> {
        let rows = self.client.query(statement, &[])?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// The query as such, which must answer the same.
    fn check(&mut self, answer: &Answer, transaction: &str) -> Result<Duration> {
        let (rows, time) = timed(|| Ok(self.client.query(self.query.sql, &[])?))?;
        let expected: Answer = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        ensure!(
            *answer == expected,
            "{}: {answer:?} where the query has {expected:?} after {transaction}",
            self.query.name
        );
        Ok(time)
    }

    /// Times of the query after a change each.
    fn compare_afresh(&mut self) -> Result<Vec<Duration>> {
        let (start, mut times) = (Instant::now(), Vec::new());
        while times.is_empty() || (times.len() < AFRESH_RUNS && start.elapsed() < LONGEST) {
            let transaction = next_transaction(&mut self.network);
            self.client.batch_execute(&transaction)?;
            // The worker is not beside the query while it is timed.
            wait_for_views(&mut self.client)?;
            let view = self
                .client
                .prepare("SELECT id, score FROM answer ORDER BY score DESC, written DESC")?;
            let answer = self.read(&view)?;
            times.push(self.check(&answer, &transaction)?);
        }
        Ok(times)
    }
}

impl Measured {
    pub fn first_read(&self) -> Duration {
        median(&self.first_reads)
    }

    pub fn afresh(&self) -> Option<Duration> {
        (!self.afresh.is_empty()).then(|| median(&self.afresh))
    }

    pub fn describe(&self, query: &Query, sizes: Sizes) -> Value {
        json!({
            "kind": "ttc", "name": NAME, "query": query.name, "by": self.way.as_str(),
            "factor": sizes.factor, "persons": sizes.persons, "posts": sizes.posts,
            "comments": sizes.comments, "likes": sizes.likes, "friendships": sizes.friendships,
            "first_read_seconds": self.first_read().as_secs_f64(),
            "first_read_runs": self.first_reads.len(),
            "no_data_seconds": self.no_data.map(|time| time.as_secs_f64()),
            "changes": self.both.len(), "write_ns": percentiles(&self.writes),
            "read_ns": percentiles(&self.reads), "write_and_read_ns": percentiles(&self.both),
            "afresh_seconds": self.afresh().map(|time| time.as_secs_f64()),
        })
    }
}
