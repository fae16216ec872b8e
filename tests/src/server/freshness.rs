//! Whatever way a session reads a view, it sees what was committed before, never less.
//!
//! The worker is stopped, a row is committed, and the view is read. The worker goes on as soon as the session
//! waits for it, or has come to its end without: then it has run the view's query, or has seen too little.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::{signal_process, stop_at_rest, wait_for, Cluster};
use harness::installation::Installation;
use postgres::{Client, SimpleQueryMessage};
use rustix::process::Signal;

use super::check::Record;

const SETUP: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE TABLE t (id int PRIMARY KEY, val int NOT NULL);
    INSERT INTO t SELECT i, i FROM generate_series(1, 500) i;
    CREATE TABLE other (n bigint);
    INSERT INTO other VALUES (0);
    CREATE INCREMENTAL VIEW v AS SELECT id, val FROM t;
    CREATE FUNCTION volatile_count() RETURNS bigint LANGUAGE plpgsql VOLATILE AS
        'BEGIN RETURN (SELECT count(*) FROM v); END';
    CREATE FUNCTION stable_count() RETURNS bigint LANGUAGE plpgsql STABLE AS
        'BEGIN RETURN (SELECT count(*) FROM v); END';
    CREATE FUNCTION immutable_count() RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS
        'BEGIN RETURN (SELECT count(*) FROM v); END';
    CREATE FUNCTION sql_count() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM v';
    CREATE FUNCTION catching_count() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
    DECLARE found bigint;
    BEGIN
        BEGIN
            SELECT count(*) INTO found FROM v;
            RAISE division_by_zero;
        EXCEPTION WHEN division_by_zero THEN
            RETURN found;
        END;
    END $$;
    CREATE FUNCTION loop_count() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
    DECLARE found bigint := 0; one record;
    BEGIN
        FOR one IN SELECT * FROM v LOOP found := found + 1; END LOOP;
        RETURN found;
    END $$;";

/// Once in each session.
const PREPARE: &str = "
    SET client_min_messages = warning;
    SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
    PREPARE counted AS SELECT count(*) FROM v";

/// One way to read: its statements, each sent as one string. The last value returned is the count.
struct Way {
    name: &'static str,
    /// What runs before the row is committed.
    before: &'static [&'static str],
    after: &'static [&'static str],
}

