//! `EXPLAIN ANALYZE` of statements that read views.

use std::thread;
use std::time::Duration;

use anyhow::{anyhow, ensure, Context, Result};
use harness::cluster::{signal_process, stop_at_rest, wait_for, Cluster};
use postgres::{Client, SimpleQueryMessage};
use rustix::process::Signal;
use serde_json::Value;

use crate::graph::{expect_alive, graph_database, worker_pid};

const WAIT: &str = "Incremental View Wait";

/// What EXPLAIN prints.
fn explain(client: &mut Client, statement: &str) -> Result<String> {
    let mut text = String::new();
    for message in client.simple_query(statement)? {
        if let SimpleQueryMessage::Row(row) = message {
            text.push_str(row.get(0).unwrap_or_default());
            text.push('\n');
        }
    }
    Ok(text)
}

/// The time in milliseconds, of one statement in JSON.
fn wait_of(client: &mut Client, statement: &str) -> Result<Option<f64>> {
    let text = explain(client, &format!("EXPLAIN (ANALYZE, FORMAT JSON) {statement}"))?;
    let value: Value = serde_json::from_str(&text)?;
    Ok(value[0].get(WAIT).and_then(Value::as_f64))
}

/// A read that waits for the worker says for how long; the next one does not wait.
pub fn waited(cluster: &Cluster) -> Result<()> {
    const STOPPED: Duration = Duration::from_millis(300);
    let mut client = graph_database(cluster, "timed")?;
    expect_alive(&mut client)?;
    let worker = worker_pid(&mut client)?.context("there is no worker")?;
    stop_at_rest(&mut client, worker)?;
    client.batch_execute("INSERT INTO edge VALUES (3, 4)")?;
    let mut reader = cluster.connect("timed")?;
    let reading = thread::spawn(move || {
        let first = wait_of(&mut reader, "SELECT * FROM reach")?;
        Ok::<_, anyhow::Error>((first, wait_of(&mut reader, "SELECT * FROM reach")?))
    });
    let sql = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
               AND wait_event = 'EddyWorker' AND query_start < clock_timestamp() - $1::text::interval";
    let waits = wait_for("the reader to have waited", Duration::from_secs(60), || {
        let long = format!("{} ms", STOPPED.as_millis());
        Ok(client.query_opt(sql, &[&long])?.map(|_| ()))
    });
    signal_process(worker, Signal::CONT)?;
    waits?;
    let (first, second) = reading.join().map_err(|_| anyhow!("the reader panicked"))??;
    let (first, second) = (first.context("no time")?, second.context("no time")?);
    println!("explain: waited {first} ms, then {second} ms");
    // It began to wait a little after the statement began.
    ensure!(first > STOPPED.as_secs_f64() * 500.0, "it waited {first} ms");
    ensure!(second < first / 2.0, "the next one waited {second} ms");
    Ok(())
}

/// The line is there in each format, for statements that read views, themselves or in functions, and in no others.
pub fn forms(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "forms")?;
    expect_alive(&mut client)?;
    client.batch_execute(
        "CREATE FUNCTION pairs() RETURNS bigint LANGUAGE plpgsql
         AS $$ BEGIN RETURN (SELECT count(*) FROM reach); END $$",
    )?;
    let text = explain(&mut client, "EXPLAIN ANALYZE SELECT * FROM reach")?;
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("Incremental View Wait: "));
    let at = at.with_context(|| format!("no line in {text}"))?;
    ensure!(lines[at].ends_with(" ms") && lines[at + 1].starts_with("Execution Time"), "{text}");
    for (format, form) in [("XML", "<Incremental-View-Wait>"), ("YAML", "Incremental View Wait: ")]
    {
        let statement = format!("EXPLAIN (ANALYZE, FORMAT {format}) SELECT * FROM reach");
        let text = explain(&mut client, &statement)?;
        ensure!(text.contains(form), "{text}");
    }
    for statement in ["SELECT pairs()", "INSERT INTO edge SELECT a, b FROM reach WHERE a = 77"] {
        ensure!(wait_of(&mut client, statement)?.is_some(), "no time for {statement}");
    }
    ensure!(wait_of(&mut client, "SELECT * FROM edge")?.is_none(), "a table was waited for");
    for options in ["SUMMARY OFF, ANALYZE", "SUMMARY ON"] {
        let text = explain(&mut client, &format!("EXPLAIN ({options}) SELECT * FROM reach"))?;
        ensure!(!text.contains(WAIT), "{options}: {text}");
    }
    Ok(())
}

/// An error keeps its position, and what was explained is explained no more.
pub fn errors(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "erring")?;
    expect_alive(&mut client)?;
    client.batch_execute(
        "CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql
         AS $$ BEGIN PERFORM 1 / (count(*) - 3) FROM reach; RETURN 1; END $$;
         CREATE FUNCTION tries() RETURNS text LANGUAGE plpgsql
         AS $$ BEGIN EXECUTE 'EXPLAIN ANALYZE SELECT fails() FROM reach'; RETURN 'done';
         EXCEPTION WHEN division_by_zero THEN RETURN 'caught'; END $$",
    )?;
    client.batch_execute("BEGIN; SAVEPOINT before")?;
    ensure!(client.batch_execute("EXPLAIN ANALYZE SELECT fails() FROM reach").is_err());
    client.batch_execute("ROLLBACK TO before; SELECT count(*) FROM reach; COMMIT")?;
    ensure!(client.batch_execute("EXPLAIN ANALYZE SELECT fails() FROM reach").is_err());
    client.batch_execute("SELECT count(*) FROM reach")?;
    let waited = wait_of(&mut client, "SELECT tries(), count(*) FROM reach")?;
    ensure!(waited.is_some(), "an error in a function has taken the time of the statement away");
    Ok(())
}
