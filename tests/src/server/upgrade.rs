//! Versions: SQL objects of an earlier version work with this library, their update makes what a fresh install has and
//! disturbs nobody, and what is of a version that the library does not know is said, or left alone.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use harness::installation::Installation;
use postgres::Client;

use super::check::{expect_hint, Record};
use crate::graph::{expect_alive, expect_rows, worker_pid, EDGES};

const PATIENCE: Duration = Duration::from_secs(60);

/// What there was first.
const FORMER: &str = "0.1.0";

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    match Cluster::start_new(installation, folder, "versions", &[("fsync", "off")]) {
        Err(error) => record("a server to update the extension in", Err(error)),
        Ok(mut cluster) => {
            let former = former_objects_work(&cluster);
            record("SQL objects of the version before work with this library", former);
            record(
                "an update of the extension makes what a fresh install has",
                objects_are_equal(&cluster),
            );
            record(
                "an update leaves grants and views over the extension's",
                users_keep_theirs(&cluster),
            );
            record("an update goes on beside reads and writes", update_is_not_noticed(&cluster));
            record("an update can be rolled back", update_is_rolled_back(&cluster));
            record(
                "SQL objects of a later version are refused with a hint",
                later_is_refused(&mut cluster),
            );
            record(
                "a library file that is replaced is loaded at the next start",
                file_is_replaced(&mut cluster),
            );
            record(
                "an update is refused while the server has the library before",
                former_library_refuses(&mut cluster),
            );
            record("marks of another form are ignored", foreign_marks_are_ignored(&mut cluster));
        }
    }
}

fn database(cluster: &Cluster, name: &str, version: Option<&str>) -> Result<Client> {
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = cluster.connect(name)?;
    let create = match version {
        Some(version) => format!("CREATE EXTENSION pg_eddy VERSION '{version}'"),
        None => "CREATE EXTENSION pg_eddy".into(),
    };
    client.batch_execute(&EDGES.replace("CREATE EXTENSION pg_eddy", &create))?;
    Ok(client)
}

fn former_objects_work(cluster: &Cluster) -> Result<()> {
    let mut client = database(cluster, "former", Some(FORMER))?;
    expect_alive(&mut client)?;
    let sql = "SELECT relation::text, state, rows, lag_bytes >= 0, applied_lsn IS NOT NULL FROM eddy.views";
    let row = client.query_one(sql, &[])?;
    let found: (String, String, i64, bool, bool) =
        (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4));
    ensure!(found == ("reach".into(), "live".into(), 3, true, true), "eddy.views has {found:?}");
    let columns = client.query_one("SELECT * FROM eddy.views", &[])?.len();
    ensure!(columns == 14, "eddy.views has {columns} columns");
    let row = client.query_one("SELECT pid, steps, apply_ms FROM eddy.activity", &[])?;
    let (pid, steps, apply): (i32, i64, f64) = (row.get(0), row.get(1), row.get(2));
    ensure!(
        Some(pid) == worker_pid(&mut client)? && steps > 0 && apply > 0.0,
        "eddy.activity is wrong"
    );
    let log = cluster.log()?;
    ensure!(
        log.contains("run ALTER EXTENSION pg_eddy UPDATE"),
        "the log does not tell of the update"
    );
    Ok(())
}