const fn way(name: &'static str, after: &'static [&'static str]) -> Way {
    Way { name, before: &[], after }
}

const WAYS: [Way; 24] = [
    way("a query", &["SELECT count(*) FROM v"]),
    way("a transaction", &["BEGIN", "SELECT count(*) FROM v", "SELECT count(*) FROM v", "COMMIT"]),
    way("after a savepoint", &["BEGIN", "SAVEPOINT a", "SELECT count(*) FROM v", "COMMIT"]),
    way("a cursor", &["BEGIN", "DECLARE c CURSOR FOR SELECT count(*) FROM v", "FETCH c", "COMMIT"]),
    way("a prepared statement", &["EXECUTE counted"]),
    way("EXPLAIN ANALYZE", &["SET max_parallel_workers_per_gather = 0; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM v"]),
    way("CREATE TABLE AS", &["CREATE TABLE copied AS SELECT * FROM v; SELECT count(*) FROM copied", "DROP TABLE copied"]),
    Way {
        name: "CREATE TEMP TABLE AS",
        // The first temporary table of a session may need a schema, which is a write before the query.
        before: &["CREATE TEMP TABLE earlier ()"],
        after: &["CREATE TEMP TABLE copied AS SELECT * FROM v; SELECT count(*) FROM copied", "DROP TABLE copied", "DROP TABLE earlier"],
    },
    way("INSERT ... SELECT", &["INSERT INTO other SELECT count(*) FROM v RETURNING n"]),
    way("INSERT ... SELECT, then a query", &["BEGIN", "INSERT INTO other SELECT count(*) FROM v", "SELECT max(n) FROM other", "COMMIT"]),
    way("UPDATE ... FROM", &["UPDATE other SET n = c.n FROM (SELECT count(*) AS n FROM v) c RETURNING other.n"]),
    way("MERGE", &["BEGIN", "MERGE INTO other USING (SELECT count(*) AS n FROM v) c ON true WHEN MATCHED THEN UPDATE SET n = c.n", "SELECT max(n) FROM other", "COMMIT"]),
    way("a set of rows", &["SELECT count(*) FROM (SELECT val % 7 AS k, count(*) FROM v GROUP BY 1 OFFSET 0) g, v WHERE k = 0"]),
    way("several statements in one string", &["SELECT 1; SELECT count(*) FROM v"]),
    way("after another table", &["BEGIN", "SELECT n FROM other", "SELECT count(*) FROM v", "COMMIT"]),
    way("after own changes", &["BEGIN", "INSERT INTO other VALUES (1)", "SELECT count(*) FROM v", "COMMIT"]),
    way("DO", &["DO $$ BEGIN DELETE FROM other; INSERT INTO other SELECT count(*) FROM v; END $$; SELECT n FROM other"]),
    way("a volatile function", &["SELECT volatile_count()"]),
    way("a stable function", &["SELECT stable_count()"]),
    way("a stable function in SQL", &["SELECT sql_count() FROM other LIMIT 1"]),
    way("a stable function that catches errors", &["SELECT catching_count()"]),
    way("a stable function with a cursor", &["SELECT loop_count()"]),
    way("an immutable function", &["SELECT immutable_count()"]),
    Way {
        name: "COMMIT AND CHAIN",
        before: &["BEGIN", "SELECT count(*) FROM v"],
        after: &["COMMIT AND CHAIN", "SELECT count(*) FROM v", "COMMIT"],
    },
];

/// One test per way and isolation level, and those of servers whose worker is away.
pub fn run(installation: &Installation, folder: &Path, record: Record) {
    // Commits of others would blur what a snapshot must show.
    let settings = &[("fsync", "off"), ("autovacuum", "off")];
    let started =
        Cluster::start_new(installation, folder, "freshness", settings).and_then(|cluster| {
            cluster.connect("postgres")?.batch_execute(SETUP)?;
            Ok(cluster)
        });
    let mut cluster = match started {
        Err(error) => return record("a server to read views in", Err(error)),
        Ok(cluster) => cluster,
    };
    for level in ["read committed", "repeatable read", "serializable"] {
        for way in &WAYS {
            record(&format!("{} at {level}", way.name), check_way(&cluster, way, level));
        }
        record(&format!("COPY at {level}"), copy_is_fresh(&cluster, level));
    }
    record("a snapshot older than the view", late_read_is_computed(&cluster));
    record("a snapshot as old as the view", old_snapshot_is_read(&cluster));
    record("a view filled after it was planned", reads_what_was_filled(&cluster));
    record("a view created beside an open writer", starts_beside_writer(&cluster));
    record("a dump does not wait", dump_does_not_wait(&cluster));
    record("a lock of the session's own", computes_behind_own_lock(&cluster));
    record("a view beside its table", stays_beside_its_table(&cluster));
    record("stale reads do not wait", stale_reads_do_not_wait(&cluster));
    record("a server without workers", refuses_without_workers(&mut cluster));
    record("a server that has crashed", waits_after_crash(&mut cluster));
}

/// A worker that does nothing for a while.
struct Stopped {
    pid: i32,
}

impl Stopped {
    fn new(cluster: &Cluster) -> Result<Stopped> {
        let mut client = cluster.connect("postgres")?;
        let pid = wait_for("the worker", Duration::from_secs(30), || {
            let sql = "SELECT pid FROM eddy.activity";
            Ok(client.query_opt(sql, &[])?.map(|row| row.get::<_, i32>(0)))
        })?;
        client.query("SELECT count(*) FROM v", &[])?;
        stop_at_rest(&mut client, pid)?;
        Ok(Stopped { pid })
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = signal_process(self.pid, Signal::CONT);
    }
}

fn count(client: &mut Client) -> Result<i64> {
    Ok(client.query_one("SELECT count(*) FROM t", &[])?.get(0))
}

/// Commits one more row of the view; says how many there are then.
fn add_row(cluster: &Cluster) -> Result<i64> {
    let mut writer = cluster.connect("postgres")?;
    writer.batch_execute("INSERT INTO t SELECT max(id) + 1, 0 FROM t")?;
    count(&mut writer)
}

fn session(cluster: &Cluster, level: &str) -> Result<Client> {
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(PREPARE)?;
    client.batch_execute(&format!("SET default_transaction_isolation = '{level}'"))?;
    Ok(client)
}

/// Runs statements; the last value that one of them returned.
fn last_value(client: &mut Client, statements: &[&str]) -> Result<i64> {
    let mut last = None;
    for statement in statements {
        for message in client.simple_query(statement)? {
            if let SimpleQueryMessage::Row(row) = message {
                let text = row.get(0).context("a null")?;
                // Of EXPLAIN, the number of rows that came.
                let text = text.split("actual rows=").last().unwrap_or(text);
                let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
                last = text[..end].parse().ok().or(last);
            }
        }
    }
    last.context("no value")
}

/// Does `work` while the worker is behind by one row, until the session waits for it; says how many
/// rows there are beside what comes of the work.
fn while_behind<T>(
    cluster: &Cluster,
    client: &mut Client,
    work: impl FnOnce(&mut Client) -> Result<T>,
) -> Result<(i64, Result<T>)> {
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    behind(cluster, pid, || work(client))
}

fn behind<T>(
    cluster: &Cluster,
    pid: i32,
    work: impl FnOnce() -> Result<T>,
) -> Result<(i64, Result<T>)> {
    let mut watcher = cluster.connect("postgres")?;
    let stopped = Stopped::new(cluster)?;
    let rows = add_row(cluster)?;
    let is_over = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        let watching = scope.spawn(|| -> Result<()> {
            let waits =
                "SELECT true FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'EddyWorker'";
            while !is_over.load(Relaxed) && watcher.query_opt(waits, &[&pid])?.is_none() {
                std::hint::spin_loop();
            }
            drop(stopped);
            Ok(())
        });
        let result = work();
        is_over.store(true, Relaxed);
        watching.join().expect("watching does not panic")?;
        anyhow::Ok(result)
    })?;
    Ok((rows, result))
}

