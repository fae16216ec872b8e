//! Apply alone: rows that are inserted, replaced and deleted in a view's heap per second of the worker's time, beside what
//! COPY, UPDATE and DELETE do to a table of the same rows and indexes.
//!
//! The view joins parts to their owners, so one owner that comes, changes or goes is a step of many rows of the view, and
//! costs next to nothing before it is applied. One owner at a time is written by the worker, all at once by an assistant; of
//! the former the worker's own time counts (`eddy.activity`), of the latter all the time from the end of COMMIT to a read.

use std::time::Duration;

use anyhow::Result;
use harness::cluster::Cluster;
use harness::timing::{median, timed};
use postgres::Client;
use serde_json::json;

use super::activity::Activity;
use super::setting::{verify, wait_for_views, Setting};
use super::subject::run_script;
use crate::copy::copy;
use crate::record::Recorder;

pub const NAME: &str = "system/apply";

/// Rows of the view.
const ROWS: u32 = 400_000;
const QUICK_ROWS: u32 = 20_000;
/// Rows of one owner: less than what is left to an assistant.
const SHARE: u32 = 10_000;
const QUICK_SHARE: u32 = 1_000;

const TABLES: &str = "
    SET client_min_messages = warning; SET synchronous_commit = off; SET eddy.read_timeout = '10min';
    CREATE EXTENSION pg_eddy;
    CREATE TABLE owner (id int PRIMARY KEY, name text NOT NULL);
    CREATE TABLE part (id int PRIMARY KEY, owner int NOT NULL, amount int NOT NULL);
    INSERT INTO part SELECT i, (i - 1) / {share}, i % 77 FROM generate_series(1, {rows}) i;
    INSERT INTO owner SELECT i, 'owner ' || i FROM generate_series(0, ({rows} - 1) / {share}) i;
    VACUUM ANALYZE part, owner;
    CREATE INCREMENTAL VIEW subject AS
        SELECT p.id, p.amount, o.name FROM part p JOIN owner o ON o.id = p.owner;
    CREATE TABLE beside (id int, amount int, name text);
    SELECT FROM subject LIMIT 1;";

/// The indexes of the view, and of the table beside it.
const INDEXES: [(&str, &[&str]); 3] =
    [("none", &[]), ("one", &["(id)"]), ("two", &["(id)", "(name, id)"])];

/// What is done to all rows, and how it is done to the table beside.
struct Change {
    name: &'static str,
    /// To the owners of whom `{owners}` is true.
    statement: &'static str,
    beside: Option<&'static str>,
}

const CHANGES: [Change; 3] = [
    Change {
        name: "delete",
        statement: "DELETE FROM owner WHERE {owners}",
        beside: Some("DELETE FROM beside"),
    },
    Change {
        name: "insert",
        statement: "INSERT INTO owner SELECT id, 'owner ' || id FROM generate_series(0, {last}) id WHERE {owners}",
        beside: None,
    },
    Change {
        name: "replace",
        statement: "UPDATE owner SET name = 'other ' || id WHERE {owners}",
        beside: Some("UPDATE beside SET name = replace(name, 'owner', 'other')"),
    },
];

/// Rows a second of one change.
#[derive(Default)]
struct Rates {
    worker: Vec<f64>,
    assistant: Vec<f64>,
    beside: Vec<f64>,
}

/// Prints a table and records every run.
pub fn measure(setting: &Setting, recorder: &mut Recorder) -> Result<()> {
    println!("{NAME}: rows of a view written per second");
    println!(
        "{:<8} {:<8} {:>10} {:>10} {:>10}",
        "indexes", "change", "worker", "assistant", "table"
    );
    for (name, indexes) in INDEXES {
        setting.with_cluster(&[], |cluster, _| {
            measure_with(setting, cluster, name, indexes, recorder)
        })?;
    }
    println!(
        "(table: COPY, UPDATE and DELETE of the same rows in a table with the same indexes)\n"
    );
    Ok(())
}

