//! Views over views over views, and texts that nest more deeply than any stack.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::{signal_process, wait_for, Cluster};
use postgres::Client;
use rustix::process::Signal;

use super::check::Check;
use crate::graph::worker_pid;

/// Checks that share one cluster.
pub const CHECKS: [(&str, Check); 5] = [
    ("a view over a new view is there when that is", upper_views_follow_at_once),
    ("a hundred views in a chain are cheap", long_chains_are_cheap),
    ("a slow view does not hold up the one that it reads", slow_views_stand_alone),
    ("views over views are right after starts and large changes", stacks_start_again),
    ("texts without end are refused", endless_texts_are_refused),
];

/// Long for whatever is waited for here.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many views stand above each other.
const DEPTH: usize = 100;

/// Far more than each statement takes, far less than a cost that doubles with each view.
const LIMIT: &str = "30s";

fn new_database(cluster: &Cluster, name: &str) -> Result<Client> {
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = cluster.connect(name)?;
    client.batch_execute(&format!(
        "SET client_min_messages = warning;
         CREATE EXTENSION pg_eddy;
         CREATE TABLE t (k int, n int, b bool);
         INSERT INTO t VALUES (1, 1), (2, 2);
         SET statement_timeout = '{LIMIT}'; SET eddy.read_timeout = '{LIMIT}'"
    ))?;
    Ok(client)
}

/// The query of the view of that number over the one before.
fn query_of(number: usize) -> String {
    match number {
        1 => "SELECT k, n FROM t".to_owned(),
        _ if number.is_multiple_of(25) => {
            format!("SELECT k, max(n) AS n FROM c{} GROUP BY k", number - 1)
        }
        _ => format!("SELECT k, n FROM c{} WHERE n <> {}", number - 1, 1000 + number),
    }
}

/// Of two views over one, the function of one takes a second for each row: the others go on meanwhile.
fn slow_views_stand_alone(cluster: &Cluster) -> Result<()> {
    let mut client = new_database(cluster, "slow_above")?;
    client.batch_execute(
        "CREATE FUNCTION slow(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
             $$BEGIN IF n > 100 THEN PERFORM pg_sleep(1); END IF; RETURN n; END$$;
         CREATE INCREMENTAL VIEW lower AS SELECT k, max(n) AS n FROM t GROUP BY k;
         CREATE INCREMENTAL VIEW quick AS SELECT sum(n) AS n FROM lower;
         CREATE INCREMENTAL VIEW slow AS SELECT k, slow(n) AS n FROM lower",
    )?;
    let sum = |client: &mut Client, sql: &str| -> Result<i64> {
        Ok(client.query_one(sql, &[])?.get::<_, Option<i64>>(0).unwrap_or(0))
    };
    ensure!(sum(&mut client, "SELECT sum(n) FROM slow")? == 3, "it is not there at first");
    client.batch_execute("UPDATE t SET n = 200 + k")?;
    let started = Instant::now();
    for n in 1..=20 {
        client.batch_execute(&format!("UPDATE t SET n = {n} WHERE k = 1"))?;
        let found = sum(&mut client, "SELECT n::bigint FROM quick")?;
        ensure!(found == 202 + n, "{found} above after {n}");
    }
    let took = started.elapsed();
    ensure!(took < Duration::from_millis(1900), "changes beside a slow view took {took:?}");
    let found = sum(&mut client, "SELECT sum(n) FROM slow")?;
    ensure!(found == 222, "the slow view has {found}");
    drop(client);
    Ok(cluster.connect("postgres")?.batch_execute("DROP DATABASE slow_above")?)
}

