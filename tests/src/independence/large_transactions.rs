//! Large transactions: they hold up nobody, and whatever happens in them and beside them, views are right.
//!
//! They are decoded while they run. The checks of what is right run on a server that makes PostgreSQL hand over 64 kB of
//! a transaction at a time, so that a few thousand rows come in many pieces; that of delays runs on one as it is by default.

use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};
use harness::cluster::{wait_for, Cluster, Settings};
use harness::report::Counts;
use harness::timing::burden;
use postgres::Client;

use super::witness::{beside, Absence};
use super::{expect_right, in_database, Selection};

type Check = fn(&Cluster, &mut Client) -> Result<()>;

const CHECKS: [(&str, Check); 15] = [
    ("savepoints rolled back", savepoints),
    ("many subtransactions, half of them failing", many_subtransactions),
    ("transactions that end without a commit", ends_without_commit),
    ("transactions at the same time, committing in another order", interleaved),
    ("values in TOAST", toast),
    ("TRUNCATE in the middle", truncations),
    ("DDL in the middle", ddl),
    ("a piece that cannot be decoded", piece_fails),
    ("a view created in the middle, before a commit", created_before_commit),
    ("a view created in the middle, before a rollback", created_before_rollback),
    ("a view dropped in the middle", dropped),
    ("partitions", partitions),
    ("two-phase commit", two_phase),
    ("the worker ends in the middle", worker_ends),
    ("rows held on disk, or not even there", beyond_memory),
];

/// A transaction comes in pieces of 64 kB, the least that PostgreSQL takes.
pub const IN_PIECES: Settings = &[
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("logical_decoding_work_mem", "64kB"),
    ("max_prepared_transactions", "4"),
];

/// Longest time for which other views may be away while a million rows are written and committed.
const AWAY: Duration = Duration::from_millis(500);

/// Two views of one table, of the same columns and of others, and one that is empty before and after.
const TABLES: &str = "
    CREATE TABLE t (i int NOT NULL, v text NOT NULL, o int);
    ALTER TABLE t REPLICA IDENTITY FULL;
    INSERT INTO t SELECT g, 'before ' || g, g FROM generate_series(1, 100) g;
    CREATE INCREMENTAL VIEW tenths AS SELECT i, v FROM t WHERE i % 10 = 0;
    CREATE INCREMENTAL VIEW summed AS SELECT count(*) AS n, sum(i) AS s, max(v) AS m FROM t;
    CREATE INCREMENTAL VIEW others AS SELECT o, count(*) AS n FROM t GROUP BY o;";

const VIEWS: [(&str, &str); 3] = [
    ("tenths", "SELECT i, v FROM t WHERE i % 10 = 0"),
    ("summed", "SELECT count(*) AS n, sum(i) AS s, max(v) AS m FROM t"),
    ("others", "SELECT o, count(*) AS n FROM t GROUP BY o"),
];

/// One test per check, each in a database of its own, on a server set up [`IN_PIECES`].
pub fn run(cluster: &Cluster, selection: &Selection) -> Result<Counts> {
    let mut counts = Counts::default();
    let chosen = CHECKS.iter().enumerate().filter(|(_, (name, _))| selection.has(name));
    for (number, (name, check)) in chosen {
        counts.check(name, in_database(cluster, &format!("large{number}"), *check));
    }
    cluster.print_crashes()?;
    Ok(counts)
}

/// On a server with default settings.
pub fn run_delays(cluster: &Cluster, selection: &Selection) -> Result<Counts> {
    let mut counts = Counts::default();
    let checks: [(&str, &str, Check); 2] = [
        ("a million rows beside others", "million", million),
        ("a part with a long value that is rolled back", "long", long_value_rolled_back),
    ];
    for (name, database, check) in checks.into_iter().filter(|(name, ..)| selection.has(name)) {
        counts.check(name, in_database(cluster, database, check));
    }
    Ok(counts)
}

