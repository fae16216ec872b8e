//! engine/reach: the nodes that some root reaches.

use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::Iterate;
use differential_dataflow::{Data, ExchangeData, Hashable, VecCollection};
use plan::value::Datum;
use timely::dataflow::Scope;
use timely::progress::Timestamp;

use crate::graph::{integer, Edge, Edges};
use crate::workload::{Built, History, Inputs, Time, Workload};

/// Nodes 0, 1, … are the roots.
const ROOTS: u64 = 8;

/// Edges come and go, the roots stay.
pub struct Reach {
    pub edges: Edges,
}

/// A row of one of two tables: nodes named `N`, and edges between them in the direction in which they
/// are followed.
#[derive(Clone)]
pub enum Base<N> {
    Root(N),
    Edge(N, N),
}

impl History for Reach {
    type Base = Base<u32>;

    const DEFINITIONS: &'static str = "CREATE TABLE roots (node int NOT NULL);
        CREATE TABLE edges (src int NOT NULL, dst int NOT NULL)";
    const TABLES: &'static [&'static str] = &["roots", "edges"];

    fn load_size(&self) -> u64 {
        ROOTS + self.edges.load_size()
    }

    fn loaded(&self, index: u64) -> Base<u32> {
        match index.checked_sub(ROOTS) {
            Some(number) => edge(self.edges.loaded(number)),
            None => Base::Root(index as u32),
        }
    }

    fn swap(&self, k: u64) -> (Base<u32>, Base<u32>) {
        let (removed, inserted) = self.edges.swap(k);
        (edge(removed), edge(inserted))
    }

    fn row(base: &Base<u32>) -> (usize, Vec<Datum>) {
        match base {
            Base::Root(node) => (0, vec![integer(*node)]),
            Base::Edge(source, target) => (1, vec![integer(*source), integer(*target)]),
        }
    }
}

fn edge((source, target): Edge) -> Base<u32> {
    Base::Edge(source, target)
}

impl Workload for Reach {
    type History = Reach;
    type Out = u32;

    fn history(&self) -> &Reach {
        self
    }

    fn about(&self) -> String {
        format!("nodes that {ROOTS} roots reach")
    }

    fn query(&self) -> String {
        "WITH RECURSIVE r(node) AS (SELECT node FROM roots UNION \
         SELECT e.dst FROM r JOIN edges e ON e.src = r.node) SELECT node FROM r"
            .to_owned()
    }

    fn build<'s>(&self, scope: Scope<'s, Time>) -> Built<'s, Base<u32>, u32> {
        build_reached(scope)
    }
}

/// The program by hand: the nodes reached from the roots.
pub fn build_reached<N: ExchangeData + Hashable>(scope: Scope<'_, Time>) -> Built<'_, Base<N>, N> {
    let (root_input, roots) = scope.new_collection();
    let (edge_input, edges) = scope.new_collection();
    let inputs = Box::new(Tables { roots: root_input, edges: edge_input });
    Built { inputs, output: reached(roots, edges) }
}

/// The nodes that can be reached from `roots` along `edges`, roots included.
fn reached<'s, T, N>(
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

struct Tables<N: Data> {
    roots: InputSession<Time, N, isize>,
    edges: InputSession<Time, (N, N), isize>,
}

impl<N: Data> Inputs<Base<N>> for Tables<N> {
    fn update(&mut self, updates: Vec<(Base<N>, Time, isize)>) {
        for (base, time, diff) in updates {
            match base {
                Base::Root(node) => self.roots.update_at(node, time, diff),
                Base::Edge(source, target) => self.edges.update_at((source, target), time, diff),
            }
        }
    }

    fn advance(&mut self, time: Time) {
        self.roots.advance(time);
        self.edges.advance(time);
    }
}
