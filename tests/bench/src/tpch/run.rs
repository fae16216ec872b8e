//! One query's run: its view is created in a database of its own, and compared with the query after
//! every change of the tables.

use std::time::Duration;

use anyhow::{ensure, Result};
use harness::comparison::comparison;
use harness::timing::{median, timed};
use postgres::error::SqlState;
use postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

use super::churn::Churn;
use super::generator::Sizes;
use super::load;
use super::outcome::{Maintained, Outcome, Step};
use super::query::Query;

/// Runs of the query afresh, of which the median counts.
const AFRESH_RUNS: usize = 3;

/// What is done to the tables.
#[derive(Clone, Copy)]
pub struct Changes {
    pub sizes: Sizes,
    pub seed: u64,
    /// Transactions of one row.
    pub churn: u32,
}

/// Runs one query in a database that has the tables and nothing else; `fill` fills its view.
pub fn run(client: Client, query: &Query, fill: &str, changes: Changes) -> Outcome {
    let run = Run { client, query, rows: Vec::new(), differing_texts: 0 };
    run.play(fill, changes).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")))
}

struct Run<'a> {
    client: Client,
    query: &'a Query,
    /// The view's rows as they were last read, in order.
    rows: Vec<String>,
    /// Rows whose values were equal to the query's but written differently, such as 1.0 and 1.00.
    differing_texts: i64,
}

impl Run<'_> {
    fn play(mut self, fill: &str, changes: Changes) -> Result<Outcome> {
        // A fair opponent: compiling queries of this size costs more than it saves.
        self.client.batch_execute(&format!(
            "SET client_min_messages = warning; SET jit = off; SET eddy.read_timeout = '10min';
             CREATE EXTENSION pg_eddy; SET eddy.fill = {fill}"
        ))?;
        match self.create_view()? {
            Ok(created) => self.follow(changes, created),
            Err(refusal) => Ok(Outcome::Refused(refusal)),
        }
    }

    /// The time it takes, or the message with which it is refused.
    fn create_view(&mut self) -> Result<Result<Duration, String>> {
        let create = format!("CREATE INCREMENTAL VIEW {} AS {}", self.query.name(), self.query.sql);
        let (result, time) = timed(|| Ok(self.client.batch_execute(&create)))?;
        let Err(error) = result else { return Ok(Ok(time)) };
        match error.as_db_error() {
            Some(refusal) if *refusal.code() == SqlState::FEATURE_NOT_SUPPORTED => {
                Ok(Err(refusal.message().to_owned()))
            }
            _ => Err(error.into()),
        }
    }

    /// Changes the tables and checks the view after every transaction.
    fn follow(mut self, changes: Changes, created: Duration) -> Result<Outcome> {
        let Changes { sizes, seed, churn } = changes;
        let live = self.check("CREATE", 0)?;
        let rows = load::insert_orders(&mut self.client, sizes, seed)?;
        let inserted = self.check("RF1", rows)?;
        let rows = load::delete_orders(&mut self.client, sizes)?;
        let deleted = self.check("RF2", rows)?;
        // Each query sees other changes, so that more of them are tried.
        let own_seed = seed.wrapping_mul(100).wrapping_add(u64::from(self.query.number));
        let mut churning = Churn::new(&mut self.client, &self.query.focuses, sizes, own_seed)?;
        let mut steps = Vec::new();
        for _ in 0..churn {
            let sql = churning.change_one(&mut self.client)?;
            steps.push(self.check(&sql, 1)?);
        }
        Ok(Outcome::Maintained(Maintained {
            created,
            live,
            inserted,
            deleted,
            churn: steps,
            afresh: self.time_afresh()?,
            rows: self.rows.len(),
            state_bytes: self.client.query_one("SELECT state_bytes FROM eddy.views", &[])?.get(0),
            differing_texts: self.differing_texts,
        }))
    }

    /// Reads the view, which waits until it is current, and compares it with the query.
    fn check(&mut self, change: &str, changed_rows: u64) -> Result<Step> {
        let (rows, time) = self.read()?;
        let is_visible = rows != self.rows;
        self.rows = rows;
        let sql = comparison(&self.query.name(), &self.query.sql);
        let row = self.client.query_one(&sql, &[])?;
        let (missing, surplus): (i64, i64) = (row.get(0), row.get(1));
        self.differing_texts += row.get::<_, i64>(2);
        ensure!(
            missing == 0 && surplus == 0,
            "wrong: {missing} rows missing, {surplus} surplus after {change}"
        );
        // Else what was right was not what was timed.
        ensure!(self.read()?.0 == self.rows, "the first read was not current after {change}");
        Ok(Step { changed_rows, time, is_visible })
    }

    /// The view's rows in order, and how long it took to get them.
    fn read(&mut self) -> Result<(Vec<String>, Duration)> {
        let sql = format!("SELECT * FROM {}", self.query.name());
        let (messages, time) = timed(|| Ok(self.client.simple_query(&sql)?))?;
        Ok((sorted_rows(&messages), time))
    }

    fn time_afresh(&mut self) -> Result<Duration> {
        let times = (0..AFRESH_RUNS)
            .map(|_| Ok(timed(|| Ok(self.client.simple_query(&self.query.sql)?))?.1))
            .collect::<Result<Vec<Duration>>>()?;
        Ok(median(&times))
    }
}

fn sorted_rows(messages: &[SimpleQueryMessage]) -> Vec<String> {
    let text = |row: &SimpleQueryRow| {
        let columns: Vec<Option<&str>> = (0..row.len()).map(|column| row.get(column)).collect();
        format!("{columns:?}")
    };
    let mut rows: Vec<String> = messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(text(row)),
            _ => None,
        })
        .collect();
    rows.sort();
    rows
}
