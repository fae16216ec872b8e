//! What takes long for one view (functions of users, changes of very many rows) is done by processes of their own, and
//! the other views are fresh meanwhile. Whatever becomes of these processes, the view ends up right, or says why not.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use postgres::Client;

use crate::cluster::{wait_for, Cluster, Settings};
use crate::report::Counts;
use crate::timing::burden;

use super::{in_database, Selection, WITNESS};

type Check = fn(&Cluster, &mut Client) -> Result<()>;

const CHECKS: [(&str, Check); 9] = [
    ("a function that takes seconds for a row", slow_function),
    ("a function that takes too long", function_that_takes_too_long),
    ("many quick rows and a slow one", quick_rows_and_a_slow_one),
    ("a change of a million rows", million_rows),
    ("an assistant that is terminated while it evaluates", terminated_at_evaluation),
    ("an assistant that is terminated while it writes", terminated_at_writing),
    ("a view that is dropped while an assistant works for it", dropped_view),
    ("a unique key that passes between many rows", unique_keys),
    ("a database that is dropped while an assistant works in it", dropped_database),
];

const SLEEPER: &str = "
    CREATE FUNCTION sleeper(i int, seconds float) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
        $$BEGIN PERFORM pg_sleep(seconds); RETURN i; END$$;
    CREATE TABLE t (i int, seconds float);
    CREATE INCREMENTAL VIEW called AS SELECT sleeper(i, seconds) AS i FROM t;
    TABLE called;";

const MANY: &str = "
    CREATE TABLE p (id int, n int);
    CREATE INCREMENTAL VIEW many AS SELECT id, s AS i FROM p, generate_series(1, n) s;
    TABLE many;";

const PATIENCE: Duration = Duration::from_secs(60);

/// Longest time in which the witness may be away because functions of users run, on a machine that does little else.
const AWAY: Duration = Duration::from_millis(500);

/// The same because rows are written, with a dataflow that takes the processors at the same time.
const AWAY_AT_WRITING: Duration = Duration::from_secs(1);

/// One test per check, each in a database of its own; then servers that have no places for assistants, and that crash.
pub fn run(cluster: &Cluster, folder: &Path, selection: &Selection) -> Result<Counts> {
    let mut counts = Counts::default();
    for (number, (name, check)) in CHECKS.iter().enumerate() {
        if selection.has(name) {
            counts.check(name, in_database(cluster, &format!("assisted{number}"), *check));
        }
    }
    cluster.print_crashes()?;
    let name = "a server without places for assistants";
    if selection.has(name) {
        counts.check(name, without_places(cluster, folder));
    }
    for (point, setup, change) in CULPRITS {
        let name = format!("an assistant that ends the server at {point}");
        if selection.has(&name) {
            counts.check(&name, ends_twice(cluster, folder, (point, setup, change)));
        }
    }
    Ok(counts)
}

/// Changes and reads the witness all the time, and takes note of how long that takes at most.
struct Prober {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Duration>>,
}

impl Prober {
    fn start(cluster: &Cluster, client: &mut Client) -> Result<Prober> {
        let mut client = cluster.connect(&database_of(client)?)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while !stopped.load(Ordering::Relaxed) {
                let rows: i64 = client.query_one("SELECT n FROM witness", &[])?.get(0);
                let began = Instant::now();
                client.batch_execute("INSERT INTO witnessed VALUES (1)")?;
                let after: i64 = client.query_one("SELECT n FROM witness", &[])?.get(0);
                ensure!(after == rows + 1, "the witness has {after} rows instead of {}", rows + 1);
                longest = longest.max(began.elapsed());
            }
            Ok(longest)
        });
        Ok(Prober { stop, thread })
    }

    fn longest(self) -> Result<Duration> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().ok().context("the prober was lost")?
    }
}