/// A stack, one view of which reads another one by a join that finds an index of it: after large transactions, starts of the
/// worker and REFRESH each view is its query.
fn stacks_start_again(cluster: &Cluster) -> Result<()> {
    let mut client = new_database(cluster, "stacked")?;
    client.batch_execute(
        "CREATE TABLE u (k int PRIMARY KEY, m int); INSERT INTO u SELECT g, g % 10 FROM generate_series(1, 1000) g;
         CREATE INCREMENTAL VIEW joined AS SELECT u.k, u.m, t.n FROM u LEFT JOIN t ON t.k = u.k;
         CREATE INCREMENTAL VIEW grouped AS SELECT m, count(*) AS c, sum(n) AS s FROM joined GROUP BY m;
         CREATE INCREMENTAL VIEW pairs AS SELECT j.k, g.c, g.s FROM joined j JOIN grouped g ON g.m = j.m;
         CREATE INCREMENTAL VIEW found AS SELECT u.k, g.c FROM u JOIN grouped g ON g.m = u.m;
         CREATE INCREMENTAL VIEW top AS SELECT max(k) AS k, sum(c)::bigint AS c, count(s) AS s FROM pairs",
    )?;
    for round in 0..4 {
        client.batch_execute(&format!(
            "INSERT INTO t SELECT g, {round} FROM generate_series(1, 30000) g; UPDATE u SET m = (m + {round}) % 11"
        ))?;
        match round {
            1 | 2 => {
                let old = worker_pid(&mut client)?.context("there is no worker")?;
                signal_process(old, if round == 1 { Signal::TERM } else { Signal::INT })?;
                wait_for("the worker to end", PATIENCE, || {
                    Ok((worker_pid(&mut client)? != Some(old)).then_some(()))
                })?;
            }
            3 => client
                .batch_execute("REFRESH INCREMENTAL VIEW joined; DELETE FROM t WHERE n < 2")?,
            _ => {}
        }
        for view in ["joined", "grouped", "pairs", "found", "top"] {
            let sql = format!("SELECT missing, surplus FROM eddy.verify_view('{view}')");
            let row = client.query_one(&sql, &[])?;
            let differences: (i64, i64) = (row.get(0), row.get(1));
            ensure!(differences == (0, 0), "{view} in round {round}: {differences:?}");
        }
    }
    drop(client);
    Ok(cluster.connect("postgres")?.batch_execute("DROP DATABASE stacked")?)
}

/// Two views that are created together: DDL that comes while the one above waits for the other must not let it sleep.
fn upper_views_follow_at_once(cluster: &Cluster) -> Result<()> {
    /// Less than the time after which a view that waits looks again by itself.
    const SOON: Duration = Duration::from_millis(200);
    let mut client = new_database(cluster, "above")?;
    let mut times = Vec::new();
    for number in 1..=5 {
        client.batch_execute(&format!(
            "BEGIN;
             CREATE INCREMENTAL VIEW lower{number} AS SELECT k, n FROM t;
             CREATE INCREMENTAL VIEW upper{number} AS SELECT sum(n) AS n FROM lower{number};
             COMMIT"
        ))?;
        let started = Instant::now();
        let sum = format!("SELECT n FROM upper{number}");
        ensure!(client.query_one(&sum, &[])?.get::<_, i64>(0) == 3, "rows are wrong");
        times.push(started.elapsed());
    }
    // A machine that is at work elsewhere is not slow each time.
    ensure!(times.iter().min().is_some_and(|time| *time < SOON), "first reads took {times:?}");
    drop(client);
    Ok(cluster.connect("postgres")?.batch_execute("DROP DATABASE above")?)
}

/// Creating the hundredth view over ninety-nine others, and a change that passes through all of them.
fn long_chains_are_cheap(cluster: &Cluster) -> Result<()> {
    // Each view takes some 16 kB of stack while a query over all of them is planned, and PostgreSQL allows 2 MB.
    let mut admin = cluster.connect("postgres")?;
    admin.batch_execute("ALTER SYSTEM SET max_stack_depth = '6MB'")?;
    admin.batch_execute("SELECT pg_reload_conf()")?;
    let outcome = create_and_change(cluster);
    admin.batch_execute("ALTER SYSTEM RESET max_stack_depth")?;
    admin.batch_execute("SELECT pg_reload_conf()")?;
    outcome
}

