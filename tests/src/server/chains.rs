//! Views over views over views, and texts that nest more deeply than any stack.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::Cluster;
use postgres::Client;

use super::check::Check;

/// Checks that share one cluster.
pub const CHECKS: [(&str, Check); 2] = [
    ("a hundred views in a chain are cheap", long_chains_are_cheap),
    ("texts without end are refused", endless_texts_are_refused),
];

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
