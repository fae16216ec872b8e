//! pg_partman: partitions come, take over rows of the default one, and go, beneath views that follow.

use anyhow::{ensure, Result};
use harness::cluster::Cluster;

use super::scene::{database, expect_right, number};

pub fn check(cluster: &Cluster) -> Result<()> {
    let mut client = database(cluster, "parted")?;
    client.batch_execute(
        "CREATE SCHEMA partman;
         CREATE EXTENSION pg_partman SCHEMA partman;
         CREATE TABLE public.event (at timestamptz NOT NULL, kind int, PRIMARY KEY (at, kind)) PARTITION BY RANGE (at);
         SELECT partman.create_parent('public.event', 'at', 'native', 'daily', p_premake := 2);
         CREATE INCREMENTAL VIEW kinds AS SELECT kind, count(*) AS n, max(at) AS last FROM event GROUP BY kind;
         INSERT INTO event SELECT now() - i * interval '1 hour', i % 3 FROM generate_series(1, 400) i",
    )?;
    expect_right(&mut client, "kinds")?;
    let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'event'::regclass";
    let before = number(&mut client, partitions)?;
    // By itself: it commits. Most rows went to the default partition, and move into their own.
    client.batch_execute("CALL partman.partition_data_proc('public.event')")?;
    let after = number(&mut client, partitions)?;
    ensure!(after > before, "{before} partitions became {after}");
    ensure!(number(&mut client, "SELECT sum(n)::bigint FROM kinds")? == 400);
    expect_right(&mut client, "kinds")?;
    client.batch_execute(
        "UPDATE event SET kind = kind + 10 WHERE kind = 1; DELETE FROM event WHERE kind = 2",
    )?;
    expect_right(&mut client, "kinds")?;
    client.batch_execute(
        "UPDATE partman.part_config SET retention = '5 days', retention_keep_table = false;
         SELECT partman.run_maintenance('public.event')",
    )?;
    let left = number(&mut client, partitions)?;
    ensure!(left < after, "no partition was dropped of {after}");
    expect_right(&mut client, "kinds")?;
    client.batch_execute("INSERT INTO event VALUES (now(), 77)")?;
    ensure!(number(&mut client, "SELECT n FROM kinds WHERE kind = 77")? == 1);
    expect_right(&mut client, "kinds")
}
