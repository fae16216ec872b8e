//! Conditions that no row decides: what they exclude is not computed, and raises no error.

use plan::naive::{evaluate, Multiset};
use plan::row::Row;
use plan::value::Datum;
use planner::plan_view;
use planner::sql::DdlCatalog;

const TABLES: &str = "create table s(a int, b int); create table u(x int);";

fn rows(values: &[&[i32]]) -> Multiset<Row> {
    let row = |row: &&[i32]| Row::pack(&row.iter().map(|v| Datum::Int4(*v)).collect::<Vec<_>>());
    values.iter().map(|values| (row(values), 1)).collect()
}

/// How many rows, and the codes of errors, where `s` has (1, 0) and (2, 1) and `u` has these values.
fn run(sql: &str, u: &[&[i32]]) -> (i64, Vec<String>) {
    let catalog = DdlCatalog::parse(TABLES).expect("the tables");
    let plan = plan_view(sql, &catalog).unwrap_or_else(|error| panic!("{sql}\n{error:?}"));
    let contents = plan.sources.iter().map(|source| {
        let all = match source.table.name.as_str() {
            "s" => rows(&[&[1, 0], &[2, 1]]),
            _ => rows(u),
        };
        let mut kept = Multiset::new();
        for (row, diff) in all {
            let row = row.unpack();
            let row = Row::pack(source.columns.iter().map(|&column| &row[column]));
            *kept.entry(row).or_insert(0) += diff;
        }
        kept
    });
    let (oks, errs) = evaluate(&plan, &contents.collect::<Vec<_>>(), 100).expect("an end");
    (oks.values().sum(), errs.keys().map(|error| error.sqlstate.to_string()).collect())
}

