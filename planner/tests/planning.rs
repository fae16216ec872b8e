//! What goldens cannot show: catalogs with views, keys, depth, and the naive evaluator itself.

use plan::naive::{evaluate, Multiset, RecursionLimit};
use plan::row::Row;
use plan::types::TableName;
use plan::types::{Column, HostType, Scalar, Type};
use plan::value::Datum;
use plan::{ViewPlan, MAX_NESTED_LOOPS};
use planner::catalog::Table;
use planner::error::PlanErrorKind;
use planner::plan_view;
use planner::sql::{bind, DdlCatalog};
use planner::transform::{apply_alone, transform, PIPELINE};

fn catalog() -> DdlCatalog {
    DdlCatalog::parse(include_str!("tables.sql")).expect("the tables")
}

fn plan(sql: &str) -> ViewPlan {
    plan_view(sql, &catalog()).expect("a plan")
}

fn row(values: &[i32]) -> Row {
    let values: Vec<Datum> = values.iter().map(|value| Datum::Int4(*value)).collect();
    Row::pack(values.iter())
}

fn rows(values: &[&[i32]]) -> Multiset<Row> {
    let mut multiset = Multiset::new();
    for value in values {
        *multiset.entry(row(value)).or_insert(0) += 1;
    }
    multiset
}

#[test]
fn values_are_compared_as_one_user_wherever_a_plan_compares_them() {
    let mut catalog = catalog();
    let ty = HostType { id: 4711, collation: 0, is_exact: false };
    let column = |name: &str, scalar| Column {
        name: name.to_owned(),
        ty: Type::Scalar(scalar),
        typmod: -1,
        nullable: true,
    };
    let columns = vec![column("id", Scalar::Int4), column("h", Scalar::Host(ty))];
    let name = TableName { schema: None, name: "hosted".to_owned(), only: false };
    catalog.insert(name, Table { columns, unique: vec![], system: vec![], statistics: None });
    for sql in [
        "SELECT DISTINCT h FROM hosted",
        "SELECT h, count(*) AS n FROM hosted GROUP BY h",
        "SELECT a.id FROM hosted AS a JOIN hosted AS b ON a.h = b.h",
        "SELECT id FROM hosted ORDER BY h LIMIT 1",
        "SELECT id, row_number() OVER (PARTITION BY h ORDER BY id) AS n FROM hosted",
        "WITH RECURSIVE r AS (SELECT h FROM hosted UNION SELECT a.h FROM hosted AS a, r WHERE a.h = r.h) SELECT h FROM r",
    ] {
        let Ok(plan) = plan_view(sql, &catalog) else { panic!("no plan of {sql}") };
        let nobody = format!("{plan:?}");
        assert!(nobody.contains("caller: 0"), "{nobody}");
        let compared = format!("{:?}", plan.compared_as(7));
        assert!(compared.contains("caller: 7") && !compared.contains("caller: 0"), "{compared}");
    }
}

#[test]
fn columns_of_the_system_are_there_by_their_names_only() {
    let mut catalog = catalog();
    let column = |name: &str| Column {
        name: name.to_owned(),
        ty: Type::Scalar(Scalar::Int4),
        typmod: -1,
        nullable: false,
    };
    for name in ["a", "b"] {
        let columns = vec![column("id"), column("x")];
        let system = vec![column("tableoid")];
        let table = Table { columns, unique: vec![vec![0]], system, statistics: None };
        let name = TableName { schema: None, name: name.to_owned(), only: false };
        catalog.insert(name, table);
    }
    let columns = |sql: &str| {
        let plan = plan_view(sql, &catalog).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        plan.columns.into_iter().map(|column| (column.name, column.nullable)).collect::<Vec<_>>()
    };
    let found = columns("SELECT * FROM a JOIN b ON a.id = b.id");
    assert_eq!(found.len(), 4);
    let found = columns("SELECT a.tableoid, b.tableoid AS other FROM a LEFT JOIN b USING (id)");
    assert_eq!(found, [("tableoid".to_owned(), false), ("other".to_owned(), true)]);
    let found = columns("SELECT j.y FROM (a JOIN b ON a.id = b.id) AS j(v, w, x, y)");
    assert_eq!(found, [("y".to_owned(), false)]);
    let found = columns("SELECT s.t FROM (SELECT c.tableoid AS t FROM a AS c(p, q)) AS s");
    assert_eq!(found, [("t".to_owned(), false)]);
    assert!(plan_view("SELECT s.tableoid FROM (SELECT id FROM a) AS s", &catalog).is_err());
}

#[test]
fn sources_have_just_the_columns_needed() {
    let plan = plan("SELECT e.dst FROM edges e JOIN nodes n ON n.id = e.src WHERE e.w > 1.0");
    assert_eq!(plan.sources[0].columns, [1, 2, 3]);
    assert_eq!(plan.sources[1].columns, [0]);
}

