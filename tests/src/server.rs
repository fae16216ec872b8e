//! What concerns a server as a whole: its settings, several databases, dump and restore, a worker
//! that does not answer. Each check has databases of its own.

mod caches;
mod culprits;
mod freshness;
mod memory;
mod processes;
mod start;
mod types;
mod wal;

use std::path::Path;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use postgres::Client;
use rustix::process::Signal;

use harness::cluster::{signal_process, stop_at_rest, wait_for, Cluster, Settings};
use harness::installation::Installation;
use harness::report::Counts;

/// A check in a cluster that others share.
pub type Check = fn(&Cluster) -> Result<()>;

/// Checks that share one cluster.
const CHECKS: [(&str, Check); 14] = [
    ("databases are maintained independently", databases_are_independent),
    ("DROP DATABASE succeeds at once", drop_database_succeeds),
    ("a database can be renamed and copied", database_can_be_renamed_and_copied),
    ("DROP EXTENSION leaves plain materialized views", drop_extension_leaves_plain_views),
    ("a read says when the worker does not answer", read_times_out),
    ("a killed worker comes back", killed_worker_comes_back),
    ("a table that was unlogged for a while is read again", unlogged_table_is_read_again),
    ("types change while rows are on their way", types::change_on_the_way),
    ("views of a schema and an owner go with them", dependent_drops_leave_no_trace),
    ("many views live on one table", many_views),
    ("a view whose rows are replaced does not grow", small_view_stays_small),
    ("views are listed while one in error is being dropped", views_are_listed_during_drop),
    ("a hundred views in a chain are cheap", crate::chains::long_chains_are_cheap),
    ("texts without end are refused", crate::chains::endless_texts_are_refused),
];

/// Settings under which CREATE must fail at once, and the setting that the hint must name.
const UNFIT: [(Settings, &str); 3] = [
    (&[("wal_level", "replica")], "wal_level"),
    (&[("max_replication_slots", "0")], "max_replication_slots"),
    (&[("max_worker_processes", "0")], "max_worker_processes"),
];

const EDGES: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE TABLE edge (src int, dst int);
    INSERT INTO edge VALUES (1, 2), (2, 3);
    CREATE INCREMENTAL VIEW reach AS
        WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION
            SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b) SELECT a, b FROM r;";

/// Takes down the result of a check.
type Record<'a> = &'a mut dyn FnMut(&str, Result<()>);

/// Checks that belong together, in clusters of their own.
type Group = fn(&Installation, &Path, Record);

const GROUPS: [(&str, Group); 7] = [
    ("caches", caches::run),
    ("culprits", culprits::run),
    ("freshness", freshness::run),
    ("memory", memory::run),
    ("processes", processes::run),
    ("start", start::run),
    ("wal", wal::run),
];

#[derive(Clone, Debug, Default, clap::Args)]
pub struct Selection {
    /// Names of groups, none for everything
    groups: Vec<String>,
}

/// One test per check.
pub fn run(installation: &Installation, folder: &Path, selection: &Selection) -> Result<Counts> {
    let wanted = &selection.groups;
    let unknown = |name: &&String| GROUPS.iter().all(|(group, _)| group != name);
    if let Some(name) = wanted.iter().find(unknown) {
        bail!("there is no group {name}");
    }
    let mut counts = Counts::default();
    let mut record = |name: &str, result| counts.check(name, result);
    for (name, group) in GROUPS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            group(installation, folder, &mut record);
        }
    }
    if !wanted.is_empty() {
        return Ok(counts);
    }
    for (settings, named) in UNFIT {
        let result = refuses_unfit_settings(installation, folder, settings, named);
        record(&format!("CREATE fails with a hint at {named}"), result);
    }
    record("CREATE fails without preloading", refuses_without_preloading(installation, folder));
    let cluster = Cluster::start_new(installation, folder, "shared", &[("fsync", "off")])?;
    for (name, check) in CHECKS.iter().chain(&crate::dumps::CHECKS) {
        record(name, check(&cluster));
    }
    let dumped = crate::dumps::check_servers(&cluster, installation, folder);
    record("a dump of all databases restores views, where a worker can maintain them", dumped);
    let upgraded = crate::dumps::check_upgrade(installation, folder);
    record("pg_upgrade moves views", upgraded);
    let published = crate::publications::check(&cluster, installation, folder);
    record("publications of all tables have nothing of the extension", published);
    record("a standby has the views", crate::standbys::check(&cluster, folder));
    cluster.print_crashes()?;
    record("state ten times the memory goes to disk", crate::spill::check(installation, folder));
    Ok(counts)
}

fn refuses_unfit_settings(
    installation: &Installation,
    folder: &Path,
    settings: Settings,
    named: &str,
) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, &format!("unfit_{named}"), settings)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_eddy; CREATE TABLE t (a int PRIMARY KEY)")?;
    expect_hint(&mut client, "CREATE INCREMENTAL VIEW v AS SELECT a FROM t", named)
}

