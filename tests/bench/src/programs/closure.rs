//! engine/tc: the transitive closure of a sparse graph.

use differential_dataflow::input::Input;
use differential_dataflow::operators::Iterate;
use timely::dataflow::Scope;

use crate::graph::{Edge, Edges};
use crate::workload::{Built, Time, Workload};

/// With fewer edges than nodes a node reaches a handful of others.
pub struct Closure {
    pub edges: Edges,
}

impl Workload for Closure {
    type History = Edges;
    type Out = Edge;

    fn history(&self) -> &Edges {
        &self.edges
    }

    fn about(&self) -> String {
        "transitive closure of a sparse graph".to_owned()
    }

    fn query(&self) -> String {
        "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edges UNION \
         SELECT r.a, e.dst FROM r JOIN edges e ON e.src = r.b) SELECT a, b FROM r"
            .to_owned()
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
