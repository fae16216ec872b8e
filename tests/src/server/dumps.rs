//! Dumps of databases with incremental views, in each form that pg_dump knows: what is restored is incremental, or the
//! restore fails and says why.

use std::path::Path;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use harness::installation::Installation;
use postgres::Client;

use super::check::Check;
use crate::graph::{drop_database, expect_alive, expect_rows, graph_database};
use crate::programs::{dump, feed, restore};

/// Checks that share one cluster.
pub const CHECKS: [(&str, Check); 8] = [
    ("a dump restores views that are incremental", whole_dump_restores_views),
    ("a dump of the schema restores views that are incremental", schema_dump_restores_views),
    ("a dump in custom format restores views that are incremental", archive_restores_views),
    ("a dump of one view restores it incremental", single_view_is_restored),
    ("a dump of one schema restores its views incremental, or fails", single_schema_is_restored),
    ("a dump without security labels restores plain views", views_without_labels_are_plain),
    ("an extension that comes back knows no view of the former", dropped_extension_forgets),
    ("an extension that is dropped leaves no file behind", dropped_extension_leaves_no_file),
];

/// What the dumped databases have beside the graph: views over views, one in another schema, one over a key.
const MORE: &str = "
    CREATE SCHEMA other;
    CREATE TABLE item (id int PRIMARY KEY, n int);
    INSERT INTO item VALUES (1, 10);
    CREATE INCREMENTAL VIEW ids AS SELECT id FROM item;
    CREATE INCREMENTAL VIEW kept WITH (changes = '1 day', storage = table) AS SELECT id AS n FROM item;
    CREATE INCREMENTAL VIEW other.total AS SELECT count(*) AS pairs FROM public.reach;
    CREATE INCREMENTAL VIEW a_double AS SELECT pairs * 2 AS twice FROM other.total;
    CREATE MATERIALIZED VIEW plain AS SELECT a FROM reach;
    COMMENT ON INCREMENTAL VIEW reach IS 'pairs'";

const VIEWS: &str = "a_double,ids,kept,other.total,reach";

/// Restoring a whole cluster, and into servers that cannot maintain views.
pub fn check_servers(source: &Cluster, installation: &Installation, folder: &Path) -> Result<()> {
    let client = source_database(source, "moved")?;
    let whole = dump(source, "pg_dumpall", &[])?;
    let one = dump(source, "pg_dump", &["--schema=public", "moved"])?;
    drop(client);
    drop_database(source, "moved")?;
    let mut target = Cluster::start_new(installation, folder, "target", &[("fsync", "off")])?;
    // The superuser and the first databases are there already.
    restore(&target, "postgres", &whole, false)?;
    expect_restored(&mut target.connect("moved")?)?;
    without_preloading(&mut target, &one)
}

/// The library is taken away from a server that has views, then comes back.
fn without_preloading(cluster: &mut Cluster, one: &[u8]) -> Result<()> {
    expect_rows(&mut graph_database(cluster, "forgetful")?, "eddy.view_creations", 1)?;
    let mut client = cluster.connect("moved")?;
    // An empty list cannot be set this way.
    client.batch_execute("ALTER SYSTEM SET shared_preload_libraries = 'plpgsql'")?;
    drop(client);
    cluster.stop()?;
    cluster.start()?;
    let mut client = cluster.connect("moved")?;
    let sql = "SELECT DISTINCT state, message FROM eddy.views";
    let row = client.query_one(sql, &[])?;
    let (state, message): (String, Option<String>) = (row.get(0), row.get(1));
    ensure!(state == "stopped", "views are {state} without the library");
    let message = message.context("there is no message")?;
    ensure!(message.contains("preload"), "the message does not say why: {message}");
    new_database(cluster, "plain")?.batch_execute("DROP SCHEMA public")?;
    expect_failure(restore(cluster, "plain", one, true), "provider \"pg_eddy\" is not loaded")?;
    // Loaded by a session, the library is there, but no worker.
    let label =
        "LOAD 'pg_eddy'; SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW plain IS 'incremental'";
    let Err(error) = client.batch_execute(label) else { bail!("a label was set without worker") };
    let hint = error.as_db_error().and_then(|report| report.hint()).unwrap_or_default();
    ensure!(hint.contains("shared_preload_libraries"), "the hint is: {hint}");
    drop(client);
    let drop_view = "DROP MATERIALIZED VIEW reach";
    cluster.connect("forgetful")?.batch_execute(drop_view)?;
    // A session that has not loaded it.
    let mut client = cluster.connect("moved")?;
    client.batch_execute("DROP EXTENSION pg_eddy CASCADE")?;
    client.batch_execute("ALTER SYSTEM RESET shared_preload_libraries")?;
    drop(client);
    cluster.stop()?;
    cluster.start()?;
    let mut client = cluster.connect("moved")?;
    client.batch_execute("CREATE EXTENSION pg_eddy")?;
    expect_rows(&mut client, "eddy.view_catalog", 0)?;
    expect_rows(&mut client, "pg_seclabel", 0)?;
    expect_forgotten(&mut cluster.connect("forgetful")?)
}

