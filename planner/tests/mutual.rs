//! Relations that are defined by one another: the rows that have a derivation, as programs written for the purpose find
//! them, and what is refused because it has no least fixpoint. A failure prints the round; `PLANNER_SEED` draws others.

#[path = "../plan/tests/common/random.rs"]
mod random;

use plan::naive::{evaluate, Multiset};
use plan::row::Row;
use plan::value::Datum;
use plan::ViewPlan;
use planner::plan_view;
use planner::sql::DdlCatalog;
use random::Random;
use std::collections::BTreeSet;

const TABLES: &str = "create table edge(a int not null, b int not null, w int not null)";

type Edge = (i32, i32, i32);
type Pairs = BTreeSet<(i32, i32)>;

/// A query, and the program that computes it.
struct Program {
    sql: &'static str,
    solve: fn(&[Edge]) -> BTreeSet<Vec<i32>>,
}

const PROGRAMS: [Program; 5] = [
    // Walks of even and of odd length.
    Program {
        sql: "WITH RECURSIVE even(a, b) AS (SELECT a, a FROM edge UNION
                  SELECT o.a, e.b FROM eddy.recursive('odd'::text) o(a integer, b integer) JOIN edge e ON e.a = o.b),
              odd(a, b) AS (SELECT DISTINCT v.a, e.b FROM even v JOIN edge e ON e.a = v.b)
              SELECT 0, a, b FROM even UNION ALL SELECT 1, a, b FROM odd",
        solve: walks,
    },
    // The same, with the base in the other member, and nothing but forward references.
    Program {
        sql: "WITH RECURSIVE odd(a, b) AS (SELECT a, b FROM edge UNION
                  SELECT v.x, e.b FROM eddy.recursive('even'::text) v(x integer, y integer) JOIN edge e ON e.a = v.y),
              even(a, b) AS (SELECT o.x, e.b FROM eddy.recursive('odd'::text) o(x integer, y integer), edge e WHERE e.a = o.y
                  UNION (SELECT a, a FROM edge UNION SELECT x, y FROM eddy.recursive('even'::text) s(x integer, y integer)))
              SELECT 0, x, y FROM eddy.recursive('even'::text) r(x integer, y integer) UNION ALL SELECT 1, a, b FROM odd",
        solve: walks,
    },
    // Twice the recursion itself.
    Program {
        sql: "WITH RECURSIVE r(a, b) AS (SELECT a, b FROM edge UNION
                  SELECT x.a, y.b FROM r x JOIN eddy.recursive('r'::text) y(a integer, b integer) ON y.a = x.b)
              SELECT 0, a, b FROM r",
        solve: |edges| labelled(0, &closure(edges)),
    },
    // Words of brackets: w = 1 opens, w = 2 closes.
    Program {
        sql: "WITH RECURSIVE s(a, b) AS (
                  SELECT a, a FROM edge UNION SELECT b, b FROM edge UNION
                  SELECT x.a, y.b FROM eddy.recursive('s'::text) x(a integer, b integer), eddy.recursive('s'::text) y(a integer, b integer)
                      WHERE y.a = x.b UNION
                  SELECT o.a, c.b FROM edge o, eddy.recursive('s'::text) x(a integer, b integer), edge c
                      WHERE o.w = 1 AND c.w = 2 AND o.b = x.a AND x.b = c.a)
              SELECT 0, a, b FROM s",
        solve: |edges| labelled(0, &words(edges)),
    },
    // EXISTS, a nested recursion and a left join, whose other side is no member.
    Program {
        sql: "WITH RECURSIVE a(n, m) AS (SELECT a, 0 FROM edge WHERE w = 1 UNION
                  SELECT e.b, 0 FROM edge e WHERE EXISTS (SELECT FROM eddy.recursive('c'::text) c(n integer) WHERE c.n = e.a)),
              c(n) AS (SELECT DISTINCT coalesce(s.n, e.b) FROM (
                  WITH RECURSIVE i(n) AS (SELECT n FROM a UNION SELECT e.b FROM i JOIN edge e ON e.a = i.n AND e.w = 2) SELECT n FROM i) s
                  LEFT JOIN edge e ON e.a = s.n)
              SELECT 0, n, 0 FROM a UNION ALL SELECT 1, n, 0 FROM c",
        solve: guarded,
    },
];

