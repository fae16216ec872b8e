//! Sessions that write all the time, and go on with whichever server takes writes when theirs goes away: what an
//! application does through promotions.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure, Result};
use harness::cluster::{wait_for, Cluster};
use harness::dice::Dice;
use postgres::config::TargetSessionAttrs;
use postgres::{Client, Config, NoTls};

use super::views::DATABASE;

const PATIENCE: Duration = Duration::from_secs(120);

/// Between two transactions of a session: a busy server, not a benchmark.
const PACE: Duration = Duration::from_millis(2);

/// What a server says to sessions that it does not want, or not any more: it shuts down, has crashed, starts, is a standby.
const GOING_AWAY: [&str; 5] = ["57P01", "57P02", "57P03", "25006", "55000"];

pub struct Writers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Result<Duration>>>,
}

#[derive(Default)]
struct Shared {
    ends: AtomicBool,
    commits: AtomicU64,
    /// Shared by transactions that run.
    running: RwLock<()>,
}

/// What the writers did.
pub struct Tally {
    pub commits: u64,
    /// The longest time between two commits of a session.
    pub pause: Duration,
}

impl Writers {
    /// Two sessions that write to whichever of the servers takes writes.
    pub fn start(servers: &[&Cluster]) -> Writers {
        let mut config = Config::new();
        config.port(5432).user("postgres").dbname(DATABASE).application_name("writer");
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.connect_timeout(Duration::from_secs(10));
        for server in servers {
            config.host_path(server.socket_folder());
        }
        let shared = Arc::new(Shared::default());
        let start = |seed: u64| {
            let (shared, config) = (shared.clone(), config.clone());
            std::thread::spawn(move || write(&config, &shared, Dice::new(seed)))
        };
        let threads = (1..=2).map(start).collect();
        Writers { shared, threads }
    }

    /// Waits until they have committed so many transactions more.
    pub fn await_more(&self, transactions: u64) -> Result<()> {
        let goal = self.shared.commits.load(SeqCst) + transactions;
        wait_for(&format!("{transactions} transactions of writers"), PATIENCE, || {
            let ended = self.threads.iter().any(JoinHandle::is_finished);
            ensure!(!ended, "a writer gave up");
            Ok((self.shared.commits.load(SeqCst) >= goal).then_some(()))
        })
    }

    /// No transaction runs as long as the result lives: at READ COMMITTED, the base tables that a statement reads beside a view
    /// may be ahead of it.
    pub fn hold(&self) -> RwLockWriteGuard<'_, ()> {
        self.shared.running.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends them, after the transactions that they are at.
    pub fn finish(mut self) -> Result<Tally> {
        self.shared.ends.store(true, SeqCst);
        let mut pause = Duration::ZERO;
        for thread in std::mem::take(&mut self.threads) {
            pause = pause.max(thread.join().map_err(|_| anyhow!("a writer panicked"))??);
        }
        Ok(Tally { commits: self.shared.commits.load(SeqCst), pause })
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.shared.ends.store(true, SeqCst);
        for thread in std::mem::take(&mut self.threads) {
            // Whatever it met, another failure is being reported.
            let _ = thread.join();
        }
    }
}

/// Writes until told to end; answers the longest time between two commits.
fn write(config: &Config, shared: &Shared, mut dice: Dice) -> Result<Duration> {
    let mut session: Option<Client> = None;
    let mut pause = Duration::ZERO;
    let mut last = Instant::now();
    while !shared.ends.load(SeqCst) {
        let Some(client) = &mut session else {
            session = config.connect(NoTls).ok();
            std::thread::sleep(PACE);
            continue;
        };
        std::thread::sleep(PACE);
        let running = shared.running.read().unwrap_or_else(PoisonError::into_inner);
        let result = client.batch_execute(&transaction(&mut dice));
        drop(running);
        match result {
            Ok(()) => {
                pause = pause.max(last.elapsed());
                last = Instant::now();
                shared.commits.fetch_add(1, SeqCst);
            }
            Err(error) => match error.code() {
                Some(code) if !GOING_AWAY.contains(&code.code()) => return Err(error.into()),
                _ => session = None,
            },
        }
    }
    Ok(pause)
}

/// Money moves between two accounts, and sometimes an edge is replaced. Rows are touched in the order of their ids.
fn transaction(dice: &mut Dice) -> String {
    let low = dice.range(1, 999);
    let high = dice.range(low + 1, 1000);
    let moved = dice.range(1, 100);
    let mut sql = format!(
        "BEGIN;
         UPDATE account SET balance = balance - {moved} WHERE id = {low};
         UPDATE account SET balance = balance + {moved} WHERE id = {high};
         INSERT INTO history (moved) VALUES ({moved});"
    );
    if dice.chance(20) {
        let (source, target, other) = (dice.range(0, 49), dice.range(0, 49), dice.range(0, 49));
        sql.push_str(&format!(
            "LOCK TABLE edge IN SHARE ROW EXCLUSIVE MODE;
             DELETE FROM edge WHERE src = {other} AND dst > {target};
             INSERT INTO edge VALUES ({source}, {target});"
        ));
    }
    sql.push_str("COMMIT");
    sql
}
