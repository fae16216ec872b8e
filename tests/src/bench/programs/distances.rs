//! engine/E1: how many nodes stand at each distance from node 0 (SEEDS, experiment 1).
//!
//! In SQL the distances are the least ones of all walks, which in a cyclic graph have no end. Where the
//! planner keeps only the least distance of each node inside the loop, the query is run as it is;
//! otherwise walks are bounded on both sides, and the benchmark's title says so.

use std::sync::{Arc, OnceLock};

use differential_dataflow::input::Input;
use differential_dataflow::operators::count::CountTotal;
use differential_dataflow::operators::Iterate;
use differential_dataflow::AsCollection;
use timely::dataflow::operators::ToStream;
use timely::dataflow::Scope;

use crate::bench::graph::{Edge, Edges, RandomGraph};
use crate::bench::sql_side::SqlSide;
use crate::bench::workload::{Built, Side, Time, Workload, FIRST_SWAP, LOAD_TIME};

/// Edges come and go; node 0 is the root.
pub struct Distances {
    edges: Edges,
    /// Greatest distance, unless the planner does without.
    bound: Option<u32>,
}

impl Distances {
    pub fn new(edges: Edges) -> Distances {
        // A random graph of two edges per node is hardly deeper than that.
        let bound = edges.graph.nodes.ilog2() + 2;
        Distances { edges, bound: (!is_loop_bounded_by_planner()).then_some(bound) }
    }
}

/// Whether the unbounded query ends on a cyclic graph.
fn is_loop_bounded_by_planner() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        // One node, all edges from it to itself: the shortest cycle.
        let edges = Edges { graph: RandomGraph { nodes: 1, seed: 0 }, count: 1 };
        let workload = Distances { edges, bound: None };
        let ends = || -> anyhow::Result<()> {
            let mut side = SqlSide::start_limited(Arc::new(workload), 1, 10)?;
            side.prepare_load(0..1);
            side.feed();
            side.advance(FIRST_SWAP);
            side.wait(FIRST_SWAP)
        };
        ends().is_ok()
    })
}

impl Workload for Distances {
    type History = Edges;
    type Out = (u32, isize);

    fn history(&self) -> &Edges {
        &self.edges
    }

    fn about(&self) -> String {
        let title = "number of nodes at each distance from node 0";
        match self.bound {
            None => title.to_owned(),
            Some(bound) => format!(
                "{title}, up to distance {bound} on both sides \
                 (the planner does not yet keep only the least distances in the loop)"
            ),
        }
    }

    fn query(&self) -> String {
        let bound = self.bound.map(|bound| format!(" WHERE d.dist < {bound}")).unwrap_or_default();
        format!(
            "WITH RECURSIVE d(node, dist) AS (SELECT 0, 0 UNION \
             SELECT e.dst, d.dist + 1 FROM d JOIN edges e ON e.src = d.node{bound}) \
             SELECT dist, count(*) AS nodes \
             FROM (SELECT node, min(dist) AS dist FROM d GROUP BY node) m GROUP BY dist"
        )
    }

    fn build<'s>(&self, scope: Scope<'s, Time>) -> Built<'s, Edge, (u32, isize)> {
        let (input, edges) = scope.new_collection();
        let root = (scope.index() == 0).then_some(((0, 0), LOAD_TIME, 1));
        let roots = root.to_stream(scope).container::<Vec<_>>().as_collection();
        let edges = edges.arrange_by_key();
        let bound = self.bound.unwrap_or(u32::MAX);
        let distances = roots.clone().iterate(|scope, inner| {
            inner
                .filter(move |(_, distance)| *distance < bound)
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
