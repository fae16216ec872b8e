//! pgbench's own tables, its TPC-B-like transaction, and views over them.

use std::path::Path;

use anyhow::{ensure, Result};
use harness::cluster::Cluster;
use harness::load::Load;

/// Sessions that write.
const CLIENTS: u32 = 8;

/// What pgbench calls `tpcb-like`; `{scale}` is the number of branches.
const TRANSACTION: &str = "\
\\set aid random(1, 100000 * {scale})
\\set bid random(1, {scale})
\\set tid random(1, 10 * {scale})
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

/// Ten different queries. Every transaction changes a table, and with few exceptions the result, of
/// each: all columns that it writes are read by one of them, all tables by two or more.
pub const VIEWS: [(&str, &str); 10] = [
    // Many rows in few groups.
    (
        "branch_totals",
        "SELECT bid, count(*) AS accounts, sum(abalance) AS total FROM pgbench_accounts GROUP BY bid",
    ),
    // A filter whose result grows towards all accounts.
    ("moved_accounts", "SELECT aid, bid, abalance FROM pgbench_accounts WHERE abalance <> 0"),
    // Extremes, which must survive the loss of the present one.
    (
        "branch_extremes",
        "SELECT bid, min(abalance) AS low, max(abalance) AS high FROM pgbench_accounts GROUP BY bid",
    ),
    // A table that only grows.
    (
        "teller_history",
        "SELECT tid, count(*) AS transfers, sum(delta) AS total FROM pgbench_history GROUP BY tid",
    ),
    // A grouping key that is computed, and an average.
    (
        "branch_flows",
        "SELECT bid, delta > 0 AS is_deposit, count(*) AS transfers, avg(delta) AS mean
         FROM pgbench_history GROUP BY bid, delta > 0",
    ),
    // A join with an aggregate.
    (
        "branch_checks",
        "SELECT b.bid, b.bbalance, t.total FROM pgbench_branches b
         JOIN (SELECT bid, sum(tbalance) AS total FROM pgbench_tellers GROUP BY bid) t ON t.bid = b.bid",
    ),
    // A join where one row of a table concerns many of the view.
    (
        "teller_branches",
        "SELECT t.tid, t.tbalance, b.bid, b.bbalance FROM pgbench_tellers t
         JOIN pgbench_branches b ON b.bid = t.bid",
    ),
    // A join with the largest table.
    (
        "ledger",
        "SELECT h.aid, a.bid AS home, h.bid, h.delta, h.mtime FROM pgbench_history h
         JOIN pgbench_accounts a ON a.aid = h.aid",
    ),
    // An aggregate of an aggregate.
    (
        "account_activity",
        "SELECT transfers, count(*) AS accounts
         FROM (SELECT aid, count(*) AS transfers FROM pgbench_history GROUP BY aid) h GROUP BY transfers",
    ),
    // A recursion as deep as there are branches.
    (
        "running_totals",
        "WITH RECURSIVE r(bid, total) AS (
             SELECT bid, bbalance::bigint FROM pgbench_branches WHERE bid = 1
             UNION ALL
             SELECT b.bid, r.total + b.bbalance FROM r JOIN pgbench_branches b ON b.bid = r.bid + 1)
         SELECT bid, total FROM r",
    ),
];

/// Makes a database with pgbench's tables.
pub fn create_database(cluster: &Cluster, name: &str, scale: u32) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let output = cluster
        .client_program(&cluster.installation().program("pgbench"))
        .args(["--initialize", "--quiet", &format!("--scale={scale}"), name])
        .output()?;
    ensure!(output.status.success(), "pgbench: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The transaction, run against a database of that scale.
pub fn load(folder: &Path, database: &str, scale: u32) -> Result<Load> {
    let script = TRANSACTION.replace("{scale}", &scale.to_string());
    Load::new(folder, database, CLIENTS, &[("tpcb", &script, 1)])
}