fn refuses_without_preloading(installation: &Installation, folder: &Path) -> Result<()> {
    let settings = &[("shared_preload_libraries", "")];
    let cluster = Cluster::start_new(installation, folder, "not_preloaded", settings)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_eddy; LOAD 'pg_eddy'; CREATE TABLE t (a int)")?;
    let create = "CREATE MATERIALIZED VIEW v WITH (incremental) AS SELECT a FROM t";
    expect_hint(&mut client, create, "shared_preload_libraries")
}

/// The statement fails with 55000 and a hint that contains `word`.
fn expect_hint(client: &mut Client, sql: &str, word: &str) -> Result<()> {
    let Err(error) = client.batch_execute(sql) else { bail!("no error") };
    let report = error.as_db_error().context("the session was lost")?;
    ensure!(report.code().code() == "55000", "SQLSTATE {}: {report}", report.code().code());
    let hint = report.hint().unwrap_or_default();
    ensure!(hint.contains(word), "the hint does not name {word}: {hint}");
    Ok(())
}

/// A new database with a small graph and the view `reach` over it.
pub fn graph_database(cluster: &Cluster, name: &str) -> Result<Client> {
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = cluster.connect(name)?;
    client.batch_execute(EDGES)?;
    Ok(client)
}

pub fn expect_rows(client: &mut Client, view: &str, rows: i64) -> Result<()> {
    let found: i64 = client.query_one(&format!("SELECT count(*) FROM {view}"), &[])?.get(0);
    ensure!(found == rows, "{view} has {found} rows instead of {rows}");
    Ok(())
}

/// Adds an edge and expects the view to follow: it is alive.
pub fn expect_alive(client: &mut Client) -> Result<()> {
    expect_rows(client, "reach", 3)?;
    client.batch_execute("INSERT INTO edge VALUES (3, 1)")?;
    expect_rows(client, "reach", 9)?;
    client.batch_execute("DELETE FROM edge WHERE src = 3")?;
    expect_rows(client, "reach", 3)
}

pub fn drop_database(cluster: &Cluster, name: &str) -> Result<()> {
    Ok(cluster.connect("postgres")?.batch_execute(&format!("DROP DATABASE {name}"))?)
}

fn databases_are_independent(cluster: &Cluster) -> Result<()> {
    let mut one = graph_database(cluster, "independent_one")?;
    let mut two = graph_database(cluster, "independent_two")?;
    one.batch_execute("INSERT INTO edge VALUES (3, 1)")?;
    two.batch_execute("TRUNCATE edge")?;
    expect_rows(&mut one, "reach", 9)?;
    expect_rows(&mut two, "reach", 0)?;
    drop((one, two));
    drop_database(cluster, "independent_one")?;
    drop_database(cluster, "independent_two")
}

fn drop_database_succeeds(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "dropped")?;
    expect_alive(&mut client)?;
    drop(client);
    drop_database(cluster, "dropped")
}

fn database_can_be_renamed_and_copied(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "original")?;
    expect_alive(&mut client)?;
    drop(client);
    let mut admin = cluster.connect("postgres")?;
    admin.batch_execute("ALTER DATABASE original RENAME TO renamed")?;
    admin.batch_execute("CREATE DATABASE copied TEMPLATE renamed")?;
    expect_alive(&mut cluster.connect("renamed")?)?;
    expect_alive(&mut cluster.connect("copied")?)?;
    drop_database(cluster, "renamed")?;
    drop_database(cluster, "copied")
}

fn drop_extension_leaves_plain_views(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "unextended")?;
    expect_alive(&mut client)?;
    client.batch_execute("DROP EXTENSION pg_eddy; INSERT INTO edge VALUES (3, 1)")?;
    expect_rows(&mut client, "reach", 3)?;
    client.batch_execute("REFRESH MATERIALIZED VIEW reach")?;
    expect_rows(&mut client, "reach", 9)?;
    wait_for("the worker to leave", Duration::from_secs(30), || {
        Ok(worker_pid(&mut client)?.is_none().then_some(()))
    })?;
    drop(client);
    drop_database(cluster, "unextended")
}

pub fn worker_pid(client: &mut Client) -> Result<Option<i32>> {
    let sql = "SELECT pid FROM pg_stat_activity \
               WHERE backend_type = 'pg_eddy worker' AND datname = current_database()";
    Ok(client.query_opt(sql, &[])?.map(|row| row.get(0)))
}

fn read_times_out(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "stopped")?;
    expect_alive(&mut client)?;
    let pid = worker_pid(&mut client)?.context("there is no worker")?;
    stop_at_rest(&mut client, pid)?;
    let outcome = reads_of_stopped_worker(&mut client);
    signal_process(pid, Signal::CONT)?;
    outcome?;
    client.batch_execute("RESET eddy.read_timeout")?;
    expect_rows(&mut client, "reach", 9)?;
    drop(client);
    drop_database(cluster, "stopped")
}