/// Everything that the catalogs say of the extension's objects, as text without numbers of objects.
const OBJECTS: &str = "
    WITH member AS (
        SELECT d.classid, d.objid, pg_describe_object(d.classid, d.objid, 0) AS name
        FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
        WHERE e.extname = 'pg_eddy' AND d.deptype = 'e')
    SELECT 'member ' || name FROM member
    UNION ALL SELECT format('function %s: %s', name, pg_get_functiondef(objid)) FROM member WHERE classid = 'pg_proc'::regclass
    UNION ALL SELECT format('grants of function %s: %s', name, proacl) FROM member JOIN pg_proc p ON p.oid = objid AND classid = 'pg_proc'::regclass
    UNION ALL SELECT format('relation %s: %s %s %s %s %s', name, relkind, relacl, reloptions, relreplident, pg_get_viewdef(objid))
        FROM member JOIN pg_class c ON c.oid = objid AND classid = 'pg_class'::regclass
    UNION ALL SELECT format('column %s of %s: %s %s %s %s', attnum, name, attname, format_type(atttypid, atttypmod), attnotnull, attacl)
        FROM member JOIN pg_attribute a ON a.attrelid = objid AND classid = 'pg_class'::regclass AND attnum > 0
    UNION ALL SELECT format('comment on %s %s: %s', name, objsubid, description)
        FROM member m JOIN pg_description c ON c.classoid = m.classid AND c.objoid = m.objid
    UNION ALL SELECT format('first grants of %s %s: %s %s', name, objsubid, privtype, initprivs)
        FROM member m JOIN pg_init_privs i ON i.classoid = m.classid AND i.objoid = m.objid
    UNION ALL SELECT format('%s depends on %s: %s', coalesce(name, pg_describe_object(d.classid, d.objid, d.objsubid)),
            pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid), d.deptype)
        FROM pg_depend d LEFT JOIN member m ON m.classid = d.classid AND m.objid = d.objid
        WHERE (m.objid IS NOT NULL OR (d.refclassid, d.refobjid) IN (SELECT classid, objid FROM member)
            OR (d.classid = 'pg_rewrite'::regclass AND d.objid IN (
                SELECT r.oid FROM pg_rewrite r JOIN member v ON v.classid = 'pg_class'::regclass AND v.objid = r.ev_class)))
            AND pg_describe_object(d.classid, d.objid, 0) !~ 'reach|toast'
    UNION ALL SELECT format('extension: %s %s', extversion, extconfig) FROM pg_extension WHERE extname = 'pg_eddy'
    ORDER BY 1";

fn objects(client: &mut Client) -> Result<Vec<String>> {
    Ok(client.query(OBJECTS, &[])?.iter().map(|row| row.get(0)).collect())
}

fn objects_are_equal(cluster: &Cluster) -> Result<()> {
    let mut updated = database(cluster, "updated", Some(FORMER))?;
    updated.batch_execute("ALTER EXTENSION pg_eddy UPDATE")?;
    let mut fresh = database(cluster, "fresh", None)?;
    let (updated, fresh) = (objects(&mut updated)?, objects(&mut fresh)?);
    let only = |left: &[String], right: &[String]| {
        let lacks = |line: &&String| !right.contains(line);
        left.iter().filter(lacks).cloned().collect::<Vec<_>>().join("\n")
    };
    let (more, less) = (only(&updated, &fresh), only(&fresh, &updated));
    ensure!(updated == fresh, "only after an update:\n{more}\nonly after a fresh install:\n{less}");
    println!("server: {} things that the catalogs say of the extension are equal", fresh.len());
    ensure!(fresh.len() > 350, "the catalogs tell only {} things", fresh.len());
    Ok(())
}

fn users_keep_theirs(cluster: &Cluster) -> Result<()> {
    let mut client = database(cluster, "kept", Some(FORMER))?;
    client.batch_execute(
        "CREATE ROLE watcher; REVOKE SELECT ON eddy.views FROM PUBLIC; GRANT SELECT ON eddy.views TO watcher;
         CREATE VIEW watched AS SELECT relation, state, lag_ms FROM eddy.views;
         CREATE VIEW busy AS SELECT pid, steps FROM eddy.activity;
         ALTER EXTENSION pg_eddy UPDATE",
    )?;
    expect_alive(&mut client)?;
    let sql = "SELECT has_table_privilege('watcher', 'eddy.views', 'SELECT'), \
               (SELECT relacl::text NOT LIKE '%,=r/%' FROM pg_class WHERE oid = 'eddy.views'::regclass), \
               (SELECT count(*) FROM watched), (SELECT count(*) FROM busy)";
    let row = client.query_one(sql, &[])?;
    let found: (bool, bool, i64, i64) = (row.get(0), row.get(1), row.get(2), row.get(3));
    ensure!(found == (true, true, 1, 1), "grants and views: {found:?}");
    Ok(())
}

