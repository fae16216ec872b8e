//! engine/reach: the nodes that some root reaches.

use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::Iterate;
use differential_dataflow::{ExchangeData, Hashable, VecCollection};
use planner::value::Datum;
use timely::dataflow::Scope;
use timely::progress::Timestamp;

use super::{edge_row, integer};
use crate::bench::graph::{Edge, RandomGraph};
use crate::bench::workload::{Built, Inputs, Time, Workload};

/// Nodes 0, 1, … are the roots.
const ROOTS: u64 = 8;

/// Edges come and go, the roots stay.
pub struct Reach {
    pub graph: RandomGraph,
    pub edges: u64,
}

/// A row of one of the two tables.
#[derive(Clone)]
pub enum Base {
    Root(u32),
    Edge(Edge),
}

impl Workload for Reach {
    type Base = Base;
    type Out = u32;

    const DEFINITIONS: &'static str = "CREATE TABLE roots (node int NOT NULL);
        CREATE TABLE edges (src int NOT NULL, dst int NOT NULL)";
    const TABLES: &'static [&'static str] = &["roots", "edges"];

    fn about(&self) -> String {
        format!("nodes that {ROOTS} roots reach")
    }

    fn query(&self) -> String {
        "WITH RECURSIVE r(node) AS (SELECT node FROM roots UNION \
         SELECT e.dst FROM r JOIN edges e ON e.src = r.node) SELECT node FROM r"
            .to_owned()
    }

    fn load_size(&self) -> u64 {
        ROOTS + self.edges
    }

    fn loaded(&self, index: u64) -> Base {
        match index.checked_sub(ROOTS) {
            Some(number) => Base::Edge(self.graph.edge(number)),
            None => Base::Root(index as u32),
        }
    }

    fn swap(&self, k: u64) -> (Base, Base) {
        (Base::Edge(self.graph.edge(k)), Base::Edge(self.graph.edge(self.edges + k)))
    }

    fn row(base: &Base) -> (usize, Vec<Datum>) {
        match base {
            Base::Root(node) => (0, vec![integer(*node)]),
            Base::Edge(edge) => (1, edge_row(edge)),
        }
    }

    fn build<'s>(&self, scope: Scope<'s, Time>) -> Built<'s, Base, u32> {
        let (root_input, roots) = scope.new_collection();
        let (edge_input, edges) = scope.new_collection();
        let inputs = Box::new(Tables { roots: root_input, edges: edge_input });
        Built { inputs, output: reached(roots, edges) }
    }
}

/// The nodes that can be reached from `roots` along `edges`, roots included.
pub fn reached<'s, T, N>(
    roots: VecCollection<'s, T, N>,
    edges: VecCollection<'s, T, (N, N)>,
) -> VecCollection<'s, T, N>
where
    T: Timestamp + Lattice,
    N: ExchangeData + Hashable,
{
    // Arranged once, outside of the loop.
    let edges = edges.arrange_by_key();
    roots.clone().iterate(|scope, inner| {
        inner
            .map(|node| (node, ()))
            .arrange_by_key()
            .join_core(edges.enter(scope), |_, (), target| Some(target.clone()))
            .concat(roots.enter(scope))
            .distinct()
    })
}

struct Tables {
    roots: InputSession<Time, u32, isize>,
    edges: InputSession<Time, Edge, isize>,
}

impl Inputs<Base> for Tables {
    fn update(&mut self, updates: Vec<(Base, Time, isize)>) {
        for (base, time, diff) in updates {
            match base {
                Base::Root(node) => self.roots.update_at(node, time, diff),
                Base::Edge(edge) => self.edges.update_at(edge, time, diff),
            }
        }
    }

    fn advance(&mut self, time: Time) {
        self.roots.advance(time);
        self.edges.advance(time);
    }
}
