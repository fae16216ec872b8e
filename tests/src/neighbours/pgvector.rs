//! pgvector: vectors in views, compared and ordered by distance.

use anyhow::Result;
use harness::cluster::Cluster;

use super::scene::{database, expect_right};

pub fn check(cluster: &Cluster) -> Result<()> {
    let mut client = database(cluster, "vectors")?;
    client.batch_execute(
        "CREATE EXTENSION vector;
         CREATE TABLE item (id int PRIMARY KEY, grp int, v vector(3) NOT NULL);
         INSERT INTO item SELECT i, i % 4, ARRAY[i % 7, i % 11, i % 13]::vector FROM generate_series(1, 200) i;
         CREATE INCREMENTAL VIEW centre AS SELECT grp, avg(v) AS v, count(*) AS n FROM item GROUP BY grp;
         CREATE INCREMENTAL VIEW nearest AS
             SELECT id, v <-> '[3,3,3]' AS distance FROM item ORDER BY v <-> '[3,3,3]', id LIMIT 10;
         CREATE INCREMENTAL VIEW same AS SELECT v, count(*) AS n FROM item GROUP BY v",
    )?;
    for change in [
        "UPDATE item SET v = '[3,3,2]' WHERE id % 50 = 0",
        "DELETE FROM item WHERE v <-> '[3,3,3]' < 1",
        "INSERT INTO item VALUES (999, 1, '[3,3,3]')",
    ] {
        client.batch_execute(change)?;
        for view in ["centre", "nearest", "same"] {
            expect_right(&mut client, view)?;
        }
    }
    Ok(())
}