/// Sessions that were there before, the worker among them, go on.
fn update_is_not_noticed(cluster: &Cluster) -> Result<()> {
    let mut client = database(cluster, "beside", Some(FORMER))?;
    expect_alive(&mut client)?;
    let mut other = cluster.connect("beside")?;
    other.batch_execute("PREPARE look AS SELECT relation, state FROM eddy.views; EXECUTE look")?;
    let pid = worker_pid(&mut client)?;
    client
        .batch_execute("BEGIN; ALTER EXTENSION pg_eddy UPDATE; INSERT INTO edge VALUES (3, 1)")?;
    expect_rows(&mut other, "reach", 3)?;
    client.batch_execute("COMMIT")?;
    for session in [&mut other, &mut client] {
        expect_rows(session, "reach", 9)?;
        let sql = "SELECT state, starts, phase IS NULL FROM eddy.views";
        let row = session.query_one(sql, &[])?;
        let found: (String, i64, bool) = (row.get(0), row.get(1), row.get(2));
        ensure!(found == ("live".into(), 1, true), "eddy.views has {found:?}");
    }
    other.batch_execute("EXECUTE look; DELETE FROM edge WHERE src = 3")?;
    expect_alive(&mut client)?;
    expect_alive(&mut other)?;
    ensure!(worker_pid(&mut client)? == pid, "the worker ended");
    let label = "SELECT label FROM pg_seclabels WHERE objname = 'reach'";
    ensure!(client.query(label, &[])?.len() == 1, "the view is not incremental any more");
    let row = client.query_one("SELECT missing + surplus FROM eddy.verify_view('reach')", &[])?;
    ensure!(row.get::<_, i64>(0) == 0, "the view is wrong");
    Ok(())
}

fn update_is_rolled_back(cluster: &Cluster) -> Result<()> {
    let mut client = database(cluster, "undone", Some(FORMER))?;
    let before = objects(&mut client)?;
    client.batch_execute(
        "BEGIN; ALTER EXTENSION pg_eddy UPDATE; SELECT FROM eddy.check(); ROLLBACK",
    )?;
    ensure!(objects(&mut client)? == before, "something is left of the update");
    expect_alive(&mut client)
}

fn later_is_refused(cluster: &mut Cluster) -> Result<()> {
    let share = cluster.installation().share.join("extension");
    let script = share.join("pg_eddy--0.2.0--99.0.0.sql");
    fs::write(&script, "COMMENT ON SCHEMA eddy IS 'of another time';")?;
    let mut client = database(cluster, "later", None)?;
    expect_alive(&mut client)?;
    client.batch_execute("ALTER EXTENSION pg_eddy UPDATE TO '99.0.0'")?;
    fs::remove_file(script)?;
    // Who works goes on; who starts looks.
    expect_alive(&mut client)?;
    drop(client);
    cluster.restart_with(&[])?;
    let mut client = cluster.connect("later")?;
    let told = wait_for("the version to be told", PATIENCE, || {
        let row = client.query_one("SELECT state, message FROM eddy.views", &[])?;
        let message: Option<String> = row.get(1);
        let message = message.filter(|message| message.contains("later version"));
        Ok(message.map(|message| (row.get::<_, String>(0), message)))
    })?;
    ensure!(told.0 == "stopped", "the state is {}", told.0);
    client.batch_execute("SET eddy.read_timeout = '200ms'")?;
    let error = client.query("SELECT FROM reach", &[]).err().context("a read did not fail")?;
    let error = error.as_db_error().context("the session was lost")?;
    let text = format!("{error} {}", error.detail().unwrap_or_default());
    ensure!(text.contains("later version"), "a reader is told {text}");
    expect_hint(
        &mut client,
        "CREATE INCREMENTAL VIEW more AS SELECT src FROM edge",
        "Restart the server",
    )?;
    let sql = "SELECT remedy FROM eddy.check() WHERE subject = 'extension'";
    let remedy: String = client.query_one(sql, &[])?.get(0);
    ensure!(remedy.contains("restart"), "eddy.check() says {remedy}");
    // The others are served.
    expect_alive(&mut cluster.connect("former")?)
}

