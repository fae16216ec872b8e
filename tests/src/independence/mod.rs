//! No view, row, lock or transaction delays the other views of a database, or takes them away.
//!
//! Each check lets one view be in trouble for as long as it likes, and meanwhile changes and reads another one, which
//! must be fresh: a read of it waits until it is, so it is enough that the read ends while the trouble
//! still lasts. The times allowed are those of a machine that does much else.

mod assistants;
mod large_transactions;
mod roles;
mod views;
mod witness;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use harness::report::Counts;
use postgres::Client;

use views::{expect_right, state_of, wait_for_state};
use witness::{expect_witness, undisturbed};

type Check = fn(&Cluster, &mut Client) -> Result<()>;

const CHECKS: [(&str, Check); 12] = [
    ("a lock on one view", lock_on_one_view),
    ("a lock on a catalog", lock_on_a_catalog),
    ("a view that takes hours to compute", costly_view),
    ("one row that makes billions", row_that_makes_billions),
    ("an index whose function always fails", index_function_that_fails),
    ("a commit that waits for a standby", commit_that_waits),
    ("a function that does not end", endless_function),
    ("a function that does not end when it is told to", deaf_function),
    ("views are read together at one point only", views_read_together),
    ("a view over a large table that is attached", attaching_view),
    ("a role that changes all the time", roles::restless),
    ("a role that changes beside a lock", roles::beside_lock),
];

pub use large_transactions::{run as run_in_pieces, IN_PIECES};

/// Which checks are run.
#[derive(clap::Args, Default)]
pub struct Selection {
    /// Only the checks whose names have one of these words
    words: Vec<String>,
}

impl Selection {
    fn has(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }
}

/// One test per check, each in a database of its own.
pub fn run(cluster: &Cluster, folder: &Path, selection: &Selection) -> Result<Counts> {
    let mut counts = Counts::default();
    for (number, (name, check)) in CHECKS.iter().enumerate() {
        if selection.has(name) {
            counts.check(name, in_database(cluster, &format!("independent{number}"), *check));
        }
    }
    counts.add(&large_transactions::run_delays(cluster, selection)?);
    counts.add(&assistants::run(cluster, folder, selection)?);
    cluster.print_crashes()?;
    Ok(counts)
}

/// Runs a check in a database that has a view nobody attacks.
fn in_database(cluster: &Cluster, name: &str, check: Check) -> Result<()> {
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = cluster.connect(name)?;
    client.batch_execute(witness::SETUP)?;
    check(cluster, &mut client)?;
    drop(client);
    Ok(cluster.connect("postgres")?.batch_execute(&format!("DROP DATABASE IF EXISTS {name}"))?)
}

/// A read of the view fails after the session's own time with an error that names the view.
fn expect_behind(client: &mut Client, view: &str) -> Result<()> {
    client.batch_execute("SET eddy.read_timeout = '100ms'")?;
    let outcome = client.query(&format!("TABLE {view}"), &[]);
    client.batch_execute("RESET eddy.read_timeout")?;
    let Err(error) = outcome else { bail!("{view} is not behind") };
    let report = error.as_db_error().context("the session was lost")?;
    ensure!(report.message().contains(view), "{view} is not named: {report}");
    Ok(())
}

/// Longest time in which a view may be away while another one is worked for bit by bit.
const AWAY: Duration = Duration::from_secs(1);

fn attaching_view(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE big AS SELECT i, i % 10 AS kind FROM generate_series(1, 3000000) i;
         CREATE INCREMENTAL VIEW kinds AS SELECT kind, count(*) AS n FROM big GROUP BY kind WITH NO DATA",
    )?;
    let changes =
        "INSERT INTO big SELECT i, 77 FROM generate_series(1, 10) i; DELETE FROM big WHERE i = 77";
    undisturbed(cluster, client, AWAY, |client| {
        for _ in 0..10 {
            client.batch_execute(changes)?;
        }
        client.batch_execute("VACUUM big")?;
        client.batch_execute("REFRESH INCREMENTAL VIEW kinds")?;
        client.batch_execute(changes)?;
        client.batch_execute("TABLE kinds")?;
        Ok(())
    })?;
    let sql = "SELECT missing, surplus FROM eddy.verify_view('kinds')";
    let row = client.query_one(sql, &[])?;
    ensure!(row.get::<_, i64>(0) + row.get::<_, i64>(1) == 0, "the view is wrong");
    Ok(())
}

