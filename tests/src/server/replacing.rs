//! Views that are replaced while they are read, written and disturbed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::{ensure, Result};
use harness::cluster::{wait_for, Cluster};
use harness::dice::Dice;
use harness::installation::Installation;
use postgres::Client;

use super::check::Record;
use super::indexes::terminate_worker;

const PATIENCE: Duration = Duration::from_secs(60);

/// Rows that take so long to be read into a dataflow that others read the view meanwhile.
const ROWS: usize = 500_000;

const REPLACEMENTS: i32 = 4;
const ROUNDS: usize = 40;

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    let served = serve(installation, folder);
    record("a view that is replaced or refreshed serves as it was, then as it is", served);
    record("a view is replaced whatever happens meanwhile", disturbed(installation, folder));
}

/// The groups of a table by a version of the view: every row says which one, and all together how many rows the table has.
fn query(version: i32) -> String {
    format!(
        "SELECT {version} AS version, w % {} AS g, count(*) * {version} AS n FROM item GROUP BY 1, 2",
        90 + version
    )
}

/// A server with a table of so many rows, and the first version of the view.
fn start(installation: &Installation, folder: &Path, name: &str, rows: usize) -> Result<Cluster> {
    let cluster = Cluster::start_new(installation, folder, name, &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(&format!(
        "SET client_min_messages = warning; CREATE EXTENSION pg_eddy;
         CREATE TABLE item (id int PRIMARY KEY, w int);
         ALTER TABLE item REPLICA IDENTITY FULL;
         INSERT INTO item SELECT i, i FROM generate_series(1, {rows}) i;
         CREATE INCREMENTAL VIEW v WITH (changes = '1 day') AS {}",
        query(1)
    ))?;
    Ok(cluster)
}

/// What readers have been asked to expect, how often they have read, and how often they have seen an earlier version.
struct Seen {
    asked: AtomicI32,
    reads: AtomicUsize,
    former: AtomicUsize,
}

fn serve(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = start(installation, folder, "replacing", ROWS)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE INCREMENTAL VIEW total AS SELECT count(*) AS n FROM item")?;
    client.batch_execute("TABLE total; SELECT count(*) FROM v")?;
    let is_over = AtomicBool::new(false);
    let seen =
        Seen { asked: AtomicI32::new(1), reads: AtomicUsize::new(0), former: AtomicUsize::new(0) };
    let outcomes: Vec<Result<()>> = thread::scope(|scope| {
        let others: Vec<_> = (0..2)
            .flat_map(|place| {
                let (cluster, is_over, seen) = (&cluster, &is_over, &seen);
                let read = move || until(is_over, cluster, |client| read(client, seen));
                let write = move || until(is_over, cluster, |client| write(client, place));
                [scope.spawn(read), scope.spawn(write)]
            })
            .collect();
        let replaced = (2..=1 + REPLACEMENTS).try_for_each(|to| replace(&cluster, &seen, to));
        let replaced = replaced.and_then(|()| refresh(&cluster, &seen));
        is_over.store(true, Relaxed);
        let others = others.into_iter().map(|thread| thread.join().expect("joins"));
        std::iter::once(replaced).chain(others).collect()
    });
    outcomes.into_iter().collect::<Result<()>>()?;
    mend(&mut cluster.connect("postgres")?)?;
    // A session that has not replaced it waits only for columns that it did not have.
    let replace = "CREATE OR REPLACE INCREMENTAL VIEW v AS \
                   SELECT 9 AS version, w AS g, count(*) AS n, sum(id) AS ids FROM item GROUP BY w";
    cluster.connect("postgres")?.batch_execute(replace)?;
    let was: i32 = client.query_one("SELECT max(version) FROM v", &[])?.get(0);
    let ids: i64 = client.query_one("SELECT count(ids) FROM v", &[])?.get(0);
    let is: i32 = client.query_one("SELECT max(version) FROM v", &[])?.get(0);
    ensure!((was, is) == (1 + REPLACEMENTS, 9), "versions {was} and {is}");
    ensure!(ids > 100, "only {ids} groups have the new column");
    cluster.print_crashes()
}

/// All rows are of one version, and as many as another view says.
fn read(client: &mut Client, seen: &Seen) -> Result<()> {
    let asked = seen.asked.load(Relaxed);
    let row = client.query_one(
        "SELECT min(version), max(version), sum(v.n)::int8, (SELECT n FROM total) FROM v",
        &[],
    )?;
    let (least, most): (i32, i32) = (row.get(0), row.get(1));
    ensure!(least == most, "versions {least} and {most} at once");
    let (sum, total): (i64, i64) = (row.get(2), row.get(3));
    ensure!(sum == total * i64::from(least), "{sum} of {total} by version {least}");
    seen.reads.fetch_add(1, Relaxed);
    seen.former.fetch_add(usize::from(least < asked), Relaxed);
    Ok(())
}

fn write(client: &mut Client, place: i32) -> Result<()> {
    let id = 10_000_000 + place;
    client.batch_execute(&format!(
        "INSERT INTO item VALUES ({id}, {id}); UPDATE item SET w = w + 1 WHERE id = {place} + 1;
         DELETE FROM item WHERE id = {id}"
    ))?;
    thread::sleep(Duration::from_millis(1));
    Ok(())
}

/// Who replaces the view sees what it is; until then the others see what it was.
fn replace(cluster: &Cluster, seen: &Seen, version: i32) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    let replace = format!("CREATE OR REPLACE INCREMENTAL VIEW v AS {}", query(version));
    client.batch_execute(&replace)?;
    let before = seen.former.load(Relaxed);
    seen.asked.store(version, Relaxed);
    let row = client.query_one("SELECT min(version), max(version) FROM v", &[])?;
    ensure!((row.get(0), row.get(1)) == (version, version), "not what was asked for");
    let served = seen.former.load(Relaxed) - before;
    ensure!(served >= 5, "version {version} kept readers waiting: {served} reads");
    Ok(())
}

