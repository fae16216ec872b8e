//! The workloads, one file each, and what they have in common.

mod closure;
mod degrees;
mod distances;
mod join3;
mod labels;
mod reach;

use planner::value::Datum;

pub use closure::Closure;
pub use degrees::Degrees;
pub use distances::Distances;
pub use join3::Join3;
pub use labels::Labels;
pub use reach::Reach;

use super::graph::Edge;

/// Edges of a graph; several between two nodes are several rows.
const EDGES: &str = "CREATE TABLE edges (src int NOT NULL, dst int NOT NULL)";

fn integer(value: u32) -> Datum {
    Datum::Int4(i32::try_from(value).expect("generated numbers fit an integer"))
}

fn edge_row((source, target): &Edge) -> Vec<Datum> {
    vec![integer(*source), integer(*target)]
}
