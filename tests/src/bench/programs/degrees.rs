//! engine/E2: how many nodes have each out-degree (SEEDS, experiment 2).

use differential_dataflow::input::Input;
use differential_dataflow::operators::count::CountTotal;
use planner::value::Datum;
use timely::dataflow::Scope;

use super::{edge_row, EDGES};
use crate::bench::graph::{Edge, RandomGraph};
use crate::bench::workload::{Built, Time, Workload};

/// The graph's size.
pub struct Degrees {
    pub graph: RandomGraph,
    pub edges: u64,
}

impl Workload for Degrees {
    type Base = Edge;
    type Out = (isize, isize);

    const DEFINITIONS: &'static str = EDGES;
    const TABLES: &'static [&'static str] = &["edges"];

    fn about(&self) -> String {
        "number of nodes of each out-degree".to_owned()
    }

    fn query(&self) -> String {
        "SELECT degree, count(*) AS nodes \
         FROM (SELECT src, count(*) AS degree FROM edges GROUP BY src) d GROUP BY degree"
            .to_owned()
    }

    fn load_size(&self) -> u64 {
        self.edges
    }

    fn loaded(&self, index: u64) -> Edge {
        self.graph.edge(index)
    }

    fn swap(&self, k: u64) -> (Edge, Edge) {
        (self.graph.edge(k), self.graph.edge(self.edges + k))
    }

    fn row(edge: &Edge) -> (usize, Vec<Datum>) {
        (0, edge_row(edge))
    }

    fn build<'s>(&self, scope: Scope<'s, Time>) -> Built<'s, Edge, (isize, isize)> {
        let (input, edges) = scope.new_collection();
        let degrees = edges.map(|(source, _): Edge| source).count_total();
        let output = degrees.map(|(_, degree)| degree).count_total();
        Built { inputs: Box::new(input), output }
    }
}