fn check_way(cluster: &Cluster, way: &Way, level: &str) -> Result<()> {
    let mut client = session(cluster, level)?;
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    for attempt in 0..2 {
        for statement in way.before {
            client.simple_query(statement)?;
        }
        let (rows, found) = behind(cluster, pid, || last_value(&mut client, way.after))?;
        let found = found?;
        ensure!(found == rows, "attempt {attempt}: {found} rows in place of {rows}");
    }
    Ok(())
}

fn copy_is_fresh(cluster: &Cluster, level: &str) -> Result<()> {
    let mut client = session(cluster, level)?;
    let (rows, found) = while_behind(cluster, &mut client, |client| {
        let mut text = String::new();
        client.copy_out("COPY (SELECT count(*) FROM v) TO STDOUT")?.read_to_string(&mut text)?;
        Ok(text.trim().parse::<i64>()?)
    })?;
    let found = found?;
    ensure!(found == rows, "{found} rows in place of {rows}");
    Ok(())
}

/// Under a snapshot that shows more than the view has, its query runs, once: then the session knows that it has to wait.
fn late_read_is_computed(cluster: &Cluster) -> Result<()> {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let mut client = session(cluster, "read committed")?;
        for queries in [1, 0] {
            let before = queries_run(cluster)?;
            let begin = format!("BEGIN ISOLATION LEVEL {level}");
            let (rows, found) = while_behind(cluster, &mut client, |client| {
                client.batch_execute(&begin)?;
                let beside = count(client)?;
                Ok((beside, last_value(client, &["SELECT count(*) FROM v", "COMMIT"])?))
            })?;
            let (beside, found) = found?;
            ensure!(beside == rows, "the table lacks a row");
            ensure!(found == rows, "{found} rows in place of {rows}");
            let run = queries_run(cluster)? - before;
            ensure!(run == queries, "the view's query ran {run} times in place of {queries}");
        }
    }
    Ok(())
}

/// How often the query of the view has run in place of its rows.
fn queries_run(cluster: &Cluster) -> Result<i64> {
    let sql = "SELECT query_reads FROM eddy.views WHERE relation = 'v'::regclass";
    Ok(cluster.connect("postgres")?.query_one(sql, &[])?.get(0))
}

