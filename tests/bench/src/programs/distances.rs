//! engine/E1: how many nodes stand at each distance from node 0.
//!
//! In SQL the distances are the least ones of all walks, which in a cyclic graph have no end. The planner
//! keeps only the least distance of each node inside the loop, as the program by hand does.

use differential_dataflow::input::Input;
use differential_dataflow::operators::count::CountTotal;
use differential_dataflow::operators::Iterate;
use differential_dataflow::AsCollection;
use timely::dataflow::operators::ToStream;
use timely::dataflow::Scope;

use crate::graph::{Edge, Edges};
use crate::workload::{Built, Time, Workload, LOAD_TIME};

/// Edges come and go; node 0 is the root.
pub struct Distances {
    edges: Edges,
}

impl Distances {
    pub fn new(edges: Edges) -> Distances {
        Distances { edges }
    }
}

impl Workload for Distances {
    type History = Edges;
    type Out = (u32, isize);

    fn history(&self) -> &Edges {
        &self.edges
    }

    fn about(&self) -> String {
        "number of nodes at each distance from node 0".to_owned()
    }

    fn query(&self) -> String {
        "WITH RECURSIVE d(node, dist) AS (SELECT 0, 0 UNION \
         SELECT e.dst, d.dist + 1 FROM d JOIN edges e ON e.src = d.node) \
         SELECT dist, count(*) AS nodes \
         FROM (SELECT node, min(dist) AS dist FROM d GROUP BY node) m GROUP BY dist"
            .to_owned()
    }

    fn build<'s>(&self, scope: Scope<'s, Time>) -> Built<'s, Edge, (u32, isize)> {
        let (input, edges) = scope.new_collection();
        let root = (scope.index() == 0).then_some(((0, 0), LOAD_TIME, 1));
        let roots = root.to_stream(scope).container::<Vec<_>>().as_collection();
        let edges = edges.arrange_by_key();
        let distances = roots.clone().iterate(|scope, inner| {
            inner
                .arrange_by_key()
                .join_core(edges.enter(scope), |_, distance, target: &u32| {
                    Some((*target, distance + 1))
                })
                .concat(roots.enter(scope))
                .reduce(|_, distances, least| least.push((*distances[0].0, 1)))
        });
        let output = distances.map(|(_, distance): (u32, u32)| distance).count_total();
        Built { inputs: Box::new(input), output }
    }
}
