//! Growth: what one edge deleted and put back costs in cyclic graphs of growing size.
//!
//! The graphs are communities of one size, each a random graph with cycles, that a root points to
//! (`subject`): the rows that depend on an edge are those of its community, however many communities
//! there are. So a cost that grows is the system's own. Beside it: running the query afresh,
//! and REFRESH MATERIALIZED VIEW of the same query.
//!
//! The sizes take turns, so that what else the machine does falls on all alike. A change's cost is
//! the time from the end of its COMMIT to the end of a read that sees it; the worker's own time per
//! change (`eddy.activity`) is shown beside it, as round trips are part of the former at every size.

use std::time::Duration;

use anyhow::Result;
use harness::cluster::Cluster;
use harness::timing::{median, readable, timed};
use postgres::{Client, Statement};
use serde_json::json;

use super::activity::Activity;
use super::setting::{verify, wait_for_views, Setting};
use super::subject::{RECURSIVE, VIEW};
use crate::compare::{nanoseconds, Ratio};
use crate::plot::{draw, Line, Panel, Series};
use crate::record::Recorder;

pub const NAME: &str = "system/growth";

const SIZES: [u32; 4] = [10_000, 100_000, 1_000_000, 3_000_000];
const QUICK_SIZES: [u32; 2] = [1_000, 10_000];
/// Edges deleted and put back in one turn of one size.
const CHANGES: u32 = 100;
const QUICK_CHANGES: u32 = 10;

/// A graph in a database of its own.
struct Graph {
    edges: u32,
    client: Client,
    statements: Statements,
    changes: u32,
    /// Medians of its turns: from COMMIT to the read, and the worker's time, in nanoseconds.
    latencies: Vec<f64>,
    work: Vec<f64>,
    afresh: Vec<Duration>,
    refresh: Vec<Duration>,
}

/// Prepared, so that planning is no part of a read.
struct Statements {
    delete: Statement,
    insert: Statement,
    read: Statement,
}

/// Prints a table, records every turn and draws the growth.
pub fn measure(setting: &Setting, recorder: &mut Recorder) -> Result<()> {
    println!("{NAME}: one edge deleted or put back in a cyclic graph, per change");
    setting.with_cluster(&[], |cluster, _| {
        let sizes = setting.sizes(&SIZES, &QUICK_SIZES);
        let graphs = sizes.iter().map(|edges| Graph::create(cluster, *edges));
        let mut graphs = graphs.collect::<Result<Vec<Graph>>>()?;
        let changes = setting.choose(CHANGES, QUICK_CHANGES);
        for turn in 0..=setting.pairs() {
            for graph in &mut graphs {
                graph.take_turn(changes, turn, recorder)?;
            }
        }
        for graph in &mut graphs {
            verify(&mut graph.client, VIEW)?;
        }
        print(&graphs, recorder)?;
        draw_growth(setting, &graphs)
    })
}

impl Graph {
    fn create(cluster: &Cluster, edges: u32) -> Result<Graph> {
        let database = format!("graph_{edges}");
        cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {database}"))?;
        let mut client = cluster.connect(&database)?;
        client.batch_execute("SET eddy.read_timeout = '10min'")?;
        RECURSIVE.create_tables(&mut client, edges)?;
        RECURSIVE.create_view(&mut client)?;
        client.batch_execute(&format!(
            "CREATE MATERIALIZED VIEW refreshed AS {} WITH NO DATA",
            RECURSIVE.query
        ))?;
        let statements = Statements {
            delete: client.prepare("DELETE FROM edge WHERE id = $1 RETURNING src, dst")?,
            insert: client.prepare("INSERT INTO edge VALUES ($1, $2, $3)")?,
            read: client.prepare(&format!("SELECT FROM {VIEW} WHERE node = $1"))?,
        };
        let (latencies, work, afresh, refresh) = (vec![], vec![], vec![], vec![]);
        Ok(Graph { edges, client, statements, changes: 0, latencies, work, afresh, refresh })
    }

