//! A worker that starts must see the end of all transactions that write at that moment, in any database: it waits as
//! long as it must, says for whom, and does not wait for those that come later. And COMMIT PREPARED, which
//! ends a transaction within another.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::{is_stopped, signal_process, wait_for, Cluster};
use harness::installation::Installation;
use postgres::Client;
use rustix::process::Signal;

use super::check::Record;
use super::orders;
use crate::graph::{expect_alive, expect_rows, graph_database, worker_pid};

const PATIENCE: Duration = Duration::from_secs(60);

/// How soon after the last of those it waits for a worker must serve readers.
const SOON: Duration = Duration::from_secs(3);

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    let settings = &[("fsync", "off"), ("max_prepared_transactions", "10")];
    match Cluster::start_new(installation, folder, "start", settings) {
        Err(error) => record("a server to start workers in", Err(error)),
        Ok(cluster) => {
            let names_session = names_session(&cluster);
            record("a worker that starts names the session it waits for", names_session);
            let names_prepared = names_prepared(&cluster);
            record("a worker that starts names a prepared transaction", names_prepared);
            let overlapping = starts_beside_writers(&cluster);
            record("a worker starts beside overlapping transactions", overlapping);
            record("COMMIT PREPARED is seen at once", commit_prepared_counts(&cluster));
            record("a worker reads a table once for all views", reads_once(&cluster));
        }
    }
}

/// Ends the worker and waits until it is gone.
fn end_worker(client: &mut Client) -> Result<()> {
    let old = worker_pid(client)?.context("there is no worker")?;
    signal_process(old, Signal::TERM)?;
    wait_for("the worker to end", PATIENCE, || Ok((worker_pid(client)? != Some(old)).then_some(())))
}

/// Readers and `eddy.views` name whom the worker waits for; answers when that is over.
fn expect_named(client: &mut Client, name: &str) -> Result<()> {
    let sql = "SELECT state, message FROM eddy.views WHERE state = 'stopped'";
    wait_for("eddy.views to name the culprit", PATIENCE, || {
        let row = client.query_opt(sql, &[])?;
        let message: Option<String> = row.and_then(|row| row.get(1));
        Ok(message.filter(|message| message.contains(name)))
    })?;
    client.batch_execute("SET eddy.read_timeout = '300ms'")?;
    let Err(error) = client.query("SELECT * FROM reach", &[]) else { bail!("read did not fail") };
    client.batch_execute("RESET eddy.read_timeout")?;
    let report = error.as_db_error().context("the session was lost")?;
    let text = format!("{report} {}", report.detail().unwrap_or_default());
    ensure!(text.contains(name), "the reader's error does not name {name}: {text}");
    Ok(())
}

fn expect_soon(client: &mut Client, what: &str) -> Result<()> {
    let began = Instant::now();
    expect_rows(client, "reach", 3)?;
    let took = began.elapsed();
    println!("server: {what}: fresh after {:.3} s", took.as_secs_f64());
    ensure!(took < SOON, "readers waited {took:?}");
    Ok(())
}

fn names_session(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "waiting")?;
    expect_alive(&mut client)?;
    let mut writer = cluster.connect("postgres")?;
    writer.batch_execute("BEGIN; CREATE TABLE left_open (a int)")?;
    let pid: i32 = writer.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    end_worker(&mut client)?;
    expect_named(&mut client, &format!("process {pid} in database \"postgres\""))?;
    let waits = worker_pid(&mut client)?;
    writer.batch_execute("ROLLBACK")?;
    expect_soon(&mut client, "after a write transaction in another database")?;
    ensure!(worker_pid(&mut client)? == waits, "it did not wait but started again and again");
    expect_alive(&mut client)
}

fn names_prepared(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "prepared")?;
    expect_alive(&mut client)?;
    client
        .batch_execute("BEGIN; INSERT INTO edge VALUES (9, 9); PREPARE TRANSACTION 'put aside'")?;
    end_worker(&mut client)?;
    expect_named(&mut client, "prepared transaction \"put aside\" in database \"prepared\"")?;
    client.batch_execute("ROLLBACK PREPARED 'put aside'")?;
    expect_soon(&mut client, "after a prepared transaction")?;
    expect_alive(&mut client)
}