/// The part has been on PostgreSQL's disk when it is handed over, in the middle of the long value: nobody tells of its end.
fn long_value_rolled_back(_: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE t (i int, v text);
         ALTER TABLE t ALTER v SET STORAGE EXTERNAL;
         CREATE INCREMENTAL VIEW kept AS SELECT count(*) AS n, sum(length(v)) AS total FROM t;
         TABLE kept",
    )?;
    for (rows, long) in
        [(5000, 3_000_000), (10_000, 3_000_000), (15_000, 2_500_000), (20_000, 1_500_000)]
    {
        client.batch_execute(&format!(
            "BEGIN; INSERT INTO t VALUES (0, 'before'); SAVEPOINT s;
             INSERT INTO t SELECT i, repeat('x', 60) FROM generate_series(1, {rows}) i;
             INSERT INTO t SELECT 0, string_agg(md5(g::text), '') FROM generate_series(1, {long} / 32) g;
             ROLLBACK TO s; INSERT INTO t VALUES (1, 'after'); COMMIT"
        ))?;
        expect_right(client, "kept", "SELECT count(*) AS n, sum(length(v)) AS total FROM t")?;
    }
    Ok(())
}

/// Inserts rows from `first` on.
fn insert(first: i32, rows: i32) -> String {
    let last = first + rows - 1;
    format!("INSERT INTO t SELECT g, 'row ' || g, g % 7 FROM generate_series({first}, {last}) g")
}

fn expect_all_right(client: &mut Client) -> Result<()> {
    VIEWS.iter().try_for_each(|(view, query)| expect_right(client, view, query))
}

/// How many pieces of running transactions the worker of this database has got so far.
fn pieces(client: &mut Client) -> Result<i64> {
    let sql = "SELECT coalesce(sum(stream_count), 0)::bigint FROM pg_stat_replication_slots
        WHERE slot_name = 'pg_eddy_' ||
            (SELECT oid FROM pg_database WHERE datname = current_database())";
    Ok(client.query_one(sql, &[])?.get(0))
}

/// Lets a statement run within an open transaction and waits until the worker has got part of it.
fn in_part(writer: &mut Client, client: &mut Client, sql: &str) -> Result<()> {
    let before = pieces(client)?;
    writer.batch_execute(sql)?;
    // The worker looks at what is on disk.
    client.batch_execute("INSERT INTO witnessed VALUES (1)")?;
    wait_for("a part of the transaction to be decoded", Duration::from_secs(30), || {
        client.query("TABLE witness", &[])?;
        Ok((pieces(client)? > before).then_some(()))
    })
}

/// A script in one session, most of it in one transaction that comes in pieces, leaves all views right.
fn run_script(client: &mut Client, script: &str) -> Result<()> {
    let before = run_right(client, script)?;
    expect_pieces(client, before)
}

/// Makes the tables and runs a script, which leaves all views right; the pieces that had come before.
fn run_right(client: &mut Client, script: &str) -> Result<i64> {
    client.batch_execute(TABLES)?;
    expect_all_right(client)?;
    let before = pieces(client)?;
    client.batch_execute(script)?;
    expect_all_right(client)?;
    Ok(before)
}

fn expect_pieces(client: &mut Client, before: i64) -> Result<()> {
    wait_for("the pieces to be counted", Duration::from_secs(30), || {
        Ok((pieces(client)? > before + 2).then_some(()))
    })
}

fn savepoints(_: &Cluster, client: &mut Client) -> Result<()> {
    let parts = [1000, 5000, 10_000, 15_000, 20_000, 25_000].map(|first| insert(first, 3000));
    let [a, b, c, d, e, f] = parts;
    let script = format!(
        "BEGIN; {a};
         SAVEPOINT one; {b}; UPDATE t SET v = v || '!' WHERE i < 2000;
         SAVEPOINT two; {c}; DELETE FROM t WHERE i % 3 = 0;
         ROLLBACK TO two; {d}; UPDATE t SET i = i + 1 WHERE i % 5 = 0;
         SAVEPOINT three; {e}; RELEASE three;
         ROLLBACK TO one; {f};
         SAVEPOINT four; DELETE FROM t WHERE i > 2000; SAVEPOINT five; {b}; RELEASE five; RELEASE four;
         UPDATE t SET o = 3 WHERE i % 2 = 0;
         COMMIT;"
    );
    run_script(client, &script)
}

