//! A view that depends on the present time is, at every time, what it is with that time written into the query.

#[path = "../plan/tests/common/random.rs"]
mod random;

use plan::naive::{evaluate, Multiset};
use plan::row::Row;
use plan::text::format_datum;
use plan::types::{Column, Scalar, Type};
use plan::value::Datum;
use plan::{Diff, ViewPlan};
use planner::plan_view;
use planner::sql::DdlCatalog;
use random::Random;
use std::collections::BTreeMap;

/// Queries with `from(…)` and `until(…)` for conditions on the present time, and where they end.
const QUERIES: [&str; 12] = [
    "SELECT id, x FROM events WHERE x > 1 AND until(gone;) AND from(at;)",
    "SELECT id, 6 / x AS q FROM events WHERE until(gone;) AND x > 0 AND 6 / x > 1",
    "SELECT kind, count(*) FROM events WHERE from(at;) AND from(gone;) GROUP BY kind",
    "SELECT a.id, b.id FROM events a JOIN events b ON a.x = b.x WHERE from(a.at;) AND until(b.gone;)",
    "SELECT a.id, b.id FROM events a, events b WHERE a.x = b.x AND until(GREATEST(a.gone, b.at);)",
    "SELECT a.id, b.id FROM events a LEFT JOIN events b ON a.x = b.id WHERE until(a.gone;)",
    "SELECT a.id, b.id FROM events a LEFT JOIN events b ON a.x = b.id WHERE until(b.gone;)",
    "SELECT s.at FROM (SELECT DISTINCT at, gone FROM events WHERE from(gone;)) s WHERE until(s.at;)",
    "SELECT a.id FROM events a WHERE NOT EXISTS (SELECT 1 FROM events b WHERE b.x = a.id AND until(b.gone;))",
    "SELECT a.id, (SELECT count(*) FROM events b WHERE b.x = a.x AND until(LEAST(a.gone, b.at);)) FROM events a",
    "SELECT a.id FROM events a WHERE from((SELECT max(b.at) FROM events b WHERE b.x = a.x);)",
    "WITH RECURSIVE e AS (SELECT id, x FROM events WHERE until(gone;)), \
     r AS (SELECT id FROM e WHERE id < 3 UNION SELECT e.x FROM r JOIN e ON e.id = r.id) SELECT id FROM r",
];

fn instant(micros: i64) -> String {
    let ty = Type::Scalar(Scalar::Timestamptz);
    format!("'{}'::timestamptz", format_datum(&Datum::Timestamp(micros), ty))
}

fn any_time(random: &mut Random) -> Datum {
    match random.below(8) {
        0 => Datum::Timestamp(i64::MAX),
        1 => Datum::Timestamp(i64::MIN),
        _ => Datum::Timestamp(random.below(6) as i64),
    }
}

/// A row of the table, the value of each column chosen by its name.
fn event(random: &mut Random, columns: &[Column]) -> Row {
    let value = |column: &Column| match column.name.as_str() {
        "at" => any_time(random),
        "gone" if random.below(5) > 0 => any_time(random),
        "kind" => Datum::text(["a", "b"][random.below(2) as usize].to_owned()),
        "id" | "x" => Datum::Int4(random.below(5) as i32),
        _ => Datum::Null,
    };
    Row::pack(&columns.iter().map(value).collect::<Vec<_>>())
}

/// The contents of a plan's sources, given whole rows.
fn contents(plan: &ViewPlan, rows: &[Row], now: i64) -> Vec<Multiset<Row>> {
    let of = |source: &plan::Source| {
        if source.is_clock() {
            return BTreeMap::from([(Row::pack(&[Datum::Timestamp(now)]), 1)]);
        }
        let mut contents = Multiset::<Row>::new();
        for row in rows {
            *contents.entry(Row::project(&[row], &source.columns)).or_insert(0) += 1 as Diff;
        }
        contents
    };
    plan.sources.iter().map(of).collect()
}

#[test]
fn the_view_is_what_the_query_is_with_the_present_time_in_it() {
    let catalog = DdlCatalog::parse(include_str!("tables.sql")).unwrap();
    let whole = plan_view("SELECT * FROM events", &catalog).unwrap().columns;
    let seed = std::env::var("PLANNER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(20_261_122);
    println!("PLANNER_SEED={seed}");
    let mut random = Random::new(seed);
    let mut rows_seen = 0;
    for query in QUERIES {
        let marked =
            query.replace("from(", "eddy.valid_from(").replace("until(", "eddy.valid_until(");
        let plan = plan_view(&marked.replace(";)", ")"), &catalog).expect(query);
        assert_eq!(plan.sources.iter().filter(|source| source.is_clock()).count(), 1);
        for _ in 0..20 {
            let rows: Vec<Row> =
                (0..random.below(12)).map(|_| event(&mut random, &whole)).collect();
            for now in 0..6 {
                let literal = instant(now);
                let written = query
                    .replace("from(", &format!("({literal} >= ("))
                    .replace("until(", &format!("({literal} < ("))
                    .replace(";)", "))");
                let plain = plan_view(&written, &catalog).expect(&written);
                let expected = evaluate(&plain, &contents(&plain, &rows, now), 100).unwrap();
                let found = evaluate(&plan, &contents(&plan, &rows, now), 100).unwrap();
                assert_eq!(found, expected, "{query} at {now}: {rows:?}");
                rows_seen += found.0.len();
            }
        }
    }
    assert!(rows_seen > 1000, "{rows_seen} rows");
}

#[test]
fn before_the_first_row_of_the_clock_nothing_is_valid() {
    let catalog = DdlCatalog::parse(include_str!("tables.sql")).unwrap();
    let query = "SELECT 1 AS one WHERE eddy.valid_from('-infinity'::timestamptz)";
    let plan = plan_view(query, &catalog).unwrap();
    assert_eq!(evaluate(&plan, &[Multiset::new()], 1).unwrap().0, Multiset::new());
    assert_eq!(evaluate(&plan, &contents(&plan, &[], i64::MIN + 1), 1).unwrap().0.len(), 1);
}