fn lock_on_one_view(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE t (i int); CREATE INCREMENTAL VIEW locked AS SELECT i FROM t",
    )?;
    client.batch_execute("TABLE locked")?;
    let mut other = cluster.connect_beside(client)?;
    let mut transaction = other.transaction()?;
    transaction.batch_execute("CREATE INDEX ON locked (i)")?;
    client.batch_execute("INSERT INTO t VALUES (1)")?;
    expect_witness(client)?;
    let message = wait_for_state(client, "locked", "behind")?;
    ensure!(message.contains("lock"), "it does not say why: {message}");
    expect_behind(client, "locked")?;
    expect_witness(client)?;
    let recorded = "SELECT count(*) FROM eddy.view_states WHERE relation = 'locked'::regclass";
    ensure!(client.query_one(recorded, &[])?.get::<_, i64>(0) == 1, "no row says so");
    transaction.commit()?;
    ensure!(client.query("TABLE locked", &[])?.len() == 1, "the view did not come back");
    expect_witness(client)?;
    ensure!(client.query_one(recorded, &[])?.get::<_, i64>(0) == 0, "a row says so for ever");
    Ok(())
}

/// The worker compiles a view anew while it cannot look up what the view's operator is, as when autovacuum gives the end
/// of a catalog back.
fn lock_on_a_catalog(cluster: &Cluster, client: &mut Client) -> Result<()> {
    const SELECTED: &str = "SELECT i FROM o WHERE i === 1";
    client.batch_execute(&format!(
        "CREATE OPERATOR === (FUNCTION = int4eq, LEFTARG = int, RIGHTARG = int);
         CREATE TABLE o (i int);
         INSERT INTO o VALUES (1), (2);
         CREATE INCREMENTAL VIEW selected AS {SELECTED}"
    ))?;
    expect_right(client, "selected", SELECTED)?;
    // Whoever needs it has to look it up again.
    client.batch_execute("ALTER OPERATOR === (int, int) SET (RESTRICT = eqsel)")?;
    let mut other = cluster.connect_beside(client)?;
    expect_witness(client)?;
    let mut transaction = other.transaction()?;
    transaction.batch_execute("LOCK TABLE pg_operator IN ACCESS EXCLUSIVE MODE")?;
    client.batch_execute("ALTER TABLE o ADD COLUMN x int")?;
    // Each change of it takes the worker once around, and so past the view that it is to compile.
    for _ in 0..3 {
        expect_witness(client)?;
    }
    let sql = "SELECT state FROM eddy.views WHERE relation = 'selected'::regclass";
    let state: String = transaction.query_one(sql, &[])?.get(0);
    ensure!(state == "attaching", "it could be compiled: {state}");
    transaction.rollback()?;
    client.batch_execute("INSERT INTO o VALUES (1)")?;
    expect_right(client, "selected", SELECTED)
}

fn costly_view(_: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE w (i int);
         CREATE INCREMENTAL VIEW costly AS SELECT count(*) FROM w a, w b, w c, w d
             WHERE (a.i * b.i) % 1000 <> c.i % 10 AND a.i + b.i + c.i + d.i > -1",
    )?;
    client.batch_execute("TABLE costly")?;
    client.batch_execute("INSERT INTO w SELECT generate_series(1, 3000)")?;
    expect_witness(client)?;
    wait_for_state(client, "costly", "behind")?;
    expect_witness(client)?;
    expect_behind(client, "costly")?;
    let began = Instant::now();
    client.batch_execute("DROP INCREMENTAL VIEW costly")?;
    expect_witness(client)?;
    ensure!(began.elapsed() < Duration::from_secs(2), "its DROP took {:?}", began.elapsed());
    Ok(())
}