fn many_subtransactions(_: &Cluster, client: &mut Client) -> Result<()> {
    let script = "DO $$ BEGIN
        FOR g IN 1000..4000 LOOP
            BEGIN
                INSERT INTO t VALUES (g, 'sub ' || g, g % 7);
                DELETE FROM t WHERE i = g - 5;
                IF g % 2 = 0 THEN RAISE 'no'; END IF;
            EXCEPTION WHEN raise_exception THEN NULL;
            END;
        END LOOP; END $$";
    run_script(client, script)
}

fn ends_without_commit(cluster: &Cluster, client: &mut Client) -> Result<()> {
    let (many, more) = (insert(1000, 5000), insert(10_000, 5000));
    client.batch_execute(TABLES)?;
    expect_all_right(client)?;
    let mut writer = cluster.connect_beside(client)?;
    in_part(&mut writer, client, &format!("BEGIN; {many}; DELETE FROM t WHERE i < 50"))?;
    writer.batch_execute("ROLLBACK")?;
    expect_all_right(client)?;
    // Nobody has read a part of this one when it ends.
    client.batch_execute(&format!("BEGIN; {many}; SAVEPOINT s; {more}; ROLLBACK"))?;
    expect_all_right(client)?;
    let failing = "DO $$ BEGIN
        INSERT INTO t SELECT g, 'row ' || g, g FROM generate_series(1000, 6000) g;
        UPDATE t SET v = 'x'; PERFORM 1 / 0; END $$";
    let error = client.batch_execute(failing).err().context("1 / 0 was computed")?;
    ensure!(error.code().is_some_and(|code| code.code() == "22012"), "{error}");
    expect_all_right(client)?;
    in_part(&mut writer, client, &format!("BEGIN; {more}; DELETE FROM t WHERE i % 2 = 1"))?;
    // The session ends in the middle.
    drop(writer);
    expect_all_right(client)?;
    client.batch_execute(&insert(500, 10))?;
    expect_all_right(client)
}

fn interleaved(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(TABLES)?;
    expect_all_right(client)?;
    let mut writers = Vec::new();
    for _ in 0..4 {
        let mut writer = cluster.connect_beside(client)?;
        writer.batch_execute("BEGIN")?;
        writers.push(writer);
    }
    for round in 0..5 {
        for (number, writer) in (0..).zip(&mut writers) {
            let first = 1000 + number * 100_000 + round * 10_000;
            let sql = insert(first, 1500);
            let update =
                format!("UPDATE t SET v = v || '+' WHERE i BETWEEN {first} AND {first} + 500");
            in_part(writer, client, &format!("{sql}; SAVEPOINT s; {update}"))?;
            if (round + number) % 3 == 0 {
                writer.batch_execute("ROLLBACK TO s")?;
            }
        }
        expect_all_right(client)?;
    }
    for (number, end) in [(2, "COMMIT"), (0, "COMMIT"), (3, "ROLLBACK"), (1, "COMMIT")] {
        writers[number].batch_execute(end)?;
        expect_all_right(client)?;
    }
    Ok(())
}

fn toast(_: &Cluster, client: &mut Client) -> Result<()> {
    let long = "(SELECT string_agg(md5((g * 1000 + s)::text), '') FROM generate_series(1, 300) s)";
    let script = format!(
        "BEGIN;
         INSERT INTO t SELECT g, {long}, g FROM generate_series(1000, 1100) g;
         UPDATE t SET o = o + 1 WHERE i >= 1000;
         SAVEPOINT one;
         UPDATE t SET v = v || 'longer' WHERE i % 3 = 0;
         INSERT INTO t SELECT g, {long}, g FROM generate_series(2000, 2100) g;
         ROLLBACK TO one;
         UPDATE t SET v = v || 'other' WHERE i % 4 = 0;
         DELETE FROM t WHERE i % 5 = 1;
         COMMIT;
         BEGIN; UPDATE t SET i = i + 1; DELETE FROM t WHERE i % 7 = 0; COMMIT"
    );
    run_script(client, &script)?;
    client.batch_execute("CREATE TABLE u (k int PRIMARY KEY, n int NOT NULL); CREATE INCREMENTAL VIEW keyed AS SELECT k FROM u")?;
    let upsert = |from: i32, to: i32| {
        format!("INSERT INTO u SELECT g, 1 FROM generate_series({from}, {to}) g ON CONFLICT (k) DO UPDATE SET n = u.n + 1")
    };
    let (first, second) = (upsert(1, 3000), upsert(2000, 5000));
    client.batch_execute(&format!(
        "BEGIN; {first}; SAVEPOINT s; {second}; ROLLBACK TO s; {second}; COMMIT"
    ))?;
    expect_right(client, "keyed", "SELECT k FROM u")
}

