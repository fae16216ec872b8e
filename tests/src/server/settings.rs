//! Servers that cannot maintain views: the extension warns, CREATE fails at once, and both name the setting. Servers whose table
//! of keywords is to be left alone.

use std::path::Path;

use anyhow::{ensure, Context, Result};
use harness::cluster::{Cluster, Settings};
use harness::installation::Installation;
use postgres::error::SqlState;

use super::check::{expect_hint, hints_of, Record};
use crate::graph::{expect_alive, graph_database};

/// The settings that CREATE EXTENSION warns of; the others are asked for when a worker starts.
const WARNED_OF: [&str; 2] = ["wal_level", "shared_preload_libraries"];

/// Settings under which CREATE must fail at once, and the setting that the hint must name.
const UNFIT: [(Settings, &str); 3] = [
    (&[("wal_level", "replica")], "wal_level"),
    (&[("max_replication_slots", "0")], "max_replication_slots"),
    (&[("max_worker_processes", "0")], "max_worker_processes"),
];

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    for (settings, named) in UNFIT {
        let result = refuses_unfit_settings(installation, folder, settings, named);
        record(&format!("CREATE fails with a hint at {named}"), result);
    }
    record("CREATE fails without preloading", refuses_without_preloading(installation, folder));
    record("reads of a server that became unfit fail at once", reads_fail(installation, folder));
    let own = extension_makes_its_own_views(installation, folder);
    record("the extension makes the views that it needs, whatever a setting says", own);
    record("the keyword can be left out", leaves_keywords_alone(installation, folder));
    record("limits of time are for sessions", limits_spare_workers(installation, folder));
    let full = refuses_views_without_room(installation, folder);
    record("no view is created for which there is no room", full);
    let plugins = needs_no_place_among_plugins(installation, folder);
    record("output_plugin_libraries need not name the library", plugins);
}

/// What `eddy.materialized_views` says is not for the materialized views of the extension.
fn extension_makes_its_own_views(installation: &Installation, folder: &Path) -> Result<()> {
    let settings = &[("eddy.materialized_views", "incremental"), ("fsync", "off")];
    let cluster = Cluster::start_new(installation, folder, "own_views", settings)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("SET client_min_messages = warning; CREATE EXTENSION pg_eddy")?;
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY)")?;
    client.batch_execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")?;
    let labels: i64 = client.query_one("SELECT count(*) FROM pg_seclabel", &[])?.get(0);
    ensure!(labels == 1, "{labels} views are incremental");
    cluster.print_crashes()
}

fn refuses_unfit_settings(
    installation: &Installation,
    folder: &Path,
    settings: Settings,
    named: &str,
) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, &format!("unfit_{named}"), settings)?;
    create_extension(&cluster, named)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY)")?;
    expect_hint(&mut client, "CREATE INCREMENTAL VIEW v AS SELECT a FROM t", named)
}

fn refuses_without_preloading(installation: &Installation, folder: &Path) -> Result<()> {
    let settings = &[("shared_preload_libraries", "")];
    let cluster = Cluster::start_new(installation, folder, "not_preloaded", settings)?;
    create_extension(&cluster, "shared_preload_libraries")?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("LOAD 'pg_eddy'; CREATE TABLE t (a int)")?;
    let create = "CREATE MATERIALIZED VIEW v WITH (incremental) AS SELECT a FROM t";
    expect_hint(&mut client, create, "shared_preload_libraries")
}

/// One view after the other, sooner than a worker comes to them.
fn refuses_views_without_room(installation: &Installation, folder: &Path) -> Result<()> {
    let settings = &[("eddy.max_views", "3")];
    let cluster = Cluster::start_new(installation, folder, "full", settings)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_eddy; CREATE TABLE t (a int PRIMARY KEY)")?;
    let create =
        |number: i32| format!("CREATE INCREMENTAL VIEW v{number} AS SELECT count(*) AS n FROM t");
    for number in 1..=3 {
        client.batch_execute(&create(number))?;
    }
    expect_hint(&mut client, &create(4), "eddy.max_views")?;
    client.batch_execute("DROP MATERIALIZED VIEW v2; INSERT INTO t VALUES (1)")?;
    client.batch_execute(&create(4))?;
    expect_hint(&mut client, &create(5), "eddy.max_views")?;
    let sql = "SELECT (SELECT n FROM v1) + (SELECT n FROM v3) + (SELECT n FROM v4)";
    let sum: i64 = client.query_one(sql, &[])?.get(0);
    ensure!(sum == 3, "the views have {sum} rows in all");
    Ok(())
}

