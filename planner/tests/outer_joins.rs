//! Joins, outer ones above all, against their definition: the pairs that fit, and the rows that are in none.

#[path = "../plan/tests/common/random.rs"]
mod random;

use plan::naive::{evaluate, Multiset};
use plan::numeric::Numeric;
use plan::row::Row;
use plan::value::Datum;
use planner::plan_view;
use planner::sql::DdlCatalog;
use random::Random;

const TABLES: &str =
    "create table l(a int, b numeric, c int[]); create table r(a int, b numeric, c int[]);";

/// A row of either table; numbers with decimals and arrays as text.
type Values = (Option<i32>, Option<&'static str>, Option<&'static str>);

/// A condition in SQL, and whether a pair of rows meets it.
type Condition = (&'static str, fn(&Values, &Values) -> bool);

fn equal<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
    a.is_some() && a == b
}

fn less<T: PartialOrd>(a: Option<T>, b: Option<T>) -> bool {
    a.zip(b).is_some_and(|(a, b)| a < b)
}

fn value(number: Option<&str>) -> Option<&str> {
    number.map(|text| text.trim_end_matches('0'))
}

const CONDITIONS: &[Condition] = &[
    ("true", |_, _| true),
    ("false", |_, _| false),
    ("l.a = r.a", |l, r| equal(l.0, r.0)),
    ("l.a = 1", |l, _| l.0 == Some(1)),
    ("r.a = 1", |_, r| r.0 == Some(1)),
    ("l.a = r.a AND l.a > 1", |l, r| equal(l.0, r.0) && l.0 > Some(1)),
    ("l.a = r.a AND l.b > 1.5 AND r.b > 1.5", |l, r| {
        equal(l.0, r.0) && [l.1, r.1].into_iter().all(|b| b == Some("2.0"))
    }),
    ("l.a < r.a", |l, r| less(l.0, r.0)),
    ("l.a IS NULL", |l, _| l.0.is_none()),
    ("l.a IS NOT DISTINCT FROM r.a", |l, r| l.0 == r.0),
    ("l.b = r.b", |l, r| equal(value(l.1), value(r.1))),
    ("l.b::text = r.b::text", |l, r| equal(l.1, r.1)),
    ("l.a = r.a AND l.b::text < r.b::text", |l, r| equal(l.0, r.0) && less(l.1, r.1)),
    ("l.c = r.c", |l, r| equal(l.2, r.2)),
    ("l.c IS NULL OR r.a = 1", |l, r| l.2.is_none() || r.0 == Some(1)),
    ("l.a = r.a OR l.b = r.b", |l, r| equal(l.0, r.0) || equal(value(l.1), value(r.1))),
    ("l.a = 1 OR r.a = 1", |l, r| l.0 == Some(1) || r.0 == Some(1)),
    ("l.a = 1 AND r.a = 2 OR l.b = r.b AND r.a > 1 OR l.c = r.c", |l, r| {
        l.0 == Some(1) && r.0 == Some(2)
            || equal(value(l.1), value(r.1)) && r.0 > Some(1)
            || equal(l.2, r.2)
    }),
    ("(l.a = r.a OR l.b::text = r.b::text) AND (l.c = r.c OR l.a = 1)", |l, r| {
        (equal(l.0, r.0) || equal(l.1, r.1)) && (equal(l.2, r.2) || l.0 == Some(1))
    }),
    ("(l.a = 1 OR r.a = 2) AND (r.c = l.c OR l.b = r.b)", |l, r| {
        (l.0 == Some(1) || r.0 == Some(2)) && (equal(l.2, r.2) || equal(value(l.1), value(r.1)))
    }),
    ("l.a IN (r.a, r.a + 1)", |l, r| equal(l.0, r.0) || equal(l.0, r.0.map(|a| a + 1))),
];

fn random_rows(random: &mut Random) -> Vec<Values> {
    let row = |random: &mut Random| {
        let a = [None, Some(1), Some(2), Some(3)][random.below(4) as usize];
        let b = [None, Some("1.0"), Some("1.00"), Some("2.0")][random.below(4) as usize];
        let c = [None, Some("{}"), Some("{NULL}"), Some("{1}")][random.below(4) as usize];
        (a, b, c)
    };
    (0..random.below(6)).map(|_| row(random)).collect()
}

fn datums((a, b, c): &Values) -> [Datum; 3] {
    let array = |text: &str| {
        Datum::array(match text {
            "{}" => vec![],
            "{NULL}" => vec![Datum::Null],
            _ => vec![Datum::Int4(1)],
        })
    };
    let number = |text: &str| Datum::Numeric(Numeric::parse(text).expect("a number"));
    [
        a.map_or(Datum::Null, Datum::Int4),
        b.map_or(Datum::Null, number),
        c.map_or(Datum::Null, array),
    ]
}

fn multiset(rows: impl IntoIterator<Item = Vec<Datum>>) -> Multiset<Row> {
    let mut multiset = Multiset::new();
    for row in rows {
        *multiset.entry(Row::pack(row.iter())).or_insert(0) += 1;
    }
    multiset
}