/// What is on record of a view that was dropped while no worker ran goes when one starts.
fn expect_forgotten(client: &mut Client) -> Result<()> {
    wait_for("the record of the view to go", Duration::from_secs(30), || {
        let row = client.query_one("SELECT count(*) FROM eddy.view_creations", &[])?;
        Ok((row.get::<_, i64>(0) == 0).then_some(()))
    })
}

fn source_database(cluster: &Cluster, name: &str) -> Result<Client> {
    let mut client = graph_database(cluster, name)?;
    // One of them reads a view, in a transaction that has written and cannot wait for a worker to start.
    expect_rows(&mut client, "reach", 3)?;
    client.batch_execute(MORE)?;
    Ok(client)
}

fn expect_failure(result: Result<()>, words: &str) -> Result<()> {
    let Err(error) = result else { bail!("the restore did not fail with: {words}") };
    let text = error.to_string();
    ensure!(text.contains(words), "the restore failed with: {text}");
    Ok(())
}

fn new_database(cluster: &Cluster, name: &str) -> Result<Client> {
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
    cluster.connect(name)
}

/// The restored database has the same views, they follow its tables, and these have the identity they had.
fn expect_restored(client: &mut Client) -> Result<()> {
    expect_views(client, VIEWS)?;
    let has_table =
        "SELECT 1 FROM eddy.views WHERE relation = 'kept'::regclass AND changes IS NULL";
    if client.query_opt(has_table, &[])?.is_some() {
        let error = client.query("TABLE kept", &[]).err().context("it has no table of changes")?;
        let hint = error.as_db_error().and_then(|report| report.hint()).unwrap_or_default();
        ensure!(hint == "Run REFRESH INCREMENTAL VIEW public.kept.", "the hint is: {hint}");
        client.batch_execute("REFRESH INCREMENTAL VIEW kept")?;
    }
    client.batch_execute(
        "TRUNCATE edge; INSERT INTO edge VALUES (1, 2), (2, 3);
         INSERT INTO item VALUES (2, 20); DELETE FROM item WHERE id = 1",
    )?;
    expect_alive(client)?;
    client.batch_execute("INSERT INTO edge VALUES (3, 1)")?;
    let row = client.query_one("SELECT pairs, twice, id FROM other.total, a_double, ids", &[])?;
    let found: (i64, i64, i32) = (row.get(0), row.get(1), row.get(2));
    ensure!(found == (9, 18, 2), "the views have {found:?}");
    let (sum, stored): (i64, i64) = {
        let sql = "SELECT sum(n * diff)::bigint, (SELECT sum(n) FROM kept) FROM kept_changes";
        let row = client.query_one(sql, &[])?;
        (row.get(0), row.get(1))
    };
    ensure!(sum == stored, "the changes add up to {sum}, not {stored}");
    let ids = |table| format!("SELECT string_agg(n::text, ',' ORDER BY n) FROM {table}");
    let (mirrored, kept): (String, String) = (
        client.query_one(&ids("kept_table"), &[])?.get(0),
        client.query_one(&ids("kept"), &[])?.get(0),
    );
    ensure!(mirrored == kept, "the mirror has {mirrored}, not {kept}");
    let write = client.batch_execute("DELETE FROM kept_table");
    ensure!(write.is_err(), "anybody can write the mirror");
    let sql = "SELECT string_agg(relname || relreplident::text, ',' ORDER BY relname) \
               FROM pg_class WHERE relname IN ('edge', 'item')";
    let identities: String = client.query_one(sql, &[])?.get(0);
    ensure!(identities == "edgef,itemd", "replica identities are {identities}");
    expect_states(client, "live")
}