fn create_and_change(cluster: &Cluster) -> Result<()> {
    let mut client = new_database(cluster, "chained")?;
    let started = Instant::now();
    for number in 1..=DEPTH {
        let create = format!("CREATE INCREMENTAL VIEW c{number} AS {}", query_of(number));
        client.batch_execute(&create).with_context(|| format!("view {number}"))?;
    }
    let created = started.elapsed();
    client.batch_execute("INSERT INTO t VALUES (1, 7), (3, 3), (3, 1003)")?;
    let sum = format!("SELECT sum(k * n)::bigint FROM c{DEPTH}");
    ensure!(client.query_one(&sum, &[])?.get::<_, i64>(0) == 7 + 4 + 9, "rows are wrong");
    let started = Instant::now();
    for n in 8..18 {
        client.batch_execute(&format!("UPDATE t SET n = {n} WHERE k = 1 AND n > 1"))?;
        let found: i64 = client.query_one(&sum, &[])?.get(0);
        ensure!(found == n + 4 + 9, "{found} after {n}");
    }
    let changed = started.elapsed() / 10;
    println!(
        "server: {DEPTH} views in a chain: created in {created:.1?}, a change in {changed:.1?}"
    );
    ensure!(changed < Duration::from_secs(2), "a change takes {changed:?}");
    let verify = format!("SELECT missing + surplus FROM eddy.verify_view('c{DEPTH}')");
    ensure!(client.query_one(&verify, &[])?.get::<_, i64>(0) == 0, "the view is not its query");
    drop(client);
    Ok(cluster.connect("postgres")?.batch_execute("DROP DATABASE chained")?)
}

/// A statement of a million terms is refused by whoever meets it first, and nobody dies of it.
fn endless_texts_are_refused(cluster: &Cluster) -> Result<()> {
    let mut client = new_database(cluster, "endless_texts")?;
    // The grammar of PostgreSQL has a limit of its own, for what nests to the right.
    let (syntax_error, too_complex) = ("42601", "54001");
    let terms = 1_000_000;
    let long = |first: &str, each: &str| format!("{first}{}", each.repeat(terms));
    let wrapped =
        |before: &str, count: usize| format!("{}k{}", before.repeat(count), ")".repeat(count));
    let texts = [
        ("sum", long("SELECT k", "+k") + " AS x FROM t", too_complex),
        ("or", long("SELECT k FROM t WHERE b", " OR b"), too_complex),
        ("union", long("SELECT k FROM t", " UNION SELECT k FROM t"), too_complex),
        ("functions", format!("SELECT {} AS x FROM t", wrapped("abs(", terms)), syntax_error),
        // What PostgreSQL reads, but the planner does not.
        ("1500 functions", format!("SELECT {} AS x FROM t", wrapped("abs(", 1500)), too_complex),
        ("1500 terms", format!("SELECT k{} AS x FROM t", "+k".repeat(1500)), too_complex),
        (
            "6000 conditions",
            format!("SELECT k FROM t WHERE b{}", " AND b".repeat(6000)),
            too_complex,
        ),
    ];
    for (name, query, code) in texts {
        let create = format!("CREATE INCREMENTAL VIEW bad AS {query}");
        let Err(error) = client.batch_execute(&create) else { bail!("{name}: no error") };
        let report = error.as_db_error().with_context(|| format!("{name}: {error}"))?;
        ensure!(report.code().code() == code, "{name}: {}: {report}", report.code().code());
    }
    // What PostgreSQL reads, and the planner as well.
    client.batch_execute(&format!(
        "CREATE INCREMENTAL VIEW good AS SELECT k{} AS x FROM t WHERE k = 1{}",
        "+k".repeat(290),
        " AND n IS NOT NULL AND k < 7".repeat(1500)
    ))?;
    client.batch_execute("INSERT INTO t VALUES (1, 5)")?;
    let found: i64 = client.query_one("SELECT sum(x)::bigint FROM good", &[])?.get(0);
    ensure!(found == 2 * 291, "{found}");
    drop(client);
    Ok(cluster.connect("postgres")?.batch_execute("DROP DATABASE endless_texts")?)
}
