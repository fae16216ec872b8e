//! min, max and first rows pushed into recursions: the same rows as without pushing wherever that ends, and those of
//! a program written for the purpose where it does not. A failure prints the round; `PLANNER_SEED` draws others.

#[path = "../plan/tests/common/random.rs"]
mod random;

use plan::naive::{evaluate, Multiset};
use plan::row::Row;
use plan::value::Datum;
use plan::{Plan, Recursion, ViewPlan};
use planner::error::PlanError;
use planner::lower::lower;
use planner::plan_view;
use planner::sql::{bind, DdlCatalog};
use planner::transform::{apply_alone, PIPELINE};
use random::Random;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

const TABLES: &str =
    "create table edge(a int, b int, w int); create table seed(n int not null, v int);";

/// Rounds after which a path is taken to become better for ever.
const MANY: usize = 100;

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
    /// Whether the first row is asked for, else the value alone.
    first: Option<First>,
}

/// How the first row is asked for.
#[derive(Clone, Debug)]
struct First {
    /// Whether NULL is the best value.
    nulls_first: bool,
    /// Columns that decide among equal values.
    ties: Vec<Tie>,
}

#[derive(Clone, Copy, Debug)]
struct Tie {
    column: TieColumn,
    descending: bool,
    nulls_first: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum TieColumn {
    /// The node before.
    Previous,
    /// The last edge's weight.
    Weight,
    /// The node at which the path begins.
    Carried,
    /// How many edges it has.
    Steps,
}

impl TieColumn {
    /// Whether that of a path is made of that of its part.
    fn goes_along(self) -> bool {
        matches!(self, TieColumn::Carried | TieColumn::Steps)
    }
}

impl First {
    fn random(random: &mut Random, has_bound: bool) -> First {
        use TieColumn::*;
        let tie = |random: &mut Random| Tie {
            column: [Previous, Weight, Carried, Steps][random.below(4) as usize],
            descending: random.below(2) == 0,
            nulls_first: random.below(2) == 0,
        };
        First {
            nulls_first: !has_bound && random.below(3) == 0,
            ties: (0..random.below(4)).map(|_| tie(random)).collect(),
        }
    }
}

fn direction(descending: bool, nulls_first: bool) -> String {
    let (direction, nulls) = (["", " DESC"], [" NULLS LAST", " NULLS FIRST"]);
    direction[usize::from(descending)].to_owned() + nulls[usize::from(nulls_first)]
}

fn compare(a: Option<i64>, b: Option<i64>, descending: bool, nulls_first: bool) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) if descending => b.cmp(&a),
        (Some(a), Some(b)) => a.cmp(&b),
        (a, b) if nulls_first => a.is_some().cmp(&b.is_some()),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
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
        let bound = (random.below(3) == 0).then(|| random.below(12) as i64);
        let is_first = random.below(2) == 0;
        Shape {
            least: random.below(2) == 0,
            by_start: random.below(3) == 0,
            all: random.below(2) == 0,
            step: [Keep, AddOne, AddWeight, AddWeight, SubtractWeight, Worst, Best]
                [random.below(7) as usize],
            bound,
            undirected: random.below(4) == 0,
            dead_column: random.below(4) == 0,
            first: is_first.then(|| First::random(random, bound.is_some())),
        }
    }

    fn ties(&self) -> &[Tie] {
        self.first.as_ref().map_or(&[], |first| &first.ties)
    }

    fn nulls_first(&self) -> bool {
        self.first.as_ref().is_some_and(|first| first.nulls_first)
    }

    /// Whether the value of a seed is there even if the table has none.
    fn is_known(&self) -> bool {
        let carries = self.ties().iter().any(|tie| tie.column.goes_along());
        // greatest and least ignore NULL: with them the value has to be known.
        matches!(self.step, Step::Worst | Step::Best) || carries
    }

    /// What tells the rows apart that the loop keeps, beside start and node: what goes along with a path, unless better
    /// parts of paths make better paths, and nothing in front of it is replaced.
    fn more_keys(&self) -> Vec<TieColumn> {
        let mut goes_along = self.is_known() && matches!(self.step, Step::Keep | Step::AddOne);
        let mut keys = vec![];
        for tie in self.ties() {
            match tie.column.goes_along() {
                true if !goes_along => keys.push(tie.column),
                true => {}
                false => goes_along = false,
            }
        }
        keys
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
        let comparison = if self.least { "<" } else { ">=" };
        let bound =
            self.bound.map(|bound| format!(" WHERE r.v {comparison} {bound}")).unwrap_or_default();
        let start = |name: &str| if self.by_start { format!("{name}, ") } else { String::new() };
        let (dead, count, more) =
            if self.dead_column { (", c", ", 0", ", r.c + 1") } else { ("", "", "") };
        let ties = |text: &dyn Fn(usize, TieColumn) -> String| -> String {
            let texts = self.ties().iter().enumerate().map(|(i, tie)| text(i, tie.column));
            texts.map(|text| format!(", {text}")).collect()
        };
        let names = ties(&|i, _| format!("p{i}"));
        let next = ties(&|i, column| match column {
            TieColumn::Previous => "r.n".to_owned(),
            TieColumn::Weight => "e.w".to_owned(),
            TieColumn::Carried => format!("r.p{i}"),
            TieColumn::Steps => format!("1 + r.p{i}"),
        });
        let begin = ties(&|_, column| match column {
            TieColumn::Previous => "NULL::int".to_owned(),
            TieColumn::Weight => "v".to_owned(),
            TieColumn::Carried => "n".to_owned(),
            TieColumn::Steps => "0".to_owned(),
        });
        let step = |to: &str, from: &str| {
            let start = start("r.s");
            format!(
                "SELECT {start}e.{to}, {value}{more}{next} FROM r JOIN edge e ON e.{from} = r.n{bound}"
            )
        };
        let steps = if self.undirected {
            let (there, back) = (step("b", "a"), step("a", "b"));
            format!("SELECT * FROM ({there} UNION ALL {back}) x")
        } else {
            step("b", "a")
        };
        let seed = if self.is_known() { "coalesce(v, 3)" } else { "v" };
        let (columns, key) = (start("s"), if self.by_start { "s, n" } else { "n" });
        let body = self.body(key);
        format!(
            "WITH RECURSIVE r({columns}n, v{dead}{names}) AS (\
             SELECT {}n, {seed}{count}{begin} FROM seed {union} {steps}) {body}",
            start("n")
        )
    }

    /// The query over the recursion.
    fn body(&self, key: &str) -> String {
        let Some(first) = &self.first else {
            let func = if self.least { "min" } else { "max" };
            return format!("SELECT {key}, {func}(v) AS v FROM r GROUP BY {key}");
        };
        let names: String = (0..first.ties.len()).map(|i| format!(", p{i}")).collect();
        let value = direction(!self.least, first.nulls_first);
        let order = first.ties.iter().enumerate();
        let order: String = order
            .map(|(i, tie)| format!(", p{i}{}", direction(tie.descending, tie.nulls_first)))
            .collect();
        format!("SELECT DISTINCT ON ({key}) {key}, v{names} FROM r ORDER BY {key}, v{value}{order}")
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

    fn compare(&self, a: Option<i64>, b: Option<i64>) -> Ordering {
        compare(a, b, !self.least, self.nulls_first())
    }

    fn next_ties(&self, ties: &[Option<i64>], node: i64, weight: Option<i64>) -> Ties {
        let next = self.ties().iter().zip(ties).map(|(tie, known)| match tie.column {
            TieColumn::Previous => Some(node),
            TieColumn::Weight => weight,
            TieColumn::Carried => *known,
            TieColumn::Steps => known.map(|steps| steps + 1),
        });
        next.collect()
    }

    /// The first row by start and node, by trying edges until nothing improves; `None` if there is no end.
    /// What decides among equal values is taken to tell rows apart, until all are found: then longer paths may be
    /// others for ever, but no better ones.
    fn solve(&self, graph: &Graph) -> Option<Multiset<Row>> {
        let mut best: BTreeMap<State, Option<i64>> = BTreeMap::new();
        let mut changed: BTreeSet<State> = BTreeSet::new();
        let offer = |best: &mut BTreeMap<_, Option<i64>>, key, value| {
            let is_new = best.get(&key).is_none_or(|known| self.compare(value, *known).is_lt());
            if is_new {
                best.insert(key, value);
            }
            is_new
        };
        for (node, value) in &graph.seeds {
            let begin = self.ties().iter().map(|tie| match tie.column {
                TieColumn::Previous => None,
                TieColumn::Weight => *value,
                TieColumn::Carried => Some(*node),
                TieColumn::Steps => Some(0),
            });
            let start = if self.by_start { *node } else { 0 };
            let value = if self.is_known() { Some(value.unwrap_or(3)) } else { *value };
            let state: State = (start, *node, begin.collect());
            if offer(&mut best, state.clone(), value) {
                changed.insert(state);
            }
        }
        let mut first_before = None;
        for round in 0..MANY {
            for (start, node, ties) in std::mem::take(&mut changed) {
                let value = best[&(start, node, ties.clone())];
                for (a, b, weight) in &graph.edges {
                    let next = self.next(value, *weight);
                    let ties = self.next_ties(&ties, node, *weight);
                    let mut follow = |from, to| {
                        let state = (start, to, ties.clone());
                        if from == node
                            && self.passes(value)
                            && offer(&mut best, state.clone(), next)
                        {
                            changed.insert(state);
                        }
                    };
                    follow(*a, *b);
                    if self.undirected {
                        follow(*b, *a);
                    }
                }
            }
            if changed.is_empty() {
                return Some(self.first_rows(best));
            }
            if round == MANY / 2 {
                first_before = Some(self.first_rows(best.clone()));
            }
        }
        let first = self.first_rows(best);
        (first_before == Some(first.clone())).then_some(first)
    }

    fn first_rows(&self, best: BTreeMap<State, Option<i64>>) -> Multiset<Row> {
        let mut first: BTreeMap<(i64, i64), (Option<i64>, Ties)> = BTreeMap::new();
        for ((start, node, ties), value) in best {
            let is_before = |known: &(Option<i64>, Ties)| {
                let decide = self.ties().iter().zip(ties.iter().zip(&known.1));
                let by_ties =
                    decide.map(|(t, (a, b))| compare(*a, *b, t.descending, t.nulls_first));
                let all = [self.compare(value, known.0)].into_iter().chain(by_ties);
                all.fold(Ordering::Equal, Ordering::then).is_lt()
            };
            if first.get(&(start, node)).is_none_or(is_before) {
                first.insert((start, node), (value, ties));
            }
        }
        let row = |((start, node), (value, ties)): ((i64, i64), (Option<i64>, Ties))| {
            let ints = [vec![Some(start), Some(node), value], ties].concat();
            row(&ints[usize::from(!self.by_start)..])
        };
        first.into_iter().map(|entry| (row(entry), 1)).collect()
    }
}

/// The values of what decides among equal values.
type Ties = Vec<Option<i64>>;
/// Start, node, and those.
type State = (i64, i64, Ties);

/// The columns that tell the rows of the recursion apart, if it keeps the best rows.
fn keys(plan: &Plan) -> Option<usize> {
    match plan {
        Plan::LetRec { recursion: Recursion::FixpointExtreme { key, .. }, .. } => Some(key.len()),
        _ => plan.children().into_iter().find_map(keys),
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
    lower(&query?, &|_| vec![])
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
        let text = plan::explain(&pushed);
        let more_keys = shape.more_keys();
        let all_keys = 1 + usize::from(shape.by_start) + more_keys.len();
        assert_eq!(keys(&pushed.root), Some(all_keys), "{sql}\n{text}");
        let found = evaluate(&pushed, &graph.tables(&pushed), MANY as u64).ok();
        let found = found.map(|(oks, errs)| {
            assert!(errs.is_empty());
            oks
        });
        // Where steps tell rows apart there is no end.
        if found.is_some() || !more_keys.contains(&TieColumn::Steps) {
            assert_eq!(found, shape.solve(&graph), "round {round}: {sql}\n{graph:?}");
        }
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
