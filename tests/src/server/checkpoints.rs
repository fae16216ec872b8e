//! Checkpoints: views that go on with what was saved, whatever has happened since, and those that cannot.

use std::fs;
use std::os::unix::fs::{chown, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::{signal_process, wait_for, Cluster};
use harness::engines::engine_of;
use harness::installation::Installation;
use postgres::Client;
use rustix::process::Signal;

use super::check::Record;
use super::engine_processes::CHANGES;
use super::indexes::{expect_query, terminate_worker};
use crate::graph::worker_pid;

const PATIENCE: Duration = Duration::from_secs(60);

/// What the log says of a view that goes on.
const GOES_ON: &str = "goes on from the checkpoint";

const TABLES: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE TABLE edge (src int, dst int);
    ALTER TABLE edge REPLICA IDENTITY FULL;
    CREATE TABLE label (id int PRIMARY KEY, name text COLLATE \"C\");
    INSERT INTO edge SELECT i % 50, i FROM generate_series(1, 300) i;
    INSERT INTO label SELECT i, 'n' || i % 9 FROM generate_series(1, 60) i;
    CREATE TYPE pair AS (a int, b int);
    CREATE TABLE paired (p pair);
    INSERT INTO paired VALUES ((1, 1)), ((2, 2)), ((3, 3));
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'great');
    CREATE TABLE felt (id int PRIMARY KEY, m mood, name text);
    INSERT INTO felt SELECT i, (ARRAY['happy', 'ok'])[1 + i % 2]::mood, chr(100 + 2 * (i % 5)) FROM generate_series(1, 20) i;
    CREATE TABLE big (id int PRIMARY KEY, value text);
    INSERT INTO big SELECT i, 'value ' || i % 1000 FROM generate_series(1, 100000) i;
    CREATE FUNCTION twice(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN 2 * n; END'";

/// Views whose state is saved: recursion, groups of all kinds, joins, duplicates, the best of each.
const SAVED: [(&str, &str); 13] = [
    (
        "paths",
        "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b) SELECT * FROM r",
    ),
    ("degrees", "SELECT src, count(*) AS n, max(dst) AS most, sum(dst) AS total, string_agg(dst::text, ',' ORDER BY dst) AS all_of_them FROM edge GROUP BY src"),
    ("everything", "SELECT count(*) AS n, min(dst) AS least, avg(dst) AS mean FROM edge"),
    ("joined", "SELECT e.src, l.name, m.name AS other FROM edge e JOIN label l ON l.id = e.dst JOIN label m ON m.id = e.src"),
    ("doubled", "SELECT DISTINCT twice(dst) AS double FROM edge"),
    ("best", "SELECT DISTINCT ON (src) src, dst FROM edge ORDER BY src, dst DESC"),
    // PostgreSQL alone knows the order of these values.
    ("pairs", "SELECT p, count(*) AS n FROM paired GROUP BY p"),
    ("moods", "SELECT id % 3 AS g, min(m) AS least, max(m) AS most, array_agg(m ORDER BY m, id) AS all_of_them FROM felt GROUP BY id % 3"),
    ("named", "SELECT DISTINCT ON (m) m, name COLLATE \"en-x-icu\" AS name FROM felt ORDER BY m DESC, name COLLATE \"en-x-icu\" DESC"),
    // Its heap is so large that nobody looks at it before it is to be changed.
    ("large", "SELECT id, value FROM big WHERE id % 10 > 0"),
    ("reached", "SELECT a, count(*) AS n FROM paths GROUP BY a"),
    ("summed", "SELECT r.a, r.n, d.total, d.most FROM reached r JOIN degrees d ON d.src = r.a"),
    ("outer_joined", "SELECT l.id, l.name, e.dst FROM label l LEFT JOIN edge e ON e.src = l.id"),
];

/// Views among them that read others.
const STACKED: usize = 2;

/// Views that are attached from their tables: with changes that are kept and over such a one, with the time, with anonymous rows.
const OTHERS: [(&str, &str, &str); 5] = [
    // What the columns of rows without a type of their own are is known to one process.
    ("circles", "", "WITH RECURSIVE d AS (SELECT src, dst FROM edge WHERE src = 1 UNION ALL SELECT e.src, e.dst FROM d JOIN edge e ON e.src = d.dst) CYCLE dst SET is_cycle USING path SELECT src, dst, is_cycle FROM d"),
    ("middles", "", "SELECT m, percentile_disc(0.5) WITHIN GROUP (ORDER BY ARRAY[id]) AS middle, mode() WITHIN GROUP (ORDER BY ARRAY[id % 3]) AS usual FROM felt GROUP BY m"),
    ("kept", "WITH (changes = '1 hour')", "SELECT src, count(*) AS n FROM edge GROUP BY src"),
    ("over_kept", "", "SELECT n, count(*) AS m FROM kept GROUP BY n"),
    ("lately", "", "SELECT src, dst FROM edge WHERE now() > '2000-01-01'"),
];

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    let steps: [(&str, Step); 8] = [
        ("views go on with what was saved", goes_on),
        ("a checkpoint may be interrupted anywhere", interrupted),
        ("a view that was behind the others goes on, too", behind),
        ("views whose tables or functions are others do not go on", differs),
        ("what was saved and is damaged is not gone on with", damaged),
        ("views that end their worker when they go on are attached from their tables", ends),
        ("views go on when their engine is a process, and when that is killed", process),
        ("nothing is left of checkpoints that are not taken", leaves_nothing),
    ];
    let mut server = match start(installation, folder) {
        Ok(server) => server,
        Err(error) => return record("a server whose views are saved", Err(error)),
    };
    for (name, step) in steps {
        record(name, step(&mut server));
    }
    record("no process of it crashed", server.print_crashes());
}

type Step = fn(&mut Cluster) -> Result<()>;

fn start(installation: &Installation, folder: &Path) -> Result<Cluster> {
    let settings = [("fsync", "off"), ("eddy.checkpoint_wal", "1MB"), ("max_wal_size", "64MB")];
    let cluster = Cluster::start_new(installation, folder, "checkpoints", &settings)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    for (name, query) in SAVED {
        client.batch_execute(&format!("CREATE INCREMENTAL VIEW {name} AS {query}"))?;
    }
    for (name, options, query) in OTHERS {
        client.batch_execute(&format!("CREATE INCREMENTAL VIEW {name} {options} AS {query}"))?;
    }
    Ok(cluster)
}

fn expect_right(client: &mut Client) -> Result<()> {
    SAVED.iter().try_for_each(|(name, query)| expect_query(client, name, query))?;
    OTHERS.iter().try_for_each(|(name, _, query)| expect_query(client, name, query))
}

/// How often the log says something.
fn said(cluster: &Cluster, what: &str) -> Result<usize> {
    Ok(cluster.log()?.matches(what).count())
}

/// What the log says of checkpoints last.
fn what_it_says(cluster: &Cluster) -> Result<String> {
    let log = cluster.log()?;
    let mut lines: Vec<&str> = log.lines().filter(|line| line.contains("pg_eddy:")).collect();
    Ok(lines.split_off(lines.len().saturating_sub(40)).join("\n"))
}

/// Writes so much WAL that a checkpoint is due, until there is one of all views.
fn checkpoint(cluster: &Cluster, client: &mut Client) -> Result<()> {
    let all = format!(": {} views", SAVED.len());
    let taken = || -> Result<usize> {
        let log = cluster.log()?;
        let lines = log.lines().filter(|line| line.contains("pg_eddy: checkpoint at"));
        Ok(lines.filter(|line| line.contains(&all)).count())
    };
    let before = taken()?;
    let found = wait_for("a checkpoint", PATIENCE, || {
        write_wal(client)?;
        Ok((taken()? > before).then_some(()))
    });
    found.with_context(|| what_it_says(cluster).unwrap_or_default())
}

fn write_wal(client: &mut Client) -> Result<()> {
    let fill = "CREATE TABLE IF NOT EXISTS filler (a text);
        INSERT INTO filler SELECT repeat(md5(i::text), 30) FROM generate_series(1, 400) i; INSERT INTO edge VALUES (1, 1)";
    Ok(client.batch_execute(fill)?)
}

/// Where the files of this database are.
fn saved(cluster: &Cluster, client: &mut Client) -> Result<PathBuf> {
    let sql = "SELECT oid FROM pg_database WHERE datname = current_database()";
    let database: u32 = client.query_one(sql, &[])?.get(0);
    Ok(cluster.data().join("pg_eddy/checkpoints").join(database.to_string()))
}

/// All views that can go on do, after a restart of some kind.
fn expect_restored(
    cluster: &mut Cluster,
    restart: impl Fn(&mut Cluster) -> Result<()>,
) -> Result<()> {
    let before = said(cluster, GOES_ON)?;
    restart(cluster)?;
    let mut client = cluster.connect_when_ready("postgres")?;
    expect_right(&mut client)?;
    let now = said(cluster, GOES_ON)?;
    let all = SAVED.len();
    ensure!(now == before + all, "{} of {all} went on:\n{}", now - before, what_it_says(cluster)?);
    let others = [
        // In another order than that in which they came first.
        "INSERT INTO paired VALUES ((5, 5)), ((2, 2)), ((1, 1)); DELETE FROM paired WHERE p = (3, 3)",
        "INSERT INTO paired VALUES ((3, 3))",
        "INSERT INTO felt SELECT max(id) + 1, 'great', 'a' FROM felt; INSERT INTO felt SELECT max(id) + 1, 'sad', 'zz' FROM felt",
        "DELETE FROM felt WHERE m = 'happy' AND id % 2 = 0; UPDATE felt SET m = 'ok', name = 'M' || name WHERE id % 5 = 1",
        "DELETE FROM felt; DELETE FROM paired",
        "INSERT INTO felt VALUES (1, 'ok', 'k'), (2, 'sad', 'K'), (3, 'great', 'e'), (4, 'happy', 'd'); INSERT INTO paired VALUES ((2, 2)), ((1, 1))",
        "UPDATE big SET value = value || 'x' WHERE id % 5000 = 1; DELETE FROM big WHERE id % 7000 = 2",
        "INSERT INTO big SELECT id + 1000000, value FROM big WHERE id % 5000 = 1 ON CONFLICT DO NOTHING",
    ];
    // But for TRUNCATE, after which there is another file.
    for change in CHANGES[..3].iter().chain(&others) {
        client.batch_execute(change)?;
        expect_right(&mut client).with_context(|| change.to_string())?;
    }
    Ok(())
}

fn fast(cluster: &mut Cluster) -> Result<()> {
    cluster.stop()?;
    cluster.start()
}

fn crash(cluster: &mut Cluster) -> Result<()> {
    cluster.stop_immediately()?;
    cluster.start()
}

fn terminate(cluster: &mut Cluster) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    terminate_worker(&mut client)?;
    // Some of it while there is none.
    client.batch_execute(CHANGES[0])?;
    Ok(())
}

