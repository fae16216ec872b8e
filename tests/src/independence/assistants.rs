//! What takes long for one view (functions of users, changes of very many rows) is done by processes of their own, and
//! the other views are fresh meanwhile. Whatever becomes of these processes, the view ends up right, or says why not.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::{signal_process, wait_for, Cluster, Settings};
use harness::report::Counts;
use postgres::Client;
use rustix::process::Signal;

use super::witness::{self, undisturbed};
use super::{expect_right, in_database, state_of, wait_for_state, Selection};

type Check = fn(&Cluster, &mut Client) -> Result<()>;

const CHECKS: [(&str, Check); 15] = [
    ("a function that takes seconds for a row", slow_function),
    ("a function that takes too long", function_that_takes_too_long),
    ("a function whose process stands still", process_that_stands_still),
    ("many quick rows and a slow one", quick_rows_and_a_slow_one),
    ("an index whose function is slow", slow_index_function),
    ("an index whose function is too slow for a while", index_function_that_waits),
    ("others wait for locks of an assistant that writes", others_wait_for_writer),
    ("a change of a million rows", million_rows),
    ("an assistant that is terminated while it evaluates", terminated_at_evaluation),
    ("an assistant that is terminated while it writes", terminated_at_writing),
    ("a view that is dropped while an assistant works for it", dropped_view),
    ("an order that cannot be written", no_order),
    ("somebody's slow index while others write much", slow_index_beside_others),
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

/// One test per check, each in a database of its own; then a server that has no places for assistants.
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
    Ok(counts)
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

/// The view shows what its query gives, however long that takes; answers how many rows that is.
fn expect_equal(client: &mut Client, view: &str, query: &str) -> Result<i64> {
    client.batch_execute("SET eddy.read_timeout = '60s'")?;
    expect_right(client, view, query)?;
    Ok(client.query_one(&format!("SELECT count(*) FROM {view}"), &[])?.get(0))
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

/// As when a machine is moved: that time is not the function's.
fn process_that_stands_still(cluster: &Cluster, client: &mut Client) -> Result<()> {
    cluster.configure("eddy.evaluation_timeout", "1s")?;
    client.batch_execute(SLEEPER)?;
    client.batch_execute("INSERT INTO t VALUES (1, 0.5)")?;
    let assistant = await_assistant(client, "evaluating")?;
    signal_process(assistant, Signal::STOP)?;
    // Nothing tells when it has stood still for longer than it may run.
    std::thread::sleep(Duration::from_secs(2));
    signal_process(assistant, Signal::CONT)?;
    ensure!(expect_equal(client, "called", CALLED)? == 1, "a row is missing");
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

fn slow_index_function(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE FUNCTION dozing(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
             $$BEGIN IF i > 1000 THEN PERFORM pg_sleep(1.5); END IF; RETURN i; END$$;
         CREATE TABLE t (i int); CREATE INCREMENTAL VIEW indexed AS SELECT i FROM t;
         CREATE INDEX ON indexed (dozing(i))",
    )?;
    client.batch_execute("TABLE indexed")?;
    for i in [1001, 1002, 1, 2, 1003, 3] {
        undisturbed(cluster, client, AWAY, |client| {
            client.batch_execute(&format!("INSERT INTO t VALUES ({i})"))?;
            expect_equal(client, "indexed", "TABLE t").map(drop)
        })
        .with_context(|| format!("row {i}"))?;
    }
    Ok(())
}

/// What was too slow is tried again, but not for ever.
fn index_function_that_waits(cluster: &Cluster, client: &mut Client) -> Result<()> {
    cluster.configure("eddy.evaluation_timeout", "1s")?;
    client.batch_execute(
        "CREATE FUNCTION waiting(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
         BEGIN
             WHILE i = 7 AND NOT pg_try_advisory_xact_lock(7) LOOP PERFORM pg_sleep(0.01); END LOOP;
             RETURN i;
         END$$;
         CREATE TABLE t (i int); CREATE INCREMENTAL VIEW indexed AS SELECT i FROM t;
         CREATE INDEX ON indexed (waiting(i))",
    )?;
    client.batch_execute("TABLE indexed")?;
    let mut holder = cluster.connect_beside(client)?;
    undisturbed(cluster, client, AWAY, |client| {
        holder.batch_execute("SELECT pg_advisory_lock(7)")?;
        client.batch_execute("INSERT INTO t VALUES (7)")?;
        let first = await_assistant(client, "writing")?;
        wait_for("another assistant", PATIENCE, || {
            Ok(assistant(client, "writing")?.filter(|pid| *pid != first))
        })?;
        holder.batch_execute("SELECT pg_advisory_unlock(7)")?;
        expect_equal(client, "indexed", "TABLE t")?;
        holder.batch_execute("SELECT pg_advisory_lock(7)")?;
        client.batch_execute("INSERT INTO t VALUES (7)")?;
        let message = wait_for_state(client, "indexed", "error")?;
        ensure!(message.contains("eddy.evaluation_timeout"), "it does not say why: {message}");
        holder.batch_execute("SELECT pg_advisory_unlock(7)")?;
        client.batch_execute("REFRESH INCREMENTAL VIEW indexed")?;
        expect_equal(client, "indexed", "TABLE t").map(drop)
    })?;
    cluster.configure("eddy.evaluation_timeout", "10s")
}

/// They go first, as they do with autovacuum.
fn others_wait_for_writer(cluster: &Cluster, client: &mut Client) -> Result<()> {
    const GIVES_WAY: Duration = Duration::from_secs(10);
    cluster.configure("eddy.evaluation_timeout", "10min")?;
    client.batch_execute(
        "CREATE FUNCTION asleep(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
             $$BEGIN IF i = 7 THEN PERFORM pg_sleep(500); END IF; RETURN i; END$$;
         CREATE TABLE t (i int); CREATE INCREMENTAL VIEW indexed AS SELECT i FROM t;
         CREATE INDEX ON indexed (asleep(i))",
    )?;
    client.batch_execute("TABLE indexed")?;
    let mut beside = cluster.connect("postgres")?;
    undisturbed(cluster, client, AWAY, |client| {
        client.batch_execute("INSERT INTO t VALUES (7)")?;
        // Replication slots, those of other databases' workers among them, wait for the end of all transactions.
        await_assistant(client, "writing")?;
        let began = Instant::now();
        beside.batch_execute(
            "SELECT pg_create_logical_replication_slot('beside', 'pgoutput', true);
             SELECT pg_drop_replication_slot('beside')",
        )?;
        ensure!(began.elapsed() < GIVES_WAY, "a slot took {:?}", began.elapsed());
        await_assistant(client, "writing")?;
        let began = Instant::now();
        client.batch_execute("REINDEX TABLE indexed")?;
        ensure!(began.elapsed() < GIVES_WAY, "REINDEX took {:?}", began.elapsed());
        await_assistant(client, "writing")?;
        let (state, message) = state_of(client, "indexed")?;
        ensure!(state == "behind" && message.contains("written"), "it is {state}: {message}");
        client.batch_execute("SET eddy.read_timeout = '100ms'")?;
        let Err(error) = client.query("TABLE indexed", &[]) else { bail!("it was written") };
        let detail = error.as_db_error().and_then(|error| error.detail()).unwrap_or_default();
        ensure!(detail.contains("being written"), "the read does not say why: {detail}");
        let began = Instant::now();
        client.batch_execute("DROP INCREMENTAL VIEW indexed")?;
        ensure!(began.elapsed() < GIVES_WAY, "DROP took {:?}", began.elapsed());
        Ok(())
    })?;
    cluster.configure("eddy.evaluation_timeout", "10s")
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
    ensure!(!writes.contains("there is no free background worker"), "there was no place");
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
    let mut other = cluster.connect_beside(client)?;
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

/// Then the worker does it itself.
fn no_order(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(MANY)?;
    await_attached(client)?;
    let (folder, aside) = (cluster.data().join("pg_eddy"), cluster.data().join("pg_eddy_aside"));
    std::fs::rename(&folder, &aside)?;
    std::fs::write(&folder, "in the way")?;
    let outcome = client
        .batch_execute("INSERT INTO p VALUES (1, 50000)")
        .map_err(anyhow::Error::from)
        .and_then(|()| expect_equal(client, "many", MANY_ROWS));
    std::fs::remove_file(&folder)?;
    std::fs::rename(&aside, &folder)?;
    ensure!(outcome? == 50_000, "rows are missing");
    ensure!(cluster.log()?.contains("could not write its order"), "there was an order");
    client.batch_execute("INSERT INTO p VALUES (2, 50000)")?;
    ensure!(expect_equal(client, "many", MANY_ROWS)? == 100_000, "rows are missing");
    Ok(())
}

/// Whose indexes call no functions never waits for those whose do.
fn slow_index_beside_others(_: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(MANY)?;
    client.batch_execute(
        "CREATE FUNCTION dozing(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
             $$BEGIN PERFORM pg_sleep(0.002); RETURN i; END$$;
         CREATE TABLE t (i int);
         CREATE INCREMENTAL VIEW indexed AS SELECT i FROM t; CREATE INDEX ON indexed (dozing(i));
         TABLE indexed",
    )?;
    await_attached(client)?;
    client.batch_execute("INSERT INTO t SELECT generate_series(1, 100000)")?;
    await_assistant(client, "writing view public.indexed")?;
    client.batch_execute("INSERT INTO p VALUES (1, 50000)")?;
    ensure!(expect_equal(client, "many", MANY_ROWS)? == 50_000, "rows are missing");
    ensure!(assistant(client, "writing view public.indexed")?.is_some(), "it was not that slow");
    Ok(())
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

fn dropped_database(cluster: &Cluster, _: &mut Client) -> Result<()> {
    let mut admin = cluster.connect("postgres")?;
    for (number, change) in
        ["INSERT INTO t VALUES (1, 9)", "INSERT INTO p VALUES (1, 2000000)"].iter().enumerate()
    {
        let name = format!("doomed{number}");
        admin.batch_execute(&format!("CREATE DATABASE {name}"))?;
        let mut inside = cluster.connect(&name)?;
        inside.batch_execute(witness::SETUP)?;
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
    client.batch_execute(witness::SETUP)?;
    client.batch_execute(SLEEPER)?;
    client.batch_execute(MANY)?;
    for round in 1..4 {
        client.batch_execute(&format!("INSERT INTO t VALUES ({round}, 0.5), ({round}, 0)"))?;
        expect_equal(&mut client, "called", CALLED)?;
        client.batch_execute(&format!("INSERT INTO p VALUES ({round}, 50000)"))?;
        let rows = expect_equal(&mut client, "many", MANY_ROWS)?;
        ensure!(rows == round * 50_000, "{rows} rows in round {round}");
    }
    let told = crowded.log()?.matches("there is no free background worker").count();
    ensure!(told == 1, "it was told {told} times");
    Ok(())
}
