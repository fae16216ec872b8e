//! Tables of views' changes: what they say adds up to the view at any position, whatever happens to tables, views and worker.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use harness::dice::Dice;
use harness::installation::Installation;
use postgres::Client;

use super::check::Record;
use super::events;
use super::indexes::terminate_worker;
use super::listeners;

pub(super) const TABLES: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE TABLE edge (src int, dst int);
    CREATE TABLE person (id int PRIMARY KEY, name text, weight numeric);
    INSERT INTO edge SELECT i, i * 7 % 12 FROM generate_series(1, 12) i;
    INSERT INTO edge VALUES (NULL, 1), (1, 2), (1, 2);
    INSERT INTO person SELECT i, 'p' || i % 3, i / 4.0 FROM generate_series(1, 8) i";

/// Views whose changes are kept, with their queries: a recursion, duplicates and NULLs, and one over another.
pub(super) const VIEWS: [(&str, &str); 3] = [
    (
        "paths",
        "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge \
         UNION SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b) SELECT * FROM r",
    ),
    ("named", "SELECT p.name, p.weight, e.dst FROM edge e LEFT JOIN person p ON p.id = e.src"),
    ("reached", "SELECT a, count(*) AS n, max(b) AS most FROM paths GROUP BY a"),
];

const STEPS: usize = 120;

const PATIENCE: Duration = Duration::from_secs(60);

const ACCOUNTS: i64 = 20;
const WRITERS: u64 = 4;
const TRANSFERS: usize = 100;

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    record("changes of views add up to them at any position", add_up(installation, folder));
    record("changes of views are those of transactions", by_transaction(installation, folder));
    record("views read what is written beside views", are_read(installation, folder));
    record("many changes of a view are kept, too", many(installation, folder));
    record("changes are removed after a while, which is told", expire(installation, folder));
    record("changes of views are replicated like tables", replicate(installation, folder));
    record("who listens to a view is told of its changes", listeners::check(installation, folder));
    record("changes of views are followed by way of pgoutput", events::check(installation, folder));
    record("who subscribes to a view and comes back misses nothing", resumes(installation, folder));
}

/// What a view is at a position.
struct Known {
    view: &'static str,
    lsn: String,
    rows: Vec<String>,
}

fn add_up(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "changes", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    // Some are filled by their query, others by their dataflow.
    client.batch_execute("SET eddy.fill = query")?;
    for (view, query) in VIEWS {
        client.batch_execute(&format!(
            "CREATE INCREMENTAL VIEW {view} WITH (changes = '1 day') AS {query}; SET eddy.fill = auto"
        ))?;
    }
    // Before a view follows its tables, changes are not told apart.
    read_all(&mut client)?;
    let mut known = Vec::new();
    let mut dice = Dice::new(1);
    let mut settled = 0;
    for step in 0..STEPS {
        if step % 6 == 5 {
            // Of what they have not got yet, and what happens until they are right again, they do not know when it was.
            match dice.chance(50) {
                true => read_all(&mut client)?,
                false => known.truncate(settled),
            }
            disturb(&mut client, &mut dice)?;
            change(&mut client, &mut dice)?;
            for (view, query) in VIEWS {
                ensure!(
                    rows(&mut client, &format!("TABLE {view}"))? == rows(&mut client, query)?,
                    "{view} is wrong at step {step}"
                );
            }
            note(&mut client, &mut known)?;
            settled = known.len();
        }
        change(&mut client, &mut dice)?;
        note(&mut client, &mut known)?;
    }
    read_all(&mut client)?;
    let mut compared = 0;
    for Known { view, lsn, rows: expected } in &known {
        // What comes next is all that has happened while nobody followed the tables, and may have begun before.
        let next = format!(
            "SELECT xid IS NULL FROM {view}_changes WHERE lsn > '{lsn}' ORDER BY lsn LIMIT 1"
        );
        if client.query_opt(&next, &[])?.is_some_and(|row| row.get(0)) {
            continue;
        }
        compared += 1;
        let found = rows(&mut client, &sum_of(view, lsn))?;
        ensure!(found == *expected, "{view} at {lsn}: {found:?}, not {expected:?}");
        let then = format!("SELECT * FROM eddy.as_of(NULL::{view}, '{lsn}'::pg_lsn)");
        let found = rows(&mut client, &then)?;
        ensure!(found == *expected, "{view} as of {lsn}: {found:?}, not {expected:?}");
    }
    ensure!(compared * 3 > known.len() * 2, "only {compared} of {} are known", known.len());
    let groups = "SELECT count(*) FROM paths_changes WHERE xid IS NOT NULL \
                  GROUP BY xid HAVING count(DISTINCT (lsn, committed_at)) > 1";
    ensure!(client.query(groups, &[])?.is_empty(), "a transaction has two positions");
    cluster.print_crashes()
}