fn row_that_makes_billions(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE p (id int, v int);
         CREATE INCREMENTAL VIEW poisoned AS
             SELECT id, count(*) AS n FROM p, generate_series(1, v) s GROUP BY id",
    )?;
    client.batch_execute("TABLE poisoned")?;
    client.batch_execute("INSERT INTO p VALUES (3, 2000000000)")?;
    expect_witness(client)?;
    wait_for("the view to be away", Duration::from_secs(60), || {
        Ok((state_of(client, "poisoned")?.0 != "live").then_some(()))
    })?;
    expect_witness(client)?;
    cluster.configure("eddy.computation_timeout", "1s")?;
    let message = wait_for_state(client, "poisoned", "error")?;
    ensure!(message.contains("eddy.computation_timeout"), "it does not say why: {message}");
    let Err(error) = client.query("TABLE poisoned", &[]) else { bail!("the read did not fail") };
    ensure!(error.code().is_some_and(|code| code.code() == "57014"), "{error}");
    cluster.configure("eddy.computation_timeout", "1h")?;
    expect_witness(client)?;
    client.batch_execute("DELETE FROM p; REFRESH INCREMENTAL VIEW poisoned")?;
    ensure!(client.query("TABLE poisoned", &[])?.is_empty(), "REFRESH did not heal it");
    expect_witness(client)
}

fn index_function_that_fails(_: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE FUNCTION busy(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
             $$BEGIN IF i = 7 THEN RAISE 'busy' USING ERRCODE = '40001'; END IF; RETURN i; END$$;
         CREATE TABLE t (i int); CREATE INCREMENTAL VIEW indexed AS SELECT i FROM t;
         CREATE INDEX ON indexed (busy(i))",
    )?;
    client.batch_execute("TABLE indexed")?;
    client.batch_execute("INSERT INTO t VALUES (7)")?;
    expect_witness(client)?;
    // What may pass is tried some seconds long.
    let message = wait_for_state(client, "indexed", "error")?;
    ensure!(message.contains("busy"), "it does not say why: {message}");
    expect_witness(client)?;
    client.batch_execute("DELETE FROM t; REFRESH INCREMENTAL VIEW indexed")?;
    ensure!(client.query("TABLE indexed", &[])?.is_empty(), "REFRESH did not heal it");
    Ok(())
}

fn commit_that_waits(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE t (i int); CREATE INCREMENTAL VIEW awaiting AS SELECT i FROM t;
         SET synchronous_commit = local",
    )?;
    client.batch_execute("TABLE awaiting")?;
    let reload = |name: &str| -> Result<()> {
        let mut admin = cluster.connect("postgres")?;
        admin.batch_execute(&format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'"))?;
        Ok(admin.batch_execute("SELECT pg_reload_conf()")?)
    };
    reload("nobody")?;
    let mut writer = cluster.connect_beside(client)?;
    let writing = std::thread::spawn(move || writer.batch_execute("INSERT INTO t VALUES (1)"));
    let outcome = wait_for("the commit to wait", Duration::from_secs(30), || {
        let sql = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database()";
        Ok(client.query_opt(sql, &[])?.map(|_| ()))
    })
    .and_then(|()| expect_witness(client))
    .and_then(|()| expect_behind(client, "awaiting"))
    .and_then(|()| expect_witness(client));
    reload("")?;
    writing.join().ok().context("the writer was lost")??;
    outcome?;
    ensure!(client.query("TABLE awaiting", &[])?.len() == 1, "the view did not come back");
    Ok(())
}

fn endless_function(cluster: &Cluster, client: &mut Client) -> Result<()> {
    cluster.configure("eddy.evaluation_timeout", "500ms")?;
    client.batch_execute(
        "CREATE FUNCTION endless(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
             $$BEGIN IF i = 7 THEN PERFORM pg_sleep(100000); END IF; RETURN i; END$$;
         CREATE TABLE t (i int); CREATE INCREMENTAL VIEW called AS SELECT endless(i) AS i FROM t",
    )?;
    client.batch_execute("TABLE called")?;
    client.batch_execute("INSERT INTO t SELECT generate_series(1, 10)")?;
    expect_witness(client)?;
    let Err(error) = client.query("TABLE called", &[]) else { bail!("the function has ended") };
    let code = error.code().context("the session was lost")?.code();
    ensure!(code == "57014", "SQLSTATE {code}");
    expect_witness(client)?;
    client.batch_execute("DELETE FROM t WHERE i = 7")?;
    ensure!(client.query("TABLE called", &[])?.len() == 9, "the view did not come back");
    cluster.configure("eddy.evaluation_timeout", "10s")
}

