//! cube: joins of its values look at what is near.

use anyhow::{ensure, Context, Result};
use harness::cluster::Cluster;

use super::scene::{database, expect_range_join, expect_right, number};

pub fn check(cluster: &Cluster) -> Result<()> {
    let mut client = database(cluster, "cubes")?;
    client.batch_execute(
        "CREATE EXTENSION cube;
         CREATE TABLE body (id int GENERATED ALWAYS AS IDENTITY, c cube);
         INSERT INTO body (c) SELECT cube(ARRAY[x, y], ARRAY[x + width, y - width])
             FROM unnest('{-1,0,0.1,1e-300,1e300,inf,NaN}'::float8[]) x, unnest('{0,0.5,-1e300}'::float8[]) y,
                  unnest('{0,1,0.1}'::float8[]) width;
         INSERT INTO body (c) VALUES (NULL), ('()'), ('1'), ('(0,0,0,0)'), ('(-1,-1,-1),(2,2,2)'), ('(-inf,-inf),(inf,inf)')",
    )?;
    for condition in ["a.c && b.c", "a.c @> b.c", "a.c <@ b.c", "cube_enlarge(a.c, 0.2, 2) @> b.c"]
    {
        client.batch_execute(&format!(
            "CREATE INCREMENTAL VIEW met AS SELECT a.id, b.id AS other FROM body a JOIN body b ON {condition}"
        ))?;
        expect_range_join(&mut client, "met").with_context(|| condition.to_owned())?;
        expect_right(&mut client, "met")?;
        client.batch_execute(
            "UPDATE body SET c = cube_enlarge(c, 0.05, 2) WHERE id % 3 = 0; DELETE FROM body WHERE id % 11 = 0;
             INSERT INTO body (c) SELECT c FROM body WHERE id % 7 = 0",
        )?;
        expect_right(&mut client, "met")?;
        ensure!(number(&mut client, "SELECT count(*) FROM met")? > 0, "{condition}: nothing");
        client.batch_execute("DROP INCREMENTAL VIEW met")?;
    }
    // Anybody may have an operator of that name.
    client.batch_execute(
        "CREATE SCHEMA own;
         CREATE FUNCTION own.apart(cube, cube) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT NOT $1 OPERATOR(public.&&) $2';
         CREATE OPERATOR own.&& (LEFTARG = cube, RIGHTARG = cube, FUNCTION = own.apart);
         CREATE INCREMENTAL VIEW apart AS SELECT a.id, b.id AS other FROM body a JOIN body b ON a.c OPERATOR(own.&&) b.c",
    )?;
    expect_right(&mut client, "apart")?;
    ensure!(number(&mut client, "SELECT count(*) FROM apart")? > 0, "nothing is apart");
    Ok(())
}