fn truncations(_: &Cluster, client: &mut Client) -> Result<()> {
    let (a, b, c) = (insert(1000, 3000), insert(5000, 3000), insert(9000, 3000));
    run_script(
        client,
        &format!("BEGIN; {a}; TRUNCATE t; {b}; DELETE FROM t WHERE i % 2 = 0; COMMIT"),
    )?;
    client.batch_execute(&format!(
        "BEGIN; {a}; SAVEPOINT s; TRUNCATE t; {b}; ROLLBACK TO s; {c}; COMMIT"
    ))?;
    expect_all_right(client)?;
    client
        .batch_execute(&format!("BEGIN; TRUNCATE t; {a}; TRUNCATE t; {b}; TRUNCATE t; COMMIT"))?;
    expect_all_right(client)?;
    client.batch_execute(&format!("BEGIN; {a}; TRUNCATE t; {b}; ROLLBACK"))?;
    expect_all_right(client)
}

fn ddl(cluster: &Cluster, client: &mut Client) -> Result<()> {
    let parts = [1000, 5000, 9000, 13_000, 17_000].map(|first| insert(first, 3000));
    let [a, b, c, d, e] = parts;
    let before = run_right(
        client,
        &format!(
            "BEGIN; {a}; ALTER TABLE t ADD COLUMN w int DEFAULT 5; {b}; CREATE INDEX ON t (i);
             SAVEPOINT s; ALTER TABLE t ADD COLUMN x text DEFAULT 'x'; {c}; ROLLBACK TO s; {d};
             ALTER TABLE t ALTER COLUMN w TYPE bigint; {e}; UPDATE t SET v = 'late' WHERE i % 9 = 0;
             COMMIT"
        ),
    )?;
    // Some releases of PostgreSQL lose a table then, which ends the worker, but once only.
    if !cluster.log()?.contains("could not map filenumber") {
        expect_pieces(client, before)?;
    }
    let worker = worker_of(client)?;
    client.batch_execute(&format!(
        "BEGIN; {a}; SAVEPOINT s; ALTER TABLE t ADD COLUMN x int; {b}; ROLLBACK TO s; {c};
         ALTER TABLE t ADD COLUMN x text; {d}; COMMIT"
    ))?;
    expect_all_right(client)?;
    ensure!(worker_of(client)? == worker, "the worker has ended once more");
    client
        .batch_execute(&format!("BEGIN; {a}; ALTER TABLE t RENAME COLUMN w TO z; {b}; COMMIT"))?;
    expect_all_right(client)?;
    // What a table gets while it is not logged is nowhere in the WAL.
    client.batch_execute(&format!(
        "BEGIN; {a}; ALTER TABLE t SET UNLOGGED; {b}; COMMIT; BEGIN; {c}; ALTER TABLE t SET LOGGED; {d}; COMMIT"
    ))?;
    expect_all_right(client)?;
    client.batch_execute(&format!(
        "BEGIN; CREATE TABLE made (i int); INSERT INTO made SELECT generate_series(1, 5000);
         ALTER TABLE made ADD COLUMN j int DEFAULT 3; {b};
         INSERT INTO made SELECT g, g FROM generate_series(1, 5000) g; COMMIT"
    ))?;
    expect_all_right(client)
}

