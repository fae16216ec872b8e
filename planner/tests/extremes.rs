//! min and max pushed into recursions: the same rows as without pushing wherever that ends, and those of a
//! program written for the purpose where it does not. A failure prints the round; `PLANNER_SEED` draws others.

#[path = "../plan/tests/common/random.rs"]
mod random;

use plan::naive::{evaluate, Multiset};
use plan::row::Row;
use plan::value::Datum;
use plan::ViewPlan;
use planner::error::PlanError;
use planner::lower::lower;
use planner::plan_view;
use planner::sql::{bind, DdlCatalog};
use planner::transform::{apply_alone, PIPELINE};
use random::Random;
use std::collections::BTreeMap;

const TABLES: &str =
    "create table edge(a int, b int, w int); create table seed(n int not null, v int);";

/// Rounds after which a path is taken to become better for ever.
const MANY: usize = 200;

/// A query, and what its step does, to be computed in another way.
#[derive(Clone, Debug)]
struct Shape {
    /// Whether the least values are asked for.
    least: bool,
    /// Whether paths keep the node they begin at.
    by_start: bool,
    all: bool,
    step: Step,
    bound: Option<i64>,
    undirected: bool,
    dead_column: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Keep,
    AddOne,
    AddWeight,
    SubtractWeight,
    /// Greatest of the value and the weight, NULLs ignored.
    Worst,
    Best,
}

impl Shape {
    fn random(random: &mut Random) -> Shape {
        use Step::*;
        Shape {
            least: random.below(2) == 0,
            by_start: random.below(3) == 0,
            all: random.below(2) == 0,
            step: [Keep, AddOne, AddWeight, AddWeight, SubtractWeight, Worst, Best]
                [random.below(7) as usize],
            bound: (random.below(3) == 0).then(|| random.below(12) as i64),
            undirected: random.below(4) == 0,
            dead_column: random.below(4) == 0,
        }
    }

    fn sql(&self) -> String {
        let value = match self.step {
            Step::Keep => "r.v",
            Step::AddOne => "r.v + 1",
            Step::AddWeight => "e.w + r.v",
            Step::SubtractWeight => "r.v - e.w",
            Step::Worst if self.least => "greatest(r.v, e.w)",
            Step::Worst => "least(e.w, r.v)",
            Step::Best if self.least => "least(r.v, e.w)",
            Step::Best => "greatest(e.w, r.v)",
        };
        let union = if self.all { "UNION ALL" } else { "UNION" };
        let (func, comparison) = if self.least { ("min", "<") } else { ("max", ">=") };
        let bound =
            self.bound.map(|bound| format!(" WHERE r.v {comparison} {bound}")).unwrap_or_default();
        let start = |name: &str| if self.by_start { format!("{name}, ") } else { String::new() };
        let (dead, count, more) =
            if self.dead_column { (", c", ", 0", ", r.c + 1") } else { ("", "", "") };
        let step = |to: &str, from: &str| {
            let start = start("r.s");
            format!(
                "SELECT {start}e.{to}, {value}{more} FROM r JOIN edge e ON e.{from} = r.n{bound}"
            )
        };
        let steps = if self.undirected {
            let (there, back) = (step("b", "a"), step("a", "b"));
            format!("SELECT * FROM ({there} UNION ALL {back}) x")
        } else {
            step("b", "a")
        };
        // greatest and least ignore NULL: with them the value has to be known.
        let seed = match self.step {
            Step::Worst | Step::Best => "coalesce(v, 3)",
            _ => "v",
        };
        let (columns, key) = (start("s"), if self.by_start { "s, n" } else { "n" });
        format!(
            "WITH RECURSIVE r({columns}n, v{dead}) AS (SELECT {}n, {seed}{count} FROM seed {union} {steps}) \
             SELECT {key}, {func}(v) AS v FROM r GROUP BY {key}",
            start("n")
        )
    }

    fn next(&self, value: Option<i64>, weight: Option<i64>) -> Option<i64> {
        let sum = |sign| Some(value? + sign * weight?);
        let both = || value.into_iter().chain(weight);
        match self.step {
            Step::Keep => value,
            Step::AddOne => value.map(|value| value + 1),
            Step::AddWeight => sum(1),
            Step::SubtractWeight => sum(-1),
            Step::Worst if self.least => both().max(),
            Step::Best if !self.least => both().max(),
            Step::Worst | Step::Best => both().min(),
        }
    }