/// Runs `work` while the witness is probed, which may not be away for longer than that.
fn undisturbed<T>(
    cluster: &Cluster,
    client: &mut Client,
    away: Duration,
    work: impl FnOnce(&mut Client) -> Result<T>,
) -> Result<T> {
    let prober = Prober::start(cluster, client)?;
    let result = work(client);
    let longest = prober.longest()?;
    ensure!(longest < away.mul_f64(burden()), "the witness was away for {longest:?}");
    result
}

fn database_of(client: &mut Client) -> Result<String> {
    Ok(client.query_one("SELECT current_database()::text", &[])?.get(0))
}

/// The assistant of this database that is doing something.
fn assistant(client: &mut Client, doing: &str) -> Result<Option<i32>> {
    let sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_eddy assistant'
               AND datname = current_database() AND query LIKE $1";
    Ok(client.query_opt(sql, &[&format!("{doing}%")])?.map(|row| row.get(0)))
}

fn await_assistant(client: &mut Client, doing: &str) -> Result<i32> {
    wait_for(&format!("an assistant {doing}"), PATIENCE, || assistant(client, doing))
}

fn await_no_assistant(client: &mut Client) -> Result<()> {
    wait_for("the assistant to end", PATIENCE, || {
        Ok(assistant(client, "")?.is_none().then_some(()))
    })
}

fn expect_equal(client: &mut Client, view: &str, query: &str) -> Result<i64> {
    client.batch_execute("SET eddy.read_timeout = '60s'")?;
    let rows: i64 = client.query_one(&format!("SELECT count(*) FROM {view}"), &[])?.get(0);
    let sql = format!(
        "SELECT count(*) FROM ((TABLE {view} EXCEPT ALL ({query}))
         UNION ALL (({query}) EXCEPT ALL TABLE {view})) d"
    );
    let wrong: i64 = client.query_one(&sql, &[])?.get(0);
    ensure!(wrong == 0, "{wrong} rows of {view} differ");
    Ok(rows)
}

const CALLED: &str = "SELECT i FROM t";
const MANY_ROWS: &str = "SELECT id, s FROM p, generate_series(1, n) s";

fn slow_function(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(SLEEPER)?;
    undisturbed(cluster, client, AWAY, |client| {
        client.batch_execute("INSERT INTO t VALUES (1, 3), (2, 0), (3, 3)")?;
        ensure!(assistant(client, "writing")?.is_none(), "nobody has anything to write");
        await_assistant(client, "evaluating expressions of view public.called")?;
        ensure!(expect_equal(client, "called", CALLED)? == 3, "rows are missing");
        // Known to be slow by now.
        client.batch_execute("INSERT INTO t VALUES (4, 1); DELETE FROM t WHERE i = 1")?;
        ensure!(expect_equal(client, "called", CALLED)? == 3, "rows are missing");
        // And quick again.
        for i in 10..20 {
            client.batch_execute(&format!("INSERT INTO t VALUES ({i}, 0)"))?;
            expect_equal(client, "called", CALLED)?;
        }
        Ok(())
    })
}

fn function_that_takes_too_long(cluster: &Cluster, client: &mut Client) -> Result<()> {
    cluster.configure("eddy.evaluation_timeout", "1s")?;
    client.batch_execute(SLEEPER)?;
    undisturbed(cluster, client, AWAY, |client| {
        client.batch_execute("INSERT INTO t SELECT i, 0 FROM generate_series(1, 9) i")?;
        client.batch_execute("INSERT INTO t VALUES (10, 100000)")?;
        let Err(error) = client.query("TABLE called", &[]) else { bail!("it has ended") };
        let code = error.code().context("the session was lost")?.code();
        ensure!(code == "57014", "SQLSTATE {code}");
        client.batch_execute("DELETE FROM t WHERE i = 10")?;
        ensure!(expect_equal(client, "called", CALLED)? == 9, "the view did not come back");
        Ok(())
    })?;
    cluster.configure("eddy.evaluation_timeout", "10s")
}

fn quick_rows_and_a_slow_one(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(SLEEPER)?;
    undisturbed(cluster, client, AWAY, |client| {
        client.batch_execute(
            "INSERT INTO t SELECT i, CASE WHEN i % 1000 = 0 THEN 1 ELSE 0 END
             FROM generate_series(1, 5000) i",
        )?;
        ensure!(expect_equal(client, "called", CALLED)? == 5000, "rows are missing");
        Ok(())
    })
}