/// What rules make of nothing, of that, and so on.
fn fixpoint<T: Clone + PartialEq + Default>(rules: impl Fn(&T) -> T) -> T {
    let mut all = T::default();
    loop {
        let next = rules(&all);
        if next == all {
            return all;
        }
        all = next;
    }
}

fn labelled(label: i32, pairs: &Pairs) -> BTreeSet<Vec<i32>> {
    pairs.iter().map(|(a, b)| vec![label, *a, *b]).collect()
}

fn walks(edges: &[Edge]) -> BTreeSet<Vec<i32>> {
    let longer = |walks: &Pairs| -> Pairs {
        let step = |(a, b): &(i32, i32)| {
            let (a, b) = (*a, *b);
            edges.iter().filter(move |edge| edge.0 == b).map(move |edge| (a, edge.1))
        };
        walks.iter().flat_map(step).collect()
    };
    let (even, odd) = fixpoint(|(even, odd): &(Pairs, Pairs)| {
        let empty: Pairs = edges.iter().map(|edge| (edge.0, edge.0)).collect();
        (&empty | &longer(odd), longer(even))
    });
    &labelled(0, &even) | &labelled(1, &odd)
}

fn joined(left: &Pairs, right: &Pairs) -> Pairs {
    let pairs = |(a, b): &(i32, i32)| {
        let (a, b) = (*a, *b);
        right.iter().filter(move |other| other.0 == b).map(move |other| (a, other.1))
    };
    left.iter().flat_map(pairs).collect()
}

fn pairs(edges: &[Edge], label: Option<i32>) -> Pairs {
    let wanted = |edge: &&Edge| label.is_none_or(|label| edge.2 == label);
    edges.iter().filter(wanted).map(|edge| (edge.0, edge.1)).collect()
}

fn closure(edges: &[Edge]) -> Pairs {
    let edges = pairs(edges, None);
    fixpoint(|all: &Pairs| &edges | &joined(all, all))
}

fn words(edges: &[Edge]) -> Pairs {
    let empty: Pairs = edges.iter().flat_map(|e| [(e.0, e.0), (e.1, e.1)]).collect();
    let (open, close) = (pairs(edges, Some(1)), pairs(edges, Some(2)));
    fixpoint(|all: &Pairs| {
        let within = joined(&joined(&open, all), &close);
        &(&empty | &joined(all, all)) | &within
    })
}

fn guarded(edges: &[Edge]) -> BTreeSet<Vec<i32>> {
    type Nodes = BTreeSet<i32>;
    let (a, c) = fixpoint(|(a, c): &(Nodes, Nodes)| {
        let first = edges.iter().filter(|edge| edge.2 == 1).map(|edge| edge.0);
        let next = edges.iter().filter(|edge| c.contains(&edge.0)).map(|edge| edge.1);
        let inner = fixpoint(|inner: &Nodes| {
            let on = edges.iter().filter(|edge| edge.2 == 2 && inner.contains(&edge.0));
            a.iter().copied().chain(on.map(|edge| edge.1)).collect()
        });
        (first.chain(next).collect(), inner)
    });
    let rows = |label: i32, nodes: &Nodes| -> BTreeSet<Vec<i32>> {
        nodes.iter().map(|node| vec![label, *node, 0]).collect()
    };
    &rows(0, &a) | &rows(1, &c)
}

fn tables(plan: &ViewPlan, edges: &[Edge]) -> Vec<Multiset<Row>> {
    let contents = |source: &plan::Source| {
        let mut contents = Multiset::new();
        for (a, b, w) in edges {
            let values = [*a, *b, *w];
            let row: Vec<i32> = source.columns.iter().map(|&column| values[column]).collect();
            *contents.entry(pack(&row)).or_insert(0) += 1;
        }
        contents
    };
    plan.sources.iter().map(contents).collect()
}