fn reads_of_stopped_worker(client: &mut Client) -> Result<()> {
    client.batch_execute("SET eddy.read_timeout = '200ms'; INSERT INTO edge VALUES (3, 1)")?;
    let Err(error) = client.query("SELECT * FROM reach", &[]) else { bail!("read did not fail") };
    let report = error.as_db_error().context("the session was lost")?;
    ensure!(report.message().contains("reach"), "the view is not named: {report}");
    let text = format!("{report} {}", report.detail().unwrap_or_default());
    ensure!(text.contains("behind"), "the lag is not named: {text}");
    client.batch_execute("SET eddy.freshness = 'stale'")?;
    expect_rows(client, "reach", 3)?;
    Ok(client.batch_execute("RESET eddy.freshness")?)
}

fn killed_worker_comes_back(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "killed")?;
    expect_alive(&mut client)?;
    let pid = worker_pid(&mut client)?.context("there is no worker")?;
    // The database system restarts all sessions after a kill -9, but not after a termination.
    client.batch_execute(&format!("SELECT pg_terminate_backend({pid})"))?;
    expect_alive(&mut client)?;
    let after = wait_for("a new worker", Duration::from_secs(30), || worker_pid(&mut client))?;
    ensure!(after != pid, "the worker did not end");
    drop(client);
    drop_database(cluster, "killed")
}

/// What was written meanwhile is nowhere in the WAL, and when the worker looks the table is as it was.
fn unlogged_table_is_read_again(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "unlogged")?;
    expect_alive(&mut client)?;
    let pid = worker_pid(&mut client)?.context("there is no worker")?;
    signal_process(pid, Signal::STOP)?;
    let mut run = |sql: &str| client.batch_execute(sql);
    let changed = run("ALTER TABLE edge SET UNLOGGED")
        .and_then(|()| run("INSERT INTO edge VALUES (3, 1)"))
        .and_then(|()| run("ALTER TABLE edge SET LOGGED"));
    signal_process(pid, Signal::CONT)?;
    changed?;
    expect_rows(&mut client, "reach", 9)?;
    client.batch_execute("DELETE FROM edge WHERE src = 3")?;
    expect_alive(&mut client)?;
    drop(client);
    drop_database(cluster, "unlogged")
}

fn dependent_drops_leave_no_trace(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "dependent")?;
    client.batch_execute(
        "CREATE ROLE temporary_owner;
         CREATE SCHEMA gone AUTHORIZATION temporary_owner;
         GRANT SELECT ON edge TO temporary_owner;
         CREATE INCREMENTAL VIEW gone.v AS SELECT src FROM edge;
         ALTER INCREMENTAL VIEW gone.v OWNER TO temporary_owner;
         DROP OWNED BY temporary_owner CASCADE;
         DROP ROLE temporary_owner;
         DROP TABLE edge CASCADE",
    )?;
    for table in ["eddy.view_catalog", "eddy.views"] {
        expect_rows(&mut client, table, 0)?;
    }
    drop(client);
    drop_database(cluster, "dependent")
}

fn views_are_listed_during_drop(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "listed")?;
    client
        .batch_execute("CREATE INCREMENTAL VIEW broken AS SELECT 1 / (src - 3) AS q FROM edge")?;
    client.batch_execute("INSERT INTO edge VALUES (3, 4)")?;
    ensure!(client.query("SELECT * FROM broken", &[]).is_err(), "the view is not in error");
    let pid = worker_pid(&mut client)?.context("there is no worker")?;
    signal_process(pid, Signal::STOP)?;
    let dropped = client.batch_execute("DROP INCREMENTAL VIEW broken");
    let listed = expect_rows(&mut client, "eddy.views", 1);
    signal_process(pid, Signal::CONT)?;
    dropped?;
    listed?;
    drop(client);
    drop_database(cluster, "listed")
}

/// Nobody scans the view meanwhile, which would clear old versions of its rows as well.
fn small_view_stays_small(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "small")?;
    client.batch_execute(
        "CREATE INCREMENTAL VIEW degree AS SELECT src, count(*) AS n FROM edge GROUP BY src;
         CREATE PROCEDURE add(rows int) LANGUAGE plpgsql AS $$
         BEGIN
             FOR i IN 1..rows LOOP
                 INSERT INTO edge VALUES (1, 2);
                 COMMIT;
                 PERFORM eddy.wait_for_lsn(pg_current_wal_lsn());
             END LOOP;
         END $$",
    )?;
    // By itself: it commits.
    client.batch_execute("CALL add(1000)")?;
    let size = client.query_one("SELECT pg_relation_size('degree')", &[])?.get::<_, i64>(0);
    ensure!(size <= 2 * 8192, "two rows take {size} bytes");
    drop(client);
    drop_database(cluster, "small")
}

fn many_views(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "many")?;
    for number in 0..30 {
        client.batch_execute(&format!(
            "CREATE INCREMENTAL VIEW v{number} AS \
             SELECT src % {0} AS k, count(*) AS n FROM edge GROUP BY src % {0}",
            number + 1
        ))?;
    }
    client.batch_execute("INSERT INTO edge SELECT i, i FROM generate_series(1, 1000) i")?;
    for number in 0..30 {
        expect_rows(&mut client, &format!("v{number}"), number + 1)?;
    }
    drop(client);
    drop_database(cluster, "many")
}