/// A view whose rows take longer than sessions may is maintained all the same.
fn limits_spare_workers(installation: &Installation, folder: &Path) -> Result<()> {
    let mut names = vec!["statement_timeout", "idle_in_transaction_session_timeout"];
    if installation.major >= 17 {
        names.push("transaction_timeout");
    }
    let settings: Vec<(&str, &str)> = names.iter().map(|name| (*name, "200ms")).collect();
    let cluster = Cluster::start_new(installation, folder, "hurried", &settings)?;
    let mut client = cluster.connect("postgres")?;
    for name in names {
        client.batch_execute(&format!("SET {name} = 0"))?;
    }
    client.batch_execute(
        "CREATE EXTENSION pg_eddy;
         CREATE TABLE t (n int);
         CREATE FUNCTION slowly(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
             'BEGIN PERFORM pg_sleep(0.3); RETURN n; END';
         CREATE INCREMENTAL VIEW v AS SELECT slowly(n) AS n FROM t",
    )?;
    client.batch_execute("INSERT INTO t VALUES (1), (2), (3)")?;
    let rows: i64 = client.query_one("SELECT count(*) FROM v", &[])?.get(0);
    ensure!(rows == 3, "the view has {rows} rows");
    let log = cluster.log()?;
    ensure!(!log.contains(" timeout"), "somebody was too slow: {log}");
    Ok(())
}

/// Views that nobody can maintain since a restart say so, and are not waited for.
fn reads_fail(installation: &Installation, folder: &Path) -> Result<()> {
    let mut cluster = Cluster::start_new(installation, folder, "unfit_later", &[])?;
    let sql = "CREATE EXTENSION pg_eddy; CREATE TABLE t (a int); INSERT INTO t VALUES (1);
               CREATE INCREMENTAL VIEW v AS SELECT a FROM t";
    cluster.connect("postgres")?.batch_execute(sql)?;
    let hurried = "SET eddy.read_timeout = '1h'; SET statement_timeout = '30s'";
    cluster.restart_with(&["-c", "wal_level=replica"])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(hurried)?;
    expect_hint(&mut client, "SELECT * FROM v", "wal_level")?;
    client.batch_execute("SET eddy.freshness = 'stale'; SELECT * FROM v")?;
    cluster.restart_with(&["-c", "shared_preload_libraries="])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("SELECT * FROM v")?;
    let wait = "SELECT eddy.wait_for_lsn(pg_current_wal_lsn(), '1 s')";
    expect_hint(&mut client, wait, "shared_preload_libraries")?;
    expect_hint(&mut client, "SELECT eddy.verify_view('v')", "shared_preload_libraries")
}

/// Warns of the setting, if it is one that CREATE EXTENSION looks at, and succeeds each time.
fn create_extension(cluster: &Cluster, named: &str) -> Result<()> {
    for _ in 0..2 {
        let hints =
            hints_of(cluster, "DROP EXTENSION IF EXISTS pg_eddy; CREATE EXTENSION pg_eddy")?;
        let warned = hints.iter().any(|hint| hint.contains(named));
        ensure!(warned == WARNED_OF.contains(&named), "hints of CREATE EXTENSION: {hints:?}");
    }
    Ok(())
}

fn leaves_keywords_alone(installation: &Installation, folder: &Path) -> Result<()> {
    let settings = &[("eddy.keyword", "off"), ("fsync", "off")];
    let cluster = Cluster::start_new(installation, folder, "no_keyword", settings)?;
    let hints = hints_of(&cluster, "CREATE EXTENSION pg_eddy")?;
    ensure!(hints.is_empty(), "hints on a fit server: {hints:?}");
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY)")?;
    let error = client.batch_execute("CREATE INCREMENTAL VIEW v AS SELECT a FROM t").err();
    let error = error.context("INCREMENTAL is a keyword")?;
    ensure!(error.code() == Some(&SqlState::SYNTAX_ERROR), "{error:?}");
    client.batch_execute(
        "CREATE MATERIALIZED VIEW v WITH (incremental) AS SELECT a FROM t; INSERT INTO t VALUES (1)",
    )?;
    let rows: i64 = client.query_one("SELECT count(*) FROM v", &[])?.get(0);
    ensure!(rows == 1, "the view has {rows} rows");
    client.batch_execute("DROP MATERIALIZED VIEW v")?;
    Ok(())
}

/// A server that lets nobody use any output plugin, where it can be told so, maintains views; and one that lets everybody use that of
/// this library keeps it to its workers.
fn needs_no_place_among_plugins(installation: &Installation, folder: &Path) -> Result<()> {
    let mut cluster = Cluster::start_new(installation, folder, "plugins", &[("fsync", "off")])?;
    let mut client = graph_database(&cluster, "plugins")?;
    expect_alive(&mut client)?;
    let row = client.query_one(
        "SELECT EXISTS (SELECT FROM pg_settings WHERE name = 'output_plugin_libraries'),
             current_setting('server_version')",
        &[],
    )?;
    let (is_there, version): (bool, String) = (row.get(0), row.get(1));
    if is_there {
        cluster.restart_with(&["-c", "output_plugin_libraries="])?;
        client = cluster.connect("plugins")?;
        expect_alive(&mut client)?;
        cluster.restart_with(&["-c", "output_plugin_libraries=pg_eddy"])?;
        client = cluster.connect("plugins")?;
    } else {
        println!("server: PostgreSQL {version} has no output_plugin_libraries: any may be used");
    }
    let create = "SELECT pg_create_logical_replication_slot('mine', 'pg_eddy')";
    let error = client.batch_execute(create).err().context("a session may use the plugin")?;
    ensure!(format!("{error:?}").contains("internal use only"), "{error:?}");
    expect_alive(&mut client)
}
