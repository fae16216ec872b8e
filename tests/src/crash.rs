//! kill -9 of the worker, of a session and of the postmaster under load; afterwards every view must
//! equal its query again, by itself.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Result};
use harness::cluster::{signal_process, wait_for, Cluster};
use harness::load::{Load, RunningLoad};
use harness::report::Counts;
use postgres::Client;
use rustix::process::Signal;

use crate::ledger::{differences, MOVE, REWIRE, TABLES, VIEWS};

/// What dies, in turn.
const VICTIMS: [Victim; 4] =
    [Victim::Worker, Victim::Postmaster, Victim::Session, Victim::Immediate];

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
        let wrong = differences(&mut cluster.connect_when_ready("postgres")?, &VIEWS)?;
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
