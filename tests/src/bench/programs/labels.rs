//! engine/labels: reachability over text, in a graph like that of a distribution's packages.

use differential_dataflow::input::{Input, InputSession};
use planner::value::Datum;
use timely::dataflow::Scope;

use super::reach::reached;
use crate::bench::checksum::mix;
use crate::bench::graph::RandomGraph;
use crate::bench::workload::{Built, Inputs, Time, Workload};

/// Packages 0, 1, … are watched; nearly everything needs the first ones.
const WATCHED: u64 = 3;

/// Dependencies come and go.
pub struct Labels {
    pub graph: RandomGraph,
    pub edges: u64,
}

/// A row of one of the two tables.
#[derive(Clone)]
pub enum Base {
    Watched(String),
    /// A package and what it needs.
    Depends(String, String),
}

impl Labels {
    /// Most dependencies lead from newer to older packages, some back, so that there are cycles.
    fn dependency(&self, number: u64) -> Base {
        let (a, b) = self.graph.edge(number);
        // Skewed: the older a package, the more need it.
        let (newer, older) = (a.max(b), u64::from(a) * u64::from(b) / self.graph.nodes);
        let (newer, older) = (name(newer.into()), name(older));
        if mix(number).is_multiple_of(64) {
            Base::Depends(older, newer)
        } else {
            Base::Depends(newer, older)
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

impl Workload for Labels {
    type Base = Base;
    type Out = String;

    const DEFINITIONS: &'static str = "CREATE TABLE watched (package text NOT NULL);
        CREATE TABLE depends (package text NOT NULL, dependency text NOT NULL)";
    const TABLES: &'static [&'static str] = &["watched", "depends"];

    fn about(&self) -> String {
        format!("packages that need one of {WATCHED} packages, by name")
    }

    fn query(&self) -> String {
        "WITH RECURSIVE n(package) AS (SELECT package FROM watched UNION \
         SELECT d.package FROM n JOIN depends d ON d.dependency = n.package) \
         SELECT package FROM n"
            .to_owned()
    }

    fn load_size(&self) -> u64 {
        WATCHED + self.edges
    }

    fn loaded(&self, index: u64) -> Base {
        match index.checked_sub(WATCHED) {
            Some(number) => self.dependency(number),
            None => Base::Watched(name(index)),
        }
    }

    fn swap(&self, k: u64) -> (Base, Base) {
        (self.dependency(k), self.dependency(self.edges + k))
    }

    fn row(base: &Base) -> (usize, Vec<Datum>) {
        let text = |name: &String| Datum::text(name.as_str());
        match base {
            Base::Watched(package) => (0, vec![text(package)]),
            Base::Depends(package, dependency) => (1, vec![text(package), text(dependency)]),
        }
    }

    fn build<'s>(&self, scope: Scope<'s, Time>) -> Built<'s, Base, String> {
        let (watched_input, watched) = scope.new_collection();
        let (depends_input, depends) = scope.new_collection();
        let inputs = Box::new(Tables { watched: watched_input, needed_by: depends_input });
        Built { inputs, output: reached(watched, depends) }
    }
}

struct Tables {
    watched: InputSession<Time, String, isize>,
    /// What is needed, and by which package.
    needed_by: InputSession<Time, (String, String), isize>,
}

impl Inputs<Base> for Tables {
    fn update(&mut self, updates: Vec<(Base, Time, isize)>) {
        for (base, time, diff) in updates {
            match base {
                Base::Watched(package) => self.watched.update_at(package, time, diff),
                Base::Depends(package, dependency) => {
                    self.needed_by.update_at((dependency, package), time, diff);
                }
            }
        }
    }

    fn advance(&mut self, time: Time) {
        self.watched.advance(time);
        self.needed_by.advance(time);
    }
}