fn million_rows(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(MANY)?;
    let changes = [
        ("INSERT INTO p VALUES (1, 1000000)", 1_000_000),
        ("UPDATE p SET n = 900000", 900_000),
        ("INSERT INTO p VALUES (2, 100000); DELETE FROM p WHERE id = 1", 100_000),
        ("DELETE FROM p", 0),
    ];
    for (change, expected) in changes {
        undisturbed(cluster, client, AWAY_AT_WRITING, |client| {
            client.batch_execute("SET eddy.read_timeout = '60s'")?;
            client.batch_execute(change)?;
            let rows: i64 = client.query_one("SELECT count(*) FROM many", &[])?.get(0);
            ensure!(rows == expected, "{rows} rows instead of {expected} after {change}");
            Ok(())
        })
        .context(change)?;
        expect_equal(client, "many", MANY_ROWS)?;
    }
    let writes = cluster.log()?;
    ensure!(!writes.contains("no free background worker for an assistant"), "there was no place");
    Ok(())
}

fn terminate(client: &mut Client, doing: &str) -> Result<()> {
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1
               AND backend_type = 'pg_eddy assistant' AND query LIKE $2";
    wait_for(&format!("an assistant {doing}"), PATIENCE, || {
        let Some(pid) = assistant(client, doing)? else { return Ok(None) };
        Ok(client.query_opt(sql, &[&pid, &format!("{doing}%")])?.map(|_| ()))
    })
}

fn terminated_at_evaluation(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(SLEEPER)?;
    undisturbed(cluster, client, AWAY, |client| {
        client.batch_execute("INSERT INTO t VALUES (1, 3)")?;
        terminate(client, "evaluating")?;
        ensure!(expect_equal(client, "called", CALLED)? == 1, "a row is missing");
        Ok(())
    })?;
    // Ended again and again it is an error that says so.
    client.batch_execute("INSERT INTO t VALUES (2, 5)")?;
    let mut other = cluster.connect(&database_of(client)?)?;
    wait_for("the view to be in error", PATIENCE, || {
        if let Some(pid) = assistant(&mut other, "evaluating")? {
            other.query_one("SELECT pg_terminate_backend($1)", &[&pid])?;
        }
        let sql = "SELECT message FROM eddy.views WHERE relation = 'called'::regclass AND state = 'error'";
        let row = other.query_opt(sql, &[])?;
        Ok(row.map(|row| row.get::<_, String>(0)).filter(|message| message.contains("3 times")))
    })?;
    let Err(error) = client.query("TABLE called", &[]) else { bail!("it is not in error") };
    ensure!(error.code().is_some_and(|code| code.code() == "57P02"), "{error}");
    client.batch_execute("DELETE FROM t; REFRESH INCREMENTAL VIEW called")?;
    ensure!(expect_equal(client, "called", CALLED)? == 0, "REFRESH did not heal it");
    Ok(())
}

fn terminated_at_writing(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(MANY)?;
    client.batch_execute("CREATE INDEX ON many (i, id)")?;
    client.batch_execute("INSERT INTO p VALUES (1, 700000)")?;
    terminate(client, "writing")?;
    expect_equal(client, "many", MANY_ROWS)?;
    client.batch_execute("UPDATE p SET n = 100")?;
    terminate(client, "writing")?;
    expect_equal(client, "many", MANY_ROWS)?;
    client.batch_execute("UPDATE p SET n = 700000")?;
    expect_equal(client, "many", MANY_ROWS)?;
    // A new worker compares what is stored.
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE backend_type = 'pg_eddy worker' AND datname = current_database()";
    client.query_one(sql, &[])?;
    terminate(client, "comparing")?;
    client.batch_execute("INSERT INTO p VALUES (2, 5)")?;
    ensure!(expect_equal(client, "many", MANY_ROWS)? == 700_005, "rows are missing");
    ensure!(!cluster.log()?.contains("lacks rows that are to be deleted"), "a heap was not known");
    Ok(())
}

