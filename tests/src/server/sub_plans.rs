//! Sub-plans that views have in common: computed once from the third view on, right whoever comes and goes, and whatever fails.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use harness::installation::Installation;
use postgres::Client;

use super::check::Record;
use super::indexes::{expect_query, expect_readers, explain, terminate_worker};

const PATIENCE: Duration = Duration::from_secs(30);

const TABLES: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE TABLE edge (src int, dst int, weight int);
    CREATE TABLE colored (node int PRIMARY KEY, color int);
    INSERT INTO edge SELECT i, i * 7 % 60, i % 5 FROM generate_series(1, 60) i;
    INSERT INTO edge VALUES (NULL, 1, 1), (1, NULL, 1), (1, 2, NULL), (1, 2, NULL);
    INSERT INTO colored SELECT i, i % 3 FROM generate_series(1, 50) i";

/// A recursion, and something else made of it by each view.
const PATHS: &str = "WITH RECURSIVE path(src, dst) AS (
    SELECT src, dst FROM edge WHERE weight > 0
    UNION SELECT p.src, e.dst FROM path p JOIN edge e ON e.src = p.dst WHERE e.weight > 0)";

const OF_PATHS: [&str; 5] = [
    "SELECT * FROM path",
    "SELECT src, count(*) AS n FROM path GROUP BY src",
    "SELECT c.color, p.dst FROM path p JOIN colored c ON c.node = p.src",
    "SELECT a.src, b.dst FROM path a JOIN path b ON a.dst = b.src AND a.src < 5",
    "SELECT e.src, e.dst, (SELECT count(*) FROM path p WHERE p.dst = e.src) AS n FROM edge e",
];

const CHANGES: [&str; 6] = [
    "INSERT INTO edge SELECT i, i % 9, 2 FROM generate_series(1, 30) i",
    "DELETE FROM edge WHERE src % 4 = 0",
    "BEGIN; UPDATE edge SET dst = dst % 10 WHERE src < 20; DELETE FROM colored WHERE node = 3; COMMIT",
    "UPDATE edge SET weight = 1 - weight",
    "BEGIN; TRUNCATE edge; INSERT INTO edge VALUES (1, 2, 1), (2, 3, 1), (3, 1, 1), (NULL, NULL, 1); COMMIT",
    "INSERT INTO edge SELECT i, i + 1, 1 FROM generate_series(3, 40) i",
];

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    record("views compute a recursion once that they have in common", once(installation, folder));
    record("an error in what they have in common is each view's own", fails(installation, folder));
    record("views compute once what they make of views and tables", mixed(installation, folder));
    record("views compute once what reads less of a table than they", narrow(installation, folder));
}

fn query(view: usize) -> String {
    format!("{PATHS} {}", OF_PATHS[view])
}

fn once(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "sub_plans", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    for view in 0..OF_PATHS.len() {
        create(&mut client, &format!("v{view}"), &query(view))?;
        if view == 1 {
            expect_readers(&mut client, "kind = 'recursion'", None).context("with two views")?;
        }
    }
    expect_readers(&mut client, "kind = 'recursion'", Some("{v2,v3,v4}"))
        .context("with all views")?;
    let explained = explain(&mut client, &query(0))?;
    let told = "Recursion of public.edge, with public.v2, public.v3, public.v4";
    ensure!(explained.contains(told), "EXPLAIN says {explained}");
    for change in CHANGES {
        client.batch_execute(change)?;
        expect_all_right(&mut client, 0).with_context(|| format!("after {change}"))?;
    }
    terminate_worker(&mut client)?;
    expect_all_right(&mut client, 0).context("after a start")?;
    expect_readers(&mut client, "kind = 'recursion'", Some("{v0,v1,v2,v3,v4}"))
        .context("after a start")?;
    // Figures of an engine that is another process come somewhat later than what it computes.
    wait_for("its figures", PATIENCE, || {
        let sql =
            "SELECT FROM eddy.arrangements WHERE kind = 'recursion' AND relations::text = '{edge}'
                   AND relation IS NULL AND rows > 0 AND state_bytes > 0";
        client.query_opt(sql, &[]).map_err(Into::into)
    })?;
    for (view, change) in (0..OF_PATHS.len()).zip(CHANGES) {
        client.batch_execute(change)?;
        client.batch_execute(&format!("DROP INCREMENTAL VIEW v{view}"))?;
        expect_all_right(&mut client, view + 1).with_context(|| format!("without v{view}"))?;
    }
    expect_readers(&mut client, "kind = 'recursion'", None).context("without views")?;
    cluster.print_crashes()
}

/// The quotients of a table, in groups, of which each view makes something else.
fn quotients(view: i64) -> String {
    format!(
        "SELECT q.share * {view} AS share, q.n FROM \
         (SELECT 100 / weight AS share, count(*) AS n FROM edge WHERE weight IS NOT NULL GROUP BY 1) q"
    )
}

