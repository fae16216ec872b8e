//! engine/E2: how many nodes have each out-degree.

use differential_dataflow::input::Input;
use differential_dataflow::operators::count::CountTotal;
use timely::dataflow::Scope;

use crate::graph::{Edge, Edges};
use crate::workload::{Built, Time, Workload};

/// Edges come and go.
pub struct Degrees {
    pub edges: Edges,
}

impl Workload for Degrees {
    type History = Edges;
    type Out = (isize, isize);

    fn history(&self) -> &Edges {
        &self.edges
    }

    fn about(&self) -> String {
        "number of nodes of each out-degree".to_owned()
    }

    fn query(&self) -> String {
        "SELECT degree, count(*) AS nodes \
         FROM (SELECT src, count(*) AS degree FROM edges GROUP BY src) d GROUP BY degree"
            .to_owned()
    }

    fn build<'s>(&self, scope: Scope<'s, Time>) -> Built<'s, Edge, (isize, isize)> {
        let (input, edges) = scope.new_collection();
        let degrees = edges.map(|(source, _): Edge| source).count_total();
        let output = degrees.map(|(_, degree)| degree).count_total();
        Built { inputs: Box::new(input), output }
    }
}