/// Waits until the views have all that is committed.
fn read_all(client: &mut Client) -> Result<()> {
    for (view, _) in VIEWS {
        client.execute(&format!("SELECT count(*) FROM {view}"), &[])?;
    }
    Ok(())
}

/// A random change of the tables.
pub(super) fn change(client: &mut Client, dice: &mut Dice) -> Result<()> {
    let (a, b) = (dice.range(1, 12), dice.range(1, 12));
    let statements = [
        format!("INSERT INTO edge VALUES ({a}, {b})"),
        format!("INSERT INTO edge VALUES ({a}, NULL), ({b}, {a}), ({b}, {a})"),
        format!("DELETE FROM edge WHERE src = {a} OR dst = {b}"),
        format!("UPDATE edge SET dst = {b} WHERE src = {a}"),
        format!("UPDATE person SET name = 'n' || {b}, weight = weight + 1 WHERE id = {a}"),
        format!("DELETE FROM person WHERE id = {a}"),
        format!("INSERT INTO person VALUES ({a}, NULL, {b}.50) ON CONFLICT (id) DO UPDATE SET weight = 1"),
        format!("BEGIN; DELETE FROM edge WHERE src = {a}; INSERT INTO edge VALUES ({a}, {b}); COMMIT"),
        format!("BEGIN; INSERT INTO edge VALUES ({a}, {b}); ROLLBACK"),
        format!("BEGIN; SAVEPOINT s; DELETE FROM edge; ROLLBACK TO s; INSERT INTO edge VALUES ({b}, {b}); COMMIT"),
        "BEGIN; TRUNCATE edge; INSERT INTO edge SELECT i, i + 1 FROM generate_series(1, 5) i; COMMIT".to_owned(),
    ];
    client.batch_execute(dice.pick::<String>(&statements)).map_err(Into::into)
}

/// Lets views be attached anew.
pub(super) fn disturb(client: &mut Client, dice: &mut Dice) -> Result<()> {
    let (view, query) = VIEWS[dice.index(VIEWS.len())];
    let statements = [
        format!("REFRESH INCREMENTAL VIEW {view}"),
        format!("ALTER INCREMENTAL VIEW {view} SET (timezone = 'UTC')"),
        format!("ALTER INCREMENTAL VIEW {view} SET (timezone = 'Europe/Berlin')"),
        "ALTER TABLE person ALTER name SET STATISTICS 50".to_owned(),
        format!("BEGIN; REFRESH INCREMENTAL VIEW {view}; ROLLBACK"),
        format!("CREATE OR REPLACE INCREMENTAL VIEW {view} AS SELECT * FROM ({query}) q"),
        format!("CREATE OR REPLACE INCREMENTAL VIEW {view} AS {query}"),
    ];
    match dice.chance(30) {
        true => terminate_worker(client),
        false => client.batch_execute(dice.pick::<String>(&statements)).map_err(Into::into),
    }
}

