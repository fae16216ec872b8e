//! What is nested too deeply is refused before anything walks down.

use planner::error::{PlanError, PlanErrorKind};
use planner::plan_view;
use planner::sql::DdlCatalog;

fn tables() -> DdlCatalog {
    DdlCatalog::parse(include_str!("tables.sql")).expect("the tables")
}

/// Plans on half of the stack that sessions of a server have: how much a level takes is the compiler's choice.
fn plan_on_small_stack(sql: String) -> Result<(), PlanError> {
    let thread = std::thread::Builder::new().stack_size(4 << 20);
    let planned = thread.spawn(move || plan_view(&sql, &tables()).map(|_| ()));
    planned.expect("a thread").join().expect("no panic")
}

fn repeated(first: &str, each: &str, count: usize) -> String {
    format!("{first}{}", each.repeat(count))
}

/// What `wrap` makes of `inner`, so many times.
fn wrapped(inner: &str, (before, after): (&str, &str), count: usize) -> String {
    format!("{}{inner}{}", before.repeat(count), after.repeat(count))
}

fn value(expr: String) -> String {
    format!("SELECT {expr} AS x FROM edges")
}

fn condition(expr: String) -> String {
    format!("SELECT src FROM edges WHERE {expr}")
}

/// A text that nests so deeply.
type Nested = fn(usize) -> String;

/// Every kind of nesting.
const KINDS: [(&str, Nested); 28] = [
    ("sum", |n| value(repeated("src", " + src", n))),
    ("or", |n| condition(repeated("src = 1", " OR src = 1", n))),
    ("functions", |n| value(wrapped("src", ("abs(", ")"), n))),
    ("parentheses to the left", |n| value(wrapped("src", ("(", " + src)"), n))),
    ("union all", |n| repeated("SELECT 1 AS x", " UNION ALL SELECT 1", n)),
    ("parentheses to the right", |n| value(wrapped("src", ("(src + ", ")"), n))),
    ("parentheses", |n| value(wrapped("src", ("(", ")"), n))),
    ("casts", |n| value(repeated("src", "::bigint", n))),
    ("signs", |n| value(wrapped("src", ("- ", ""), n))),
    ("subscripts", |n| format!("{} FROM nodes", repeated("SELECT tags", "[1]", n))),
    ("array types", |n| value(repeated("NULL::integer", "[]", n))),
    ("case", |n| value(wrapped("src", ("CASE WHEN true THEN ", " END"), n))),
    ("case, unfinished", |n| value(wrapped("src", ("CASE WHEN true THEN ", ""), n))),
    ("and", |n| condition(repeated("src = 1", " AND src = 1", n))),
    ("not", |n| condition(wrapped("true", ("NOT ", ""), n))),
    ("is null", |n| condition(repeated("src", " IS NULL", n))),
    ("is distinct", |n| condition(repeated("true", " IS DISTINCT FROM true", n))),
    ("between", |n| condition(repeated("true", " BETWEEN true AND false", n))),
    ("case of case", |n| value(wrapped("src", ("CASE ", " WHEN 1 THEN 2 WHEN 2 THEN 3 END"), n))),
    ("aggregates", |n| value(repeated("1", " + mode() WITHIN GROUP (ORDER BY src)", n))),
    ("union", |n| repeated("SELECT 1 AS x, 2 AS y", " UNION SELECT 1, 2", n)),
    ("except", |n| repeated("SELECT src FROM edges", " EXCEPT ALL SELECT id FROM accounts", n)),
    ("subqueries", |n| wrapped("SELECT src FROM edges", ("SELECT src FROM (", ") q"), n)),
    ("in", |n| wrapped("SELECT 1", ("SELECT src FROM edges WHERE src IN (", ")"), n)),
    ("joins", |n| repeated("SELECT 1 AS x FROM edges", " JOIN edges e ON true", n)),
    ("joins in parentheses", |n| {
        format!("SELECT 1 AS x FROM {}", wrapped("edges a", ("(", " CROSS JOIN edges b)"), n))
    }),
    ("with", |n| {
        let cte = |n: usize| format!(", c{n} AS (SELECT x + 1 AS x FROM c{})", n - 1);
        let ctes: String = (1..n).map(cte).collect();
        format!("WITH c0 AS (SELECT src AS x FROM edges){ctes} SELECT x FROM c{}", n.max(1) - 1)
    }),
    ("windows", |n| {
        let call = |n| format!(", rank() OVER (ORDER BY src + {n})");
        format!("SELECT src{} FROM edges", (0..n).map(call).collect::<String>())
    }),
];

#[test]
fn what_nests_too_deeply_is_refused_with_the_limit() {
    for (number, (name, nested)) in KINDS.into_iter().enumerate() {
        // The most usual ones to the very end.
        let count = if number < 2 { 1_000_000 } else { 20_000 };
        let error = plan_on_small_stack(nested(count)).expect_err(name);
        assert_eq!(error.kind, PlanErrorKind::TooComplex, "{name}: {error}");
        let limits =
            ["600 levels", "450 relations", "5000 conditions", "200 different", "1000000 parts"];
        assert!(limits.iter().any(|l| error.message.contains(l)), "{name}: {}", error.message);
    }
}

/// Whatever is let through is planned without overflowing the stack.
#[test]
fn what_is_let_through_is_planned() {
    let mut deepest = std::collections::BTreeMap::new();
    for count in [1, 60, 190, 260, 390, 790, 2000, 4900] {
        for (name, nested) in KINDS {
            match plan_on_small_stack(nested(count)) {
                Ok(()) => drop(deepest.insert(name, count)),
                // Some of these mean nothing: a test of a test for NULL has no type.
                Err(error) => eprintln!("{name} {count}: {error}"),
            }
        }
    }
    let enough = [("sum", 390), ("parentheses to the left", 260), ("or", 4900), ("and", 4900)];
    let also =
        [("union all", 2000), ("with", 190), ("windows", 190), ("joins", 190), ("case", 260)];
    for (name, count) in enough.into_iter().chain(also) {
        assert!(deepest[name] >= count, "{name}: {}", deepest[name]);
    }
}
