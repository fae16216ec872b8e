//! The workloads, one file each, and what they have in common.

mod degrees;

use planner::value::Datum;

pub use degrees::Degrees;

use super::graph::Edge;

/// Edges of a graph; several between two nodes are several rows.
const EDGES: &str = "CREATE TABLE edges (src int NOT NULL, dst int NOT NULL)";

fn node(node: u32) -> Datum {
    Datum::Int4(i32::try_from(node).expect("nodes are numbered from 0 and fit an integer"))
}

fn edge_row((source, target): &Edge) -> Vec<Datum> {
    vec![node(*source), node(*target)]
}