/// Notes what the views are to be now.
fn note(client: &mut Client, known: &mut Vec<Known>) -> Result<()> {
    let lsn = position(client)?;
    for (view, query) in VIEWS {
        // What the one beneath is, and not what it shows.
        let query = match view {
            "reached" => query.replace("FROM paths", &format!("FROM ({}) paths", VIEWS[0].1)),
            _ => query.to_owned(),
        };
        known.push(Known { view, lsn: lsn.clone(), rows: rows(client, &query)? });
    }
    Ok(())
}

/// Rows of a query, as text, sorted.
pub(super) fn rows(client: &mut Client, query: &str) -> Result<Vec<String>> {
    let found = client.query(&format!("SELECT q::text FROM ({query}) q"), &[]);
    let found = found.with_context(|| query.to_owned())?;
    let mut rows: Vec<String> = found.iter().map(|row| row.get(0)).collect();
    rows.sort();
    Ok(rows)
}

/// What the changes of a view up to a position add up to.
fn sum_of(view: &str, lsn: &str) -> String {
    format!(
        "SELECT (v).* FROM ( \
             SELECT (array_agg(v))[1] AS v, sum(diff) AS n FROM ( \
                 SELECT diff, jsonb_populate_record(NULL::{view}, to_jsonb(c)) AS v \
                 FROM {view}_changes c WHERE lsn <= '{lsn}') d GROUP BY v::text) s, \
         generate_series(1, n)"
    )
}

/// Transfers between accounts: whatever part of the changes one takes, no money is lost.
fn by_transaction(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "transfers", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(&format!(
        "SET client_min_messages = warning; CREATE EXTENSION pg_eddy;
         CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);
         INSERT INTO account SELECT i, 100 FROM generate_series(1, {ACCOUNTS}) i;
         CREATE INCREMENTAL VIEW balance WITH (changes = '1 hour') AS SELECT id, balance FROM account"
    ))?;
    client.execute("SELECT count(*) FROM balance", &[])?;
    let committed: Result<Vec<usize>> = thread::scope(|scope| {
        let transfer = |seed| {
            let mut client = cluster.connect("postgres")?;
            transfer_some(&mut client, seed)
        };
        let writers: Vec<_> =
            (0..WRITERS).map(|seed| scope.spawn(move || transfer(seed))).collect();
        writers.into_iter().map(|writer| writer.join().expect("no writer panics")).collect()
    });
    let committed: i64 = committed?.into_iter().sum::<usize>() as i64;
    client.execute("SELECT count(*) FROM balance", &[])?;
    let row = client.query_one(
        "SELECT count(*) FILTER (WHERE total <> 100 * $1::bigint), count(*) FILTER (WHERE xid IS NOT NULL) \
         FROM (SELECT xid, sum(sum(diff * balance)) OVER (ORDER BY lsn) AS total \
               FROM balance_changes GROUP BY lsn, xid) groups",
        &[&ACCOUNTS],
    )?;
    let (torn, groups): (i64, i64) = (row.get(0), row.get(1));
    ensure!((torn, groups) == (0, committed), "{torn} torn, {groups} groups of {committed}");
    let order = "SELECT count(*) FROM (SELECT lsn, lag(lsn) OVER (ORDER BY ctid) AS before \
                 FROM balance_changes) c WHERE before > lsn";
    let unordered: i64 = client.query_one(order, &[])?.get(0);
    ensure!(unordered == 0, "{unordered} rows are not in commit order");
    cluster.print_crashes()
}

