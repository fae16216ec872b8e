//! Indexes that views keep together: taken once, right whoever comes and goes, given back with the last reader.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use harness::comparison::comparison;
use harness::installation::Installation;
use postgres::Client;

use super::check::Record;
use super::orders;

const VIEWS: i64 = 5;

/// Views take less than so many times the bytes of one, which may be in the middle of a merge when it is asked.
const MOST: i64 = 3;

const PATIENCE: Duration = Duration::from_secs(60);

/// Each view computes its joins for itself.
const TABLES_ONLY: [(&str, &str); 2] = [("fsync", "off"), ("eddy.share_plans_from", "0")];

/// What happens to the tables, one after the other.
const CHANGES: [&str; 5] = [
    "UPDATE ordered SET amount = amount + 1 WHERE id % 1000 = 0",
    "DELETE FROM customer WHERE id % 7 = 0",
    "INSERT INTO customer SELECT i, i % 3 FROM generate_series(1, 20000, 7) i",
    "BEGIN; UPDATE ordered SET customer = customer + 1 WHERE id % 500 = 0; DELETE FROM customer WHERE id = 5; COMMIT",
    "TRUNCATE ordered; INSERT INTO ordered SELECT i, i, i FROM generate_series(1, 1000) i",
];

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    record("views that share indexes take little and are right", shares(installation, folder));
    record("an index gets the columns that views need", widens(installation, folder));
    record("a fence holds for a view that finds an index", is_fenced(installation, folder));
    record("views compute a join once that they have in common", joins_once(installation, folder));
}

/// From the third view on a join is computed once, for a new worker finds all of them; and right whoever comes and goes.
fn joins_once(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "joins", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(&orders::create(2000, 20_000))?;
    client.batch_execute("ALTER TABLE customer ADD PRIMARY KEY (id)")?;
    let expect_readers = |client: &mut Client, expected: Option<&str>| {
        expect_readers(client, "joined = 'customer'::regclass", expected)
    };
    for view in 0..2 {
        create(&mut client, view)?;
        expect_right(&mut client, view)?;
    }
    expect_readers(&mut client, None).context("with two views")?;
    for view in 2..4 {
        create(&mut client, view)?;
        expect_right(&mut client, view)?;
    }
    expect_readers(&mut client, Some("{v2,v3}")).context("with four views")?;
    let explained = explain(&mut client, &query(9))?;
    let told =
        "Join of public.ordered and public.customer by (customer), with public.v2, public.v3";
    ensure!(explained.contains(told), "EXPLAIN says {explained}");
    for change in CHANGES {
        // Of customers there is one of each number.
        let change = match change.starts_with("INSERT INTO customer") {
            true => "INSERT INTO customer SELECT i, i % 3 FROM generate_series(7, 2000, 7) i",
            false => change,
        };
        client.batch_execute(change)?;
        for view in 0..4 {
            expect_right(&mut client, view).with_context(|| format!("after {change}"))?;
        }
    }
    terminate_worker(&mut client)?;
    for view in 0..4 {
        expect_right(&mut client, view).context("after a start")?;
    }
    expect_readers(&mut client, Some("{v0,v1,v2,v3}")).context("after a start")?;
    for view in 0..4 {
        client.batch_execute(CHANGES[0])?;
        client.batch_execute(&format!("DROP INCREMENTAL VIEW v{view}"))?;
        for left in view + 1..4 {
            expect_right(&mut client, left).with_context(|| format!("without v{view}"))?;
        }
    }
    expect_readers(&mut client, None).context("without views")?;
    cluster.print_crashes()
}