fn goes_on(cluster: &mut Cluster) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    expect_right(&mut client)?;
    checkpoint(cluster, &mut client)?;
    drop(client);
    let restarts: [(&str, Step); 3] =
        [("a restart", fast), ("a crash", crash), ("the end of the worker", terminate)];
    for (name, restart) in restarts {
        // The same checkpoint again and again, with more and more behind it; then a new one.
        expect_restored(cluster, restart).with_context(|| format!("after {name}"))?;
    }
    let mut client = cluster.connect("postgres")?;
    checkpoint(cluster, &mut client)?;
    // A transaction that is open, with a subtransaction undone, when it is taken.
    let mut open = cluster.connect("postgres")?;
    open.batch_execute("BEGIN; INSERT INTO edge SELECT 3, i FROM generate_series(1, 3000) i; SAVEPOINT a; DELETE FROM edge WHERE src = 4; ROLLBACK TO a")?;
    checkpoint(cluster, &mut client)?;
    open.batch_execute("UPDATE edge SET dst = dst + 1 WHERE src = 3; COMMIT")?;
    expect_right(&mut client)?;
    drop((client, open));
    expect_restored(cluster, crash).context("after a transaction that was open")
}

fn interrupted(cluster: &mut Cluster) -> Result<()> {
    const CRASHED: &str = "was terminated by signal 6";
    for point in ["checkpoint", "checkpoint_store", "checkpoint_confirm", "restore"] {
        let before = said(cluster, CRASHED)?;
        cluster.configure("eddy.crash_point", point)?;
        let mut changes = CHANGES.iter().cycle();
        wait_for("the crash", PATIENCE, || {
            // Sessions end with the worker.
            let _ = cluster.connect_when_ready("postgres").and_then(|mut client| {
                changes.next().map_or(Ok(()), |change| client.batch_execute(change))?;
                write_wal(&mut client)?;
                match point {
                    "restore" => terminate_worker(&mut client),
                    _ => Ok(()),
                }
            });
            Ok((said(cluster, CRASHED)? > before).then_some(()))
        })?;
        // Workers that do not know of it yet may reach it once more.
        cluster.configure("eddy.crash_point", "")?;
        fast(cluster)?;
        let mut client = cluster.connect_when_ready("postgres")?;
        expect_right(&mut client).with_context(|| format!("interrupted at {point}"))?;
        checkpoint(cluster, &mut client)?;
        drop(client);
        expect_restored(cluster, fast).with_context(|| format!("after {point}"))?;
    }
    Ok(())
}