/// The join as SQL defines it.
fn expected(kind: &str, left: &[Values], right: &[Values], condition: Condition) -> Multiset<Row> {
    let fits = condition.1;
    let none = [const { Datum::Null }; 3];
    let pairs = left.iter().flat_map(|l| right.iter().map(move |r| (l, r)));
    let mut rows: Vec<Vec<Datum>> =
        pairs.filter(|(l, r)| fits(l, r)).map(|(l, r)| [datums(l), datums(r)].concat()).collect();
    if ["LEFT", "FULL"].contains(&kind) {
        let alone = left.iter().filter(|l| !right.iter().any(|r| fits(l, r)));
        rows.extend(alone.map(|l| [datums(l), none.clone()].concat()));
    }
    if ["RIGHT", "FULL"].contains(&kind) {
        let alone = right.iter().filter(|r| !left.iter().any(|l| fits(l, r)));
        rows.extend(alone.map(|r| [none.clone(), datums(r)].concat()));
    }
    multiset(rows)
}

#[test]
fn rows_without_partner_are_kept() {
    let catalog = DdlCatalog::parse(TABLES).expect("the tables");
    for (number, condition) in CONDITIONS.iter().enumerate() {
        for kind in ["INNER", "LEFT", "RIGHT", "FULL"] {
            let on = condition.0;
            let sql = format!("SELECT l.a, l.b, l.c, r.a, r.b, r.c FROM l {kind} JOIN r ON {on}");
            let plan = plan_view(&sql, &catalog).expect("a plan");
            for seed in 0..200 {
                let mut random = Random::new(1000 * number as u64 + seed);
                let (left, right) = (random_rows(&mut random), random_rows(&mut random));
                let contents = plan.sources.iter().map(|source| {
                    let rows = if source.table.name == "l" { &left } else { &right };
                    let pick = |row: &Values| {
                        source.columns.iter().map(|&column| datums(row)[column].clone()).collect()
                    };
                    multiset(rows.iter().map(pick))
                });
                let contents: Vec<Multiset<Row>> = contents.collect();
                let (oks, errs) = evaluate(&plan, &contents, 10).expect("no recursion");
                assert!(errs.is_empty(), "{errs:?}");
                let expected = expected(kind, &left, &right, *condition);
                assert_eq!(oks, expected, "{sql}\nleft: {left:?}\nright: {right:?}");
            }
        }
    }
}

#[test]
fn a_column_of_using_is_that_of_the_side_that_has_a_row() {
    let catalog = DdlCatalog::parse(TABLES).expect("the tables");
    let row = |a: i32| vec![Datum::Int4(a)];
    for (kind, expected) in
        [("LEFT", vec![1, 2]), ("RIGHT", vec![2, 3]), ("FULL", vec![1, 2, 3]), ("INNER", vec![2])]
    {
        let sql = format!("SELECT a FROM l {kind} JOIN r USING (a)");
        let plan = plan_view(&sql, &catalog).expect("a plan");
        let contents = [multiset([row(1), row(2)]), multiset([row(2), row(3)])];
        let (oks, _) = evaluate(&plan, &contents, 10).expect("no recursion");
        assert_eq!(oks, multiset(expected.into_iter().map(row)), "{kind}");
    }
}

/// Tables of `a` and `b` for a join; what the plan says to them.
fn rows_and_errors(sql: &str, left: &[(i32, i32)], right: &[(i32, i32)]) -> (i64, usize) {
    let tables = "create table l(a int, b int); create table r(a int, b int);";
    let plan = plan_view(sql, &DdlCatalog::parse(tables).expect("the tables")).expect("a plan");
    let contents = plan.sources.iter().map(|source| {
        let rows = if source.table.name == "l" { left } else { right };
        let pick = |(a, b): &(i32, i32)| {
            source.columns.iter().map(|&column| Datum::Int4([*a, *b][column])).collect()
        };
        multiset(rows.iter().map(pick))
    });
    let contents: Vec<Multiset<Row>> = contents.collect();
    let (oks, errs) = evaluate(&plan, &contents, 10).expect("no recursion");
    (oks.values().sum(), errs.len())
}

#[test]
fn an_arm_of_an_or_fails_for_no_more_pairs_than_the_or() {
    for kind in ["INNER", "LEFT"] {
        let join = |on: &str| format!("SELECT l.b, r.b AS c FROM l {kind} JOIN r ON {on}");
        let run = |on: &str, left: &[(i32, i32)], right: &[(i32, i32)]| {
            rows_and_errors(&join(on), left, right)
        };
        let kept = |rows: i64| if kind == "LEFT" { rows } else { 0 };
        // Without partners nothing is tested.
        let on = "l.a = r.a AND 10 / l.b > 1 OR l.b = r.b";
        assert_eq!(run(on, &[(1, 0)], &[]), (kept(1), 0));
        assert_eq!(run("10 / l.b > 1 AND l.a = 1 OR r.a = 2", &[(1, 0)], &[]), (kept(1), 0));
        // An arm that is met spares the next ones.
        let on = "l.a = r.a OR l.b = r.b AND 10 / l.b > 1";
        assert_eq!(run(on, &[(1, 0)], &[(1, 0)]), (1, 0));
        // What fails for a pair shows.
        assert_eq!(run(on, &[(1, 0)], &[(2, 0)]).1, 1);
    }
}