/// The server goes on with what it has loaded: all its processes come from the one that loaded the library. What comes in
/// place of the file is loaded at the next start.
fn file_is_replaced(cluster: &mut Cluster) -> Result<()> {
    let library = cluster.installation().lib.join("pg_eddy.so");
    let kept = cluster.installation().lib.join("pg_eddy.so.kept");
    fs::rename(&library, &kept)?;
    // Whoever loaded that would fail.
    fs::write(&library, "of another time")?;
    let outcome = work_after_replacement(cluster);
    fs::rename(&kept, &library)?;
    outcome?;
    cluster.restart_with(&[])?;
    expect_alive(&mut cluster.connect("former")?)
}

fn work_after_replacement(cluster: &Cluster) -> Result<()> {
    let mut client = cluster.connect("former")?;
    expect_alive(&mut client)?;
    client.batch_execute("SELECT eddy.explain_view('reach'); SELECT FROM eddy.views")?;
    // A worker that starts now is a child of the same process, too; and so is that of a new database.
    let pid = worker_pid(&mut client)?.context("there is no worker")?;
    client.batch_execute(&format!("SELECT pg_terminate_backend({pid})"))?;
    wait_for("a new worker", PATIENCE, || Ok(worker_pid(&mut client)?.filter(|new| *new != pid)))?;
    expect_alive(&mut client)?;
    let mut client = database(cluster, "between", None)?;
    expect_alive(&mut client)
}

/// A library without what only this version has stands for the one before.
fn former_library_refuses(cluster: &mut Cluster) -> Result<()> {
    let library = cluster.installation().lib.join("pg_eddy.so");
    let kept = cluster.installation().lib.join("pg_eddy.so.kept");
    let (new, old) = (b"eddy_0_2_is_loaded", b"eddy_0_1_is_loaded");
    let mut bytes = fs::read(&library)?;
    let places: Vec<usize> =
        (0..bytes.len() - new.len()).filter(|at| bytes[*at..].starts_with(new)).collect();
    ensure!(!places.is_empty(), "the library has no such name");
    for at in places {
        bytes[at..at + new.len()].copy_from_slice(old);
    }
    fs::rename(&library, &kept)?;
    fs::write(&library, bytes)?;
    let outcome = cluster.restart_with(&[]).and_then(|()| expect_refusals(cluster));
    fs::rename(&kept, &library)?;
    outcome?;
    cluster.restart_with(&[])?;
    let mut client = cluster.connect("former")?;
    expect_alive(&mut client)?;
    client.batch_execute("ALTER EXTENSION pg_eddy UPDATE")?;
    expect_alive(&mut client)
}

fn expect_refusals(cluster: &Cluster) -> Result<()> {
    cluster.connect("postgres")?.batch_execute("CREATE DATABASE too_early")?;
    for (database, sql) in
        [("former", "ALTER EXTENSION pg_eddy UPDATE"), ("too_early", "CREATE EXTENSION pg_eddy")]
    {
        let mut client = cluster.connect(database)?;
        let error = client.batch_execute(sql).err().context("there was no error")?;
        let error = error.as_db_error().context("the session was lost")?.message().to_owned();
        ensure!(error.contains("eddy_0_2_is_loaded_when_the_server_restarts"), "{sql}: {error}");
    }
    expect_alive(&mut cluster.connect("former")?)
}

fn foreign_marks_are_ignored(cluster: &mut Cluster) -> Result<()> {
    let sql = "SELECT oid::text FROM pg_database WHERE datname = 'former'";
    let oid: String = cluster.connect("postgres")?.query_one(sql, &[])?.get(0);
    cluster.stop()?;
    // Each byte is one that means something in marks: views, work, deaths.
    let file = cluster.data().join("pg_eddy").join(oid);
    let length = fs::metadata(&file)?.len();
    fs::write(&file, vec![7; usize::try_from(length)?])?;
    cluster.start()?;
    expect_alive(&mut cluster.connect("former")?)?;
    let log = cluster.log()?;
    ensure!(log.contains("have another form, 07070707"), "the log does not tell of the marks");
    // A shorter one, as of a smaller layout, is made longer.
    cluster.stop()?;
    fs::write(&file, [7; 16])?;
    cluster.start()?;
    expect_alive(&mut cluster.connect("former")?)
}
