//! A standby has the views as they were at each point that it has replayed, and says what they are.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Result};
use postgres::Client;

use crate::cluster::{wait_for, Cluster};
use crate::server::{drop_database, expect_rows, graph_database};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Compares a standby of a cluster with it.
pub fn check(primary: &Cluster, folder: &Path) -> Result<()> {
    let mut client = graph_database(primary, "replayed")?;
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
    expect_rows(&mut replica, "eddy.view_catalog", 1)?;
    let row = replica.query_one("SELECT state, message FROM eddy.views", &[])?;
    let (state, message): (String, Option<String>) = (row.get(0), row.get(1));
    let message = message.unwrap_or_default();
    ensure!(state == "stopped" && message.contains("recovery"), "it is {state}: {message}");
    drop((client, replica, standby));
    drop_database(primary, "replayed")
}

fn applied_lsn(client: &mut Client) -> Result<String> {
    Ok(client.query_one("SELECT applied_lsn::text FROM eddy.progress", &[])?.get(0))
}