fn deaf_function(cluster: &Cluster, client: &mut Client) -> Result<()> {
    cluster.configure("eddy.evaluation_timeout", "100ms")?;
    client.batch_execute(
        "CREATE FUNCTION deaf(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
         BEGIN
             LOOP
                 EXIT WHEN i <> 7;
                 BEGIN PERFORM pg_sleep(100000); EXCEPTION WHEN query_canceled THEN NULL; END;
             END LOOP;
             RETURN i;
         END$$;
         CREATE TABLE t (i int); CREATE INCREMENTAL VIEW called AS SELECT deaf(i) AS i FROM t",
    )?;
    client.batch_execute("TABLE called")?;
    client.batch_execute("INSERT INTO t SELECT generate_series(1, 10)")?;
    // The worker has to end with it, once: then the view is known, and assistants end.
    let message = wait_for_state(client, "called", "error")?;
    ensure!(message.contains("failed 3 times"), "it does not say why: {message}");
    expect_witness(client)?;
    // And its owner is: whatever other functions of theirs do, the worker stays.
    let workers = "SELECT array_agg(pid) FROM pg_stat_activity
        WHERE backend_type = 'pg_eddy worker' AND datname = current_database()";
    let before: Vec<i32> = client.query_one(workers, &[])?.get(0);
    client.batch_execute(
        "CREATE INCREMENTAL VIEW more AS SELECT deaf(i) + 1 AS i FROM t WITH NO DATA;
         CREATE INCREMENTAL VIEW indexed AS SELECT i FROM t WHERE i > 10;
         CREATE INDEX ON indexed (deaf(i - 10));
         TABLE indexed",
    )?;
    undisturbed(cluster, client, AWAY, |client| {
        client.batch_execute("INSERT INTO t VALUES (17)")?;
        for view in ["more", "indexed"] {
            let message = wait_for_state(client, view, "error")?;
            ensure!(message.contains("failed 3 times"), "{view} does not say why: {message}");
        }
        Ok(())
    })?;
    let after: Vec<i32> = client.query_one(workers, &[])?.get(0);
    ensure!(before == after, "the worker has ended once more");
    cluster.configure("eddy.evaluation_timeout", "10s")
}

/// Two views of one table, one of them locked for moments: a statement that reads both sees them at one point.
fn views_read_together(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE t (i int);
         CREATE INCREMENTAL VIEW one AS SELECT count(*) AS n FROM t;
         CREATE INCREMENTAL VIEW two AS SELECT count(*) AS n FROM t",
    )?;
    client.batch_execute("TABLE one")?;
    client.batch_execute("TABLE two")?;
    let (mut writer, mut locker) =
        (cluster.connect_beside(client)?, cluster.connect_beside(client)?);
    let end = Instant::now() + Duration::from_secs(5);
    let writing = std::thread::spawn(move || -> Result<(), postgres::Error> {
        while Instant::now() < end {
            writer.batch_execute("INSERT INTO t VALUES (1)")?;
        }
        Ok(())
    });
    let locking = std::thread::spawn(move || -> Result<(), postgres::Error> {
        while Instant::now() < end {
            locker
                .batch_execute("BEGIN; CREATE INDEX ON two (n); SELECT pg_sleep(0.02); ROLLBACK; SELECT pg_sleep(0.05)")?;
        }
        Ok(())
    });
    let mut reads = 0;
    while Instant::now() < end {
        let row = client.query_one("SELECT (SELECT n FROM one), (SELECT n FROM two)", &[])?;
        let (one, two): (i64, i64) = (row.get(0), row.get(1));
        ensure!(one == two, "one has {one} rows, two has {two}, after {reads} reads");
        reads += 1;
    }
    writing.join().ok().context("the writer was lost")??;
    locking.join().ok().context("the locker was lost")??;
    ensure!(reads > 20, "only {reads} reads");
    Ok(())
}