/// It ends the worker, once: large transactions are decoded when they have committed from then on.
fn piece_fails(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(TABLES)?;
    expect_all_right(client)?;
    let first = worker_of(client)?;
    cluster.configure("eddy.crash_point", "piece=error")?;
    let checked = fails_once(client, first);
    cluster.configure("eddy.crash_point", "")?;
    checked
}

fn fails_once(client: &mut Client, first: i32) -> Result<()> {
    let large = format!("BEGIN; {}; DELETE FROM t WHERE i % 3 = 0; COMMIT", insert(1000, 5000));
    wait_for("a worker to end at a piece", Duration::from_secs(60), || {
        client.batch_execute(&large)?;
        expect_all_right(client)?;
        Ok((worker_of(client)? != first).then_some(()))
    })?;
    let (second, before) = (worker_of(client)?, pieces(client)?);
    client.batch_execute(&large)?;
    expect_all_right(client)?;
    ensure!(worker_of(client)? == second, "the next worker has ended as well");
    ensure!(pieces(client)? == before, "a transaction has come in pieces");
    Ok(())
}

/// A transaction that is half decoded when views are created over its tables, of which nobody has read one so far.
fn created_in_the_middle(cluster: &Cluster, client: &mut Client, end: &str) -> Result<()> {
    client.batch_execute(TABLES)?;
    client.batch_execute("CREATE TABLE unread (i int); ALTER TABLE unread REPLICA IDENTITY FULL; INSERT INTO unread VALUES (0)")?;
    let mut writer = cluster.connect_beside(client)?;
    let unread = "INSERT INTO unread SELECT generate_series(1, 3000)";
    in_part(&mut writer, client, &format!("BEGIN; {}; {unread}", insert(1000, 3000)))?;
    client.batch_execute(
        "CREATE INCREMENTAL VIEW fives AS SELECT i, v FROM t WHERE i % 10 = 5;
         CREATE INCREMENTAL VIEW another AS SELECT v, o FROM t;
         CREATE INCREMENTAL VIEW first_read AS SELECT count(*) AS n, sum(i) AS s FROM unread",
    )?;
    let created = [
        ("fives", "SELECT i, v FROM t WHERE i % 10 = 5"),
        ("another", "SELECT v, o FROM t"),
        ("first_read", "SELECT count(*) AS n, sum(i) AS s FROM unread"),
    ];
    let all_right = |client: &mut Client| -> Result<()> {
        created.iter().try_for_each(|(view, query)| expect_right(client, view, query))?;
        expect_all_right(client)
    };
    all_right(client)?;
    in_part(&mut writer, client, &format!("{}; {unread}", insert(9000, 3000)))?;
    all_right(client)?;
    writer.batch_execute(end)?;
    all_right(client)?;
    client.batch_execute(&format!("{}; {unread}", insert(20_000, 3000)))?;
    all_right(client)
}

fn created_before_commit(cluster: &Cluster, client: &mut Client) -> Result<()> {
    created_in_the_middle(cluster, client, "COMMIT")
}

fn created_before_rollback(cluster: &Cluster, client: &mut Client) -> Result<()> {
    created_in_the_middle(cluster, client, "ROLLBACK")
}

fn dropped(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(TABLES)?;
    client.batch_execute("CREATE INCREMENTAL VIEW going AS SELECT i, o FROM t")?;
    expect_right(client, "going", "SELECT i, o FROM t")?;
    let mut writer = cluster.connect_beside(client)?;
    in_part(&mut writer, client, &format!("BEGIN; {}", insert(1000, 3000)))?;
    client.batch_execute("DROP INCREMENTAL VIEW going")?;
    in_part(&mut writer, client, &insert(5000, 3000))?;
    // It comes back as another one, for which what was held is as good.
    client.batch_execute("CREATE INCREMENTAL VIEW back AS SELECT i, o FROM t")?;
    expect_right(client, "back", "SELECT i, o FROM t")?;
    in_part(&mut writer, client, &insert(9000, 3000))?;
    writer.batch_execute("COMMIT")?;
    expect_right(client, "back", "SELECT i, o FROM t")?;
    expect_all_right(client)
}

