//! `pg_stat_activity`: who waits for views, and at which view a worker is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{anyhow, Context, Result};
use harness::cluster::{signal_process, stop_at_rest, wait_for, Cluster};
use postgres::Client;
use rustix::process::Signal;

use crate::graph::{expect_alive, expect_rows, graph_database, worker_pid};

const PATIENCE: Duration = Duration::from_secs(60);

/// A reader that waits is active, and its wait event has a name.
pub fn waiting_reader(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "waited")?;
    expect_alive(&mut client)?;
    let worker = worker_pid(&mut client)?.context("there is no worker")?;
    stop_at_rest(&mut client, worker)?;
    let mut reader = cluster.connect("waited")?;
    client.batch_execute("INSERT INTO edge VALUES (3, 4)")?;
    let reading = thread::spawn(move || expect_rows(&mut reader, "reach", 6));
    let sql = "SELECT state || ' ' || wait_event FROM pg_stat_activity
               WHERE datname = current_database() AND query LIKE '%FROM reach'";
    let waits = wait_for("the reader to wait", PATIENCE, || {
        let row = client.query_opt(sql, &[])?;
        Ok(row.and_then(|row| row.get::<_, Option<String>>(0)).filter(|s| s == "active EddyWorker"))
    });
    signal_process(worker, Signal::CONT)?;
    waits?;
    reading.join().map_err(|_| anyhow!("the reader panicked"))?
}

/// While a worker reads tables, evaluates and writes it is active, says what it does, and for which view.
pub fn worker(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "shown")?;
    expect_alive(&mut client)?;
    client.batch_execute(
        "CREATE TABLE big (a int);
         INSERT INTO big SELECT i FROM generate_series(1, 300000) i;
         CREATE FUNCTION slow(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE
         AS $$ BEGIN PERFORM pg_sleep(0.02); RETURN a; END $$;
         CREATE TABLE few (a int)",
    )?;
    client.batch_execute(
        "CREATE INCREMENTAL VIEW sums AS SELECT a % 1000 AS k, sum(a) FROM big GROUP BY 1",
    )?;
    client.batch_execute("CREATE INCREMENTAL VIEW slowly AS SELECT slow(a) FROM few")?;
    expect_doing(
        cluster,
        &mut client,
        "reading the base tables of",
        "public.sums",
        "REFRESH INCREMENTAL VIEW sums",
    )?;
    let change = "INSERT INTO few SELECT i FROM generate_series(1, 50) i; SELECT * FROM slowly";
    expect_doing(cluster, &mut client, "evaluating expressions of", "public.slowly", change)?;
    let rest = "SELECT 1 FROM pg_stat_activity WHERE backend_type = 'pg_eddy worker'
                AND datname = 'shown' AND state = 'idle' AND application_name = ''";
    wait_for("the worker to be idle", PATIENCE, || Ok(client.query_opt(rest, &[])?.map(|_| ())))
}

/// What a worker does is over before a slow machine looks: `cause` is run again until it is seen.
fn expect_doing(
    cluster: &Cluster,
    client: &mut Client,
    doing: &str,
    view: &str,
    cause: &str,
) -> Result<()> {
    let seen = AtomicBool::new(false);
    let sql = format!(
        "SELECT 1 FROM pg_stat_activity WHERE backend_type LIKE 'pg_eddy %' AND state = 'active'
         AND query = '{doing} view {view}' AND application_name = '{view}'"
    );
    thread::scope(|scope| {
        let causing = scope.spawn(|| -> Result<()> {
            let mut session = cluster.connect("shown")?;
            while !seen.load(Ordering::Relaxed) {
                session.batch_execute(cause)?;
            }
            Ok(())
        });
        let found = wait_for(&format!("a process that is {doing} {view}"), PATIENCE, || {
            Ok(client.query_opt(&sql, &[])?.map(|_| ()))
        });
        seen.store(true, Ordering::Relaxed);
        causing.join().map_err(|_| anyhow!("the session panicked"))??;
        found
    })
}
