//! engine/tc: the transitive closure of a sparse graph.

use differential_dataflow::input::Input;
use differential_dataflow::operators::Iterate;
use planner::value::Datum;
use timely::dataflow::Scope;

use super::{edge_row, EDGES};
use crate::bench::graph::{Edge, RandomGraph};
use crate::bench::workload::{Built, Time, Workload};

/// With fewer edges than nodes a node reaches a handful of others.
pub struct Closure {
    pub graph: RandomGraph,
    pub edges: u64,
}

impl Workload for Closure {
    type Base = Edge;
    type Out = Edge;

    const DEFINITIONS: &'static str = EDGES;
    const TABLES: &'static [&'static str] = &["edges"];

    fn about(&self) -> String {
        "transitive closure of a sparse graph".to_owned()
    }

    fn query(&self) -> String {
        "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edges UNION \
         SELECT r.a, e.dst FROM r JOIN edges e ON e.src = r.b) SELECT a, b FROM r"
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

    fn build<'s>(&self, scope: Scope<'s, Time>) -> Built<'s, Edge, Edge> {
        let (input, edges) = scope.new_collection();
        let arranged = edges.clone().arrange_by_key();
        let output = edges.clone().iterate(|scope, inner| {
            inner
                .map(|(a, b): Edge| (b, a))
                .arrange_by_key()
                .join_core(arranged.enter(scope), |_, a, c: &u32| Some((*a, *c)))
                .concat(edges.enter(scope))
                .distinct()
        });
        Built { inputs: Box::new(input), output }
    }
}
