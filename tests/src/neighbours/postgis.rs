//! PostGIS: its types, operators and functions in views, evaluated by PostgreSQL.

use anyhow::{ensure, Result};
use harness::cluster::Cluster;

use super::scene::{database, expect_right};

pub fn check(cluster: &Cluster) -> Result<()> {
    let mut client = database(cluster, "mapped")?;
    client.batch_execute(
        // It refuses to be created where pgaudit logs all.
        "SET pgaudit.log = 'none';
         CREATE EXTENSION postgis;
         RESET pgaudit.log;
         CREATE TABLE place (id int PRIMARY KEY, at geometry(Point, 4326) NOT NULL);
         CREATE TABLE area (id int PRIMARY KEY, shape geometry(Polygon, 4326) NOT NULL);
         INSERT INTO place SELECT i, ST_SetSRID(ST_MakePoint(i % 30, i / 30), 4326) FROM generate_series(1, 300) i;
         INSERT INTO area SELECT i, ST_MakeEnvelope(i * 5, i, i * 5 + 4, i + 6, 4326) FROM generate_series(0, 5) i;
         CREATE INCREMENTAL VIEW inside AS
             SELECT a.id, count(*) AS places, ST_AsText(ST_Extent(p.at)::geometry) AS extent
             FROM area a JOIN place p ON a.shape && p.at AND ST_Contains(a.shape, p.at) GROUP BY a.id;
         CREATE INCREMENTAL VIEW near AS
             SELECT p.id AS a, q.id AS b, ST_Distance(p.at, q.at) AS distance
             FROM place p JOIN place q ON p.id < q.id AND ST_DWithin(p.at, q.at, 1.1);
         CREATE INCREMENTAL VIEW hashes AS
             SELECT ST_GeoHash(at, 3) AS hash, count(*) AS n, ST_Extent(at)::text AS extent FROM place GROUP BY 1",
    )?;
    // Its transition function is declared volatile.
    let collected = "CREATE INCREMENTAL VIEW collected AS SELECT ST_Collect(at) FROM place";
    let refused = client.batch_execute(collected);
    let code = refused.err().and_then(|error| error.code().map(|code| code.code().to_owned()));
    ensure!(code.as_deref() == Some("0A000"), "ST_Collect: {code:?}");
    let views = ["inside", "near", "hashes"];
    for change in [
        "UPDATE place SET at = ST_Translate(at, 0.5, 0.25) WHERE id % 7 = 0",
        "DELETE FROM place WHERE id % 5 = 0",
        "UPDATE area SET shape = ST_MakeEnvelope(0, 0, 12, 12, 4326) WHERE id = 3",
        "INSERT INTO place SELECT i, ST_SetSRID(ST_MakePoint(3, 3), 4326) FROM generate_series(400, 404) i",
    ] {
        client.batch_execute(change)?;
        for view in views {
            expect_right(&mut client, view)?;
        }
    }
    Ok(())
}