#[test]
fn keys_are_given_where_rows_are_unique() {
    let key = |sql: &str| plan(sql).key;
    assert_eq!(key("SELECT id, label FROM edges"), Some(vec![0]));
    assert_eq!(key("SELECT id FROM edges"), Some(vec![0]));
    assert_eq!(key("SELECT label FROM edges"), None);
    assert_eq!(key("SELECT DISTINCT src, dst FROM edges"), Some(vec![0, 1]));
    assert_eq!(key("SELECT src, dst FROM edges UNION SELECT id, id FROM edges"), Some(vec![0, 1]));
    assert_eq!(key("SELECT src, count(*) FROM edges GROUP BY src"), Some(vec![0]));
    assert_eq!(key("SELECT count(*), src FROM edges GROUP BY src, dst"), None);
    assert_eq!(key("SELECT count(*) FROM edges"), Some(vec![]));
    assert_eq!(
        key("SELECT e.id, a.owner FROM edges e, accounts a WHERE e.src = a.id"),
        Some(vec![0])
    );
    assert_eq!(key("SELECT e.id, a.owner FROM edges e, accounts a WHERE e.src < a.id"), None);
    assert_eq!(key("SELECT id, src FROM edges UNION ALL SELECT id, 1 FROM accounts"), None);
    let unrelated = "SELECT x.src, x.n, y.id FROM (SELECT src, count(*) AS n FROM edges GROUP BY src) x, accounts y";
    assert_eq!(key(unrelated), Some(vec![0, 2]));
}

#[test]
fn a_key_pairs_deletions_with_insertions_if_it_leaves_something_to_update() {
    let pairs = |sql: &str| plan(sql).pairing_key().map(<[usize]>::to_vec);
    assert_eq!(pairs("SELECT id, label FROM edges"), Some(vec![0]));
    assert_eq!(pairs("SELECT id FROM edges"), None);
    assert_eq!(pairs("SELECT DISTINCT src, dst FROM edges"), None);
}

#[test]
fn the_key_of_an_outer_join_tells_rows_without_partner_apart() {
    let join = |kind: &str, columns: &str, on: &str| {
        plan(&format!("SELECT {columns} FROM edges e {kind} JOIN accounts a ON {on}")).key
    };
    let both = "e.id, e.label, a.id, a.owner";
    assert_eq!(join("LEFT", both, "e.src = a.id"), Some(vec![0]));
    assert_eq!(join("RIGHT", both, "e.src = a.id"), Some(vec![0, 2]));
    assert_eq!(join("RIGHT", both, "e.id = a.id"), Some(vec![2]));
    // A row of one side has NULL for the key of the other, but never for both.
    assert_eq!(join("FULL", both, "e.src = a.id"), Some(vec![0, 2]));
    assert_eq!(join("FULL", both, "e.id = a.id"), Some(vec![0, 2]));
    assert_eq!(join("FULL", "e.id, e.label", "e.id = a.id"), None);
}

#[test]
fn transforms_are_idempotent() {
    let queries = [
        "SELECT e.src, n.name FROM (SELECT src, dst + 1 AS d FROM edges WHERE w > 1.0) e, nodes n WHERE e.d = n.id",
        "WITH RECURSIVE r(x) AS (SELECT DISTINCT src FROM edges UNION SELECT dst FROM r, edges, accounts WHERE x = src AND x = accounts.id) SELECT count(*) FROM r WHERE x > 1",
        "WITH a AS (SELECT src, sum(w) AS s FROM edges GROUP BY src) SELECT x.src FROM a x, a y WHERE x.s = y.s",
    ];
    for sql in queries {
        let mut query = bind(sql, &catalog()).expect("a bound query");
        for step in PIPELINE {
            let once = apply_alone(step.name, query).expect("known").expect("applicable");
            let twice = apply_alone(step.name, once.clone()).expect("known").expect("applicable");
            assert_eq!(once, twice, "{} on {sql}", step.name);
            query = once;
        }
    }
}

#[test]
fn a_transform_that_breaks_the_schema_is_blamed() {
    let mut query = bind("SELECT src, dst FROM edges", &catalog()).expect("a bound query");
    query.root.columns.pop();
    let error = transform(query).expect_err("an inconsistency");
    assert_eq!(error.kind, PlanErrorKind::Invalid);
    assert!(error.message.starts_with("bind left an inconsistent query"), "{}", error.message);
}

