//! The demo: what needs what among the packages of Debian 12, kept up to date while they change.

use std::fs::File;
use std::io::{BufReader, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use flate2::read::GzDecoder;
use harness::cluster::Cluster;
use harness::installation::Build;
use harness::timing::{readable, timed};
use postgres::Client;

const DATA: &str = "tests/demo/debian-depends.tsv.gz";

const TABLES: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE TABLE depends (package text NOT NULL, dependency text NOT NULL);
    CREATE TABLE watched (package text PRIMARY KEY);
    INSERT INTO watched VALUES ('libssl3'), ('libsqlite3-0'), ('python3');";

/// Name and query of each view. No package is further than 15 steps from a watched one.
const VIEWS: [(&str, &str); 3] = [
    (
        "needed_by",
        "WITH RECURSIVE n(watched, package) AS (
    SELECT package, package FROM watched
    UNION
    SELECT n.watched, d.package FROM n JOIN depends d ON d.dependency = n.package
) SELECT watched, package FROM n",
    ),
    (
        "needed_count",
        "WITH RECURSIVE n(watched, package) AS (
    SELECT package, package FROM watched
    UNION
    SELECT n.watched, d.package FROM n JOIN depends d ON d.dependency = n.package
) SELECT watched, count(*) AS packages FROM n GROUP BY watched",
    ),
    (
        "distance",
        "WITH RECURSIVE n(watched, package, steps) AS (
    SELECT package, package, 0 FROM watched
    UNION
    SELECT n.watched, d.package, n.steps + 1 FROM n JOIN depends d ON d.dependency = n.package
    WHERE n.steps < 20
) SELECT watched, package, min(steps) AS steps FROM n GROUP BY watched, package",
    ),
];

/// What is done to the base tables; each is one transaction.
const CHANGES: [(&str, &str); 10] = [
    (
        "libcurl4 no longer needs libssl3",
        "DELETE FROM depends WHERE package = 'libcurl4' AND dependency = 'libssl3'",
    ),
    ("libcurl4 needs libssl3 again", "INSERT INTO depends VALUES ('libcurl4', 'libssl3')"),
    (
        "libqt5network5 no longer needs libssl3",
        "DELETE FROM depends WHERE package = 'libqt5network5' AND dependency = 'libssl3'",
    ),
    ("libqt5network5 needs it again", "INSERT INTO depends VALUES ('libqt5network5', 'libssl3')"),
    ("a new package needs python3", "INSERT INTO depends VALUES ('my-tool', 'python3')"),
    (
        "100 edges to libssl3 removed",
        "WITH gone AS (DELETE FROM depends WHERE (package, dependency) IN (
            SELECT package, dependency FROM depends WHERE dependency = 'libssl3'
            ORDER BY package LIMIT 100) RETURNING *) INSERT INTO aside SELECT * FROM gone",
    ),
    (
        "the 100 edges put back",
        "WITH back AS (DELETE FROM aside RETURNING *) INSERT INTO depends SELECT * FROM back",
    ),
    (
        "package openssl removed, all its edges",
        "WITH gone AS (DELETE FROM depends WHERE 'openssl' IN (package, dependency) RETURNING *)
         INSERT INTO aside SELECT * FROM gone",
    ),
    (
        "package openssl put back",
        "WITH back AS (DELETE FROM aside RETURNING *) INSERT INTO depends SELECT * FROM back",
    ),
    ("zlib1g is watched as well", "INSERT INTO watched VALUES ('zlib1g')"),
];