/// Who refreshes the view waits for its new dataflow, others read it meanwhile.
fn refresh(cluster: &Cluster, seen: &Seen) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("REFRESH INCREMENTAL VIEW v")?;
    let before = seen.reads.load(Relaxed);
    client.query_one("SELECT count(*) FROM v", &[])?;
    let served = seen.reads.load(Relaxed) - before;
    ensure!(served >= 5, "REFRESH kept readers waiting: {served} reads");
    Ok(())
}

/// Rows of which somebody has robbed the view are there after REFRESH, though it served meanwhile.
fn mend(client: &mut Client) -> Result<()> {
    client.batch_execute("CREATE EXTENSION pg_surgery")?;
    let places = "SELECT array_agg(ctid)::text FROM (SELECT ctid FROM v LIMIT 2) robbed";
    let places: String = client.query_one(places, &[])?.get(0);
    client.batch_execute(&format!("SELECT heap_force_kill('v', '{places}'::tid[])"))?;
    for expected in ["(2,0)", "(0,0)"] {
        let found: String = client.query_one("SELECT eddy.verify_view('v')::text", &[])?.get(0);
        ensure!(found == expected, "{found} instead of {expected}");
        client.batch_execute("REFRESH INCREMENTAL VIEW v; SELECT count(*) FROM v")?;
    }
    Ok(())
}

/// Does something again and again until all is over.
fn until(
    is_over: &AtomicBool,
    cluster: &Cluster,
    work: impl Fn(&mut Client) -> Result<()>,
) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    while !is_over.load(Relaxed) {
        work(&mut client)?;
    }
    Ok(())
}

/// What may happen while a view serves as it was.
const DISTURBANCES: [&str; 12] = [
    "SELECT 1",
    "REFRESH INCREMENTAL VIEW v",
    "ANALYZE v",
    "GRANT SELECT ON v TO public",
    "ALTER TABLE item ALTER w SET STATISTICS 50",
    "ALTER TABLE item ADD COLUMN IF NOT EXISTS more int",
    "ALTER INCREMENTAL VIEW v SET (timezone = 'Asia/Tokyo')",
    "ALTER INCREMENTAL VIEW v SET (changes = '1 day')",
    "ALTER INCREMENTAL VIEW v RESET (changes)",
    "CREATE INCREMENTAL VIEW IF NOT EXISTS above AS SELECT sum(n) FROM v",
    "DROP INCREMENTAL VIEW IF EXISTS above",
    "BEGIN; TRUNCATE item; INSERT INTO item SELECT i, i FROM generate_series(1, 20000) i; COMMIT",
];

fn disturbed(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = start(installation, folder, "disturbed", 20_000)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("SET client_min_messages = warning")?;
    let mut dice = Dice::new(1);
    for round in 0..ROUNDS {
        // Now and then what is disturbed was settled.
        if dice.chance(50) {
            client.execute("SELECT count(*) FROM v", &[])?;
        }
        let mut other = cluster.connect("postgres")?;
        let version = dice.range(2, 9) as i32;
        other.batch_execute(&format!(
            "CREATE OR REPLACE INCREMENTAL VIEW v AS {}",
            query(version)
        ))?;
        client.batch_execute("UPDATE item SET w = w + 1 WHERE id < 50")?;
        let disturbance = *dice.pick::<&str>(&DISTURBANCES);
        match dice.chance(15) {
            true => terminate_worker(&mut client)?,
            false => client.batch_execute(disturbance)?,
        }
        client.batch_execute(
            "DELETE FROM item WHERE id % 1000 = 7; INSERT INTO item VALUES (7, 7)",
        )?;
        let found: String = other.query_one("SELECT eddy.verify_view('v')::text", &[])?.get(0);
        ensure!(found == "(0,0)", "round {round}, version {version}, {disturbance}: {found}");
        let is_replaced = || {
            let row = client.query_one("SELECT min(version), max(version) FROM v", &[])?;
            let versions: (i32, i32) = (row.get(0), row.get(1));
            Ok((versions == (version, version)).then_some(()))
        };
        wait_for("the view is what it was replaced by", PATIENCE, is_replaced)?;
        let sums = "SELECT count(*) FROM (SELECT version, g, n FROM v_changes GROUP BY 1, 2, 3 \
                    HAVING sum(diff) <> (SELECT count(*) FROM v WHERE (v.version, v.g, v.n) = \
                        (v_changes.version, v_changes.g, v_changes.n))) s";
        let has_changes = client.query_one("SELECT to_regclass('v_changes') IS NOT NULL", &[])?;
        if has_changes.get(0) {
            let wrong: i64 = client.query_one(sums, &[])?.get(0);
            ensure!(wrong == 0, "round {round}, {disturbance}: {wrong} sums of changes are wrong");
        }
    }
    cluster.print_crashes()
}
