//! What a statement that waited sees is held for it until it ends.
//!
//! Writers change rows without ever changing how many there are, so that old versions must be kept for
//! whoever may still read them, while VACUUM and every writer take away what nobody needs. Readers wait for
//! the view, dawdle, and count: in their own process, and in parallel workers.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{ensure, Result};
use harness::cluster::Cluster;
use harness::load::Load;
use harness::report::Counts;
use postgres::{Client, Statement};

const STATEMENTS: usize = 150;

const ROWS: i64 = 1000;

const SETUP: &str = "
    CREATE EXTENSION pg_eddy;
    CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);
    INSERT INTO account SELECT i, 0 FROM generate_series(1, 1000) i;
    CREATE INCREMENTAL VIEW shown AS SELECT id, balance FROM account;";

const CHANGE: &str = "\
\\set first random(1, 990)
UPDATE account SET balance = balance + 1 WHERE id BETWEEN :first AND :first + 9;
";

const IN_PARALLEL: &str = "SELECT count(*), sum(a.n) FROM (
    SELECT 1 AS n, length(repeat('x', 1000 + balance)) AS work FROM shown OFFSET 0) a
    WHERE a.work > 0";

/// A statement that takes its time between its snapshot and its first row: its condition is long, and then it
/// pauses. `id` is never negative.
fn dawdle() -> String {
    let branches: String =
        (1..3000).map(|number| format!(" WHEN balance = -{number} THEN false")).collect();
    format!(
        "WITH pause AS MATERIALIZED (SELECT pg_sleep(0.01))
         SELECT (SELECT count(*) FROM shown WHERE EXISTS (SELECT FROM pause)
                 AND CASE WHEN id > 0 THEN true{branches} END),
             (SELECT count(*) FROM account)"
    )
}

const LET_PARALLEL: &str = "
    SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
    SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;";

/// One test per statement.
pub fn run(cluster: &Cluster, folder: &Path) -> Result<Counts> {
    cluster.connect("postgres")?.batch_execute("CREATE DATABASE held")?;
    let mut client = cluster.connect("held")?;
    client.batch_execute(SETUP)?;
    let mut load = Load::new(folder, "held", 4, &[("change", CHANGE, 1)])?.start(cluster)?;
    let mut vacuum = cluster.connect("held")?;
    let is_over = AtomicBool::new(false);
    let counts = std::thread::scope(|scope| {
        let vacuuming = scope.spawn(|| -> Result<()> {
            while !is_over.load(Relaxed) {
                vacuum.batch_execute("VACUUM account, shown")?;
            }
            Ok(())
        });
        let counts = read(&mut client);
        is_over.store(true, Relaxed);
        vacuuming.join().expect("VACUUM does not panic")?;
        counts
    })?;
    ensure!(load.is_running()?, "pgbench ended early");
    load.stop()?;
    Ok(counts)
}

fn read(client: &mut Client) -> Result<Counts> {
    let mut counts = Counts::default();
    let dawdling = client.prepare(&dawdle())?;
    for _ in 0..STATEMENTS {
        counts.record(sees_all(client, &dawdling));
    }
    client.batch_execute(LET_PARALLEL)?;
    let plan = client.query(&format!("EXPLAIN {IN_PARALLEL}"), &[])?;
    let is_parallel = plan.iter().any(|row| row.get::<_, &str>(0).contains("Gather"));
    ensure!(is_parallel, "the statement is not run in parallel");
    let parallel = client.prepare(IN_PARALLEL)?;
    for _ in 0..STATEMENTS {
        counts.record(sees_all(client, &parallel));
    }
    Ok(counts)
}

/// Whether both counts that a statement returns are those of every state of the tables.
fn sees_all(client: &mut Client, statement: &Statement) -> bool {
    match client.query_one(statement, &[]) {
        Ok(row) => {
            let seen: (i64, i64) = (row.get(0), row.get(1));
            if seen != (ROWS, ROWS) {
                println!("snapshots: {seen:?} rows in place of {ROWS}");
            }
            seen == (ROWS, ROWS)
        }
        Err(error) => {
            println!("snapshots: {}", error.as_db_error().map_or("session lost", |e| e.message()));
            false
        }
    }
}
