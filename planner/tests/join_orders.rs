//! In which order joins are made, by statistics; and that it makes no difference to the rows.

#[path = "../plan/tests/common/random.rs"]
mod random;

use plan::naive::{evaluate, Multiset};
use plan::row::Row;
use plan::types::TableName;
use plan::value::Datum;
use plan::{Plan, ViewPlan};
use planner::catalog::{Catalog, ColumnStatistics, Statistics};
use planner::ir::{Node, Query, Rel};
use planner::plan_view;
use planner::sql::{bind, DdlCatalog};
use planner::transform::{apply_alone, PIPELINE};
use random::Random;
use std::collections::BTreeSet;

/// A table, its rows, and the different values of some of its columns.
type Rows = (&'static str, f64, &'static [(&'static str, f64)]);

/// Rows of TPC-H's tables at scale factor 1, with the columns that have fewer different values than rows.
const TPCH: &str = include_str!("tpch.sql");
const TPCH_ROWS: [Rows; 8] = [
    ("region", 5.0, &[]),
    ("nation", 25.0, &[("n_regionkey", 5.0)]),
    ("supplier", 1e4, &[("s_nationkey", 25.0)]),
    ("customer", 1.5e5, &[("c_nationkey", 25.0), ("c_mktsegment", 5.0)]),
    ("part", 2e5, &[("p_type", 150.0), ("p_size", 50.0), ("p_brand", 25.0)]),
    ("partsupp", 8e5, &[("ps_partkey", 2e5), ("ps_suppkey", 1e4)]),
    ("orders", 1.5e6, &[("o_custkey", 1e5), ("o_orderdate", 2406.0)]),
    (
        "lineitem",
        6e6,
        &[("l_orderkey", 1.5e6), ("l_partkey", 2e5), ("l_suppkey", 1e4), ("l_returnflag", 3.0)],
    ),
];

/// The FROM list, WHERE, and the joins that are made, either side first: of several that are as cheap, all that may be chosen.
const ORDERS: [(&str, &str, &[&str]); 6] = [
    // Q2
    (
        "part, supplier, partsupp, nation, region",
        "p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND p_type LIKE '%BRASS' \
         AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'",
        &["(((part partsupp) supplier) (nation region))"],
    ),
    // Q3
    (
        "customer, orders, lineitem",
        "c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey \
         AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'",
        &["((customer orders) lineitem)"],
    ),
    // Q5
    (
        "customer, orders, lineitem, supplier, nation, region",
        "c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey \
         AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey \
         AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'",
        &[
            "(((((customer orders) lineitem) supplier) nation) region)",
            "((((nation region) supplier) (lineitem orders)) customer)",
        ],
    ),
    // Q8
    (
        "part, supplier, lineitem, orders, customer, nation AS n1, nation AS n2, region",
        "p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey \
         AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey \
         AND r_name = 'AMERICA' AND s_nationkey = n2.n_nationkey \
         AND o_orderdate >= DATE '1995-01-01' AND o_orderdate <= DATE '1996-12-31' \
         AND p_type = 'ECONOMY ANODIZED STEEL'",
        &["((((((lineitem part) orders) customer) (nation region)) supplier) nation)"],
    ),
    // Q9
    (
        "part, supplier, lineitem, partsupp, orders, nation",
        "s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey \
         AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey \
         AND p_name LIKE '%green%'",
        &[
            "((((lineitem part) orders) partsupp) (nation supplier))",
            "((((lineitem part) partsupp) (nation supplier)) orders)",
            "((((lineitem part) partsupp) orders) (nation supplier))",
        ],
    ),
    // Q10
    (
        "customer, orders, lineitem, nation",
        "c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01' \
         AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R' AND c_nationkey = n_nationkey",
        &["(((customer nation) orders) lineitem)"],
    ),
];

fn name(table: &str) -> TableName {
    TableName { schema: None, name: table.to_owned(), only: false }
}

fn even(distinct: f64) -> Option<ColumnStatistics> {
    Some(ColumnStatistics { distinct, nulls: 0.0, repeats: 1.0 / distinct, width: 8.0 })
}

/// Statistics of a table, all columns of which are as different as it has rows but for some.
fn know(catalog: &mut DdlCatalog, table: &str, rows: f64, fewer: &[(&str, f64)]) {
    let definition = catalog.table(&name(table)).expect("a table");
    let distinct = |column: &str| fewer.iter().find(|(known, _)| *known == column);
    let columns = definition.columns.iter();
    let columns = columns.map(|c| even(distinct(&c.name).map_or(rows, |known| known.1))).collect();
    catalog.set_statistics(&name(table), Some(Statistics { rows, columns }));
}

fn tpch() -> DdlCatalog {
    let mut catalog = DdlCatalog::parse(TPCH).expect("the tables");
    for (table, rows, fewer) in TPCH_ROWS {
        know(&mut catalog, table, rows, fewer);
    }
    catalog
}

fn ordered(sql: &str, catalog: &DdlCatalog) -> Query {
    let mut query = bind(sql, catalog).unwrap_or_else(|error| panic!("{sql}\n{error:?}"));
    for step in PIPELINE {
        query = apply_alone(step.name, query).expect("known").expect("applicable");
        if step.name == "order_joins" {
            break;
        }
    }
    query
}

/// Joins in parentheses, the side that comes first by its text in front.
fn shape(query: &Query, rel: &Rel) -> String {
    match &rel.node {
        Node::Source(id) => query.inputs[id.0].source.table.name.clone(),
        Node::Get(id) => query.locals[id.0].name.clone(),
        Node::Join { inputs, .. } => {
            let mut sides: Vec<String> = inputs.iter().map(|side| shape(query, side)).collect();
            sides.sort();
            format!("({})", sides.join(" "))
        }
        Node::LetRec { step, .. } => shape(query, step),
        _ => rel.children().into_iter().map(|child| shape(query, child)).collect(),
    }
}

#[test]
fn joins_of_tpch_are_made_in_the_same_order_however_tables_are_listed() {
    let catalog = tpch();
    let mut random = Random::new(8);
    let mut wrong = Vec::new();
    for (from, condition, expected) in ORDERS {
        let mut tables: Vec<&str> = from.split(", ").collect();
        let mut found = BTreeSet::new();
        for _ in 0..12 {
            let sql = format!("SELECT 1 AS one FROM {} WHERE {condition}", tables.join(", "));
            let query = ordered(&sql, &catalog);
            found.insert(shape(&query, &query.root));
            for last in (1..tables.len()).rev() {
                tables.swap(last, random.below(last as u64 + 1) as usize);
            }
        }
        let expected: BTreeSet<String> = expected.iter().map(|shape| (*shape).to_owned()).collect();
        if found != expected {
            wrong.push(format!("{from}: {found:#?}, not {expected:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn joins_that_are_ordered_stay_so() {
    let catalog = tpch();
    for (from, condition, _) in ORDERS {
        let query = ordered(&format!("SELECT 1 AS one FROM {from} WHERE {condition}"), &catalog);
        let again = apply_alone("order_joins", query.clone()).expect("known").expect("applicable");
        assert_eq!(again, query, "{from}");
    }
}

#[test]
fn without_statistics_joins_are_made_as_the_text_has_them() {
    let catalog = DdlCatalog::parse(TPCH).expect("the tables");
    let sql = "SELECT 1 AS one FROM lineitem, orders, customer, region, nation WHERE l_orderkey = o_orderkey \
               AND o_custkey = c_custkey AND c_nationkey = n_nationkey AND n_regionkey = r_regionkey";
    let query = ordered(sql, &catalog);
    assert_eq!(shape(&query, &query.root), "((((lineitem orders) customer) nation) region)");
}

/// Whether some of its joins are of more than two.
fn has_delta_join(plan: &Plan) -> bool {
    matches!(plan, Plan::DeltaJoin { .. }) || plan.children().into_iter().any(has_delta_join)
}

/// Queries and the shapes of their joins: all at once where partial results are large and nothing forbids it.
const AT_ONCE: [(&str, &str); 8] = [
    (
        "o_comment, c_name, n_name FROM orders, customer, nation WHERE o_custkey = c_custkey AND c_nationkey = n_nationkey",
        "(customer nation orders)",
    ),
    // A further index of lineitem would be larger than what is left of it.
    (
        "l_comment, o_comment, p_name FROM lineitem, orders, part \
         WHERE l_orderkey = o_orderkey AND l_partkey = p_partkey AND p_size = 15",
        "((lineitem part) orders)",
    ),
    // Not a tree.
    (
        "s_name, c_name, n_name FROM supplier, customer, nation \
         WHERE s_nationkey = n_nationkey AND c_nationkey = n_nationkey AND s_suppkey = c_custkey",
        "((customer supplier) nation)",
    ),
    // A condition that can be tested before all are joined, and one that cannot.
    (
        "o_comment, c_name, n_name FROM orders, customer, nation \
         WHERE o_custkey = c_custkey AND c_nationkey = n_nationkey AND o_totalprice > c_acctbal",
        "((customer nation) orders)",
    ),
    (
        "o_comment, c_name, n_name FROM orders, customer, nation \
         WHERE o_custkey = c_custkey AND c_nationkey = n_nationkey AND coalesce(o_comment, c_name) > n_name",
        "(customer nation orders)",
    ),
    // One that may fail.
    (
        "o_comment, c_name, n_name FROM orders, customer, nation \
         WHERE o_custkey = c_custkey AND c_nationkey = n_nationkey AND n_regionkey / (o_orderkey + c_custkey) < 5",
        "((customer orders) nation)",
    ),
    // What is not tied to the others.
    (
        "o_comment, c_name, n_name, r_name FROM orders, region, customer, nation \
         WHERE o_custkey = c_custkey AND c_nationkey = n_nationkey",
        "((customer nation orders) region)",
    ),
    // In the step of a recursion.
    (
        "x, c, n FROM (WITH RECURSIVE r(x, c, n) AS (SELECT n_regionkey, n_name, n_name FROM nation UNION ALL \
         SELECT o_orderkey, c_name, n_name FROM r, orders, customer, nation \
         WHERE o_custkey = r.x AND o_custkey = c_custkey AND c_nationkey = n_nationkey) SELECT * FROM r) AS r",
        "(((orders r) customer) nation)",
    ),
];

#[test]
fn partial_results_are_not_kept_where_indexes_take_less() {
    let catalog = tpch();
    let mut wrong = Vec::new();
    for (sql, expected) in AT_ONCE {
        let query = ordered(&format!("SELECT {sql}"), &catalog);
        let found = shape(&query, &query.root);
        if found != expected {
            wrong.push(format!("{sql}: {found}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The social network of the Transformation Tool Contest at factor 64.
#[test]
fn the_step_of_a_recursion_is_ordered() {
    let mut catalog = DdlCatalog::parse(TPCH).expect("the tables");
    know(&mut catalog, "likes", 4770.0, &[("person", 700.0), ("comment", 1200.0)]);
    know(&mut catalog, "friend", 5504.0, &[("a", 750.0), ("b", 750.0)]);
    let sql = "WITH RECURSIVE label(comment, person, label) AS (
            SELECT comment, person, person FROM likes
            UNION SELECT l.comment, f.b, l.label FROM label AS l, friend AS f, likes AS k
            WHERE f.a = l.person AND k.person = f.b AND k.comment = l.comment)
        SELECT comment, person, min(label) AS label FROM label GROUP BY comment, person";
    let query = ordered(sql, &catalog);
    assert_eq!(shape(&query, &query.root), "((friend likes) label)");
}

const SMALL: &str = "create table a(x int primary key, y int, z int);
    create table b(x int not null, y int not null, z int, primary key (x, y));
    create table c(x int, y int, z int);
    create table d(x bigint, y int, z int);";

/// A join of some of the tables, most of them connected.
fn random_join(random: &mut Random, first: Option<&str>) -> (String, String) {
    let number = 3 + random.below(3) as usize - usize::from(first.is_some());
    let tables: Vec<&str> =
        (0..number).map(|_| ["a", "b", "c", "d"][random.below(4) as usize]).collect();
    let mut inputs: Vec<String> = first.iter().map(|first| (*first).to_owned()).collect();
    inputs.extend(tables.iter().map(|table| (*table).to_owned()));
    let from = inputs.iter().enumerate().map(|(i, table)| format!("{table} AS t{i}"));
    let from: Vec<String> = from.collect();
    let column = |random: &mut Random, input: usize| {
        format!("t{input}.{}", ["x", "y", "z"][random.below(3) as usize])
    };
    let mut conditions = vec!["true".to_owned()];
    for input in 1..inputs.len() {
        let other = random.below(input as u64) as usize;
        for _ in 0..1 + random.below(2) {
            let operator = if random.below(6) == 0 { "<=" } else { "=" };
            let (left, right) = (column(random, input), column(random, other));
            conditions.push(format!("{left} {operator} {right}"));
        }
        if random.below(4) == 0 {
            conditions.push(format!("{} = {}", column(random, input), random.below(2)));
        }
    }
    (from.join(", "), conditions.join(" AND "))
}

fn random_query(random: &mut Random) -> String {
    let (from, condition) = random_join(random, None);
    match random.below(3) {
        0 => {
            let (step, on) = random_join(random, Some("r"));
            let all = if random.below(3) == 0 { " ALL" } else { "" };
            // Under UNION ALL what goes round has to end.
            let ends = if all.is_empty() { "" } else { " AND t0.y < 3 AND t1.y > t0.y" };
            let last = if all.is_empty() { "t1.y" } else { "t0.y + 1" };
            format!(
                "WITH RECURSIVE r(x, y, z) AS (SELECT x, y, z FROM a UNION{all} \
                 SELECT t1.z, {last}, t0.z FROM {step} WHERE {on}{ends}) \
                 SELECT r.x, r.y, s.z FROM r, (SELECT t0.z, t1.x FROM {from} WHERE {condition}) AS s WHERE s.x = r.x"
            )
        }
        1 => format!(
            "SELECT t0.x AS g, count(*) AS n, max(t1.z) AS m FROM {from} WHERE {condition} GROUP BY t0.x"
        ),
        _ => format!("SELECT t0.x AS p, t1.y AS q, t2.z AS s FROM {from} WHERE {condition}"),
    }
}

fn random_statistics(random: &mut Random, columns: usize) -> Option<Statistics> {
    let size = |random: &mut Random| 10f64.powi(random.below(7) as i32);
    let column = |random: &mut Random| {
        let distinct = size(random);
        let share = random.below(100) as f64 / 100.0;
        let known = random.below(4) > 0;
        known.then(|| ColumnStatistics {
            distinct,
            nulls: share / 2.0,
            repeats: share.max(1.0 / distinct),
            width: 4.0,
        })
    };
    let columns = (0..columns).map(|_| column(random)).collect();
    (random.below(5) > 0).then(|| Statistics { rows: size(random), columns })
}

fn random_contents(random: &mut Random) -> Vec<(&'static str, Vec<Vec<Datum>>)> {
    let value = |random: &mut Random, is_long: bool| match (random.below(10), random.below(2)) {
        (0, _) => Datum::Null,
        (_, n) if is_long => Datum::Int8(n as i64),
        (_, n) => Datum::Int4(n as i32),
    };
    let not_null = |random: &mut Random| Datum::Int4(random.below(2) as i32);
    let mut tables = Vec::new();
    for table in ["a", "b", "c", "d"] {
        let mut rows: Vec<Vec<Datum>> = Vec::new();
        for number in 0..1 + random.below(6) {
            let z = value(random, false);
            let row = match table {
                "a" => vec![Datum::Int4(number as i32), value(random, false), z],
                "b" => vec![not_null(random), not_null(random), z],
                _ => vec![value(random, table == "d"), value(random, false), z],
            };
            if table != "b" || rows.iter().all(|known| known[..2] != row[..2]) {
                rows.push(row);
            }
        }
        tables.push((table, rows));
    }
    tables
}

fn run(plan: &ViewPlan, contents: &[(&str, Vec<Vec<Datum>>)]) -> Option<Multiset<Row>> {
    let sources = plan.sources.iter().map(|source| {
        let table = contents.iter().find(|(table, _)| *table == source.table.name);
        let mut rows = Multiset::new();
        for row in &table.expect("a table").1 {
            let row = Row::pack(source.columns.iter().map(|&column| &row[column]));
            *rows.entry(row).or_insert(0) += 1;
        }
        rows
    });
    let (oks, errs) = evaluate(plan, &sources.collect::<Vec<_>>(), 30).ok()?;
    assert!(errs.is_empty(), "{errs:?}");
    Some(oks)
}

#[test]
fn a_query_has_the_same_rows_in_whatever_order_its_joins_are_made() {
    let seed = std::env::var("PLANNER_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = Random::new(seed.unwrap_or(20_261_126));
    let plain = DdlCatalog::parse(SMALL).expect("the tables");
    let (mut reordered, mut at_once, mut with_rows) = (0, 0, 0);
    for round in 0..1500 {
        let sql = random_query(&mut random);
        let written = plan_view(&sql, &plain).unwrap_or_else(|error| panic!("{sql}\n{error:?}"));
        let mut catalog = plain.clone();
        for table in ["a", "b", "c", "d"] {
            catalog.set_statistics(&name(table), random_statistics(&mut random, 3));
        }
        let plan = plan_view(&sql, &catalog).expect("a plan");
        reordered += usize::from(plan.root != written.root);
        at_once += usize::from(has_delta_join(&plan.root));
        for _ in 0..3 {
            let contents = random_contents(&mut random);
            let expected = run(&written, &contents);
            with_rows += usize::from(expected.as_ref().is_some_and(|rows| !rows.is_empty()));
            let found = run(&plan, &contents);
            assert_eq!(found, expected, "round {round}: {sql}\n{}", plan::explain(&plan));
        }
    }
    println!("{reordered} in another order, {at_once} at once, {with_rows} with rows");
    assert!(reordered > 300 && at_once > 100 && with_rows > 300);
}