/// What is committed after a snapshot, both the table and the view lack.
fn old_snapshot_is_read(cluster: &Cluster) -> Result<()> {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let mut client = session(cluster, "read committed")?;
        client.batch_execute("SELECT FROM v")?;
        client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}"))?;
        let rows = count(&mut client)?;
        add_row(cluster)?;
        let found = last_value(&mut client, &["SELECT count(*) FROM v"])?;
        ensure!(found == rows, "{found} rows in place of {rows} at {level}");
    }
    Ok(())
}

/// A statement may be planned while the view has no rows yet, and run when it has them.
fn reads_what_was_filled(cluster: &Cluster) -> Result<()> {
    let mut creator = session(cluster, "read committed")?;
    let mut client = session(cluster, "read committed")?;
    let stopped = Stopped::new(cluster)?;
    // Best values within a recursion: the worker fills such a view, CREATE does not.
    creator.batch_execute(
        "CREATE INCREMENTAL VIEW least AS WITH RECURSIVE r(id, d) AS (
             SELECT id, 0 FROM t WHERE id = 1 UNION SELECT t.id, r.d + 1 FROM r JOIN t ON t.id = r.id + 1
         ) SELECT id, min(d) AS d FROM r GROUP BY id",
    )?;
    // Planned and locked by then, the statement is run without another look at the view.
    client.simple_query("SET plan_cache_mode = force_generic_plan")?;
    client.simple_query("PREPARE planned AS SELECT count(*) FROM least")?;
    client.simple_query("BEGIN")?;
    client.simple_query("EXPLAIN EXECUTE planned")?;
    drop(stopped);
    let rows = last_value(&mut creator, &["SELECT count(*) FROM least"])?;
    let found = last_value(&mut client, &["EXECUTE planned", "COMMIT"])?;
    ensure!(found == rows && rows > 0, "{found} rows in place of {rows}");
    Ok(creator.batch_execute("DROP INCREMENTAL VIEW least")?)
}

/// What an open transaction has written is not on disk, and it may be all that writes for long.
fn starts_beside_writer(cluster: &Cluster) -> Result<()> {
    const SOON: Duration = Duration::from_secs(5);
    let mut creator = session(cluster, "read committed")?;
    let mut writer = session(cluster, "read committed")?;
    let stopped = Stopped::new(cluster)?;
    creator.batch_execute("CREATE INCREMENTAL VIEW beside AS SELECT id FROM t")?;
    writer.batch_execute("BEGIN; INSERT INTO other VALUES (1)")?;
    drop(stopped);
    let began = Instant::now();
    last_value(&mut creator, &["SELECT count(*) FROM beside"])?;
    let waited = began.elapsed();
    ensure!(waited < SOON, "the first read took {waited:?}");
    writer.batch_execute("ROLLBACK")?;
    Ok(creator.batch_execute("DROP INCREMENTAL VIEW beside")?)
}

/// A dump reads no views, whose rows it would not keep.
fn dump_does_not_wait(cluster: &Cluster) -> Result<()> {
    let _stopped = Stopped::new(cluster)?;
    let rows = add_row(cluster)?;
    let program = cluster.installation().program("pg_dump");
    let dump = cluster.client_program(&program).arg("postgres").output()?;
    ensure!(dump.status.success(), "pg_dump: {}", String::from_utf8_lossy(&dump.stderr));
    let text = String::from_utf8_lossy(&dump.stdout);
    ensure!(text.contains(&format!("\n{rows}\t0\n")), "the dump lacks the last row");
    Ok(())
}

fn computes_behind_own_lock(cluster: &Cluster) -> Result<()> {
    let mut client = session(cluster, "read committed")?;
    Stopped::new(cluster)?;
    client.batch_execute("BEGIN; CREATE INDEX own ON v (id)")?;
    let rows = add_row(cluster)?;
    let read = "SELECT count(*) FROM v";
    ensure!(last_value(&mut client, &[read])? == rows, "the view lacks a row");
    // Without the query there is no way out.
    client.batch_execute("SET LOCAL eddy.own_writes = 'stored'; DELETE FROM t WHERE id = 1")?;
    expect_error(&mut client, read, "40P01", "End the transaction")?;
    client.batch_execute("ROLLBACK")?;
    ensure!(last_value(&mut client, &[read])? == rows, "the view lacks a row");
    Ok(())
}