fn partitions(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE p (k int, v int) PARTITION BY LIST (k);
         CREATE TABLE p0 PARTITION OF p FOR VALUES IN (0);
         CREATE TABLE p1 (v int, gone int, k int); ALTER TABLE p1 DROP COLUMN gone;
         ALTER TABLE p ATTACH PARTITION p1 FOR VALUES IN (1);
         CREATE TABLE p2 (k int, v int);
         ALTER TABLE p REPLICA IDENTITY FULL; ALTER TABLE p0 REPLICA IDENTITY FULL;
         ALTER TABLE p1 REPLICA IDENTITY FULL; ALTER TABLE p2 REPLICA IDENTITY FULL;
         CREATE INCREMENTAL VIEW parts AS SELECT k, count(*) AS n, sum(v) AS s FROM p GROUP BY k",
    )?;
    let query = "SELECT k, count(*) AS n, sum(v) AS s FROM p GROUP BY k";
    let rows = "INSERT INTO p SELECT g % 2, g FROM generate_series(1, 4000) g";
    expect_right(client, "parts", query)?;
    client.batch_execute(&format!(
        "BEGIN; {rows}; UPDATE p SET k = 1 - k WHERE v % 10 = 0; SAVEPOINT s; DELETE FROM p1; {rows};
         ROLLBACK TO s; DELETE FROM p0 WHERE v % 3 = 0; COMMIT"
    ))?;
    expect_right(client, "parts", query)?;
    client.batch_execute(&format!("BEGIN; {rows}; TRUNCATE p1; {rows}; COMMIT"))?;
    expect_right(client, "parts", query)?;
    // A table becomes a partition while a transaction that writes it is half decoded.
    let mut writer = cluster.connect_beside(client)?;
    let alone = "INSERT INTO p2 SELECT 2, g FROM generate_series(1, 3000) g";
    in_part(&mut writer, client, &format!("BEGIN; {rows}; {alone}"))?;
    writer.batch_execute("ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2)")?;
    writer.batch_execute(&format!(
        "{rows}; INSERT INTO p SELECT 2, g FROM generate_series(1, 3000) g; COMMIT"
    ))?;
    expect_right(client, "parts", query)
}

fn two_phase(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(TABLES)?;
    expect_all_right(client)?;
    let mut writer = cluster.connect_beside(client)?;
    for (first, end) in [(1000, "COMMIT"), (10_000, "ROLLBACK")] {
        let name = format!("prepared{first}");
        let script =
            format!("BEGIN; {}; SAVEPOINT s; DELETE FROM t WHERE i % 2 = 0", insert(first, 5000));
        in_part(&mut writer, client, &script)?;
        writer.batch_execute(&format!("ROLLBACK TO s; PREPARE TRANSACTION '{name}'"))?;
        client.batch_execute(&insert(100_000 + first, 10))?;
        expect_all_right(client)?;
        client.batch_execute(&format!("{end} PREPARED '{name}'"))?;
        expect_all_right(client)?;
    }
    Ok(())
}

fn worker_ends(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(TABLES)?;
    expect_all_right(client)?;
    let mut writer = cluster.connect_beside(client)?;
    for (first, end) in [(1000, "COMMIT"), (20_000, "ROLLBACK")] {
        in_part(&mut writer, client, &format!("BEGIN; {}", insert(first, 3000)))?;
        let worker = worker_of(client)?;
        client.query_one("SELECT pg_terminate_backend($1)", &[&worker])?;
        wait_for("the worker to end", Duration::from_secs(30), || {
            Ok((worker_of(client).ok() != Some(worker)).then_some(()))
        })?;
        writer.batch_execute(&format!("{}; {end}", insert(first + 10_000, 3000)))?;
        expect_all_right(client)?;
    }
    Ok(())
}

/// Process id of this database's worker.
fn worker_of(client: &mut Client) -> Result<i32> {
    let sql = "SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type LIKE 'pg_eddy%'";
    Ok(client.query_opt(sql, &[])?.context("there is no worker")?.get(0))
}