fn expect_views(client: &mut Client, views: &str) -> Result<()> {
    let sql = "SELECT coalesce(string_agg(relation::text, ',' ORDER BY relation::text), '') \
               FROM eddy.view_catalog";
    let found: String = client.query_one(sql, &[])?.get(0);
    ensure!(found == views, "the incremental views are {found}");
    Ok(())
}

fn expect_states(client: &mut Client, state: &str) -> Result<()> {
    wait_for(&format!("all views to be {state}"), Duration::from_secs(30), || {
        let sql = "SELECT bool_and(state = $1) FROM eddy.views";
        let all: Option<bool> = client.query_one(sql, &[&state])?.get(0);
        Ok(all.unwrap_or(true).then_some(()))
    })
}

fn whole_dump_restores_views(cluster: &Cluster) -> Result<()> {
    restores_views(cluster, &[])
}

fn schema_dump_restores_views(cluster: &Cluster) -> Result<()> {
    restores_views(cluster, &["--schema-only"])
}

fn restores_views(cluster: &Cluster, options: &[&str]) -> Result<()> {
    let source = source_database(cluster, "dumped")?;
    let script = dump(cluster, "pg_dump", &[options, &["dumped"]].concat())?;
    let mut client = new_database(cluster, "restored")?;
    restore(cluster, "restored", &script, true)?;
    expect_restored(&mut client)?;
    drop((source, client));
    drop_database(cluster, "dumped")?;
    drop_database(cluster, "restored")
}

fn archive_restores_views(cluster: &Cluster) -> Result<()> {
    let source = source_database(cluster, "dumped")?;
    let archive = dump(cluster, "pg_dump", &["--format=custom", "dumped"])?;
    for options in [&["--exit-on-error"][..], &["--single-transaction"]] {
        let mut client = new_database(cluster, "restored")?;
        let arguments = [options, &["--dbname=restored"]].concat();
        let output = feed(cluster, "pg_restore", &arguments, &archive)?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "pg_restore {options:?}: {text}");
        expect_restored(&mut client)?;
        drop(client);
        drop_database(cluster, "restored")?;
    }
    drop(source);
    drop_database(cluster, "dumped")
}

fn single_view_is_restored(cluster: &Cluster) -> Result<()> {
    let source = source_database(cluster, "dumped")?;
    for options in [&[][..], &["--schema-only"]] {
        let mut client = new_database(cluster, "restored")?;
        client.batch_execute(
            "CREATE EXTENSION pg_eddy; CREATE TABLE edge (src int, dst int);
             INSERT INTO edge VALUES (1, 2), (2, 3)",
        )?;
        let script = dump(cluster, "pg_dump", &[options, &["--table=reach", "dumped"]].concat())?;
        restore(cluster, "restored", &script, true)?;
        expect_views(&mut client, "reach")?;
        if !options.is_empty() {
            // Nothing has told the table to identify its rows yet.
            expect_states(&mut client, "error")?;
            let Err(error) = client.query("SELECT * FROM reach", &[]) else {
                bail!("a view that cannot be maintained can be read")
            };
            let report = error.as_db_error().context("the session was lost")?;
            ensure!(report.message().contains("replica identity"), "the error is {report}");
            client.batch_execute(
                "SET client_min_messages = warning; REFRESH INCREMENTAL VIEW reach",
            )?;
        }
        expect_alive(&mut client)?;
        drop(client);
        drop_database(cluster, "restored")?;
    }
    drop(source);
    drop_database(cluster, "dumped")
}