/// Data that a common part fails for put all its views in error, until they are mended; those are right that have no part in it.
fn fails(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "sub_plan_error", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    client.batch_execute("DELETE FROM edge WHERE weight = 0")?;
    for view in 0..4 {
        create(&mut client, &format!("q{view}"), &quotients(view))?;
    }
    create(&mut client, "v0", &query(0))?;
    expect_readers(&mut client, "kind = 'groups'", Some("{q2,q3}"))?;
    // What comes and goes in one transaction is no error.
    client.batch_execute(
        "BEGIN; INSERT INTO edge VALUES (1, 1, 0); DELETE FROM edge WHERE weight = 0; COMMIT",
    )?;
    for view in 0..4 {
        expect_query(&mut client, &format!("q{view}"), &quotients(view))?;
    }
    expect_readers(&mut client, "kind = 'groups'", Some("{q2,q3}"))?;

    client.batch_execute("INSERT INTO edge VALUES (1, 1, 0)")?;
    for view in 0..4 {
        let sql = format!("TABLE q{view}");
        let error = client.query(&sql, &[]).err().with_context(|| format!("{sql} succeeds"))?;
        let code = error.code().map(|code| code.code().to_owned());
        ensure!(code.as_deref() == Some("22012"), "{sql}: {error:?}");
    }
    expect_query(&mut client, "v0", &query(0))?;
    client.batch_execute("DELETE FROM edge WHERE weight = 0")?;
    for view in 0..4 {
        expect_query(&mut client, &format!("q{view}"), &quotients(view)).context("mended")?;
    }
    expect_readers(&mut client, "kind = 'groups'", None).context("each by itself")?;
    terminate_worker(&mut client)?;
    for view in 0..4 {
        expect_query(&mut client, &format!("q{view}"), &quotients(view)).context("started")?;
    }
    expect_readers(&mut client, "kind = 'groups'", Some("{q0,q1,q2,q3}"))
        .context("after a start")?;
    cluster.print_crashes()
}

/// A part that reads a view and is fed a table of its own: what changes in both at once is in all of it.
fn mixed(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "sub_plan_mixed", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    let beneath = "SELECT src, max(dst) AS dst FROM edge GROUP BY src";
    create(&mut client, "beneath", beneath)?;
    let query = |view: i64| {
        format!(
            "SELECT node + {view} AS node FROM \
             (SELECT DISTINCT node FROM (SELECT dst FROM beneath UNION ALL SELECT color FROM colored) a(node)) b"
        )
    };
    for view in 0..4 {
        create(&mut client, &format!("m{view}"), &query(view))?;
    }
    expect_readers(&mut client, "kind = 'distinct'", Some("{m2,m3}"))?;
    for round in 0..20 {
        client.batch_execute(&format!(
            "BEGIN; INSERT INTO colored VALUES (1000 + {round}, 100 + {round});
             INSERT INTO edge VALUES ({round}, 1000 + {round}, 1); DELETE FROM colored WHERE node = {round}; COMMIT"
        ))?;
        expect_query(&mut client, "beneath", beneath)?;
        for view in 0..4 {
            expect_query(&mut client, &format!("m{view}"), &query(view))?;
        }
    }
    cluster.print_crashes()
}

/// A part whose rows are narrower than those that the first view which has it computed reads of the same table.
fn narrow(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "narrow_part", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(
        "SET client_min_messages = warning; CREATE EXTENSION pg_eddy;
         CREATE TABLE edge (src int NOT NULL, dst int NOT NULL, len int NOT NULL);
         INSERT INTO edge SELECT i, i * 7 % 60, i % 5 FROM generate_series(1, 60) i",
    )?;
    let made = [
        "SELECT n FROM r",
        "SELECT sum(n) FILTER (WHERE n > 2) FROM r",
        "SELECT n FROM r EXCEPT SELECT dst FROM edge WHERE len > 3",
        "SELECT n, len FROM r JOIN edge ON src = n",
        "SELECT n, dst FROM r JOIN edge ON src = n AND len > 1",
    ];
    let of_nodes = |of: &str| {
        format!(
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT e.dst FROM edge e JOIN r ON e.src = r.n) {of}"
        )
    };
    for (view, of) in made.iter().enumerate() {
        create(&mut client, &format!("n{view}"), &of_nodes(of))?;
    }
    expect_readers(&mut client, "kind = 'recursion'", Some("{n3,n4}"))?;
    for change in ["DELETE FROM edge WHERE len = 3", "UPDATE edge SET src = dst, dst = src"] {
        client.batch_execute(change)?;
        for (view, of) in made.iter().enumerate() {
            expect_query(&mut client, &format!("n{view}"), &of_nodes(of)).context(change)?;
        }
    }
    cluster.print_crashes()
}

fn create(client: &mut Client, name: &str, query: &str) -> Result<()> {
    client.batch_execute(&format!("CREATE INCREMENTAL VIEW {name} AS {query}"))?;
    expect_query(client, name, query)
}

fn expect_all_right(client: &mut Client, first: usize) -> Result<()> {
    (first..OF_PATHS.len())
        .try_for_each(|view| expect_query(client, &format!("v{view}"), &query(view)))
}
