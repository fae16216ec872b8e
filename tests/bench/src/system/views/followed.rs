//! Views with columns `region` and `total` over the orders, created together, and changes of one order that are followed
//! into them.

use std::time::Duration;

use anyhow::{ensure, Result};
use harness::timing::timed;
use hdrhistogram::Histogram;
use postgres::{Client, Statement};
use serde_json::{json, Value};

use super::super::orders::AMOUNTS;
use super::super::setting::verify;
use crate::record::{add_time, percentiles};
use crate::run::new_histogram;

/// The views of one server.
pub struct Followed {
    pub client: Client,
    /// The last one may stand on all others.
    names: Vec<String>,
    /// Creating them, filled, and from then on until all of them follow their tables.
    pub creation: Duration,
    pub attach: Duration,
}

/// Of single changes, from the end of the COMMIT to the end of the read that shows it, in nanoseconds.
pub struct Latencies {
    /// Reads of the last view.
    pub one: Histogram<u64>,
    /// Reads of all views in one statement.
    pub all: Histogram<u64>,
    /// The same statement when there is nothing to wait for.
    pub idle: Histogram<u64>,
}

impl Latencies {
    pub fn describe(&self) -> Value {
        json!({
            "changes": self.all.len(), "one_ns": percentiles(&self.one),
            "all_ns": percentiles(&self.all), "idle_ns": percentiles(&self.idle),
        })
    }
}

impl Followed {
    /// Creates the views over the tables that there are.
    pub fn create(mut client: Client, queries: impl Iterator<Item = String>) -> Result<Followed> {
        client.batch_execute(
            "SET client_min_messages = warning; SET eddy.read_timeout = '10min';
             SET plan_cache_mode = force_generic_plan;
             CREATE EXTENSION pg_eddy",
        )?;
        let mut names = Vec::new();
        let creation = timed(|| {
            for (number, query) in queries.enumerate() {
                names.push(format!("v{number}"));
                client.batch_execute(&format!("CREATE INCREMENTAL VIEW v{number} AS {query}"))?;
            }
            Ok(())
        })?;
        let creation = creation.1;
        let mut followed = Followed { client, names, creation, attach: Duration::ZERO };
        followed.attach = followed.wait()?;
        Ok(followed)
    }

    /// Until all views have everything committed so far.
    pub fn wait(&mut self) -> Result<Duration> {
        let all: Vec<String> =
            self.names.iter().map(|name| format!("EXISTS (SELECT FROM {name})")).collect();
        let statement = format!("SELECT {}", all.join(", "));
        let (_, time) = timed(|| Ok(self.client.query_one(&statement, &[])?))?;
        Ok(time)
    }

    /// Changes orders one by one and reads after each: every change must be in what is read.
    pub fn follow(&mut self, orders: u32, changes: u32) -> Result<Latencies> {
        let watched = watch(&mut self.client, orders, changes)?;
        self.wait()?;
        let change = self.client.prepare("UPDATE orders SET amount = amount + 1 WHERE id = $1")?;
        let one = reading(&mut self.client, &self.names[self.names.len() - 1..])?;
        let all = reading(&mut self.client, &self.names)?;
        let [mut of_one, mut of_all, mut idle] =
            [new_histogram(), new_histogram(), new_histogram()];
        for (id, region) in &watched {
            let (before, time) = read(&mut self.client, &all, region)?;
            add_time(&mut idle, time);
            self.client.execute(&change, &[id])?;
            let (last, time) = read(&mut self.client, &one, region)?;
            add_time(&mut of_one, time);
            expect_more(&before[before.len() - 1..], &last, 1)?;
            // What reading one view has waited for is no part of the other figure.
            self.wait()?;
            self.client.execute(&change, &[id])?;
            let (after, time) = read(&mut self.client, &all, region)?;
            add_time(&mut of_all, time);
            expect_more(&before, &after, 2)?;
        }
        Ok(Latencies { one: of_one, all: of_all, idle })
    }

    /// Each view against its query.
    pub fn verify(&mut self) -> Result<()> {
        self.names.iter().try_for_each(|name| verify(&mut self.client, name))
    }
}

/// Gives orders, all over the table, amounts that pass every filter. Their keys, and the regions of their customers.
fn watch(client: &mut Client, orders: u32, count: u32) -> Result<Vec<(i32, String)>> {
    let id = |number: u32| 1 + (u64::from(number) * 7919 % u64::from(orders)) as i32;
    let ids: Vec<i32> = (0..count.min(orders)).map(id).collect();
    client.execute("UPDATE orders SET amount = $2 WHERE id = ANY($1)", &[&ids, &AMOUNTS])?;
    let rows = client.query(
        "SELECT o.id, c.region FROM orders o JOIN customers c ON c.id = o.customer WHERE o.id = ANY($1)",
        &[&ids],
    )?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// The totals of a region in each of the views, in one statement; prepared, so that planning is no part of a read.
fn reading(client: &mut Client, names: &[String]) -> Result<Statement> {
    let total = |name: &String| format!("(SELECT total::bigint FROM {name} WHERE region = $1)");
    let totals: Vec<String> = names.iter().map(total).collect();
    Ok(client.prepare(&format!("SELECT ARRAY[{}]", totals.join(", ")))?)
}

fn read(client: &mut Client, statement: &Statement, region: &str) -> Result<(Vec<i64>, Duration)> {
    timed(|| Ok(client.query_one(statement, &[&region])?.get(0)))
}

fn expect_more(before: &[i64], after: &[i64], more: i64) -> Result<()> {
    let is_right = before.len() == after.len()
        && before.iter().zip(after).all(|(before, after)| before + more == *after);
    ensure!(is_right, "a change is not in what was read: {before:?}, then {after:?}");
    Ok(())
}
