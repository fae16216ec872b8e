//! Columns that nobody reads are not there, and it makes no difference to the others.

#[path = "../plan/tests/common/random.rs"]
mod random;

use plan::naive::{evaluate, Multiset};
use plan::row::Row;
use plan::value::Datum;
use plan::{explain, ViewPlan};
use planner::plan_view;
use planner::sql::DdlCatalog;
use random::Random;

const TABLES: &str = "create table edge(a int not null, b int not null, label text, w int);
    create table place(id int primary key, name text not null, kind int not null);";

const COLUMNS: [&str; 4] = ["x", "y", "z", "v"];

fn plan(sql: &str) -> ViewPlan {
    let catalog = DdlCatalog::parse(TABLES).expect("the tables");
    plan_view(sql, &catalog).unwrap_or_else(|error| panic!("{sql}\n{error:?}"))
}

/// What goes round in a loop that ends, as `a < b` in all edges. Any column may be made of any other.
fn random_recursion(random: &mut Random) -> String {
    let mut pick = |from: &[&str]| from[random.below(from.len() as u64) as usize].to_owned();
    let [y, v] = [0, 1]
        .map(|_| pick(&["r.y", "r.v", "e.w", "e.a", "CASE WHEN r.v = 1 THEN r.y ELSE e.w END"]));
    let z = pick(&["r.z", "e.label", "coalesce(r.z, e.label)", "CASE WHEN r.y = 1 THEN r.z END"]);
    let on = pick(&[
        "e.a = r.x",
        "e.a = r.x AND (e.w = r.v OR e.label IS NULL)",
        "e.a = r.x AND p.kind = 1",
    ]);
    format!(
        "WITH RECURSIVE r(x, y, z, v) AS (SELECT a, w, label, b FROM edge UNION ALL \
         SELECT e.b, {y}, {z}, {v} FROM r, edge AS e, place AS p WHERE p.id = e.b AND {on})"
    )
}

fn random_contents(random: &mut Random) -> [Vec<Vec<Datum>>; 2] {
    let number = |random: &mut Random| match random.below(3) {
        0 => Datum::Null,
        n => Datum::Int4(n as i32),
    };
    let edges = (0..random.below(8)).map(|_| {
        let a = random.below(4) as i32;
        let label = if random.below(2) == 0 { Datum::Null } else { Datum::text("x") };
        vec![Datum::Int4(a), Datum::Int4(a + 1 + random.below(2) as i32), label, number(random)]
    });
    let edges = edges.collect();
    let places = (0..6)
        .map(|id| vec![Datum::Int4(id), Datum::text("p"), Datum::Int4(random.below(2) as i32)]);
    [edges, places.collect()]
}

fn run(plan: &ViewPlan, [edges, places]: &[Vec<Vec<Datum>>; 2]) -> Multiset<Row> {
    let sources = plan.sources.iter().map(|source| {
        let table = if source.table.name == "edge" { edges } else { places };
        let mut rows = Multiset::new();
        for row in table {
            let row = Row::pack(source.columns.iter().map(|&column| &row[column]));
            *rows.entry(row).or_insert(0) += 1;
        }
        rows
    });
    let (oks, errs) = evaluate(plan, &sources.collect::<Vec<_>>(), 100).expect("an end");
    assert!(errs.is_empty(), "{errs:?}");
    oks
}

#[test]
fn a_loop_without_columns_that_nobody_reads_has_the_rows_of_the_whole() {
    let seed = std::env::var("PLANNER_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = Random::new(seed.unwrap_or(20_261_127));
    let mut narrower = 0;
    for _ in 0..600 {
        let recursion = random_recursion(&mut random);
        let column = random.below(4) as usize;
        let whole = plan(&format!("{recursion} SELECT x, y, z, v FROM r"));
        let part = plan(&format!("{recursion} SELECT {} FROM r", COLUMNS[column]));
        narrower += usize::from(part.locals[0].columns.len() < 4);
        for _ in 0..3 {
            let contents = random_contents(&mut random);
            let mut expected = Multiset::new();
            for (row, copies) in run(&whole, &contents) {
                let row = Row::pack([row.column(column)].iter());
                *expected.entry(row).or_insert(0) += copies;
            }
            assert_eq!(run(&part, &contents), expected, "{recursion}\n{}", explain(&part));
        }
    }
    assert!(narrower > 300, "{narrower}");
}

#[test]
fn what_is_joined_in_a_step_has_the_columns_that_are_needed_above() {
    let plan = plan(
        "WITH RECURSIVE r(x, note) AS (SELECT a, label FROM edge UNION ALL \
         SELECT p.id, r.note FROM r, edge AS e, place AS p WHERE e.a = r.x AND p.id = e.b AND p.kind = 1) \
         SELECT x FROM r",
    );
    let text = explain(&plan);
    assert!(text.contains("LetRec r (x)"), "{text}");
    assert!(text.contains("Source edge (a, b)"), "{text}");
    assert!(text.contains("Source place (id, kind)"), "{text}");
}