#[test]
fn nesting_and_length_have_no_effect_on_the_stack() {
    let nested =
        |depth| format!("SELECT {}1{} FROM edges", "(1 + ".repeat(depth), ")".repeat(depth));
    plan(&nested(290));
    let error = plan_view(&nested(5000), &catalog()).expect_err("too deep");
    assert_eq!(error.kind, PlanErrorKind::TooComplex);
    let conjuncts = "src = 1 AND ".repeat(3000);
    plan(&format!("SELECT src FROM edges WHERE {conjuncts} true"));
    let unions = "SELECT src FROM edges UNION ALL ".repeat(300);
    plan(&format!("{unions} SELECT 1"));
    let doubled = (0..60).fold("SELECT src AS a FROM edges".to_owned(), |inner, _| {
        format!("SELECT a + a AS a FROM ({inner}) x")
    });
    plan(&doubled);
}

#[test]
fn closure_in_a_cycle_ends() {
    let sql = "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edges UNION \
               SELECT r.a, e.dst FROM r JOIN edges e ON e.src = r.b) SELECT a, b FROM r";
    let edges = rows(&[&[1, 2], &[2, 1], &[2, 3], &[2, 3]]);
    let (oks, errs) = evaluate(&plan(sql), &[edges], 100).expect("an end");
    assert!(errs.is_empty());
    assert_eq!(oks, rows(&[&[1, 1], &[1, 2], &[1, 3], &[2, 1], &[2, 2], &[2, 3]]));
}

#[test]
fn recursion_counts_paths_under_union_all() {
    let sql = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL \
               SELECT e.dst FROM r JOIN edges e ON e.src = r.x) SELECT x FROM r";
    let edges = rows(&[&[1, 2], &[1, 3], &[2, 4], &[3, 4]]);
    let (oks, _) = evaluate(&plan(sql), &[edges], 100).expect("an end");
    assert_eq!(oks, rows(&[&[1], &[2], &[3], &[4], &[4]]));
    let cycle = rows(&[&[1, 2], &[2, 1]]);
    assert_eq!(evaluate(&plan(sql), &[cycle], 100), Err(RecursionLimit));
}

#[test]
fn the_working_table_holds_the_previous_round_only() {
    // 1, then 1 + 1, then 2 + 2, …: all pairs of all rounds would give 3 as well.
    let sql = "WITH RECURSIVE r(x) AS (SELECT 1 UNION (WITH y AS (SELECT x FROM r) \
               SELECT a.x + b.x FROM y a, y b WHERE a.x < 10)) SELECT x FROM r";
    let (oks, _) = evaluate(&plan(sql), &[], 100).expect("an end");
    assert_eq!(oks, rows(&[&[1], &[2], &[4], &[8], &[16]]));
}

#[test]
fn errors_of_rows_that_a_condition_drops_are_not_raised() {
    let sql =
        "SELECT s.q FROM (SELECT src, 100 / dst AS q FROM edges) s JOIN accounts a ON a.id = s.src";
    let edges = rows(&[&[1, 5], &[2, 0]]);
    let (oks, errs) = evaluate(&plan(sql), &[edges.clone(), rows(&[&[1]])], 100).expect("an end");
    assert_eq!((oks, errs.len()), (rows(&[&[20]]), 0));
    let (_, errs) = evaluate(&plan(sql), &[edges, rows(&[&[1], &[2]])], 100).expect("an end");
    let codes: Vec<&str> = errs.keys().map(|error| error.sqlstate.as_str()).collect();
    assert_eq!(codes, ["22012"]);
}

#[test]
fn recursion_is_refused_beyond_the_depth_the_engine_has_timestamps_for() {
    // Every recursive term holds another recursive query.
    fn nested(depth: usize) -> String {
        let inner = match depth {
            1 => "SELECT src AS n FROM edges".to_owned(),
            _ => nested(depth - 1),
        };
        format!(
            "WITH RECURSIVE r{depth} AS (SELECT src AS n FROM edges UNION \
             SELECT r{depth}.n FROM r{depth}, ({inner}) AS q WHERE q.n = r{depth}.n) \
             SELECT n FROM r{depth}"
        )
    }
    assert_eq!(plan(&nested(MAX_NESTED_LOOPS)).root.nested_loops(), MAX_NESTED_LOOPS);
    let error = plan_view(&nested(MAX_NESTED_LOOPS + 1), &catalog()).expect_err("too deep");
    assert_eq!(error.kind, PlanErrorKind::Unsupported);
    assert!(error.message.contains("more than 8 deep"), "{}", error.message);
}

/// Either type of text converts to the others by itself, so PostgreSQL takes the first.
#[test]
fn a_set_operation_of_texts_has_the_type_of_its_first_side() {
    let plan =
        plan("SELECT 'a'::varchar AS x UNION ALL SELECT 'b'::text UNION ALL SELECT 'c'::char(2)");
    assert_eq!(plan.columns[0].ty, Type::Scalar(Scalar::Varchar));
}