/// False when a view differed from its query.
pub fn run(cluster: &Cluster, build: &Build) -> Result<bool> {
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    let (rows, time) = timed(|| load(&mut client, build))?;
    println!("loaded {rows} dependencies between Debian 12 packages in {}", readable(time));
    client.batch_execute(
        "CREATE INDEX ON depends (dependency); CREATE INDEX ON depends (package);
         CREATE TABLE aside (LIKE depends); ANALYZE; SET eddy.read_timeout = '10min'",
    )?;
    for (name, query) in VIEWS {
        create_view(&mut client, name, query)?;
    }
    println!();
    for row in client.query("SELECT watched, packages FROM needed_count ORDER BY 1", &[])? {
        let (package, count): (String, i64) = (row.get(0), row.get(1));
        println!("{package} is needed by {count} packages, itself included");
    }
    println!(
        "\nfrom here on: COMMIT, then at once a read of the view, beside the query run afresh\n"
    );
    println!(
        "{:<40} {:>12} {:>13} {:>13}  right",
        "change", "rows changed", "COMMIT→fresh", "query afresh"
    );
    let mut all_right = true;
    for (label, sql) in CHANGES {
        all_right &= change(&mut client, label, sql)?;
    }
    Ok(all_right)
}

fn load(client: &mut Client, build: &Build) -> Result<u64> {
    let path = build.project.join(DATA);
    let file = File::open(&path).with_context(|| path.display().to_string())?;
    let mut data = GzDecoder::new(BufReader::new(file));
    let mut writer = client.copy_in("COPY depends FROM STDIN")?;
    std::io::copy(&mut data, &mut writer)?;
    Ok(writer.finish()?)
}

fn create_view(client: &mut Client, name: &str, query: &str) -> Result<()> {
    println!("\nCREATE INCREMENTAL VIEW {name} AS {query};");
    let ((), create) =
        timed(|| Ok(client.batch_execute(&format!("CREATE INCREMENTAL VIEW {name} AS {query}"))?))?;
    // The first fresh read waits until the dataflow has taken over.
    let (rows, attach) = timed(|| count(client, name))?;
    println!("-- {rows} rows; created in {}, live {} later", readable(create), readable(attach));
    Ok(())
}

fn count(client: &mut Client, name: &str) -> Result<i64> {
    Ok(client.query_one(&format!("SELECT count(*) FROM {name}"), &[])?.get(0))
}

/// Makes one change and prints one line of the table.
fn change(client: &mut Client, label: &str, sql: &str) -> Result<bool> {
    print!("{label:<40} ");
    std::io::stdout().flush()?;
    for (name, _) in VIEWS {
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS before_{name}; CREATE TEMP TABLE before_{name} AS TABLE {name}"
        ))?;
    }
    client.batch_execute(sql)?;
    // All views of a database are at the same point, so reading one is waiting for all.
    let fresh = timed(|| Ok(client.query("SELECT * FROM needed_count", &[])?))?.1;
    let changed = changed_rows(client)?;
    let afresh = run_afresh(client)?;
    let right = verify(client)?;
    println!(
        "{changed:>12} {:>13} {:>13}  {}",
        readable(fresh),
        readable(afresh),
        if right { "yes" } else { "NO" }
    );
    Ok(right)
}

/// Rows that went or came, over all views.
fn changed_rows(client: &mut Client) -> Result<i64> {
    let mut changed = 0;
    for (name, _) in VIEWS {
        let sql = format!(
            "SELECT (SELECT count(*) FROM (TABLE before_{name} EXCEPT ALL TABLE {name}) d)
                  + (SELECT count(*) FROM (TABLE {name} EXCEPT ALL TABLE before_{name}) d)"
        );
        changed += client.query_one(&sql, &[])?.get::<_, i64>(0);
    }
    Ok(changed)
}

/// Time of the three queries when they are run as such.
fn run_afresh(client: &mut Client) -> Result<Duration> {
    let mut total = Duration::ZERO;
    for (_, query) in VIEWS {
        total += timed(|| Ok(client.simple_query(query)?))?.1;
    }
    Ok(total)
}

/// No row missing and none surplus, in any view.
fn verify(client: &mut Client) -> Result<bool> {
    let mut right = true;
    for (name, _) in VIEWS {
        let row = client.query_one(&format!("SELECT * FROM eddy.verify_view('{name}')"), &[])?;
        let (missing, surplus): (i64, i64) = (row.get(0), row.get(1));
        right &= missing == 0 && surplus == 0;
    }
    Ok(right)
}
