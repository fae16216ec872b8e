//! Results over subqueries with ORDER BY: whoever looks at the order of rows gets them in it.

use plan::naive::{evaluate, Multiset};
use plan::row::Row;
use plan::text::format_datum;
use plan::value::Datum;
use planner::plan_view;
use planner::sql::DdlCatalog;

const TABLES: &str = "create table t(id int primary key, g int not null, v text not null);";

/// (id, g, v): the order by id is neither that of v nor that of g.
const ROWS: [(i32, i32, &str); 5] =
    [(1, 2, "d"), (2, 1, "b"), (3, 2, "a"), (4, 1, "c"), (5, 1, "b")];

/// The rows of a view, each as text, in the order of their bytes.
fn rows(query: &str) -> Vec<String> {
    let catalog = DdlCatalog::parse(TABLES).expect("the table");
    let plan = plan_view(query, &catalog).expect("a plan");
    let row = |(id, g, v): &(i32, i32, &str)| [Datum::Int4(*id), Datum::Int4(*g), Datum::text(*v)];
    let wanted = &plan.sources.first().expect("a table").columns;
    let mut table: Multiset<Row> = Multiset::new();
    for values in ROWS.iter().map(row) {
        *table.entry(Row::pack(wanted.iter().map(|&column| &values[column]))).or_insert(0) += 1;
    }
    let (oks, errs) = evaluate(&plan, &[table], 10).expect("no recursion");
    assert!(errs.is_empty(), "{errs:?}");
    let text = |row: &Row| {
        let values = row.unpack();
        let texts = values.iter().zip(&plan.columns).map(|(value, column)| match value {
            Datum::Null => "-".to_owned(),
            value => format_datum(value, column.ty),
        });
        texts.collect::<Vec<_>>().join(" ")
    };
    let mut rows: Vec<String> =
        oks.iter().flat_map(|(row, n)| vec![text(row); *n as usize]).collect();
    rows.sort();
    rows
}

const BY_ID: &str = "(SELECT x.g, x.v FROM t x ORDER BY x.id DESC) q";

#[test]
fn aggregates_get_their_values_in_order() {
    let all = |what: &str| rows(&format!("SELECT {what} AS x FROM {BY_ID}"));
    assert_eq!(all("array_agg(q.v)"), ["{b,c,a,b,d}"]);
    assert_eq!(all("string_agg(q.v, '')"), ["bcabd"]);
    assert_eq!(all("array_agg(q.v) FILTER (WHERE q.g = 1)"), ["{b,c,b}"]);
    assert_eq!(all("array_agg(q.v ORDER BY q.g)"), ["{b,c,b,a,d}"]);
    assert_eq!(all("array_agg(q.v ORDER BY q.g DESC)"), ["{a,d,b,c,b}"]);
    assert_eq!(all("array_agg(DISTINCT q.v)"), ["{a,b,c,d}"]);
    let groups = format!("SELECT q.g, array_agg(q.v) AS x FROM {BY_ID} GROUP BY q.g");
    assert_eq!(rows(&groups), ["1 {b,c,b}", "2 {a,d}"]);
    let array = format!("SELECT ARRAY(SELECT q.v FROM {BY_ID}) AS x FROM (SELECT 1 AS one) o, (SELECT t.id FROM t WHERE t.id = 1) p");
    assert_eq!(rows(&array), ["{b,c,a,b,d}"]);
}

#[test]
fn orders_pass_through_what_keeps_them() {
    let through = |from: &str| rows(&format!("SELECT string_agg(r.v, '') AS x FROM {from}"));
    assert_eq!(through(&format!("(SELECT q.v FROM {BY_ID} WHERE q.g = 1) r")), ["bcb"]);
    assert_eq!(through(&format!("(SELECT q.v FROM {BY_ID} ORDER BY q.g DESC) r")), ["adbcb"]);
    assert_eq!(through(&format!("(SELECT q.v FROM {BY_ID} LIMIT 3) r")), ["bca"]);
    assert_eq!(
        through(&format!("(SELECT q.v, row_number() OVER () AS n FROM {BY_ID}) r")),
        ["bcabd"]
    );
    let cte = format!(
        "WITH r AS (SELECT q.v FROM {BY_ID}) SELECT string_agg(r.v, '') AS x, count(*) AS n FROM r"
    );
    assert_eq!(rows(&cte), ["bcabd 5"]);
    assert_eq!(through("(SELECT t.v FROM t UNION SELECT 'e' FROM t ORDER BY 1 DESC) r"), ["edcba"]);
    assert_eq!(through("(SELECT max(t.v) AS v FROM t GROUP BY t.g ORDER BY t.g DESC) r"), ["dc"]);
    let each = "SELECT o.g, (SELECT string_agg(r.v, '') FROM (SELECT t.v FROM t WHERE t.g = o.g ORDER BY t.id DESC) r) AS x FROM (SELECT DISTINCT t.g FROM t) o";
    assert_eq!(rows(each), ["1 bcb", "2 ad"]);
}

#[test]
fn rows_are_picked_and_numbered_in_order() {
    let select = |what: &str| rows(&format!("SELECT {what}"));
    assert_eq!(select(&format!("q.v FROM {BY_ID} LIMIT 2")), ["b", "c"]);
    assert_eq!(select(&format!("q.v FROM {BY_ID} OFFSET 4")), ["d"]);
    assert_eq!(select(&format!("q.v FROM {BY_ID} ORDER BY q.g LIMIT 2")), ["b", "c"]);
    assert_eq!(
        select(&format!("q.v FROM {BY_ID} ORDER BY q.g OFFSET 2 FETCH FIRST 1 ROW WITH TIES")),
        ["b"]
    );
    assert_eq!(select(&format!("DISTINCT ON (q.g) q.g, q.v FROM {BY_ID}")), ["1 b", "2 a"]);
    let numbers =
        select(&format!("q.v, row_number() OVER () AS n, lag(q.v) OVER () AS l FROM {BY_ID}"));
    assert_eq!(numbers, ["a 3 c", "b 1 -", "b 4 a", "c 2 b", "d 5 b"]);
    let ranks = select(&format!(
        "q.v, row_number() OVER (ORDER BY q.g) AS n, rank() OVER (ORDER BY q.g) AS r, count(*) OVER (ORDER BY q.g) AS c FROM {BY_ID}"
    ));
    assert_eq!(ranks, ["a 4 4 5", "b 1 1 3", "b 3 1 3", "c 2 1 3", "d 5 4 5"]);
}

#[test]
fn what_is_sorted_by_may_be_computed() {
    let by_array =
        "SELECT string_agg(q.v, '') AS x FROM (SELECT t.v FROM t ORDER BY ARRAY[t.g, -t.id]) q";
    assert_eq!(rows(by_array), ["bcbad"]);
}