/// The worker ends while a view is behind the others, because somebody has a lock on it; other views read it.
fn behind(cluster: &mut Cluster) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    checkpoint(cluster, &mut client)?;
    drop(client);
    for _ in 0..2 {
        expect_restored(cluster, |cluster| {
            let (mut client, mut holder) =
                (cluster.connect("postgres")?, cluster.connect("postgres")?);
            holder.batch_execute("BEGIN; CREATE INDEX ON degrees (src)")?;
            wait_for("the view to be left behind", PATIENCE, || {
                client.batch_execute(CHANGES[0])?;
                client.execute("SELECT count(*) FROM paths", &[])?;
                let behind = "SELECT FROM eddy.view_states \
                              WHERE relation = 'degrees'::regclass AND applied_lsn IS NOT NULL";
                Ok(client.query_opt(behind, &[])?.map(drop))
            })?;
            terminate_worker(&mut client)?;
            client.batch_execute(CHANGES[2])?;
            Ok(holder.batch_execute("ROLLBACK")?)
        })?;
    }
    Ok(())
}

fn differs(cluster: &mut Cluster) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    checkpoint(cluster, &mut client)?;
    let before = said(cluster, "is not what it was")?;
    let changes = [
        "CREATE OR REPLACE FUNCTION twice(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN 3 * n; END'",
        "VACUUM FULL label",
        CHANGES[3],
        "REFRESH INCREMENTAL VIEW best",
    ];
    for change in changes {
        client.batch_execute(change)?;
        terminate_worker(&mut client)?;
        expect_right(&mut client).with_context(|| change.to_owned())?;
    }
    drop(client);
    fast(cluster)?;
    let mut client = cluster.connect_when_ready("postgres")?;
    expect_right(&mut client)?;
    client.batch_execute("VACUUM FULL edge")?;
    expect_right(&mut client)?;
    drop(client);
    fast(cluster)?;
    let mut client = cluster.connect_when_ready("postgres")?;
    expect_right(&mut client)?;
    ensure!(
        said(cluster, "is not what it was")? > before,
        "views went on with what is not there any more"
    );
    checkpoint(cluster, &mut client)?;
    drop(client);
    expect_restored(cluster, crash)
}