fn measure_with(
    setting: &Setting,
    cluster: &Cluster,
    name: &str,
    indexes: &[&str],
    recorder: &mut Recorder,
) -> Result<()> {
    let rows = setting.rows(ROWS, QUICK_ROWS);
    let share = setting.choose(SHARE, QUICK_SHARE);
    let mut client = cluster.connect("postgres")?;
    let script = TABLES.replace("{share}", &share.to_string()).replace("{rows}", &rows.to_string());
    run_script(&mut client, &script)?;
    for index in indexes {
        let unique = if index.starts_with("(id") { "UNIQUE" } else { "" };
        client.batch_execute(&format!(
            "CREATE {unique} INDEX ON subject {index}; CREATE {unique} INDEX ON beside {index}"
        ))?;
    }
    let last = (rows - 1) / share;
    let mut all: [Rates; 3] = Default::default();
    // The first run warms caches.
    for run in 0..=setting.pairs() {
        let note = |rates: &mut Vec<f64>, time: Duration| {
            if run > 0 {
                rates.push(f64::from(rows) / time.as_secs_f64());
            }
        };
        for (change, rates) in CHANGES.iter().zip(&mut all) {
            note(&mut rates.worker, change_one_by_one(&mut client, change, last)?);
        }
        restore(&mut client)?;
        for (change, rates) in CHANGES.iter().zip(&mut all) {
            note(&mut rates.assistant, change_at_once(&mut client, change, last)?);
        }
        restore(&mut client)?;
        // Deleted last, so that it is there to be replaced.
        for at in [1, 2, 0] {
            let time = change_beside(&mut client, &CHANGES[at], (rows, share))?;
            note(&mut all[at].beside, time);
        }
        client.batch_execute("TRUNCATE beside")?;
    }
    verify(&mut client, "subject")?;
    for (change, rates) in CHANGES.iter().zip(&all) {
        let [worker, assistant, beside] =
            [&rates.worker, &rates.assistant, &rates.beside].map(|rates| median(rates));
        println!("{name:<8} {:<8} {worker:>10.0} {assistant:>10.0} {beside:>10.0}", change.name);
        recorder.write(&json!({
            "kind": "apply", "name": NAME, "indexes": name, "change": change.name, "rows": rows,
            "worker_rows_per_second": rates.worker, "assistant_rows_per_second": rates.assistant,
            "table_rows_per_second": rates.beside,
        }))?;
    }
    Ok(())
}

/// Names all owners as at first, and clears rows of nobody, which are no part of the next run.
fn restore(client: &mut Client) -> Result<()> {
    client.batch_execute("UPDATE owner SET name = 'owner ' || id")?;
    wait_for_views(client)?;
    run_script(client, "VACUUM owner; VACUUM subject;")
}

/// The worker's own time for one owner after the other.
fn change_one_by_one(client: &mut Client, change: &Change, last: u32) -> Result<Duration> {
    wait_for_views(client)?;
    let before = Activity::read(client)?;
    for owner in 0..=last {
        let owners = format!("id = {owner}");
        client.batch_execute(&change.of(&owners, last))?;
        wait_for_views(client)?;
    }
    Ok(Activity::read(client)?.since(&before).apply)
}

/// The time until all owners' rows are in the view.
fn change_at_once(client: &mut Client, change: &Change, last: u32) -> Result<Duration> {
    client.batch_execute(&change.of("true", last))?;
    Ok(timed(|| wait_for_views(client))?.1)
}

/// The time of the same change of the table beside.
fn change_beside(
    client: &mut Client,
    change: &Change,
    (rows, share): (u32, u32),
) -> Result<Duration> {
    if let Some(statement) = change.beside {
        return Ok(timed(|| Ok(client.batch_execute(statement)?))?.1);
    }
    let rows = (1..=rows).map(|id| format!("{id}\t{}\towner {}", id % 77, (id - 1) / share));
    let lines: Vec<String> = rows.collect();
    Ok(timed(|| copy(client, "beside", lines))?.1)
}

impl Change {
    fn of(&self, owners: &str, last: u32) -> String {
        self.statement.replace("{owners}", owners).replace("{last}", &last.to_string())
    }
}