/// A statement that reads a view beside its table shows both at one point, whoever writes meanwhile.
fn stays_beside_its_table(cluster: &Cluster) -> Result<()> {
    const WRITERS: usize = 4;
    // The table grows meanwhile, and each statement counts it.
    const READS: usize = 8;
    const STATEMENTS: usize = 3;
    let is_over = AtomicBool::new(false);
    let write = || -> Result<()> {
        let mut writer = cluster.connect("postgres")?;
        while !is_over.load(Relaxed) {
            writer.batch_execute("INSERT INTO numbered VALUES (1)")?;
        }
        Ok(())
    };
    let read = || -> Result<()> {
        for level in ["read committed", "repeatable read", "serializable"] {
            let mut reader = session(cluster, level)?;
            let sql = "SELECT (SELECT count(*) FROM numbered) - n FROM total";
            for _ in 0..READS {
                let mut transaction = reader.transaction()?;
                for _ in 0..STATEMENTS {
                    let apart: i64 = transaction.query_one(sql, &[])?.get(0);
                    ensure!(apart == 0, "the table has {apart} rows more than the view at {level}");
                }
                transaction.commit()?;
            }
        }
        Ok(())
    };
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(
        "CREATE TABLE numbered (n int);
         CREATE INCREMENTAL VIEW total AS SELECT count(*) AS n FROM numbered",
    )?;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(write)).collect();
        let result = read();
        is_over.store(true, Relaxed);
        let ends = writers.into_iter().map(|writer| writer.join().expect("no panic"));
        ends.chain([result]).collect::<Result<()>>()
    })?;
    Ok(client.batch_execute("DROP TABLE numbered CASCADE")?)
}

fn stale_reads_do_not_wait(cluster: &Cluster) -> Result<()> {
    let mut client = session(cluster, "repeatable read")?;
    client.batch_execute("SET eddy.freshness = 'stale'")?;
    let _stopped = Stopped::new(cluster)?;
    let rows = add_row(cluster)?;
    let found = last_value(&mut client, &["BEGIN", "SELECT count(*) FROM v", "COMMIT"])?;
    ensure!(found == rows - 1, "{found} rows in place of {}", rows - 1);
    Ok(())
}

/// Nobody has told the sessions of such a server anything about their database.
fn refuses_without_workers(cluster: &mut Cluster) -> Result<()> {
    cluster.connect("postgres")?.batch_execute("ALTER SYSTEM SET max_worker_processes = 0")?;
    cluster.stop()?;
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("SET eddy.read_timeout = '200ms'")?;
    let read = "SELECT count(*) FROM v";
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}"))?;
        expect_error(&mut client, read, "55000", "stale")?;
        client.batch_execute("ROLLBACK")?;
    }
    client.batch_execute("SET eddy.freshness = 'stale'")?;
    last_value(&mut client, &[read])?;
    client.batch_execute("ALTER SYSTEM RESET max_worker_processes")?;
    drop(client);
    cluster.stop()?;
    cluster.start()
}

/// What the worker had not written when the server ended is there when the view can be read again.
fn waits_after_crash(cluster: &mut Cluster) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    client.query("SELECT count(*) FROM v", &[])?;
    let stopped = Stopped::new(cluster)?;
    let rows = add_row(cluster)?;
    cluster.kill()?;
    drop((client, stopped));
    cluster.start()?;
    let found = last_value(&mut cluster.connect("postgres")?, &["SELECT count(*) FROM v"])?;
    ensure!(found == rows, "{found} rows in place of {rows}");
    Ok(())
}

/// The statement fails with an SQLSTATE, and a hint that contains `word`.
fn expect_error(client: &mut Client, sql: &str, code: &str, word: &str) -> Result<()> {
    let Err(error) = client.simple_query(sql) else { bail!("no error") };
    let report = error.as_db_error().context("the session was lost")?;
    ensure!(report.code().code() == code, "SQLSTATE {}: {report}", report.code().code());
    let hint = report.hint().unwrap_or_default();
    ensure!(hint.contains(word), "the hint does not contain \"{word}\": {hint}");
    Ok(())
}