fn pack(values: &[i32]) -> Row {
    Row::pack(&values.iter().map(|value| Datum::Int4(*value)).collect::<Vec<_>>())
}

#[test]
fn rows_are_those_that_have_a_derivation() {
    let seed = std::env::var("PLANNER_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = Random::new(seed.unwrap_or(20_261_126));
    let catalog = DdlCatalog::parse(TABLES).expect("the tables");
    for (number, program) in PROGRAMS.iter().enumerate() {
        let plan = plan_view(program.sql, &catalog).expect("a plan");
        assert!(plan.root.is_beyond_sql(), "{}", plan::explain(&plan));
        let mut largest = 0;
        for round in 0..300 {
            let nodes = 1 + random.below(6);
            let mut draw = |bound: u64| random.below(bound) as i32;
            let count = draw(12);
            let edges: Vec<Edge> =
                (0..count).map(|_| (draw(nodes), draw(nodes), 1 + draw(3))).collect();
            let (found, errs) = evaluate(&plan, &tables(&plan, &edges), 100).expect("an end");
            assert!(errs.is_empty());
            let expected: Multiset<Row> =
                (program.solve)(&edges).iter().map(|row| (pack(row), 1)).collect();
            assert_eq!(found, expected, "program {number}, round {round}: {edges:?}");
            largest = largest.max(found.len());
        }
        assert!(largest > 5, "program {number} derives nothing");
    }
}

/// What would take rows away when others come has no least fixpoint.
#[test]
fn what_does_not_only_grow_is_refused() {
    let catalog = DdlCatalog::parse(TABLES).expect("the tables");
    let refused = [
        ("SELECT a FROM edge WHERE NOT EXISTS (SELECT FROM y WHERE y.n = edge.a)", "NOT EXISTS"),
        ("(SELECT a FROM edge EXCEPT SELECT n FROM y)", "EXCEPT"),
        ("SELECT count(*)::integer FROM y", "an aggregate"),
        ("SELECT e.a FROM edge e LEFT JOIN y ON y.n = e.a", "outer join"),
        ("SELECT e.a FROM edge e FULL JOIN y ON y.n = e.a", "outer join"),
        ("(SELECT n FROM y ORDER BY n LIMIT 1)", "LIMIT"),
        ("SELECT row_number() OVER (ORDER BY n)::integer FROM y", "window function"),
    ];
    for (term, what) in refused {
        let term = term.replace("FROM y", "FROM eddy.recursive('x'::text) y(n integer)");
        let term = term.replace("JOIN y", "JOIN eddy.recursive('x'::text) y(n integer)");
        let sql =
            format!("WITH RECURSIVE x(n) AS (SELECT a FROM edge UNION {term}) SELECT n FROM x");
        let error = plan_view(&sql, &catalog).expect_err(&sql);
        assert!(error.message.contains(what), "{sql}\n{}", error.message);
        assert!(error.message.contains("a recursive reference to x"), "{}", error.message);
    }
    // Without UNION nobody says that duplicates do not count.
    let sql = "WITH RECURSIVE x(n) AS (SELECT a FROM edge UNION ALL
                   SELECT n FROM eddy.recursive('x'::text) y(n integer)) SELECT n FROM x";
    let error = plan_view(sql, &catalog).expect_err(sql);
    assert!(error.message.contains("without UNION"), "{}", error.message);
}

/// A forward reference that closes no circle is a reference.
#[test]
fn forward_references_alone_are_no_recursion() {
    let catalog = DdlCatalog::parse(TABLES).expect("the tables");
    let sql =
        "WITH RECURSIVE x(n) AS (SELECT count(*) FROM eddy.recursive('y'::text) y(n integer)),
                   y(n) AS (SELECT a FROM edge) SELECT n FROM x";
    let plan = plan_view(sql, &catalog).expect("a plan");
    assert!(!plan.root.is_beyond_sql());
    let edges = [(1, 2, 3), (1, 4, 3)];
    let (found, _) = evaluate(&plan, &tables(&plan, &edges), 10).expect("an end");
    assert_eq!(found, Multiset::from([(Row::pack(&[Datum::Int8(2)]), 1)]));
}