fn await_attached(client: &mut Client) -> Result<()> {
    wait_for("all views to be live", PATIENCE, || {
        let sql = "SELECT 1 FROM eddy.views WHERE state <> 'live'";
        Ok(client.query(sql, &[])?.is_empty().then_some(()))
    })
}

fn dropped_view(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(SLEEPER)?;
    client.batch_execute(MANY)?;
    await_attached(client)?;
    undisturbed(cluster, client, AWAY_AT_WRITING, |client| {
        client.batch_execute("INSERT INTO t VALUES (1, 9)")?;
        await_assistant(client, "evaluating")?;
        let began = Instant::now();
        client.batch_execute("DROP INCREMENTAL VIEW called")?;
        await_no_assistant(client)?;
        ensure!(began.elapsed() < Duration::from_secs(3), "it went on for {:?}", began.elapsed());
        client.batch_execute("INSERT INTO p VALUES (1, 1000000)")?;
        await_assistant(client, "writing")?;
        client.batch_execute("DROP INCREMENTAL VIEW many")?;
        await_no_assistant(client)
    })
}

fn unique_keys(_: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE k (id int PRIMARY KEY, n int);
         INSERT INTO k SELECT i, i FROM generate_series(1, 50000) i;
         CREATE INCREMENTAL VIEW keyed AS SELECT id, n FROM k;
         CREATE UNIQUE INDEX ON keyed (n);
         TABLE keyed;",
    )?;
    client.batch_execute("UPDATE k SET n = n % 50000 + 1")?;
    ensure!(expect_equal(client, "keyed", "TABLE k")? == 50_000, "rows are missing");
    client.batch_execute("UPDATE k SET n = 7 WHERE id < 30000")?;
    let Err(error) = client.query("TABLE keyed", &[]) else { bail!("it is not in error") };
    ensure!(error.code().is_some_and(|code| code.code() == "23505"), "{error}");
    client.batch_execute("UPDATE k SET n = id; REFRESH INCREMENTAL VIEW keyed")?;
    ensure!(expect_equal(client, "keyed", "TABLE k")? == 50_000, "REFRESH did not heal it");
    Ok(())
}

fn dropped_database(cluster: &Cluster, client: &mut Client) -> Result<()> {
    let mut admin = cluster.connect("postgres")?;
    for (number, change) in
        ["INSERT INTO t VALUES (1, 9)", "INSERT INTO p VALUES (1, 2000000)"].iter().enumerate()
    {
        let name = format!("{}_{number}", database_of(client)?);
        admin.batch_execute(&format!("CREATE DATABASE {name}"))?;
        let mut inside = cluster.connect(&name)?;
        inside.batch_execute(WITNESS)?;
        inside.batch_execute(SLEEPER)?;
        inside.batch_execute(MANY)?;
        await_attached(&mut inside)?;
        inside.batch_execute(change)?;
        await_assistant(&mut inside, if number == 0 { "evaluating" } else { "writing" })?;
        drop(inside);
        let began = Instant::now();
        admin.batch_execute(&format!("DROP DATABASE {name}"))?;
        ensure!(began.elapsed() < Duration::from_secs(5), "it took {:?}", began.elapsed());
    }
    let folder = std::fs::read_dir(cluster.data().join("pg_eddy"))?;
    let names: Vec<String> = folder
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    let left: Vec<&String> = names.iter().filter(|name| name.contains('.')).collect();
    ensure!(left.is_empty(), "files are left: {left:?}");
    Ok(())
}

/// PostgreSQL's own launcher, ours, and one worker.
const CROWDED: Settings = &[("max_worker_processes", "3"), ("fsync", "off")];

