//! engine/labels: reachability over text, in a graph like that of a distribution's packages.

use plan::value::Datum;
use timely::dataflow::Scope;

use super::reach::{build_reached, Base};
use crate::checksum::mix;
use crate::graph::{Edges, RandomGraph};
use crate::workload::{Built, History, Time, Workload};

/// Packages 0, 1, … are watched; nearly everything needs the first ones.
const WATCHED: u64 = 3;

/// Dependencies come and go.
pub struct Labels {
    pub edges: Edges,
}

impl Labels {
    /// Most dependencies lead from newer to older packages, some back, so that there are cycles.
    fn dependency(&self, number: u64) -> Base<String> {
        let RandomGraph { nodes, .. } = self.edges.graph;
        let (a, b) = self.edges.graph.edge(number);
        // Skewed: the older a package, the more need it.
        let (newer, older) = (a.max(b), u64::from(a) * u64::from(b) / nodes);
        let (newer, older) = (name(newer.into()), name(older));
        if mix(number).is_multiple_of(64) {
            Base::Edge(newer, older)
        } else {
            Base::Edge(older, newer)
        }
    }
}

/// A name like `libharu2k-dev`: mostly 8 to 20 bytes, many with a prefix in common.
fn name(node: u64) -> String {
    const FIRST: [&str; 8] = ["lib", "python3-", "golang-", "r-cran-", "node-", "ruby-", "", "x"];
    const MIDDLE: [&str; 8] = ["haru", "gtk", "crypt", "json", "xml", "net", "image", "sound"];
    const LAST: [&str; 8] = ["", "", "", "-dev", "-doc", "-common", "-bin", "-data"];
    let random = mix(node);
    let pick = |list: &[&'static str; 8], shift: u32| list[(random >> shift) as usize % 8];
    format!("{}{}{node:x}{}", pick(&FIRST, 0), pick(&MIDDLE, 8), pick(&LAST, 16))
}

impl History for Labels {
    /// Roots are watched; an edge leads from what is needed to the package that needs it.
    type Base = Base<String>;

    const DEFINITIONS: &'static str = "CREATE TABLE watched (package text NOT NULL);
        CREATE TABLE depends (package text NOT NULL, dependency text NOT NULL)";
    const TABLES: &'static [&'static str] = &["watched", "depends"];

    fn load_size(&self) -> u64 {
        WATCHED + self.edges.load_size()
    }

    fn loaded(&self, index: u64) -> Base<String> {
        match index.checked_sub(WATCHED) {
            Some(number) => self.dependency(number),
            None => Base::Root(name(index)),
        }
    }

    fn swap(&self, k: u64) -> (Base<String>, Base<String>) {
        (self.dependency(k), self.dependency(self.edges.count + k))
    }

    fn row(base: &Base<String>) -> (usize, Vec<Datum>) {
        let text = |name: &String| Datum::text(name.as_str());
        match base {
            Base::Root(package) => (0, vec![text(package)]),
            Base::Edge(dependency, package) => (1, vec![text(package), text(dependency)]),
        }
    }
}

impl Workload for Labels {
    type History = Labels;
    type Out = String;

    fn history(&self) -> &Labels {
        self
    }

    fn about(&self) -> String {
        format!("packages that need one of {WATCHED} packages, by name")
    }

    fn query(&self) -> String {
        "WITH RECURSIVE n(package) AS (SELECT package FROM watched UNION \
         SELECT d.package FROM n JOIN depends d ON d.dependency = n.package) \
         SELECT package FROM n"
            .to_owned()
    }

    fn build<'s>(&self, scope: Scope<'s, Time>) -> Built<'s, Base<String>, String> {
        build_reached(scope)
    }
}