    fn passes(&self, value: Option<i64>) -> bool {
        match (self.bound, value) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(bound), Some(value)) if self.least => value < bound,
            (Some(bound), Some(value)) => value >= bound,
        }
    }

    fn is_better(&self, new: Option<i64>, known: Option<i64>) -> bool {
        match (new, known) {
            (Some(new), Some(known)) if self.least => new < known,
            (Some(new), Some(known)) => new > known,
            (new, known) => new.is_some() && known.is_none(),
        }
    }

    /// The best value by start and node, by trying edges until nothing improves; `None` if there is no end.
    fn solve(&self, graph: &Graph) -> Option<Multiset<Row>> {
        let mut best: BTreeMap<(i64, i64), Option<i64>> = BTreeMap::new();
        let offer = |best: &mut BTreeMap<_, Option<i64>>, key, value| {
            let is_new = best.get(&key).is_none_or(|known| self.is_better(value, *known));
            if is_new {
                best.insert(key, value);
            }
            is_new
        };
        for (node, value) in &graph.seeds {
            let value = match self.step {
                Step::Worst | Step::Best => Some(value.unwrap_or(3)),
                _ => *value,
            };
            offer(&mut best, (if self.by_start { *node } else { 0 }, *node), value);
        }
        for _ in 0..MANY {
            let mut improved = false;
            for ((start, node), value) in best.clone() {
                for (a, b, weight) in &graph.edges {
                    let next = self.next(value, *weight);
                    let mut follow = |from, to| {
                        if from == node && self.passes(value) {
                            improved |= offer(&mut best, (start, to), next);
                        }
                    };
                    follow(*a, *b);
                    if self.undirected {
                        follow(*b, *a);
                    }
                }
            }
            if !improved {
                let row = |((start, node), value): ((i64, i64), Option<i64>)| {
                    let ints = [Some(start), Some(node), value];
                    row(&ints[usize::from(!self.by_start)..])
                };
                return Some(best.into_iter().map(|entry| (row(entry), 1)).collect());
            }
        }
        None
    }
}

/// Contents of the tables.
#[derive(Debug)]
struct Graph {
    edges: Vec<(i64, i64, Option<i64>)>,
    seeds: Vec<(i64, Option<i64>)>,
}

impl Graph {
    fn random(random: &mut Random, cyclic: bool) -> Graph {
        let nodes = 2 + random.below(6);
        let weight = |random: &mut Random| match random.below(10) {
            0 => None,
            1 => Some(-1),
            2 => Some(300 + random.below(1000) as i64),
            n => Some(n as i64),
        };
        let edges = (0..random.below(12)).map(|_| {
            let (a, b) = (random.below(nodes) as i64, random.below(nodes) as i64);
            let (a, b) = if cyclic { (a, b) } else { (a.min(b), a.max(b) + 1) };
            (a, b, weight(random))
        });
        let edges = edges.collect();
        let seeds = (0..random.below(4)).map(|_| (random.below(nodes) as i64, weight(random)));
        Graph { edges, seeds: seeds.collect() }
    }

    fn tables(&self, plan: &ViewPlan) -> Vec<Multiset<Row>> {
        let rows = |source: &plan::Source| {
            let all: Vec<Vec<Option<i64>>> = match source.table.name.as_str() {
                "edge" => self.edges.iter().map(|(a, b, w)| vec![Some(*a), Some(*b), *w]).collect(),
                _ => self.seeds.iter().map(|(n, v)| vec![Some(*n), *v]).collect(),
            };
            let mut contents = Multiset::new();
            for values in all {
                let needed: Vec<_> = source.columns.iter().map(|&column| values[column]).collect();
                *contents.entry(row(&needed)).or_insert(0) += 1;
            }
            contents
        };
        plan.sources.iter().map(rows).collect()
    }
}

fn row(values: &[Option<i64>]) -> Row {
    let datum = |value: &Option<i64>| value.map_or(Datum::Null, |value| Datum::Int4(value as i32));
    Row::pack(&values.iter().map(datum).collect::<Vec<_>>())
}

/// The plan without the transform.
fn plain(sql: &str, catalog: &DdlCatalog) -> Result<ViewPlan, PlanError> {
    let steps = PIPELINE.iter().filter(|step| step.name != "push_extremes");
    let query = steps.fold(bind(sql, catalog), |query, step| {
        apply_alone(step.name, query?).expect("a known transform")
    });
    lower(&query?)
}

#[test]
fn pushed_extremes_are_those_of_all_rows() {
    let seed = std::env::var("PLANNER_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = Random::new(seed.unwrap_or(20_261_120));
    let catalog = DdlCatalog::parse(TABLES).expect("the tables");
    let (mut compared, mut endless) = (0, 0);
    for round in 0..3000 {
        let shape = Shape::random(&mut random);
        let cyclic = random.below(2) == 0;
        let graph = Graph::random(&mut random, cyclic);
        let sql = shape.sql();
        let pushed = plan_view(&sql, &catalog).expect("a plan");
        assert!(pushed.root.is_beyond_sql(), "{sql}\n{}", plan::explain(&pushed));
        let found = evaluate(&pushed, &graph.tables(&pushed), MANY as u64).ok();
        let found = found.map(|(oks, errs)| {
            assert!(errs.is_empty());
            oks
        });
        assert_eq!(found, shape.solve(&graph), "round {round}: {sql}\n{graph:?}");
        let plain = plain(&sql, &catalog).expect("a plan");
        assert!(!plain.root.is_beyond_sql());
        // Of what is cyclic few rounds yield very many rows.
        let rounds = if cyclic && shape.all { 6 } else { 12 };
        match evaluate(&plain, &graph.tables(&plain), rounds) {
            Ok((oks, _)) => {
                compared += 1;
                assert_eq!(found, Some(oks), "round {round}: {sql}\n{graph:?}");
            }
            Err(_) => endless += usize::from(found.is_some()),
        }
    }
    println!("{compared} compared with all rows, {endless} end only when pushed");
    assert!(compared > 1000 && endless > 200, "{compared} {endless}");
}
