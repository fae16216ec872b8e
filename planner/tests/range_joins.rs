//! Joins by intervals against the same joins of all pairs, whose condition says that it is true and so hides what it is.

#[path = "../plan/tests/common/random.rs"]
mod random;

use plan::explain;
use plan::naive::{evaluate, Multiset};
use plan::numeric::Numeric;
use plan::row::Row;
use plan::value::Datum;
use plan::{Source, ViewPlan};
use planner::plan_view;
use planner::sql::DdlCatalog;
use random::Random;

const TABLES: &str = "
    create table l(i int, j int, k bigint, d date, e date, t timestamp, u timestamp, f float8, g float8, n numeric,
        m numeric, x text, y text);
    create table r(i int, j int, k bigint, d date, e date, t timestamp, u timestamp, f float8, g float8, n numeric,
        m numeric, x text, y text);";

/// Conditions that are of intervals, as they stand in canonical SQL.
const CONDITIONS: &[&str] = &[
    "l.i >= r.i AND l.i <= r.j",
    "r.i > l.i AND r.i < l.j",
    "r.i > l.i AND r.i < (l.i + 3)",
    "l.k >= r.i AND l.k < r.j",
    "r.k > l.i AND l.k >= r.k",
    "l.d >= r.d AND l.d <= r.e",
    "l.t >= r.t AND l.t < r.u",
    "l.f > r.f AND l.f <= r.g",
    "l.n >= r.n AND l.n <= r.m",
    "l.x >= r.x AND l.x < r.y",
    "l.i <= r.j AND r.i <= l.j",
    "l.t < r.u AND r.t < l.u",
    "l.f < r.g AND r.f < l.g",
    "l.n <= r.m AND r.n < l.m",
    "l.i >= r.i AND (l.i <= r.j OR r.j IS NULL)",
    "l.d > r.d AND (r.e > l.d OR l.d IS NULL)",
    "(r.d IS NULL OR l.d >= r.d) AND r.e > l.d",
    "(r.d IS NULL OR l.d >= r.d) AND (r.e > l.d OR r.e IS NULL) AND r.i <= l.j AND l.i <= r.j",
    "(l.i < r.j OR l.i IS NULL) AND (l.j > r.i OR r.i IS NULL)",
    "(l.d < r.e OR r.e IS NULL) AND (r.d < l.e OR l.e IS NULL)",
    "l.t >= r.t AND (l.t < COALESCE(r.u, 'infinity'::timestamp without time zone))",
    "l.i >= r.i AND l.i <= r.j AND l.f >= r.f AND l.f <= r.g",
    "l.i >= r.i AND l.i <= r.j AND r.f >= l.f AND r.f <= l.g",
    "l.i >= r.i AND l.i <= r.j AND r.f <= l.g AND l.f <= r.g",
    "l.i <= r.j AND r.i <= l.j AND r.f <= l.g AND l.f <= r.g",
    "l.i <= r.j AND r.i <= l.j AND r.f <= l.g AND l.f <= r.g AND l.t >= r.t AND l.t <= r.u",
    "l.i >= r.i AND l.i <= r.j AND l.x <> r.x AND l.j > r.j",
    "l.i >= r.i AND l.i <= r.j AND (l.j / r.j) IS NOT NULL",
];

/// NULL, the ends of the type, or something near to others.
fn pick<T: Copy>(random: &mut Random, special: &[T], value: impl Fn(i64) -> T) -> Option<T> {
    match random.below(12) {
        0 => None,
        1 => Some(special[random.below(special.len() as u64) as usize]),
        2 => Some(value(random.below(2_000_000) as i64 - 1_000_000)),
        _ => Some(value(random.below(12) as i64 - 6)),
    }
}