/// Answers how many have committed.
fn transfer_some(client: &mut Client, seed: u64) -> Result<usize> {
    let mut dice = Dice::new(seed);
    let mut committed = 0;
    for _ in 0..TRANSFERS {
        let from = dice.range(1, ACCOUNTS - 1);
        let to = dice.range(from + 1, ACCOUNTS);
        let amount = dice.range(1, 20);
        let end = if dice.chance(20) { "ROLLBACK" } else { "COMMIT" };
        client.batch_execute(&format!(
            "BEGIN; UPDATE account SET balance = balance - {amount} WHERE id = {from}; SAVEPOINT s; \
             UPDATE account SET balance = 0 WHERE id = {to}; ROLLBACK TO s; \
             UPDATE account SET balance = balance + {amount} WHERE id = {to}; {end}"
        ))?;
        committed += usize::from(end == "COMMIT");
    }
    Ok(committed)
}

/// Views over the table of a view's changes, and over its mirror, which come and go.
fn are_read(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "read_changes", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    let (view, query) = VIEWS[0];
    client.batch_execute(&format!(
        "CREATE INCREMENTAL VIEW {view} WITH (changes = '1 day', storage = table) AS {query}"
    ))?;
    let over = [
        (
            "over_changes",
            "SELECT a, b, sum(diff) AS n, count(*) AS rows FROM paths_changes GROUP BY a, b",
        ),
        ("over_mirror", "SELECT a, count(*) AS n FROM paths_table GROUP BY a"),
    ];
    let mut are_there = [false; 2];
    let mut dice = Dice::new(9);
    for step in 0..STEPS {
        for (is_there, (name, query)) in are_there.iter_mut().zip(over) {
            if dice.chance(10) {
                client.batch_execute(&match *is_there {
                    true => format!("DROP INCREMENTAL VIEW {name}"),
                    false => format!("CREATE INCREMENTAL VIEW {name} AS {query}"),
                })?;
                *is_there = !*is_there;
            }
        }
        change(&mut client, &mut dice)?;
        client.execute(&format!("SELECT count(*) FROM {view}"), &[])?;
        for (_, (name, query)) in are_there.iter().zip(over).filter(|(is_there, _)| **is_there) {
            let expected = rows(&mut client, query)?;
            let found = rows(&mut client, &format!("TABLE {name}"))?;
            ensure!(found == expected, "{name} at step {step}: {found:?}, not {expected:?}");
        }
    }
    cluster.print_crashes()
}

/// What assistants write, and what is on disk.
fn many(installation: &Installation, folder: &Path) -> Result<()> {
    let settings = &[("fsync", "off"), ("eddy.memory_limit", "64MB")];
    let cluster = Cluster::start_new(installation, folder, "many_changes", settings)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(
        "SET client_min_messages = warning; CREATE EXTENSION pg_eddy;
         CREATE TABLE item (id int NOT NULL, grp int NOT NULL);
         INSERT INTO item SELECT i, i % 100 FROM generate_series(1, 150000) i;
         CREATE INCREMENTAL VIEW pairs WITH (changes = '1 hour') AS SELECT DISTINCT id, grp FROM item",
    )?;
    for change in [
        "UPDATE item SET grp = grp + 1 WHERE id % 2 = 0",
        "INSERT INTO item SELECT i, i % 100 FROM generate_series(1, 50000) i",
        "DELETE FROM item WHERE id % 3 = 0",
        "INSERT INTO item VALUES (0, 0)",
    ] {
        let lsn = position(&mut client)?;
        client.batch_execute(change)?;
        let differences = "SELECT count(*) FROM ( \
             (SELECT id, grp, sum(diff) FROM pairs_changes GROUP BY 1, 2 HAVING sum(diff) <> 0 \
              EXCEPT ALL SELECT id, grp, 1 FROM pairs) UNION ALL \
             (SELECT id, grp, 1 FROM pairs EXCEPT ALL \
              SELECT id, grp, sum(diff) FROM pairs_changes GROUP BY 1, 2 HAVING sum(diff) <> 0)) d";
        let differences: i64 = client.query_one(differences, &[])?.get(0);
        ensure!(differences == 0, "{differences} rows differ after {change}");
        let groups = format!("SELECT count(DISTINCT lsn) FROM pairs_changes WHERE lsn > '{lsn}'");
        let groups: i64 = client.query_one(&groups, &[])?.get(0);
        ensure!(groups == 1, "{groups} groups of {change}");
        require_summaries(&mut client)?;
        let plan = format!("EXPLAIN SELECT FROM pairs_changes WHERE lsn > '{lsn}'");
        client.batch_execute("SET enable_seqscan = off")?;
        let plan = client.query(&plan, &[])?;
        let plan = plan.iter().map(|row| row.get(0)).collect::<Vec<String>>().join("\n");
        client.batch_execute("RESET enable_seqscan")?;
        ensure!(plan.contains("Bitmap Index Scan on pairs_changes_lsn_idx"), "{plan}");
    }
    cluster.print_crashes()
}