    /// Turn 0 is for warming up and is not recorded.
    fn take_turn(&mut self, changes: u32, turn: usize, recorder: &mut Recorder) -> Result<()> {
        let client = &mut self.client;
        // What REFRESH wrote in the turn before is decoded by now.
        wait_for_views(client)?;
        let before = Activity::read(client)?;
        let mut times = Vec::new();
        for _ in 0..changes {
            self.changes += 1;
            // A fixed stride visits edges all over the graph.
            let edge = 1 + (u64::from(self.changes) * 7919 % u64::from(self.edges)) as i32;
            times.extend(delete_and_put_back(client, &self.statements, edge)?);
        }
        let work = Activity::read(client)?.since(&before).busy() / (2 * changes);
        let afresh = timed(|| Ok(client.execute(RECURSIVE.query, &[])?))?.1;
        let refresh = timed(|| Ok(client.batch_execute("REFRESH MATERIALIZED VIEW refreshed")?))?.1;
        if turn == 0 {
            return Ok(());
        }
        let latency = median(&times);
        recorder.write(&json!({
            "kind": "growth", "name": NAME, "edges": self.edges, "turn": turn,
            "changes": times.len(), "latency_ns": latency.as_nanos() as u64,
            "work_ns": work.as_nanos() as u64, "afresh_seconds": afresh.as_secs_f64(),
            "refresh_seconds": refresh.as_secs_f64(),
        }))?;
        self.latencies.push(latency.as_nanos() as f64);
        self.work.push(work.as_nanos() as f64);
        self.afresh.push(afresh);
        self.refresh.push(refresh);
        Ok(())
    }
}

/// Times from the end of each of both COMMITs to the end of a read that sees it.
fn delete_and_put_back(
    client: &mut Client,
    statements: &Statements,
    edge: i32,
) -> Result<[Duration; 2]> {
    let row = client.query_one(&statements.delete, &[&edge])?;
    let (source, target): (i32, i32) = (row.get(0), row.get(1));
    let read = |client: &mut Client| timed(|| Ok(client.query(&statements.read, &[&target])?));
    let deleted = read(client)?.1;
    client.execute(&statements.insert, &[&edge, &source, &target])?;
    Ok([deleted, read(client)?.1])
}

fn print(graphs: &[Graph], recorder: &mut Recorder) -> Result<()> {
    println!(
        "{:>9} {:>9} {:>6} {:>15}  {:>9} {:>6} {:>15}  {:>9} {:>9}",
        "edges", "latency", "ratio", "spread", "worker", "ratio", "spread", "afresh", "REFRESH"
    );
    let Some(smallest) = graphs.first() else { return Ok(()) };
    for graph in graphs {
        let latency = Ratio::of_pairs(&graph.latencies, &smallest.latencies);
        let work = Ratio::of_pairs(&graph.work, &smallest.work);
        println!(
            "{:>9} {:>9} {latency}  {:>9} {work}  {:>9} {:>9}",
            graph.edges,
            nanoseconds(median(&graph.latencies)),
            nanoseconds(median(&graph.work)),
            readable(median(&graph.afresh)),
            readable(median(&graph.refresh)),
        );
        recorder.write(&json!({
            "kind": "growth ratio", "name": NAME, "edges": graph.edges,
            "least_edges": smallest.edges,
            "latency_ratio": latency.median, "latency_spread": [latency.least, latency.greatest],
            "work_ratio": work.median, "work_spread": [work.least, work.greatest],
        }))?;
    }
    println!("(ratios to the smallest graph; afresh: the query run once)");
    Ok(())
}

fn draw_growth(setting: &Setting, graphs: &[Graph]) -> Result<()> {
    let series = |label: &str, colour, line, value: &dyn Fn(&Graph) -> f64| Series {
        label: label.to_owned(),
        colour,
        line,
        points: graphs.iter().map(|graph| (f64::from(graph.edges), value(graph))).collect(),
    };
    let nanos = |times: &[Duration]| median(times).as_nanos() as f64;
    let panel = Panel {
        title: format!("{NAME}: one edge changes"),
        x: "edges",
        y: "time",
        unit: nanoseconds,
        series: vec![
            series("from COMMIT to a fresh read", 0, Line::Solid, &|g| median(&g.latencies)),
            series("the worker's own time", 0, Line::Dashed, &|g| median(&g.work)),
            series("the query afresh", 1, Line::Solid, &|g| nanos(&g.afresh)),
            series("REFRESH MATERIALIZED VIEW", 1, Line::Dashed, &|g| nanos(&g.refresh)),
        ],
    };
    draw(setting.output, NAME, &[panel])
}