fn damaged(cluster: &mut Cluster) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    checkpoint(cluster, &mut client)?;
    let folder = saved(cluster, &mut client)?;
    drop(client);
    cluster.stop()?;
    let before = said(cluster, "it is damaged")?;
    let mut files = 0;
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "0") {
            let mut bytes = fs::read(&path)?;
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
            fs::write(&path, bytes)?;
            files += 1;
        }
    }
    ensure!(files == SAVED.len(), "{files} files in {}", folder.display());
    cluster.start()?;
    let mut client = cluster.connect_when_ready("postgres")?;
    expect_right(&mut client)?;
    wait_for("all to be found damaged", PATIENCE, || {
        // Views over others may have ended with these.
        Ok((said(cluster, "it is damaged")? >= before + files - STACKED).then_some(()))
    })?;
    checkpoint(cluster, &mut client)?;
    drop(client);
    // A copy of what is there: of another data directory, that is.
    cluster.stop()?;
    let (manifest, copy) = (folder.join("manifest"), folder.join("copy"));
    fs::copy(&manifest, &copy)?;
    let owner = fs::metadata(&manifest)?;
    chown(&copy, Some(owner.uid()), Some(owner.gid()))?;
    fs::rename(&copy, &manifest)?;
    let before = said(cluster, GOES_ON)?;
    cluster.start()?;
    let mut client = cluster.connect_when_ready("postgres")?;
    expect_right(&mut client)?;
    ensure!(said(cluster, GOES_ON)? == before, "a copy was gone on with");
    checkpoint(cluster, &mut client)?;
    drop(client);
    expect_restored(cluster, fast)
}