/// There is a summary of all blocks with changes.
fn require_summaries(client: &mut Client) -> Result<()> {
    // Those at the end, too, which no vacuum would look at.
    let sql = "SELECT coalesce(sum(brin_summarize_range('pairs_changes_lsn_idx', block)), 0) \
               FROM generate_series(0, (pg_relation_size('pairs_changes') - 1) / 8192) block";
    let lacking: i64 = client.query_one(sql, &[])?.get(0);
    ensure!(lacking == 0, "{lacking} summaries are lacking");
    Ok(())
}

/// How views are read whose changes are gone.
fn expire(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "old_changes", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    client.batch_execute(
        "CREATE INCREMENTAL VIEW edges WITH (changes = '1 day') AS SELECT src, dst FROM edge; \
         CREATE INCREMENTAL VIEW others WITH (changes = '1 day') AS SELECT src, dst FROM edge",
    )?;
    client.execute("SELECT (SELECT count(*) FROM edges) + (SELECT count(*) FROM others)", &[])?;
    let start = position(&mut client)?;
    client.batch_execute("INSERT INTO edge SELECT 1000, i FROM generate_series(1, 20000) i")?;
    let middle = position(&mut client)?;
    client.execute("SELECT count(*) FROM edges", &[])?;
    client.batch_execute("ALTER INCREMENTAL VIEW edges SET (changes = '1 second')")?;
    wait_for("old changes to be gone", PATIENCE, || {
        let left: i64 = client.query_one("SELECT count(*) FROM edges_changes", &[])?.get(0);
        Ok((left == 0).then_some(()))
    })?;
    for sql in [
        format!("SELECT * FROM eddy.changes_since('edges', '{start}')"),
        format!("SELECT * FROM eddy.as_of(NULL::edges, '{start}'::pg_lsn)"),
        format!("SELECT * FROM eddy.subscribe('edges', '{start}')"),
    ] {
        let error = client.query(&sql, &[]).err().with_context(|| format!("{sql} succeeds"))?;
        let code = error.code().map(|code| code.code().to_owned());
        ensure!(code.as_deref() == Some("72000"), "{sql}: {error:?}");
    }
    // Nothing has changed since.
    let now = format!("SELECT * FROM eddy.as_of(NULL::edges, '{middle}'::pg_lsn)");
    ensure!(rows(&mut client, &now)? == rows(&mut client, "TABLE edges")?, "not as it was");
    let then = format!("SELECT * FROM eddy.as_of(NULL::others, '{start}'::pg_lsn)");
    let expected = "SELECT src, dst FROM edge WHERE src IS DISTINCT FROM 1000";
    ensure!(
        rows(&mut client, &then)? == rows(&mut client, expected)?,
        "others are not as they were"
    );
    cluster.print_crashes()
}