/// Two sessions, of which one always has a transaction open that has written, for half a second each.
fn starts_beside_writers(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "beside")?;
    client.batch_execute("CREATE TABLE other (a int)")?;
    expect_alive(&mut client)?;
    let mut writers = [cluster.connect("beside")?, cluster.connect("beside")?];
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, writer) in writers.iter_mut().enumerate() {
            let is_over = &is_over;
            threads.push(scope.spawn(move || -> Result<()> {
                if number == 1 {
                    writer.batch_execute("SELECT pg_sleep(0.25)")?;
                }
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    writer.batch_execute(
                        "BEGIN; INSERT INTO other VALUES (1); SELECT pg_sleep(0.5); COMMIT",
                    )?;
                }
                Ok(())
            }));
        }
        let result = end_worker(&mut client)
            .and_then(|()| expect_soon(&mut client, "beside overlapping transactions of 0.5 s"));
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
        }
        result
    })
}

/// A session that commits a prepared transaction is counted as committing, as any other is: one that stands still in the
/// middle does not keep readers from waiting for what it has done.
fn commit_prepared_counts(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "two_phases")?;
    expect_alive(&mut client)?;
    client.batch_execute("BEGIN; INSERT INTO edge VALUES (3, 1); PREPARE TRANSACTION 'cycle'")?;
    let mut committer = cluster.connect("two_phases")?;
    committer.batch_execute("SET eddy.crash_point = 'commit=stop'")?;
    let pid: i32 = committer.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    std::thread::scope(|scope| {
        let commit = scope.spawn(move || committer.batch_execute("COMMIT PREPARED 'cycle'"));
        let counted = wait_for("the session to be counted", Duration::from_secs(20), || {
            ensure!(!commit.is_finished(), "COMMIT PREPARED is not counted as committing");
            Ok(is_stopped(pid).then_some(()))
        });
        // Not committed yet, and nobody waits for what has not happened.
        let before = counted.and_then(|()| expect_rows(&mut client, "reach", 3));
        signal_process(pid, Signal::CONT)?;
        commit.join().map_err(|_| anyhow::anyhow!("the session panicked"))??;
        before?;
        expect_rows(&mut client, "reach", 9)
    })
}

/// Rows of the table that several views read.
const ORDERS: i64 = 100_000;

/// A worker that starts reads a table once, however many views over it there are, and they are right.
fn reads_once(cluster: &Cluster) -> Result<()> {
    cluster.connect("postgres")?.batch_execute("CREATE DATABASE once")?;
    let mut client = cluster.connect("once")?;
    client.batch_execute(&orders::create(1000, ORDERS))?;
    client.batch_execute(
        "CREATE INCREMENTAL VIEW by_customer AS
             SELECT customer, count(*) AS n, sum(amount) AS total FROM ordered GROUP BY customer;
         CREATE INCREMENTAL VIEW large AS SELECT id, amount FROM ordered WHERE amount > 900;
         CREATE INCREMENTAL VIEW by_country AS SELECT c.country, max(o.amount) AS most
             FROM ordered o JOIN customer c ON c.id = o.customer GROUP BY c.country;
         CREATE INCREMENTAL VIEW all_orders AS SELECT id, customer, amount FROM ordered",
    )?;
    expect_filled(&mut client)?;
    // What a worker has read is counted when it ends.
    end_worker(&mut client)?;
    let before = rows_read(&mut client)?;
    expect_filled(&mut client)?;
    end_worker(&mut client)?;
    let read = rows_read(&mut client)? - before;
    ensure!(read >= ORDERS, "{read} rows are counted as read of {ORDERS}");
    ensure!(read < 2 * ORDERS, "{read} rows were read of {ORDERS}");
    expect_filled(&mut client)?;
    for view in ["by_customer", "large", "by_country", "all_orders"] {
        let sql = format!("SELECT missing, surplus FROM eddy.verify_view('{view}')");
        let row = client.query_one(&sql, &[])?;
        let (missing, surplus): (i64, i64) = (row.get(0), row.get(1));
        ensure!(missing == 0 && surplus == 0, "{view}: {missing} rows missing, {surplus} surplus");
    }
    Ok(())
}

/// Fresh reads of all views, which do not touch the table.
fn expect_filled(client: &mut Client) -> Result<()> {
    for (view, rows) in [
        ("by_customer", 1000),
        ("large", ORDERS / 1000 * 99),
        ("by_country", 50),
        ("all_orders", ORDERS),
    ] {
        let found: i64 = client.query_one(&format!("SELECT count(*) FROM {view}"), &[])?.get(0);
        ensure!(found == rows, "{view} has {found} rows, not {rows}");
    }
    Ok(())
}

fn rows_read(client: &mut Client) -> Result<i64> {
    let sql = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'ordered'";
    Ok(client.query_one(sql, &[])?.get(0))
}