/// How many files without names, of those that hold rows, a process has open.
fn nameless_files(pid: i32) -> Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        // It may have been closed meanwhile.
        let Ok(target) = std::fs::read_link(entry?.path()) else { continue };
        let target = target.to_string_lossy();
        count += usize::from(target.contains("pgsql_tmp_eddy_") && target.ends_with("(deleted)"));
    }
    Ok(count)
}

/// Rows of 200 bytes, more than may be held in memory, and views that keep little of them.
const BROAD: &str = "
    INSERT INTO t SELECT g, repeat(md5(g::text), 6), g % 7 FROM generate_series(1000, 151000) g";

const FEW: [(&str, &str); 2] = [
    ("few", "SELECT i, v FROM t WHERE i % 1000 = 0"),
    ("counted", "SELECT o, count(*) AS n, sum(length(v)) AS l FROM t GROUP BY o"),
];

/// Changes a setting and waits until the one worker of the server has taken it over.
fn configure(cluster: &Cluster, name: &str, value: &str) -> Result<()> {
    let times = || -> Result<usize> { Ok(cluster.log()?.matches("settings changed").count()) };
    let before = times()?;
    cluster.configure(name, value)?;
    wait_for("the worker to take over a setting", Duration::from_secs(30), || {
        Ok((times()? > before).then_some(()))
    })
}

fn beyond_memory(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE t (i int NOT NULL, v text NOT NULL, o int); ALTER TABLE t REPLICA IDENTITY FULL",
    )?;
    for (view, query) in FEW {
        client.batch_execute(&format!("CREATE INCREMENTAL VIEW {view} AS {query}"))?;
    }
    let few_right = |client: &mut Client| -> Result<()> {
        FEW.iter().try_for_each(|(view, query)| expect_right(client, view, query))
    };
    few_right(client)?;
    configure(cluster, "eddy.memory_limit", "128MB")?;
    few_right(client)?;
    let mut writer = cluster.connect_beside(client)?;
    in_part(&mut writer, client, &format!("BEGIN; SAVEPOINT s; {BROAD}; ROLLBACK TO s; {BROAD}"))?;
    wait_for("rows to go to disk", Duration::from_secs(60), || {
        client.batch_execute("INSERT INTO witnessed VALUES (1)")?;
        client.query("TABLE witness", &[])?;
        Ok((nameless_files(worker_of(client)?)? > 0).then_some(()))
    })?;
    writer.batch_execute("COMMIT")?;
    few_right(client)?;
    wait_for("the file to go", Duration::from_secs(60), || {
        Ok((nameless_files(worker_of(client)?)? == 0).then_some(()))
    })?;
    // Where nothing can be written, views are made afresh from their tables.
    let nowhere = cluster.data().join("postgresql.conf").join("none");
    configure(cluster, "eddy.spill_directory", &nowhere.display().to_string())?;
    client.batch_execute("DELETE FROM t WHERE i > 500")?;
    few_right(client)?;
    client.batch_execute(&format!("BEGIN; {BROAD}; COMMIT"))?;
    few_right(client)?;
    ensure!(cluster.log()?.contains("cannot be kept"), "the rows were kept somewhere");
    cluster.configure("eddy.spill_directory", "base/pgsql_tmp")?;
    cluster.configure("eddy.memory_limit", "-1")
}

fn million(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE t (i int); CREATE INCREMENTAL VIEW few AS SELECT i FROM t WHERE i % 1000 = 0",
    )?;
    expect_right(client, "few", "SELECT i FROM t WHERE i % 1000 = 0")?;
    let ((wrote, right), Absence { longest, reads }) = beside(cluster, client, |client| {
        let began = Instant::now();
        client.batch_execute("INSERT INTO t SELECT generate_series(1, 1000000)")?;
        let wrote = began.elapsed();
        expect_right(client, "few", "SELECT i FROM t WHERE i % 1000 = 0")?;
        Ok((wrote, began.elapsed()))
    })?;
    println!(
        "written in {wrote:?}, right after {right:?}; another view was read {reads} times, after {longest:?} at most"
    );
    ensure!(longest < AWAY.mul_f64(burden()), "another view was away for {longest:?}");
    Ok(())
}
