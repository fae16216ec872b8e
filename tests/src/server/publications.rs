//! Logical replication beside incremental views: a publication of all tables has the user's, and nothing of the
//! extension, so subscribers with and without it go on while views change.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use harness::installation::Installation;
use postgres::Client;

use crate::graph::{drop_database, expect_rows, graph_database};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Replicates a database with a view into two of another server, one of which has the extension.
pub fn check(publisher: &Cluster, installation: &Installation, folder: &Path) -> Result<()> {
    let mut source = graph_database(publisher, "published")?;
    source.batch_execute("CREATE PUBLICATION everything FOR ALL TABLES")?;
    let subscriber = Cluster::start_new(installation, folder, "subscriber", &[("fsync", "off")])?;
    let mut with = subscribe(publisher, &subscriber, "with_extension", "CREATE EXTENSION pg_eddy")?;
    let mut without = subscribe(publisher, &subscriber, "without_extension", "")?;
    with.batch_execute(
        "ALTER TABLE edge REPLICA IDENTITY FULL;
         CREATE INCREMENTAL VIEW degree AS SELECT src, count(*) FROM edge GROUP BY src",
    )?;
    for round in 1..=20 {
        source.batch_execute(&format!(
            "INSERT INTO edge VALUES (3, {0} + 3); DELETE FROM edge WHERE dst = {0} + 2 AND src = 3",
            round
        ))?;
        // The view changes, and with it what the worker notes of itself.
        expect_rows(&mut source, "reach", 6)?;
        expect_edges(&mut with, round + 3)?;
        expect_edges(&mut without, round + 3)?;
        expect_rows(&mut with, "degree", 3)?;
    }
    let published = "(SELECT FROM pg_publication_tables WHERE schemaname = 'eddy') AS own";
    expect_rows(&mut source, published, 0)?;
    with.batch_execute("DROP SUBSCRIPTION with_extension")?;
    without.batch_execute("DROP SUBSCRIPTION without_extension")?;
    drop((source, with, without));
    drop_database(publisher, "published")
}

fn subscribe(
    publisher: &Cluster,
    subscriber: &Cluster,
    name: &str,
    prepare: &str,
) -> Result<Client> {
    subscriber.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = subscriber.connect(name)?;
    client.batch_execute(prepare)?;
    client.batch_execute("CREATE TABLE edge (src int, dst int)")?;
    let address = format!("host={} port=5432", publisher.socket_folder().display());
    client.batch_execute(&format!(
        "CREATE SUBSCRIPTION {name} CONNECTION '{address} user=postgres dbname=published' \
         PUBLICATION everything"
    ))?;
    Ok(client)
}

/// Waits until the third node's edge leads to `dst` and to nothing else.
fn expect_edges(client: &mut Client, dst: i32) -> Result<()> {
    let arrived = wait_for(&format!("edge (3, {dst}) to be replicated"), TIMEOUT, || {
        let row = client.query_one("SELECT array_agg(dst) FROM edge WHERE src = 3", &[])?;
        Ok((row.get::<_, Option<Vec<i32>>>(0) == Some(vec![dst])).then_some(()))
    });
    let failed = "SELECT count(*) FROM pg_stat_subscription_stats WHERE apply_error_count + sync_error_count > 0";
    let errors: i64 = client.query_one(failed, &[])?.get(0);
    ensure!(errors == 0, "a subscription has failed");
    arrived.context("nothing is replicated any more")
}