/// Queries that PostgreSQL computes without an error while no `x` is above 5, and how many rows it finds for two of
/// them.
const CLOSED: &[(&str, i64)] = &[
    ("SELECT a FROM s WHERE (SELECT max(x) FROM u) > 5 AND 10 / b > 0", 0),
    ("SELECT a FROM s WHERE 10 / b > 0 AND EXISTS (SELECT 1 FROM u WHERE x > 5)", 0),
    ("SELECT a FROM s WHERE 10 / b > 0 AND NOT EXISTS (SELECT 1 FROM u)", 0),
    ("SELECT a FROM s WHERE 10 / b > 0 AND 6 IN (SELECT x FROM u)", 0),
    ("SELECT q FROM (SELECT 10 / b AS q FROM s) y WHERE (SELECT max(x) FROM u) > 5", 0),
    (
        "SELECT q FROM (SELECT sum(10 / b) AS q FROM s) y WHERE (SELECT max(x) FROM u) > 5 AND q > 1",
        0,
    ),
    (
        "SELECT 10 / n AS q FROM (SELECT count(*) AS n FROM s WHERE a > 7) y \
         WHERE (SELECT max(x) FROM u) > 5 AND 10 / n > 1",
        0,
    ),
    ("SELECT a FROM s WHERE (SELECT max(x) FROM u) > 5 AND a > (SELECT 10 / min(b) FROM s)", 0),
    ("SELECT sum(10 / b) FROM s WHERE (SELECT max(x) FROM u) > 5 AND 10 / b > 0", 1),
    ("SELECT s.a, u.x FROM s JOIN u ON (SELECT max(x) FROM u) > 5 AND 10 / s.b > u.x", 0),
    (
        "SELECT u.x, y.q FROM u LEFT JOIN (SELECT a, 10 / b AS q FROM s) y \
         ON (SELECT max(x) FROM u) > 5 AND y.a = u.x AND y.q > 0",
        2,
    ),
    ("SELECT a, sum(10 / b) FROM s GROUP BY a HAVING (SELECT max(x) FROM u) > 5", 0),
    ("SELECT sum(10 / b) FROM s HAVING (SELECT max(x) FROM u) > 5", 0),
    ("SELECT a, (SELECT max(s.b) FROM u) FROM s GROUP BY a HAVING (SELECT max(x) FROM u) > 5", 0),
    ("SELECT a, (SELECT max(s.b) FROM u) FROM s GROUP BY a HAVING max(b) > 5", 0),
    (
        "SELECT (SELECT max(10 / s.b) FROM s WHERE s.a = u.x AND 10 / s.b > 0 \
         AND (SELECT max(x) FROM u) > 5) FROM u",
        2,
    ),
    ("SELECT x FROM u WHERE EXISTS (SELECT 1 FROM s WHERE 10 / s.b > 0 AND u.x > 5)", 0),
    (
        "WITH RECURSIVE r(n) AS (SELECT a FROM s UNION SELECT r.n + 1 FROM r JOIN s ON s.a = r.n \
         WHERE (SELECT max(x) FROM u) > 5 AND 10 / s.b > 0) SELECT n FROM r",
        2,
    ),
    ("SELECT a FROM s WHERE 1 / (b - 1) = 1 AND false", 0),
    ("SELECT a FROM s WHERE 1 / (b - 1) = 1 AND NULL::boolean", 0),
    ("SELECT a FROM s WHERE 10 / b > NULL::integer", 0),
    ("SELECT a FROM s WHERE 10 / b > CASE WHEN false THEN 1 ELSE NULL::integer END", 0),
    ("SELECT a, (10 / b > NULL::integer) AS q FROM s", 2),
    ("SELECT a FROM s WHERE (1 / (b - 1) = 1 AND 1 + 1 = 3) OR a = 2", 1),
    ("SELECT a FROM s WHERE CASE WHEN true THEN a = 2 ELSE 1 / (b - 1) = 1 END", 1),
    ("SELECT count(*) FROM s WHERE 1 / b = 1 AND false", 1),
    ("SELECT a, count(*) FROM s WHERE 1 / b = 1 GROUP BY a HAVING false", 0),
    ("SELECT x, q FROM u LEFT JOIN (SELECT 1 / b AS q FROM s) y ON false", 2),
    ("SELECT x FROM u JOIN (SELECT 1 / b AS q FROM s) y ON y.q = 1 AND 1 = 2", 0),
    ("SELECT x FROM u UNION ALL SELECT 1 / b FROM s WHERE false", 2),
    ("SELECT CASE WHEN false THEN (SELECT 1 / b FROM s) ELSE x END AS q FROM u", 2),
    ("SELECT CASE WHEN true THEN x ELSE (SELECT 1 / b FROM s) END AS q FROM u", 2),
    ("SELECT (SELECT 1 / b FROM s WHERE false) AS q FROM u", 2),
    ("SELECT CASE WHEN false THEN sum((SELECT max(x) FROM u)) END AS q FROM s", 1),
    ("SELECT CASE WHEN false THEN sum(1 / b + (SELECT max(x) FROM u)) END AS q FROM s GROUP BY a", 2),
    ("SELECT CASE WHEN true THEN a ELSE max((SELECT max(x) FROM u)) END AS q FROM s GROUP BY a", 2),
    ("SELECT CASE WHEN false THEN sum((SELECT max(x) FROM u)) OVER (PARTITION BY a) END AS q FROM s", 2),
    ("SELECT CASE WHEN false THEN sum((SELECT max(x) FROM u)) OVER () ELSE sum(a) OVER () END AS q FROM s", 2),
    ("SELECT x FROM u WHERE EXISTS (SELECT 1 FROM s WHERE 1 / b = 1 AND false)", 0),
    ("SELECT x FROM u WHERE false AND (SELECT 1 / b FROM s) = 1", 0),
];

#[test]
fn what_no_row_decides_is_tested_first() {
    for (sql, count) in CLOSED {
        assert_eq!(run(sql, &[&[1], &[2]]), (*count, vec![]), "{sql}");
    }
}

#[test]
fn where_such_a_condition_holds_errors_show() {
    let gated = CLOSED.iter().filter(|(sql, _)| sql.contains("> 5") && sql.contains("10 / b"));
    let mut raised = 0;
    for (sql, _) in gated {
        let (_, errors) = run(sql, &[&[6], &[1]]);
        assert!(errors.iter().all(|code| code == "22012"), "{sql}: {errors:?}");
        raised += errors.len();
    }
    assert!(raised > 5, "{raised}");
    // Rows that do not fail are found.
    let sql = "SELECT a FROM s WHERE (SELECT max(x) FROM u) > 5 AND 10 / (b + 1) > 5";
    assert_eq!(run(sql, &[&[6], &[1]]), (1, vec![]));
    assert_eq!(run(sql, &[&[1]]), (0, vec![]));
    let sql = "SELECT a, sum(10 / (b + 1)) FROM s GROUP BY a HAVING (SELECT max(x) FROM u) > 5";
    assert_eq!(run(sql, &[&[6], &[1]]), (2, vec![]));
}
