//! A database with views of every kind, and what is expected of them after each operation.

use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use postgres::Client;

use crate::ledger::{self, differences, View, TABLES};

pub const DATABASE: &str = "bank";

/// Accounts, each with 1000 on it; writers move it between the first thousand.
const ACCOUNTS: i64 = 100_000;

const PATIENCE: Duration = Duration::from_secs(60);

/// Tables beside those of the ledger, and whose they are.
const MORE_TABLES: &str = "
    INSERT INTO account SELECT i, i % 10, 1000 FROM generate_series(1001, 100000) i;
    CREATE SCHEMA other;
    CREATE TABLE item (id int PRIMARY KEY, n int NOT NULL, at timestamptz NOT NULL DEFAULT now());
    INSERT INTO item SELECT i, i FROM generate_series(0, 20) i;
    CREATE FUNCTION grade(n int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
        $$BEGIN RETURN CASE WHEN n > 10 THEN 'high' ELSE 'low' END; END$$;";

/// Views over views, in another schema, of another owner, with code of users, filled by the worker, dependent on time.
const MORE_VIEWS: [View; 6] = [
    ("spread", "SELECT branch, total - low AS above FROM by_branch"),
    ("other.pairs", "SELECT count(*) AS pairs, max(a) AS last FROM reach"),
    ("grades", "SELECT public.grade(n) AS grade, count(*) FROM item GROUP BY 1"),
    ("kept", "SELECT id, n FROM item WHERE n > 3"),
    ("unfilled", "SELECT n % 3 AS third, count(*) FROM item GROUP BY 1"),
    ("recent", "SELECT id FROM item WHERE at > now() - interval '1 day'"),
];

/// The view in error as long as an item has n = 0.
const BROKEN: View = ("broken", "SELECT id, 100 / n AS share FROM item");

/// What stays beside the queries: indexes, options, owners, rights, comments.
const TRIMMINGS: &str = "
    CREATE UNIQUE INDEX reach_key ON reach (a, b);
    CREATE INDEX by_branch_total ON by_branch (total DESC);
    ALTER INCREMENTAL VIEW by_branch SET (fillfactor = 70);
    ALTER INCREMENTAL VIEW kept OWNER TO keeper;
    COMMENT ON INCREMENTAL VIEW reach IS 'pairs';
    GRANT SELECT ON total TO PUBLIC";

/// The role is the cluster's, so that it may be there already.
const KEEPER: &str = "
    DO $$BEGIN CREATE ROLE keeper; EXCEPTION WHEN duplicate_object THEN NULL; END$$;
    GRANT SELECT ON item TO keeper";

/// Makes the database in a cluster.
pub fn create(cluster: &Cluster) -> Result<Client> {
    let mut client = create_tables(cluster)?;
    create_views(&mut client)?;
    expect_right(&mut client)?;
    Ok(client)
}

/// The database without views.
pub fn create_tables(cluster: &Cluster) -> Result<Client> {
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {DATABASE}"))?;
    let mut client = cluster.connect(DATABASE)?;
    client.batch_execute("SET client_min_messages = warning")?;
    client.batch_execute(TABLES)?;
    client.batch_execute(MORE_TABLES)?;
    client.batch_execute(KEEPER)?;
    Ok(client)
}

pub fn create_views(client: &mut Client) -> Result<()> {
    for (name, query) in all() {
        let tail = if name == "unfilled" { "WITH NO DATA" } else { "" };
        client
            .batch_execute(&format!("CREATE INCREMENTAL VIEW {name} AS {query} {tail}"))
            .with_context(|| format!("creating view {name}"))?;
    }
    // The query cannot be run now.
    let (name, query) = BROKEN;
    client.batch_execute(&format!("CREATE INCREMENTAL VIEW {name} AS {query} WITH NO DATA"))?;
    Ok(client.batch_execute(TRIMMINGS)?)
}

/// All views but the one in error.
pub fn all() -> Vec<View> {
    [&ledger::VIEWS[..], &MORE_VIEWS].concat()
}

/// The views over accounts show a whole state: the sum of all balances never changes.
pub fn expect_whole(client: &mut Client) -> Result<()> {
    let sql =
        "SELECT total::bigint, accounts, (SELECT sum(total) FROM by_branch)::bigint FROM total";
    let row = client.query_one(sql, &[])?;
    let found: (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    let expected = (1000 * ACCOUNTS, ACCOUNTS, 1000 * ACCOUNTS);
    ensure!(found == expected, "the views over accounts have {found:?}");
    Ok(())
}

/// Each view equals its query, for a fresh read and by its own verification, and is live; the one in error says so.
pub fn expect_right(client: &mut Client) -> Result<()> {
    expect_equal(client)?;
    expect_error(client)?;
    let verify = "SELECT relation::text, missing, surplus FROM eddy.view_catalog, \
                  LATERAL eddy.verify_view(relation) WHERE relation <> 'broken'::regclass";
    let rows = client.query(verify, &[])?;
    ensure!(rows.len() == all().len(), "{} views are incremental", rows.len());
    for row in rows {
        let (name, missing, surplus): (String, i64, i64) = (row.get(0), row.get(1), row.get(2));
        ensure!((missing, surplus) == (0, 0), "{name}: {missing} missing, {surplus} surplus");
    }
    expect_states(client)
}

/// Each view that has no error equals its query.
pub fn expect_equal(client: &mut Client) -> Result<()> {
    let wrong = differences(client, &all())?;
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}

/// The view in error raises it.
pub fn expect_error(client: &mut Client) -> Result<()> {
    let Err(error) = client.query("SELECT * FROM broken", &[]) else { bail!("no error is raised") };
    let code = error.code().with_context(|| format!("the session was lost: {error}"))?.code();
    ensure!(code == "22012", "the error is {error:?}");
    Ok(())
}

fn expect_states(client: &mut Client) -> Result<()> {
    let sql = "SELECT string_agg(relation::text || ' is ' || state, ', ') FROM eddy.views \
               WHERE state <> CASE relation WHEN 'broken'::regclass THEN 'error' ELSE 'live' END";
    let mut last = String::new();
    wait_for("all views to be live", PATIENCE, || {
        let others: Option<String> = client.query_one(sql, &[])?.get(0);
        last = others.unwrap_or_default();
        Ok(last.is_empty().then_some(()))
    })
    .context(last)
}

/// Changes everything that views are over, and expects them to follow; the error heals and comes back.
pub fn expect_alive(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "UPDATE account SET balance = balance + CASE id WHEN 1 THEN 7 ELSE -7 END WHERE id IN (1, 2);
         DELETE FROM edge WHERE src < 10;
         INSERT INTO edge VALUES (3, 4), (4, 5), (5, 3), (60, 3);
         INSERT INTO history (moved) VALUES (7);
         UPDATE item SET n = n + 1 WHERE n >= 0;
         INSERT INTO item SELECT max(id) + 1, 50 FROM item",
    )?;
    let broken = differences(client, &[BROKEN])?;
    ensure!(broken.is_empty(), "{}", broken.join("; "));
    expect_whole(client)?;
    expect_equal(client)?;
    client.batch_execute("UPDATE item SET n = 0 WHERE id = 0")?;
    expect_right(client)
}
