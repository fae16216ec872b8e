//! engine/E2: how many nodes have each out-degree (SEEDS, experiment 2).

use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::count::CountTotal;
use planner::value::Datum;
use timely::dataflow::Scope;

use super::{edge_row, EDGES};
use crate::bench::graph::{Edge, RandomGraph};
use crate::bench::workload::{Built, Inputs, Time, Workload};

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
        Built { inputs: Box::new(Edges(input)), output }
    }
}

/// A program's only input.
struct Edges(InputSession<Time, Edge, isize>);

impl Inputs<Edge> for Edges {
    fn update(&mut self, updates: Vec<(Edge, Time, isize)>) {
        for (edge, time, diff) in updates {
            self.0.update_at(edge, time, diff);
        }
    }

    fn advance(&mut self, time: Time) {
        self.0.advance_to(time);
        self.0.flush();
    }
}