fn shares(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "indexes", &TABLES_ONLY)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(&orders::create(20_000, 200_000))?;
    create(&mut client, 0)?;
    let one = state_bytes(&mut client, 1)?;
    for view in 1..VIEWS {
        create(&mut client, view)?;
    }
    // Batches that are being merged are there twice for a moment.
    let mut all = 0;
    let little = wait_for("the views to take little more than one", PATIENCE, || {
        all = state_bytes(&mut client, VIEWS)?;
        Ok((all < MOST * one).then_some(()))
    });
    println!("server: one view {one} bytes, {VIEWS} views {all} bytes");
    little.with_context(|| format!("{VIEWS} views take {all} bytes, one {one}"))?;
    expect_shown(&mut client)?;
    for (number, change) in (0..).zip(CHANGES) {
        client.batch_execute(change)?;
        // One goes, the first of all included, and another one comes.
        client.batch_execute(&format!("DROP INCREMENTAL VIEW v{number}"))?;
        create(&mut client, number + VIEWS)?;
        for view in number + 1..=number + VIEWS {
            expect_right(&mut client, view).with_context(|| format!("after {change}"))?;
        }
    }
    for view in 5..5 + VIEWS {
        client.batch_execute(&format!("DROP INCREMENTAL VIEW v{view}"))?;
    }
    create(&mut client, 0)?;
    expect_right(&mut client, 0).context("alone once more")?;
    cluster.print_crashes()
}

/// Each table has one index, and who wants to know is told who reads it.
fn expect_shown(client: &mut Client) -> Result<()> {
    let sql =
        "SELECT relation::text, key::text, columns::text, cardinality(used_by)::bigint, rows > 0 \
               FROM eddy.arrangements ORDER BY 1";
    let rows = client.query(sql, &[])?;
    let shown: Vec<(String, String, String, i64, bool)> = rows
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4)))
        .collect();
    let index = |table: &str, key: &str, columns: &str| {
        (table.to_owned(), key.to_owned(), columns.to_owned(), VIEWS, true)
    };
    let expected = [
        index("customer", "{id}", "{id,country}"),
        index("ordered", "{customer}", "{customer,amount}"),
    ];
    ensure!(shown == expected, "eddy.arrangements has {shown:?}");
    let explained = explain(client, &query(9))?;
    let is_told = explained.contains("Index of public.ordered by (customer), with public.v0, ");
    ensure!(is_told, "EXPLAIN says {explained}");
    Ok(())
}

/// A view that needs another column has an index made with all of them, which later ones find.
fn widens(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "wide", &TABLES_ONLY)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(&orders::create(100, 1000))?;
    for (name, column) in [("a", "amount"), ("b", "id"), ("c", "amount"), ("d", "id")] {
        if name == "c" {
            client.batch_execute("DROP INCREMENTAL VIEW a")?;
        }
        let query = format!(
            "SELECT c.country::text, max(o.{column}) FROM ordered o JOIN customer c ON c.id = o.customer GROUP BY 1"
        );
        client.batch_execute(&format!("CREATE INCREMENTAL VIEW {name} AS {query}"))?;
        // In a transaction of its own, so that it waits.
        client.batch_execute(&format!("TABLE {name}"))?;
    }
    let sql = "SELECT columns::text, used_by::text FROM eddy.arrangements WHERE relation = 'ordered'::regclass";
    let row = client.query_one(sql, &[])?;
    let shown: (String, String) = (row.get(0), row.get(1));
    ensure!(shown == ("{id,customer,amount}".into(), "{b,c,d}".into()), "it has {shown:?}");
    cluster.print_crashes()
}

const SECRETS: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE TABLE secret (id int PRIMARY KEY, val int NOT NULL);
    CREATE TABLE ban (id int PRIMARY KEY);
    CREATE VIEW not_banned WITH (security_barrier) AS
        SELECT id, val FROM secret s WHERE NOT EXISTS (SELECT FROM ban b WHERE b.id = s.id);
    CREATE TABLE heard (n int);
    CREATE FUNCTION write(n int) RETURNS void LANGUAGE sql AS $$ INSERT INTO public.heard VALUES (n) $$;
    CREATE FUNCTION note(n int) RETURNS bool LANGUAGE plpgsql IMMUTABLE COST 0.0001 AS
        $$ BEGIN PERFORM public.write(n); RETURN true; END $$;
    INSERT INTO secret VALUES (0, 0);
    CREATE INCREMENTAL VIEW first AS SELECT id FROM not_banned WHERE note(val);
    TABLE first";

