//! PostGIS: its types, operators and functions in views, evaluated by PostgreSQL.

use anyhow::{ensure, Context, Result};
use harness::cluster::Cluster;
use postgres::Client;

use super::scene::{database, expect_range_join, expect_right, number};

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
    are_found_by_place(&mut client)
}

/// Joins look at what is near, and find what PostGIS finds: also where boxes have been rounded, are empty, or are far out. What
/// its functions say of coordinates like those depends on what they were asked before, so they are asked of others.
fn are_found_by_place(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE odd (id int GENERATED ALWAYS AS IDENTITY, g geometry, reach float8);
         INSERT INTO odd (g, reach) SELECT ST_MakePoint(x, y), 0.3
             FROM unnest('{0,1e-300,-1e-300,1e-45,0.1,0.10000000149,0.1000000001,1,1.00000001,4e38,-4e38,1e300}'::float8[]) x,
                  unnest('{0,1e-300,0.1,3}'::float8[]) y;
         INSERT INTO odd (g, reach) SELECT ST_MakeEnvelope(x, y, x + width, y + width), width
             FROM unnest('{-1,-1e-300,0,0.1,0.3,1e30}'::float8[]) x, unnest('{-0.1,0,2}'::float8[]) y,
                  unnest('{0.1,1,1e-7}'::float8[]) width;
         INSERT INTO odd (g, reach) VALUES ('POINT EMPTY', 1), ('POLYGON EMPTY', 1), ('GEOMETRYCOLLECTION EMPTY', 1), (NULL, 1),
             ('LINESTRING(0 0, 5 5)', NULL), ('MULTIPOINT(0 0, 9 9)', 1e300), ('LINESTRING(-1 2, 0.1 0)', 0);
         CREATE TABLE spot AS SELECT id, g::geometry(Point) AS g, reach FROM odd WHERE ST_GeometryType(g) = 'ST_Point'",
    )?;
    for condition in ["a.g && b.g", "a.g ~ b.g", "a.g @ b.g"] {
        is_found_by_place(client, condition)?;
    }
    client.batch_execute(
        "UPDATE odd SET g = ST_SnapToGrid(g, 1e-7) WHERE abs(ST_XMin(g)) < 100;
         DELETE FROM odd WHERE abs(ST_XMin(g)) >= 100;
         DELETE FROM spot; INSERT INTO spot SELECT * FROM odd WHERE ST_GeometryType(g) = 'ST_Point'",
    )?;
    for condition in [
        "ST_Intersects(a.g, b.g)",
        "ST_Within(a.g, b.g)",
        "ST_Covers(a.g, b.g)",
        "ST_CoveredBy(a.g, b.g)",
        "ST_DWithin(a.g, b.g, 0.5)",
        "ST_DWithin(a.g, b.g, a.reach)",
        "ST_DWithin(a.g, b.g, b.reach)",
        "ST_Intersects(a.g, b.g) AND a.reach < 2",
    ] {
        is_found_by_place(client, condition)?;
    }
    Ok(())
}

fn is_found_by_place(client: &mut Client, condition: &str) -> Result<()> {
    for tables in
        ["odd a JOIN odd b", "odd a JOIN spot b", "spot a JOIN odd b", "spot a JOIN spot b"]
    {
        client.batch_execute(&format!(
            "CREATE INCREMENTAL VIEW found AS SELECT a.id, b.id AS other FROM {tables} ON {condition}"
        ))?;
        expect_range_join(client, "found").with_context(|| format!("{tables} ON {condition}"))?;
        expect_right(client, "found").with_context(|| condition.to_owned())?;
        client.batch_execute(
            "UPDATE odd SET g = ST_Translate(g, 0.1, 0) WHERE id % 3 = 0;
             UPDATE spot SET g = ST_Translate(g, -0.1, 0.1) WHERE id % 5 = 0;
             DELETE FROM odd WHERE id IN (SELECT min(id) FROM odd);
             INSERT INTO odd (g, reach) SELECT g, 1 FROM spot ORDER BY id LIMIT 1",
        )?;
        expect_right(client, "found").with_context(|| condition.to_owned())?;
        let found = number(client, "SELECT count(*) FROM found")?;
        ensure!(found > 0, "{tables} ON {condition}: nothing");
        client.batch_execute("DROP INCREMENTAL VIEW found")?;
    }
    Ok(())
}