fn row(random: &mut Random) -> Row {
    let int = [i32::MIN, i32::MAX];
    let bigint = [i64::MIN, i64::MAX, i64::MAX - 1];
    let float = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e-300, -1e300];
    let numbers = ["NaN", "Infinity", "-Infinity", "0.000", "1e-30", "-1e300"];
    let texts = ["", "a", "ab", "b", "customer 1", "customer 2", "\u{10ffff}"];
    let mut row = Vec::new();
    for _ in 0..2 {
        let value = pick(random, &int, |n| n as i32);
        row.push(value.map_or(Datum::Null, Datum::Int4));
    }
    row.push(pick(random, &bigint, |n| n).map_or(Datum::Null, Datum::Int8));
    for _ in 0..2 {
        row.push(pick(random, &int, |n| n as i32).map_or(Datum::Null, Datum::Date));
    }
    for _ in 0..2 {
        let value = pick(random, &bigint, |n| n * 1_000_003);
        row.push(value.map_or(Datum::Null, Datum::Timestamp));
    }
    for _ in 0..2 {
        let value = pick(random, &float, |n| n as f64 / 4.0);
        row.push(value.map_or(Datum::Null, Datum::Float8));
    }
    for _ in 0..2 {
        let special = numbers[random.below(numbers.len() as u64) as usize];
        let value = pick(random, &[None], Some);
        let text = value.map(|n| n.map_or(special.to_owned(), |n| format!("{n}.50")));
        let number = text.map(|text| Datum::Numeric(Numeric::parse(&text).expect("a number")));
        row.push(number.unwrap_or(Datum::Null));
    }
    for _ in 0..2 {
        let text = pick(random, &texts, |n| texts[n.rem_euclid(texts.len() as i64) as usize]);
        row.push(text.map_or(Datum::Null, Datum::text));
    }
    Row::pack(row.iter())
}

fn rows(random: &mut Random) -> Multiset<Row> {
    let mut rows = Multiset::new();
    for _ in 0..random.below(12) {
        *rows.entry(row(random)).or_insert(0) += 1 + random.below(2) as i64;
    }
    rows
}

/// The columns that a plan has of a table.
fn columns_of(rows: &Multiset<Row>, source: &Source) -> Multiset<Row> {
    let mut picked = Multiset::new();
    for (row, copies) in rows {
        let values = row.unpack();
        let row = Row::pack(source.columns.iter().map(|&column| &values[column]));
        *picked.entry(row).or_insert(0) += copies;
    }
    picked
}

/// The queries whose joins have that condition.
fn queries(condition: &str) -> Vec<String> {
    let all = "l.i, l.j, l.k, l.d, l.e, l.t, l.u, l.f, l.g, l.n, l.m, l.x, l.y, \
        r.i, r.j, r.k, r.d, r.e, r.t, r.u, r.f, r.g, r.n, r.m, r.x, r.y";
    let joins = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"];
    let joins = joins.map(|join| format!("SELECT {all} FROM (l {join} r ON (({condition})))"));
    let exists = format!(
        "SELECT l.i, l.x FROM l WHERE (EXISTS ( SELECT 1 AS one FROM r WHERE ({condition})))"
    );
    let missing = exists.replace("(EXISTS", "(NOT EXISTS");
    joins.into_iter().chain([exists, missing]).collect()
}

#[test]
fn a_range_join_finds_the_pairs_that_meet_the_condition() {
    let catalog = DdlCatalog::parse(TABLES).expect("the tables");
    let mut random = Random::new(11);
    let inputs: Vec<[Multiset<Row>; 2]> =
        (0..25).map(|_| [rows(&mut random), rows(&mut random)]).collect();
    let mut found = 0;
    for condition in CONDITIONS {
        let hidden = format!("({condition}) IS TRUE");
        for (query, of_all_pairs) in queries(condition).iter().zip(queries(&hidden)) {
            let plan = plan_view(query, &catalog).unwrap_or_else(|e| panic!("{query}: {e:?}"));
            let expected = plan_view(&of_all_pairs, &catalog).expect("a plan");
            assert!(explain(&plan).contains("Range join"), "{query}\n{}", explain(&plan));
            assert!(!explain(&expected).contains("Range join"), "{of_all_pairs}");
            for [left, right] in &inputs {
                let contents = |plan: &ViewPlan| -> Vec<Multiset<Row>> {
                    let rows = |source: &Source| match source.table.name.as_str() {
                        "l" => columns_of(left, source),
                        _ => columns_of(right, source),
                    };
                    plan.sources.iter().map(rows).collect()
                };
                let result = evaluate(&plan, &contents(&plan), 10).expect("no recursion");
                let (rows, errors) =
                    evaluate(&expected, &contents(&expected), 10).expect("no recursion");
                assert_eq!(result.0, rows, "{query}\n{}", explain(&plan));
                // What is tested of all pairs is tested as one expression, of which a part that is NULL hides no other.
                assert!(result.1.keys().all(|error| errors.contains_key(error)), "{query}");
                found += rows.len();
            }
        }
    }
    assert!(found > 5_000, "only {found} rows");
}