fn single_schema_is_restored(cluster: &Cluster) -> Result<()> {
    let source = graph_database(cluster, "dumped")?;
    let script = dump(cluster, "pg_dump", &["--schema=public", "dumped"])?;
    let mut client = new_database(cluster, "restored")?;
    client.batch_execute("DROP SCHEMA public")?;
    let refused = restore(cluster, "restored", &script, true);
    expect_failure(refused, "extension \"pg_eddy\" does not exist")?;
    client.batch_execute("DROP SCHEMA public CASCADE; CREATE EXTENSION pg_eddy")?;
    restore(cluster, "restored", &script, true)?;
    expect_views(&mut client, "reach")?;
    expect_alive(&mut client)?;
    drop((source, client));
    drop_database(cluster, "dumped")?;
    drop_database(cluster, "restored")
}

fn views_without_labels_are_plain(cluster: &Cluster) -> Result<()> {
    let source = source_database(cluster, "dumped")?;
    let script = dump(cluster, "pg_dump", &["--no-security-labels", "dumped"])?;
    let mut client = new_database(cluster, "restored")?;
    restore(cluster, "restored", &script, true)?;
    expect_views(&mut client, "")?;
    client.batch_execute("INSERT INTO edge VALUES (3, 1)")?;
    expect_rows(&mut client, "reach", 3)?;
    // One label after the other makes them incremental: with the data they have, which then follow.
    for view in ["reach", "ids", "other.total", "a_double"] {
        client.batch_execute(&format!(
            "SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW {view} IS 'incremental'"
        ))?;
    }
    client.batch_execute(
        "SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW kept \
         IS 'incremental {\"changes\": \"86400 s\", \"storage\": \"table\", \"version\": 2}'",
    )?;
    expect_rows(&mut client, "reach", 9)?;
    expect_restored(&mut client)?;
    drop((source, client));
    drop_database(cluster, "dumped")?;
    drop_database(cluster, "restored")
}

fn dropped_extension_forgets(cluster: &Cluster) -> Result<()> {
    let mut client = source_database(cluster, "forgotten")?;
    expect_views(&mut client, VIEWS)?;
    // Others are kept from writing the table with rows of a view by a trigger, whose function goes.
    ensure!(client.batch_execute("DROP EXTENSION pg_eddy").is_err(), "a trigger has no function");
    client.batch_execute("DROP EXTENSION pg_eddy CASCADE")?;
    expect_rows(&mut client, "pg_seclabel", 0)?;
    client.batch_execute("DELETE FROM kept_table")?;
    client.batch_execute("CREATE EXTENSION pg_eddy; INSERT INTO edge VALUES (3, 1)")?;
    expect_views(&mut client, "")?;
    expect_rows(&mut client, "reach", 3)?;
    drop(client);
    drop_database(cluster, "forgotten")
}

/// The notes of which views were at work go with the extension, and with the database.
fn dropped_extension_leaves_no_file(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "without_notes")?;
    expect_alive(&mut client)?;
    let row = client
        .query_one("SELECT oid::text FROM pg_database WHERE datname = 'without_notes'", &[])?;
    let notes = cluster.data().join("pg_eddy").join(row.get::<_, String>(0));
    ensure!(notes.is_file(), "there is no {}", notes.display());
    client.batch_execute("DROP EXTENSION pg_eddy")?;
    wait_for("the notes to go", Duration::from_secs(30), || Ok((!notes.exists()).then_some(())))?;
    // And come back.
    client.batch_execute(
        "CREATE EXTENSION pg_eddy; CREATE INCREMENTAL VIEW sources AS SELECT count(*) FROM edge;",
    )?;
    client.query_one("SELECT * FROM sources", &[])?;
    ensure!(notes.is_file(), "there is no {} again", notes.display());
    drop(client);
    drop_database(cluster, "without_notes")?;
    wait_for("the notes to go", Duration::from_secs(30), || Ok((!notes.exists()).then_some(())))
}