fn without_places(cluster: &Cluster, folder: &Path) -> Result<()> {
    let crowded = Cluster::start_new(cluster.installation(), folder, "crowded", CROWDED)?;
    let mut client = crowded.connect("postgres")?;
    client.batch_execute(WITNESS)?;
    client.batch_execute(SLEEPER)?;
    client.batch_execute(MANY)?;
    for round in 1..4 {
        client.batch_execute(&format!("INSERT INTO t VALUES ({round}, 0.5), ({round}, 0)"))?;
        expect_equal(&mut client, "called", CALLED)?;
        client.batch_execute(&format!("INSERT INTO p VALUES ({round}, 50000)"))?;
        let rows = expect_equal(&mut client, "many", MANY_ROWS)?;
        ensure!(rows == round * 50_000, "{rows} rows in round {round}");
    }
    let told = crowded.log()?.matches("no free background worker for an assistant").count();
    ensure!(told == 1, "it was told {told} times");
    Ok(())
}

const CRASHING: Settings = &[("fsync", "off")];

/// What an assistant does when it ends the server: the crash point, the view with its first change, and the change that
/// lets an assistant come to the point.
const CULPRITS: [(&str, &str, &str); 2] = [
    (
        "evaluate",
        "CREATE FUNCTION plus_one(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
             'BEGIN PERFORM pg_sleep(0.2); RETURN n + 1; END';
         CREATE INCREMENTAL VIEW culprit AS SELECT plus_one(n) AS n FROM t;
         INSERT INTO t VALUES (0);",
        "INSERT INTO t VALUES (1)",
    ),
    (
        "apply",
        "CREATE INCREMENTAL VIEW culprit AS SELECT t.n + 1 AS n FROM t, generate_series(1, 30000);",
        "INSERT INTO t VALUES (1)",
    ),
];

/// A view for which assistants end the server is in error when they did so twice.
fn ends_twice(
    other: &Cluster,
    folder: &Path,
    (point, setup, change): (&str, &str, &str),
) -> Result<()> {
    let name = format!("ended_at_{point}");
    let cluster = Cluster::start_new(other.installation(), folder, &name, CRASHING)?;
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = cluster.connect(&name)?;
    client.batch_execute(WITNESS)?;
    client.batch_execute(&format!("CREATE TABLE t (n int); {setup}"))?;
    client.query("SELECT count(*) FROM culprit", &[])?;
    let aborts = cluster.log()?.matches("terminated by signal 6").count();
    cluster.configure("eddy.crash_point", &format!("{point}/public.culprit=abort"))?;
    wait_for("the crash point to be set", PATIENCE, || {
        let value: String = client.query_one("SHOW eddy.crash_point", &[])?.get(0);
        Ok((!value.is_empty()).then_some(()))
    })?;
    // The server may be gone before it says so.
    let _ = client.batch_execute(change);
    let mut client = wait_for("the view to be in error", PATIENCE, || {
        let Ok(mut client) = cluster.connect(&name) else { return Ok(None) };
        if client.batch_execute("SET eddy.read_timeout = '5s'").is_err() {
            return Ok(None);
        }
        let Err(error) = client.query("SELECT n FROM culprit", &[]) else { return Ok(None) };
        let is_told = error.code().is_some_and(|code| code.code() == "57P02");
        Ok((is_told && !client.is_closed()).then_some(client))
    })?;
    let log = cluster.log()?;
    let aborts = log.matches("terminated by signal 6").count() - aborts;
    ensure!(aborts == 2, "the server was ended {aborts} times");
    ensure!(log.contains("\"pg_eddy assistant\""), "no assistant has ended it");
    client.batch_execute("INSERT INTO witnessed VALUES (1)")?;
    ensure!(client.query_one("SELECT n FROM witness", &[])?.get::<_, i64>(0) == 1, "no witness");
    cluster.configure("eddy.crash_point", "")?;
    wait_for("the view to be healed by REFRESH", PATIENCE, || {
        client.batch_execute("REFRESH INCREMENTAL VIEW culprit")?;
        Ok(client.query_one("SELECT count(*) FROM culprit", &[]).ok())
    })?;
    drop(client);
    Ok(cluster.connect("postgres")?.batch_execute(&format!("DROP DATABASE {name}"))?)
}
