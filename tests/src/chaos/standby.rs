//! A standby of the disturbed server: what it shows is right all the time, and when it is promoted its views follow its tables.

use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use harness::cluster::{wait_for, Cluster};
use postgres::{Client, Error, IsolationLevel, NoTls};

use super::outcome::judge;
use super::readers::RIGHT;
use super::scene::Scene;
use super::views::{TOTAL, VIEWS};

/// The check of what the standby shows.
pub const CHECK: &str = "a standby shows states that were";

const PATIENCE: Duration = Duration::from_secs(120);

/// How much longer an error of the primary may be there than the standby's lag says, whose commits are some way apart.
const LAG: Duration = Duration::from_secs(2);

/// Seconds since the commit that the standby has replayed last.
const BEHIND: &str = "SELECT coalesce(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0)::float8";

/// Each view by itself: a standby may show them at different points. A table that has just been written anew by ALTER TABLE is
/// empty for a snapshot of before, as PostgreSQL's manual says.
const STATE: &str = "
    SELECT (SELECT total::bigint FROM total), (SELECT sum(total)::bigint FROM by_branch),
        (SELECT total::bigint FROM branches),
        (SELECT rows = highest - lowest + 1 FROM numbers),
        NOT EXISTS (SELECT a, b FROM reach EXCEPT SELECT b, a FROM reach),
        coalesce((SELECT n FROM last) <= (SELECT n FROM counter), NOT EXISTS (SELECT FROM counter))";

pub const VIEWS_READ: [&str; 6] = ["total", "by_branch", "branches", "numbers", "reach", "last"];

/// Reads until it is over.
pub fn read(scene: &Scene, standby: &Cluster, database: &str) {
    let config = standby.config(database);
    let mut log = Log { standby, read: 0 };
    let mut session = None;
    let mut behind = Duration::ZERO;
    while !scene.is_over() {
        let from = Instant::now();
        if session.is_none() {
            session = config.clone().application_name("chaos standby").connect(NoTls).ok();
        }
        let Some(client) = session.as_mut() else { continue };
        let read = lag(client).and_then(|lag| {
            behind = lag;
            read_once(client)
        });
        match read {
            Ok(wrong) if wrong.is_empty() => scene.count_read("standby", RIGHT),
            Ok(wrong) => scene.violation(CHECK, &wrong.join("; ")),
            Err(error) => {
                let outcome = judge(scene, &error, &VIEWS_READ, from - behind - LAG);
                scene.count_read("standby", &outcome.name);
                let mut conflict = || match error.as_db_error() {
                    Some(report) => report.message().contains("recovery"),
                    None => log.has_conflict(),
                };
                if let Some(violation) = outcome.violation.filter(|_| !conflict()) {
                    scene.violation(CHECK, &violation);
                }
                if outcome.is_lost {
                    session = None;
                }
            }
        }
    }
}

/// How old is what the standby shows.
fn lag(client: &mut Client) -> Result<Duration, Error> {
    let seconds: f64 = client.query_one(BEHIND, &[])?.get(0);
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// The standby's log: what is replayed may end a session, which learns why only if it is listening at that moment.
struct Log<'a> {
    standby: &'a Cluster,
    /// Bytes that were looked through.
    read: usize,
}

impl Log<'_> {
    /// Whether a session was ended by what is replayed since the last time.
    fn has_conflict(&mut self) -> bool {
        let log = self.standby.log().unwrap_or_default();
        let new = log.get(self.read..).unwrap_or_default();
        let found = new.contains("terminating connection due to conflict with recovery");
        self.read = log.len();
        found
    }
}

/// What is wrong with what a snapshot shows that waited for nothing.
pub fn read_once(client: &mut Client) -> Result<Vec<String>, Error> {
    let mut transaction =
        client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start()?;
    let row = transaction.query_one(STATE, &[])?;
    transaction.commit()?;
    let mut wrong = Vec::new();
    for (column, name) in VIEWS_READ.iter().enumerate() {
        let found = match column {
            0..=2 => row.get::<_, Option<i64>>(column).map(|total| total == TOTAL),
            _ => row.get::<_, Option<bool>>(column),
        };
        if found != Some(true) {
            wrong.push(format!("\"{name}\" shows what never was"));
        }
    }
    Ok(wrong)
}

/// The primary dies, the standby takes over: each view equals its query, and follows a change.
pub fn take_over(primary: &mut Cluster, standby: &Cluster, database: &str) -> Result<()> {
    let mut client = primary.connect(database)?;
    let last: String = client.query_one("SELECT pg_current_wal_flush_lsn()::text", &[])?.get(0);
    drop(client);
    let mut client = standby.connect(database)?;
    wait_for("the standby to have everything", PATIENCE, || {
        let sql = "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn";
        Ok(client.query_one(sql, &[&last])?.get::<_, bool>(0).then_some(()))
    })?;
    primary.stop_immediately()?;
    client.batch_execute("SELECT pg_promote()")?;
    for view in &VIEWS {
        super::verdict::expect_right(&mut client, view)?;
    }
    client.batch_execute("INSERT INTO witnessed VALUES (1)")?;
    let sql = "SELECT (SELECT n FROM witness) = (SELECT count(*) FROM witnessed)";
    ensure!(client.query_one(sql, &[])?.get::<_, bool>(0), "the witness does not follow");
    Ok(())
}
