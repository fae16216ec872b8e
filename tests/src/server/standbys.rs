//! A standby has the views as they were at each point that it has replayed, and says what they are.

use std::path::Path;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use postgres::Client;

use crate::graph::{drop_database, expect_rows, graph_database};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Compares a standby of a cluster with it.
pub fn check(primary: &Cluster, folder: &Path) -> Result<()> {
    let mut client = graph_database(primary, "replayed")?;
    client
        .batch_execute("CREATE INCREMENTAL VIEW broken AS SELECT 1 / (src - 3) AS q FROM edge")?;
    expect_rows(&mut client, "reach", 3)?;
    let standby = primary.start_standby(folder, "standby")?;
    let mut replica = standby.connect("replayed")?;
    client.batch_execute("INSERT INTO edge VALUES (3, 1)")?;
    expect_rows(&mut client, "reach", 9)?;
    let applied = applied_lsn(&mut client)?;
    wait_for("the primary's rows to be replayed", TIMEOUT, || {
        let sql = "SELECT (SELECT count(*) FROM reach) = 9, \
                   (SELECT applied_lsn FROM eddy.progress) >= $1::text::pg_lsn";
        let row = replica.query_one(sql, &[&applied])?;
        let (rows, progress): (bool, bool) = (row.get(0), row.get(1));
        ensure!(rows || !progress, "progress is ahead of the view");
        Ok((rows && progress).then_some(()))
    })?;
    expect_rows(&mut replica, "eddy.view_catalog", 2)?;
    // Both know of the error, as soon as they have the rows; and that it is gone.
    let failed = "error 22012 division by zero, stopped  ";
    wait_for("the error to be replayed", TIMEOUT, || {
        Ok((states(&mut replica)? == failed).then_some(()))
    })?;
    let Err(error) = replica.query("SELECT q FROM broken", &[]) else { bail!("no error") };
    let code = error.code().context("the session was lost")?.code();
    ensure!(code == "22012", "SQLSTATE {code} on the standby");
    client.batch_execute("DELETE FROM edge WHERE src = 3")?;
    expect_rows(&mut client, "broken", 2)?;
    wait_for("the end of the error to be replayed", TIMEOUT, || {
        Ok((states(&mut replica)? == "stopped  , stopped  ").then_some(()))
    })?;
    expect_rows(&mut client, "eddy.view_states", 0)?;
    drop((client, replica));
    tells_what_it_lacks(standby)?;
    drop_database(primary, "replayed")
}

/// A standby whose settings are not those of its primary.
fn tells_what_it_lacks(mut standby: Cluster) -> Result<()> {
    let sql = "SELECT string_agg(level || ': ' || message, ', ') FROM eddy.check()";
    for (setting, wanted) in [
        ("wal_level=logical", None),
        ("wal_level=replica", Some("warning: wal_level is not logical on this standby")),
        ("shared_preload_libraries=", Some("error: pg_eddy is not in shared_preload_libraries")),
    ] {
        standby.restart_with(&["-c", setting])?;
        let mut replica = standby.connect("replayed")?;
        let found: Option<String> = replica.query_one(sql, &[])?.get(0);
        let is_told = match (&found, wanted) {
            (Some(found), Some(wanted)) => found.starts_with(wanted) && !found.contains(", "),
            (found, wanted) => found.is_none() && wanted.is_none(),
        };
        ensure!(is_told, "with {setting} eddy.check() finds {found:?}");
    }
    Ok(())
}

/// What `eddy.views` says of the two views; on a standby no worker runs.
fn states(client: &mut Client) -> Result<String> {
    let one = "state || ' ' || coalesce(sqlstate, '') || ' ' || \
               CASE state WHEN 'error' THEN message ELSE '' END";
    let sql = format!("SELECT string_agg({one}, ', ' ORDER BY relation::text) FROM eddy.views");
    Ok(client.query_one(&sql, &[])?.get(0))
}

fn applied_lsn(client: &mut Client) -> Result<String> {
    Ok(client.query_one("SELECT applied_lsn::text FROM eddy.progress", &[])?.get(0))
}
