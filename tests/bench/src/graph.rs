//! Random graphs that never end: edge number i is a function of i, so a graph can lose its oldest
//! edge and gain a new one forever without anybody storing what it holds.

use plan::value::Datum;

use crate::checksum::mix;
use crate::workload::History;

/// Edges between `nodes` nodes, drawn with replacement. Different seeds give different graphs.
#[derive(Clone, Copy, Debug)]
pub struct RandomGraph {
    pub nodes: u64,
    pub seed: u64,
}

pub type Edge = (u32, u32);

impl RandomGraph {
    pub fn edge(&self, number: u64) -> Edge {
        (self.draw(2 * number), self.draw(2 * number + 1))
    }

    fn draw(&self, number: u64) -> u32 {
        let random = u128::from(mix(self.seed ^ mix(number)));
        // The high half of the product is uniform below `nodes`.
        ((random * u128::from(self.nodes)) >> 64) as u32
    }
}

/// A table of edges, several between two nodes being several rows. Each swap replaces the oldest one.
#[derive(Clone, Copy, Debug)]
pub struct Edges {
    pub graph: RandomGraph,
    /// Number of edges at any time.
    pub count: u64,
}

impl History for Edges {
    type Base = Edge;

    const DEFINITIONS: &'static str = "CREATE TABLE edges (src int NOT NULL, dst int NOT NULL)";
    const TABLES: &'static [&'static str] = &["edges"];

    fn load_size(&self) -> u64 {
        self.count
    }

    fn loaded(&self, index: u64) -> Edge {
        self.graph.edge(index)
    }

    fn swap(&self, k: u64) -> (Edge, Edge) {
        (self.graph.edge(k), self.graph.edge(self.count + k))
    }

    fn row((source, target): &Edge) -> (usize, Vec<Datum>) {
        (0, vec![integer(*source), integer(*target)])
    }
}

/// A generated number as a value.
pub fn integer(value: u32) -> Datum {
    Datum::Int4(i32::try_from(value).expect("generated numbers fit an integer"))
}
