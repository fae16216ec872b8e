//! kill -9 of the worker, of a session and of the postmaster under load; afterwards every view must
//! equal its query again, by itself.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{signal_process, wait_for, Cluster};
use harness::comparison::comparison;
use harness::load::{Load, RunningLoad};
use harness::report::Counts;
use postgres::Client;
use rustix::process::Signal;

/// What dies, in turn.
const VICTIMS: [Victim; 4] =
    [Victim::Worker, Victim::Postmaster, Victim::Session, Victim::Immediate];

const TABLES: &str = "
    CREATE EXTENSION pg_eddy;
    CREATE TABLE account (id int PRIMARY KEY, branch int NOT NULL, balance bigint NOT NULL);
    INSERT INTO account SELECT i, i % 10, 1000 FROM generate_series(1, 1000) i;
    CREATE TABLE edge (src int, dst int);
    INSERT INTO edge SELECT i % 50, (i * 7) % 50 FROM generate_series(1, 60) i;
    CREATE TABLE history (id bigserial, moved int NOT NULL);";

/// Name and query of each view.
const VIEWS: [(&str, &str); 4] = [
    ("total", "SELECT sum(balance) AS total, count(*) AS accounts FROM account"),
    (
        "by_branch",
        "SELECT branch, sum(balance) AS total, min(balance) AS low FROM account GROUP BY branch",
    ),
    (
        "reach",
        "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION \
         SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b) SELECT a, b FROM r",
    ),
    ("moves", "SELECT id, moved FROM history"),
];

/// Rows are touched in the order of their ids, so that the load has no deadlocks.
const MOVE: &str = "\
\\set low random(1, 999)
\\set high random(:low + 1, 1000)
\\set moved random(1, 100)
BEGIN;
UPDATE account SET balance = balance - :moved WHERE id = :low;
UPDATE account SET balance = balance + :moved WHERE id = :high;
INSERT INTO history (moved) VALUES (:moved);
COMMIT;
";

const REWIRE: &str = "\
\\set a random(0, 49)
\\set b random(0, 49)
\\set c random(0, 49)
BEGIN;
INSERT INTO edge VALUES (:a, :b);
DELETE FROM edge WHERE src = :c AND dst > :a;
INSERT INTO history (moved) VALUES (0);
COMMIT;
";

#[derive(Clone, Debug, clap::Args)]
pub struct Extent {
    /// Number of kills
    #[arg(long, default_value_t = Extent::default().kills)]
    pub kills: usize,
}

impl Default for Extent {
    fn default() -> Extent {
        Extent { kills: 12 }
    }
}

#[derive(Clone, Copy, Debug)]
enum Victim {
    Worker,
    Postmaster,
    Session,
    /// Not a kill but an immediate shutdown.
    Immediate,
}

/// One test per kill.
pub fn run(cluster: &mut Cluster, folder: &Path, extent: &Extent) -> Result<Counts> {
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    for (name, query) in VIEWS {
        client.batch_execute(&format!("CREATE INCREMENTAL VIEW {name} AS {query}"))?;
    }
    drop(client);
    let scripts = [("move", MOVE, 4), ("rewire", REWIRE, 1)];
    let load = Load::new(folder, "postgres", 4, &scripts)?;
    let mut counts = Counts::default();
    for number in 0..extent.kills {
        let victim = VICTIMS[number % VICTIMS.len()];
        // The later in the run, the more has happened between two kills.
        let transactions = 50 + 100 * number as i64;
        kill_under_load(cluster, &load, victim, transactions)?;
        let wrong = compare_views(cluster)?;
        counts.record(wrong.is_empty());
        let verdict = if wrong.is_empty() { "all views right".into() } else { wrong.join("; ") };
        println!("crash {}: {victim:?} after {transactions} transactions: {verdict}", number + 1);
    }
    Ok(counts)
}

fn kill_under_load(
    cluster: &mut Cluster,
    load: &Load,
    victim: Victim,
    transactions: i64,
) -> Result<()> {
    let mut client = cluster.connect_when_ready(&load.database)?;
    let before = count_history(&mut client)?;
    let mut running = load.start(cluster)?;
    wait_for("the load to make progress", Duration::from_secs(60), || {
        ensure!(running.is_running()?, "pgbench ended before the kill");
        Ok((count_history(&mut client)? >= before + transactions).then_some(()))
    })?;
    match victim {
        Victim::Worker => kill_worker(&mut client)?,
        Victim::Session => kill_session(&mut client)?,
        Victim::Postmaster => cluster.kill()?,
        Victim::Immediate => cluster.stop_immediately()?,
    }
    // Every client of pgbench loses its connection.
    await_end(&mut running)?;
    if matches!(victim, Victim::Postmaster | Victim::Immediate) {
        cluster.start()?;
    }
    Ok(())
}

fn await_end(running: &mut RunningLoad) -> Result<()> {
    wait_for("pgbench to notice the crash", Duration::from_secs(60), || {
        Ok((!running.is_running()?).then_some(()))
    })
}

fn count_history(client: &mut Client) -> Result<i64> {
    Ok(client.query_one("SELECT coalesce(max(id), 0) FROM history", &[])?.get(0))
}

fn kill_worker(client: &mut Client) -> Result<()> {
    let sql = "SELECT pid FROM pg_stat_activity \
               WHERE backend_type = 'pg_eddy worker' AND datname = current_database()";
    let pid: i32 = wait_for("the worker to run", Duration::from_secs(60), || {
        Ok(client.query_opt(sql, &[])?.map(|row| row.get(0)))
    })?;
    signal_process(pid, Signal::KILL)
}

fn kill_session(client: &mut Client) -> Result<()> {
    let sql = "SELECT min(pid) FROM pg_stat_activity WHERE application_name = 'pgbench'";
    let pid: i32 = client.query_one(sql, &[])?.get(0);
    signal_process(pid, Signal::KILL)
}

/// Says which views differ from their queries.
fn compare_views(cluster: &Cluster) -> Result<Vec<String>> {
    let mut client = cluster.connect_when_ready("postgres")?;
    let mut wrong = Vec::new();
    for (name, query) in VIEWS {
        let row = client
            .query_one(&comparison(name, query), &[])
            .with_context(|| format!("comparing view {name}"))?;
        let (missing, surplus): (i64, i64) = (row.get(0), row.get(1));
        if missing != 0 || surplus != 0 {
            wrong.push(format!("{name} misses {missing} rows and has {surplus} surplus rows"));
        }
    }
    Ok(wrong)
}
