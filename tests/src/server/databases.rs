//! Databases beside each other, and what of views is left when databases, owners, schemas and the extension go.

use std::time::Duration;

use anyhow::{ensure, Result};
use harness::cluster::{wait_for, Cluster};

use super::check::Check;
use crate::graph::{
    drop_database, expect_alive, expect_rows, graph_database, while_worker_stands_still, worker_pid,
};

/// Checks that share one cluster.
pub const CHECKS: [(&str, Check); 8] = [
    ("databases are maintained independently", databases_are_independent),
    ("DROP DATABASE succeeds at once", drop_database_succeeds),
    ("a database can be renamed and copied", database_can_be_renamed_and_copied),
    ("DROP EXTENSION leaves plain materialized views", drop_extension_leaves_plain_views),
    ("views of a schema and an owner go with them", dependent_drops_leave_no_trace),
    ("many views live on one table", many_views),
    ("a view whose rows are replaced does not grow", small_view_stays_small),
    ("views are listed while one in error is being dropped", views_are_listed_during_drop),
];

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
    while_worker_stands_still(&mut client, |client| {
        client.batch_execute("DROP INCREMENTAL VIEW broken")?;
        expect_rows(client, "eddy.views", 1)
    })??;
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