/// Rows that nobody is to hear of.
const BANNED: i32 = 20;

/// A view that comes with a row: its snapshot has it, what it finds in an index may not.
fn is_fenced(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "fence", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(SECRETS)?;
    for id in 1..=BANNED {
        client.batch_execute(&format!(
            "BEGIN; INSERT INTO secret VALUES ({id}, {id}); INSERT INTO ban VALUES ({id});
             CREATE INCREMENTAL VIEW v{id} AS SELECT id FROM not_banned WHERE note(val); COMMIT"
        ))?;
        let rows = client.query(&format!("SELECT id FROM v{id}"), &[])?;
        ensure!(rows.len() == 1, "v{id} has {} rows", rows.len());
    }
    let heard = client.query("SELECT DISTINCT n FROM heard ORDER BY n", &[])?;
    let heard: Vec<i32> = heard.iter().map(|row| row.get(0)).collect();
    ensure!(heard == [0], "heard of {heard:?}");
    cluster.print_crashes()
}

fn query(view: i64) -> String {
    format!(
        "SELECT c.country, count(*) AS n, sum(o.amount) + {view} AS total \
         FROM ordered o JOIN customer c ON c.id = o.customer WHERE o.amount >= {view} GROUP BY c.country"
    )
}

/// What a further view would be told.
pub fn explain(client: &mut Client, query: &str) -> Result<String> {
    let sql = format!("EXPLAIN (VERBOSE) CREATE INCREMENTAL VIEW w AS {query}");
    let lines = client.query(&sql, &[])?;
    Ok(lines.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n"))
}

/// Who reads the one thing that is kept of which a condition holds. The worker tells of it when it has written, and of a view that is
/// dropped when it has heard of that.
pub fn expect_readers(client: &mut Client, kept: &str, expected: Option<&str>) -> Result<()> {
    let sql = format!("SELECT used_by::text FROM eddy.arrangements WHERE {kept}");
    let mut shown = None;
    let outcome = wait_for("what is kept to be read by them", PATIENCE, || {
        shown = client.query_opt(&sql, &[])?.map(|row| row.get::<_, String>(0));
        Ok((shown.as_deref() == expected).then_some(()))
    });
    outcome.with_context(|| format!("{kept}: read by {shown:?}, not {expected:?}"))
}

pub fn terminate_worker(client: &mut Client) -> Result<()> {
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pg_eddy worker'";
    Ok(client.batch_execute(sql)?)
}

fn create(client: &mut Client, view: i64) -> Result<()> {
    let sql = format!("CREATE INCREMENTAL VIEW v{view} AS {}", query(view));
    Ok(client.batch_execute(&sql)?)
}

fn expect_right(client: &mut Client, view: i64) -> Result<()> {
    expect_query(client, &format!("v{view}"), &query(view))
}

/// A view has the rows of its query.
pub fn expect_query(client: &mut Client, name: &str, query: &str) -> Result<()> {
    let row = client.query_one(&comparison(name, query), &[])?;
    let differing: [i64; 3] = [row.get(0), row.get(1), row.get(2)];
    ensure!(differing == [0; 3], "{name} differs: {differing:?}");
    Ok(())
}

/// Bytes of the state of the first views, once all are up to date.
fn state_bytes(client: &mut Client, views: i64) -> Result<i64> {
    for view in 0..views {
        expect_right(client, view)?;
    }
    let sum = "SELECT coalesce(sum(state_bytes), 0)::bigint FROM eddy.views";
    Ok(client.query_one(sum, &[])?.get(0))
}
