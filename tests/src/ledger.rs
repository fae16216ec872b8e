//! A ledger that is written to all the time: accounts between which money moves, a graph that is rewired, and views over
//! both. The sum of all balances never changes, so each state of it that somebody sees tells whether it was whole.

use anyhow::{Context, Result};
use harness::comparison::comparison;
use postgres::Client;

/// The extension and the tables.
pub const TABLES: &str = "
    CREATE EXTENSION pg_eddy;
    CREATE TABLE account (id int PRIMARY KEY, branch int NOT NULL, balance bigint NOT NULL);
    INSERT INTO account SELECT i, i % 10, 1000 FROM generate_series(1, 1000) i;
    CREATE TABLE edge (src int, dst int);
    INSERT INTO edge SELECT i % 50, (i * 7) % 50 FROM generate_series(1, 60) i;
    CREATE TABLE history (id bigserial, moved int NOT NULL);";

/// A view: its name and its query.
pub type View = (&'static str, &'static str);

/// Among them one that aggregates everything, and one that is recursive.
pub const VIEWS: [View; 4] = [
    ("total", "SELECT sum(balance) AS total, count(*) AS accounts FROM account"),
    (
        "by_branch",
        "SELECT branch, sum(balance) AS total, min(balance) AS low FROM account GROUP BY branch",
    ),
    (
        "reach",
        "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION \
         SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b) SELECT a, b FROM r",
    ),
    ("moves", "SELECT id, moved FROM history"),
];

/// Moves money and leaves the sum as it is, for pgbench. Rows are touched in the order of their ids, so that the load has
/// no deadlocks.
pub const MOVE: &str = "\
\\set low random(1, 999)
\\set high random(:low + 1, 1000)
\\set moved random(1, 100)
BEGIN;
UPDATE account SET balance = balance - :moved WHERE id = :low;
UPDATE account SET balance = balance + :moved WHERE id = :high;
INSERT INTO history (moved) VALUES (:moved);
COMMIT;
";

/// Adds an edge and takes some away, for pgbench.
pub const REWIRE: &str = "\
\\set a random(0, 49)
\\set b random(0, 49)
\\set c random(0, 49)
BEGIN;
INSERT INTO edge VALUES (:a, :b);
DELETE FROM edge WHERE src = :c AND dst > :a;
INSERT INTO history (moved) VALUES (0);
COMMIT;
";

/// Says which views differ from their queries.
pub fn differences(client: &mut Client, views: &[View]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (name, query) in views {
        let row = client
            .query_one(&comparison(name, query), &[])
            .with_context(|| format!("comparing view {name}"))?;
        let (missing, surplus): (i64, i64) = (row.get(0), row.get(1));
        if missing != 0 || surplus != 0 {
            wrong.push(format!("{name} misses {missing} rows and has {surplus} surplus rows"));
        }
    }
    Ok(wrong)
}