/// A subscriber keeps a copy of a view, which it writes together with the position it has come to, and is killed now and then.
fn resumes(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "subscriber", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    let (view, query) = VIEWS[1];
    client.batch_execute(&format!(
        "CREATE INCREMENTAL VIEW {view} WITH (changes = '1 day') AS {query};
         CREATE TABLE copy (data jsonb, n bigint); CREATE TABLE reached (lsn pg_lsn)"
    ))?;
    let mut dice = Dice::new(7);
    for step in 0..STEPS {
        change(&mut client, &mut dice)?;
        if step % 20 == 19 {
            terminate_worker(&mut client)?;
        }
        let mut subscriber = cluster.connect("postgres")?;
        let mut transaction = subscriber.transaction()?;
        transaction.batch_execute(&format!(
            "CREATE TEMP TABLE got ON COMMIT DROP AS \
             SELECT * FROM eddy.subscribe('{view}', (SELECT max(lsn) FROM reached), '0 s');
             INSERT INTO copy SELECT data, diff FROM got WHERE diff IS NOT NULL;
             INSERT INTO reached SELECT max(lsn) FROM got WHERE diff IS NULL"
        ))?;
        match dice.chance(30) {
            true => transaction.rollback()?,
            false => transaction.commit()?,
        }
    }
    client.execute(&format!("SELECT count(*) FROM {view}"), &[])?;
    client.batch_execute(&format!(
        "INSERT INTO copy SELECT data, diff \
         FROM eddy.subscribe('{view}', (SELECT max(lsn) FROM reached)) WHERE diff IS NOT NULL"
    ))?;
    let copied = "SELECT data, sum(n) AS n FROM copy GROUP BY data HAVING sum(n) <> 0";
    let stored =
        format!("SELECT to_jsonb(v) AS data, count(*)::numeric AS n FROM {view} v GROUP BY 1");
    ensure!(rows(&mut client, copied)? == rows(&mut client, &stored)?, "the copy is another");
    cluster.print_crashes()
}

pub(super) fn position(client: &mut Client) -> Result<String> {
    Ok(client.query_one("SELECT pg_current_wal_insert_lsn()::text", &[])?.get(0))
}

/// A publication of a table of changes, received by another server.
fn replicate(installation: &Installation, folder: &Path) -> Result<()> {
    let publisher = Cluster::start_new(installation, folder, "sender", &[("fsync", "off")])?;
    let mut source = publisher.connect("postgres")?;
    source.batch_execute(TABLES)?;
    let (view, query) = VIEWS[0];
    source.batch_execute(&format!(
        "CREATE INCREMENTAL VIEW {view} WITH (changes = '1 day') AS {query};
         CREATE PUBLICATION sent FOR TABLE {view}_changes"
    ))?;
    let subscriber = Cluster::start_new(installation, folder, "receiver", &[("fsync", "off")])?;
    let mut target = subscriber.connect("postgres")?;
    target.batch_execute(&format!(
        "CREATE TABLE {view}_changes (lsn pg_lsn, xid xid8, committed_at timestamptz, diff bigint, a int, b int)"
    ))?;
    let address = format!("host={} port=5432", publisher.socket_folder().display());
    // Before 16 there is but one of them.
    let origins: &[&str] = match installation.major {
        ..16 => &[""],
        _ => &[" WITH (origin = none)", " WITH (origin = any)"],
    };
    for origin in origins {
        target.batch_execute(&format!("TRUNCATE {view}_changes"))?;
        target.batch_execute(&format!(
            "CREATE SUBSCRIPTION got CONNECTION '{address} user=postgres dbname=postgres' PUBLICATION sent{origin}"
        ))?;
        let mut dice = Dice::new(3);
        for _ in 0..STEPS {
            change(&mut source, &mut dice)?;
        }
        source.execute(&format!("SELECT count(*) FROM {view}"), &[])?;
        let all = format!("TABLE {view}_changes");
        let expected = rows(&mut source, &all)?;
        wait_for("all changes to be replicated", PATIENCE, || {
            Ok((rows(&mut target, &all)? == expected).then_some(()))
        })
        .with_context(|| format!("with{origin}"))?;
        target.batch_execute("DROP SUBSCRIPTION got")?;
    }
    subscriber.print_crashes()?;
    publisher.print_crashes()
}
