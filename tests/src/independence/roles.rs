//! Anybody may change a role, the own password, as often as he likes: it keeps no worker from its work, and takes no view away.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};
use harness::cluster::Cluster;
use postgres::Client;

use super::views::{expect_right, state_of, wait_for_state};
use super::witness::{expect_witness, undisturbed};

/// Longest time in which the witness may be away.
const AWAY: Duration = Duration::from_secs(2);

/// For how long a role changes.
const LONG: Duration = Duration::from_secs(6);

/// As many that looking at all of them after each change would take all the time.
const VIEWS: usize = 120;

/// Somebody without a right on this database changes his password, from another one, all the time.
pub fn restless(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute("CREATE TABLE e (a int); CREATE TABLE t (id int PRIMARY KEY)")?;
    for number in 0..VIEWS {
        client.batch_execute(&format!(
            "CREATE INCREMENTAL VIEW w{number} AS
             SELECT e.a, count(*) AS n FROM e JOIN t ON t.id = e.a WHERE e.a > {number} GROUP BY e.a"
        ))?;
    }
    client.batch_execute("SELECT count(*) FROM w0")?;
    expect_witness(client)?;
    let mut other = cluster.connect("postgres")?;
    other.batch_execute("CREATE ROLE restless")?;
    let is_over = Arc::new(AtomicBool::new(false));
    let is_seen = Arc::clone(&is_over);
    let changing = std::thread::spawn(move || -> Result<Client> {
        let mut number = 0;
        while !is_seen.load(SeqCst) {
            number += 1;
            other.batch_execute(&format!("ALTER ROLE restless PASSWORD 'x{number}'"))?;
        }
        Ok(other)
    });
    let outcome = undisturbed(cluster, client, AWAY, |client| {
        let began = Instant::now();
        while began.elapsed() < LONG {
            client.batch_execute("INSERT INTO e VALUES (7); SELECT count(*) FROM w1")?;
        }
        Ok(())
    });
    is_over.store(true, SeqCst);
    let mut other = changing.join().ok().context("the role changed no more")??;
    other.batch_execute("DROP ROLE restless")?;
    outcome
}

/// A role changes while a table is locked: views over it stay, and are not made afresh.
pub fn beside_lock(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 100);
         CREATE INCREMENTAL VIEW tens AS SELECT id / 10 AS ten, count(*) AS n FROM t GROUP BY 1",
    )?;
    let query = "SELECT id / 10 AS ten, count(*) AS n FROM t GROUP BY 1";
    expect_right(client, "tens", query)?;
    let starts = "SELECT starts FROM eddy.views WHERE relation = 'tens'::regclass";
    let before: i64 = client.query_one(starts, &[])?.get(0);
    let mut locker = cluster.connect_beside(client)?;
    for lock in ["LOCK TABLE t IN ACCESS EXCLUSIVE MODE", "REINDEX INDEX t_pkey"] {
        locker.batch_execute(&format!("BEGIN; {lock}"))?;
        client.batch_execute("CREATE ROLE passing")?;
        client.batch_execute("DROP ROLE passing")?;
        // The worker has come to it when it has come to what was done later.
        for _ in 0..3 {
            expect_witness(client)?;
        }
        let (state, message) = state_of(client, "tens")?;
        ensure!(state == "live", "beside {lock} the view is {state}: {message}");
        client.batch_execute("SELECT count(*) FROM tens")?;
        locker.batch_execute("ROLLBACK")?;
    }
    client.batch_execute("INSERT INTO t VALUES (1000)")?;
    expect_right(client, "tens", query)?;
    let after: i64 = client.query_one(starts, &[])?.get(0);
    ensure!(after == before, "the view was started {} times more", after - before);
    // What a role loses is noticed all the same, as soon as it can be looked at.
    client.batch_execute(
        "CREATE ROLE keeper; CREATE ROLE readers; GRANT readers TO keeper; GRANT SELECT ON t TO readers;
         GRANT CREATE ON SCHEMA public TO keeper;
         CREATE INCREMENTAL VIEW kept AS SELECT count(*) AS n FROM t; ALTER MATERIALIZED VIEW kept OWNER TO keeper;
         SELECT n FROM kept",
    )?;
    client.batch_execute("REVOKE readers FROM keeper")?;
    wait_for_state(client, "kept", "error")?;
    client.batch_execute("GRANT readers TO keeper")?;
    wait_for_state(client, "kept", "live")?;
    client.batch_execute(
        "DROP MATERIALIZED VIEW kept; DROP OWNED BY keeper, readers; DROP ROLE keeper, readers",
    )?;
    Ok(())
}
