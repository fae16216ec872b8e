//! From COMMIT to a fresh read after one edge of a cyclic random graph went or came back.

use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use postgres::Client;

use crate::cluster::Cluster;
use crate::timing::{median, readable, timed};

#[derive(Clone, Debug, clap::Args)]
pub struct Extent {
    /// Numbers of edges
    #[arg(long, value_delimiter = ',', default_value = "10000,100000,1000000")]
    pub edges: Vec<i32>,
    /// Edges removed and put back
    #[arg(long, default_value_t = 200)]
    pub changes: usize,
}

/// Twice as many edges as nodes: most of the nodes are strongly connected.
const EDGES_PER_NODE: i32 = 2;
/// The promise: this or less, at every size.
const PROMISED: Duration = Duration::from_millis(10);

/// Prints a median per graph; false when one is over the promise.
pub fn run(cluster: &Cluster, extent: &Extent) -> Result<bool> {
    let mut kept = true;
    println!("{:>10}  {:>10}  {:>10}  {:>10}", "edges", "reachable", "median", "90 %");
    for edges in &extent.edges {
        let database = format!("graph_{edges}");
        cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {database}"))?;
        let mut client = cluster.connect(&database)?;
        let reachable = build_graph(&mut client, *edges)?;
        let mut times = measure(&mut client, *edges, extent.changes)?;
        let row = client.query_one("SELECT * FROM eddy.verify_view('reach')", &[])?;
        let (missing, surplus): (i64, i64) = (row.get(0), row.get(1));
        ensure!(missing == 0 && surplus == 0, "{missing} rows missing, {surplus} surplus");
        let middle = median(&times);
        times.sort();
        let late = times[times.len() * 9 / 10];
        println!("{edges:>10}  {reachable:>10}  {:>10}  {:>10}", readable(middle), readable(late));
        kept &= middle < PROMISED;
        drop(client);
        cluster
            .connect("postgres")?
            .batch_execute(&format!("DROP DATABASE {database} WITH (FORCE)"))?;
    }
    Ok(kept)
}

/// Returns the number of nodes that node 0 reaches.
fn build_graph(client: &mut Client, edges: i32) -> Result<i64> {
    let nodes = edges / EDGES_PER_NODE;
    client.batch_execute(&format!(
        "SET client_min_messages = warning;
         CREATE EXTENSION pg_eddy;
         CREATE TABLE edge (id int PRIMARY KEY, src int NOT NULL, dst int NOT NULL);
         SELECT setseed(0.5);
         INSERT INTO edge SELECT i, random() * ({nodes} - 1), random() * ({nodes} - 1)
             FROM generate_series(1, {edges}) i;
         INSERT INTO edge SELECT -i, 0, i FROM generate_series(1, 5) i;
         CREATE INDEX ON edge (src);
         ANALYZE edge;
         CREATE INCREMENTAL VIEW reach AS
             WITH RECURSIVE r(node) AS (SELECT 0 UNION
                 SELECT e.dst FROM r JOIN edge e ON e.src = r.node) SELECT node FROM r;
         CREATE UNIQUE INDEX ON reach (node);
         ANALYZE reach;
         SET eddy.read_timeout = '10min'"
    ))?;
    Ok(client.query_one("SELECT count(*) FROM reach", &[])?.get(0))
}

/// Time from the end of COMMIT to the end of a read that sees it, for removals and returns.
fn measure(client: &mut Client, edges: i32, changes: usize) -> Result<Vec<Duration>> {
    let read = client.prepare("SELECT count(*) FROM reach WHERE node = $1")?;
    let remove = client.prepare("DELETE FROM edge WHERE id = $1 RETURNING src, dst")?;
    let put_back = client.prepare("INSERT INTO edge VALUES ($1, $2, $3)")?;
    let mut times = Vec::with_capacity(2 * changes);
    for number in 0..changes {
        // A fixed stride visits edges all over the graph.
        let id = 1 + (number as i64 * 7919 % i64::from(edges)) as i32;
        let row = client.query_one(&remove, &[&id])?;
        let (source, target): (i32, i32) = (row.get(0), row.get(1));
        times.push(timed(|| Ok(client.query_one(&read, &[&target])?))?.1);
        client.execute(&put_back, &[&id, &source, &target])?;
        let start = Instant::now();
        client.query_one(&read, &[&target])?;
        times.push(start.elapsed());
    }
    Ok(times)
}
