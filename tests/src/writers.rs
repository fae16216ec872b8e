//! What writers pay: single-row updates with three views over the table against none.

use std::path::Path;

use anyhow::Result;

use crate::cluster::Cluster;
use crate::load::Load;
use crate::timing::median;

#[derive(Clone, Debug, clap::Args)]
pub struct Extent {
    /// Pairs of runs, one with and one without views
    #[arg(long, default_value_t = 5)]
    pub pairs: usize,
    /// Seconds of each run
    #[arg(long, default_value_t = 10)]
    pub seconds: u32,
}

/// The promise: at least this share of the throughput without views.
const PROMISED: f64 = 0.85;

const TABLE: &str = "
    CREATE TABLE account (id int PRIMARY KEY, branch int NOT NULL, balance bigint NOT NULL);
    INSERT INTO account SELECT i, i % 100, 0 FROM generate_series(1, 100000) i;
    ANALYZE account;";

const VIEWS: &str = "
    CREATE EXTENSION pg_eddy;
    CREATE INCREMENTAL VIEW by_branch AS
        SELECT branch, count(*) AS accounts, sum(balance) AS total FROM account GROUP BY branch;
    CREATE INCREMENTAL VIEW rich AS SELECT id, balance FROM account WHERE balance > 5000;
    CREATE INCREMENTAL VIEW extremes AS
        SELECT min(balance) AS low, max(balance) AS high FROM account;";

const UPDATE: &str = "\
\\set id random(1, 100000)
\\set delta random(-5000, 5000)
UPDATE account SET balance = balance + :delta WHERE id = :id;
";

/// Prints the pairs and the ratio of the medians; false when it is below the promise.
pub fn run(cluster: &Cluster, folder: &Path, extent: &Extent) -> Result<bool> {
    for (database, views) in [("plain", ""), ("viewed", VIEWS)] {
        cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {database}"))?;
        cluster.connect(database)?.batch_execute(&format!("{TABLE}{views}"))?;
    }
    let scripts = [("update", UPDATE, 1)];
    let plain = Load::new(folder, "plain", 8, &scripts)?;
    let viewed = Load::new(folder, "viewed", 8, &scripts)?;
    let mut client = cluster.connect("viewed")?;
    client.batch_execute("SET eddy.read_timeout = '10min'")?;
    let mut pairs = Vec::new();
    println!("{:>6}  {:>12}  {:>12}", "pair", "no views", "three views");
    for number in 1..=extent.pairs {
        let without = plain.run(cluster, extent.seconds)?;
        let with = viewed.run(cluster, extent.seconds)?;
        // The next run must not share the machine with what is left of this one.
        client.query_one("SELECT count(*) FROM by_branch", &[])?;
        println!("{number:>6}  {without:>8.0} tps  {with:>8.0} tps");
        pairs.push((without, with));
    }
    let without = median(&pairs.iter().map(|pair| pair.0).collect::<Vec<f64>>());
    let with = median(&pairs.iter().map(|pair| pair.1).collect::<Vec<f64>>());
    let ratio = with / without;
    println!("median {without:>8.0} tps  {with:>8.0} tps  ratio {ratio:.2}");
    Ok(ratio >= PROMISED)
}