/// A worker that ends whenever it goes on.
fn ends(cluster: &mut Cluster) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    checkpoint(cluster, &mut client)?;
    let before = said(cluster, GOES_ON)?;
    cluster.configure("eddy.crash_point", "restore=fatal")?;
    drop(client);
    fast(cluster)?;
    let mut client = cluster.connect_when_ready("postgres")?;
    expect_right(&mut client)?;
    ensure!(said(cluster, GOES_ON)? == before, "it has gone on");
    cluster.configure("eddy.crash_point", "")?;
    checkpoint(cluster, &mut client)?;
    drop(client);
    expect_restored(cluster, fast)
}

/// What threads have saved a process goes on with, and the other way round; and so does the process that comes after one.
fn process(cluster: &mut Cluster) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    checkpoint(cluster, &mut client)?;
    cluster.configure("eddy.engine", "process")?;
    drop(client);
    expect_restored(cluster, fast).context("as a process")?;
    let mut client = cluster.connect("postgres")?;
    let started = "SELECT pg_postmaster_start_time()::text";
    let before: String = client.query_one(started, &[])?.get(0);
    checkpoint(cluster, &mut client)?;
    drop(client);
    for _ in 0..2 {
        expect_restored(cluster, kill_engine).context("after its engine was killed")?;
    }
    let mut client = cluster.connect("postgres")?;
    let after: String = client.query_one(started, &[])?.get(0);
    ensure!(before == after, "the server started again");
    checkpoint(cluster, &mut client)?;
    cluster.configure("eddy.engine", "embedded")?;
    drop(client);
    expect_restored(cluster, fast).context("in threads")
}

fn kill_engine(cluster: &mut Cluster) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    let worker = worker_pid(&mut client)?;
    let engine = wait_for("an engine", PATIENCE, || engine_of(worker))?;
    client.batch_execute(CHANGES[0])?;
    signal_process(engine, Signal::KILL)?;
    client.batch_execute(CHANGES[2])?;
    wait_for("another worker", PATIENCE, || {
        Ok(worker_pid(&mut client)?.filter(|pid| Some(*pid) != worker).map(drop))
    })
}

fn leaves_nothing(cluster: &mut Cluster) -> Result<()> {
    let slots = "SELECT count(*) FROM pg_replication_slots WHERE NOT temporary";
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE DATABASE other")?;
    let mut other = cluster.connect("other")?;
    other.batch_execute("CREATE EXTENSION pg_eddy; CREATE TABLE t (a int); CREATE INCREMENTAL VIEW v AS SELECT count(*) AS n FROM t")?;
    expect_query(&mut other, "v", "SELECT count(*) AS n FROM t")?;
    let found: i64 = client.query_one(slots, &[])?.get(0);
    ensure!(found == 2, "{found} slots");
    let of_other = saved(cluster, &mut other)?;
    wait_for("files", PATIENCE, || Ok(of_other.join("manifest").exists().then_some(())))?;
    drop(other);
    client.batch_execute("DROP DATABASE other")?;
    wait_for("the files of a database to go", PATIENCE, || Ok((!of_other.exists()).then_some(())))?;
    let found: i64 = client.query_one(slots, &[])?.get(0);
    ensure!(found == 1, "{found} slots after DROP DATABASE");
    let folder = saved(cluster, &mut client)?;
    drop(client);
    cluster.configure("eddy.checkpoint_wal", "0")?;
    fast(cluster)?;
    let mut client = cluster.connect_when_ready("postgres")?;
    expect_right(&mut client)?;
    let found: i64 = client.query_one(slots, &[])?.get(0);
    ensure!(found == 0 && !folder.exists(), "{found} slots, files: {}", folder.exists());
    drop(client);
    cluster.configure("eddy.checkpoint_wal", "1MB")?;
    fast(cluster)?;
    let mut client = cluster.connect_when_ready("postgres")?;
    expect_right(&mut client)?;
    wait_for("files", PATIENCE, || Ok(folder.join("manifest").exists().then_some(())))?;
    client.batch_execute("DROP EXTENSION pg_eddy CASCADE")?;
    wait_for("the slot to go", PATIENCE, || {
        let found: i64 = client.query_one(slots, &[])?.get(0);
        Ok((found == 0 && !folder.exists()).then_some(()))
    })?;
    if cluster.log()?.contains("could not remove") {
        bail!("files could not be removed");
    }
    Ok(())
}
