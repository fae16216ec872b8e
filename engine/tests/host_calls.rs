//! Expressions that the host evaluates: asked for in batches, right at every time, only where they are needed.

mod common;

use common::{config, nothing_in_memory, Host, Random};
use engine::{Answer, Config, DataflowId, Engine, Time};
use plan::error::DataError;
use plan::host::{self, Evaluator, HostCall, HostWork};
use plan::naive::evaluate;
use plan::row::Row;
use plan::types::TableName;
use plan::types::{Scalar, Type};
use plan::value::Datum;
use plan::{SourceId, ViewPlan};
use planner::catalog::{Catalog, HostExpression, Table};
use planner::plan_view;
use planner::sql::DdlCatalog;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Tables, and two expressions of the host's: 1 is `10 / $1`, 2 is the parity of `$1` as text, NULL for NULL.
struct Expressions(DdlCatalog);

impl Catalog for Expressions {
    fn table(&self, name: &TableName) -> Option<Table> {
        self.0.table(name)
    }

    fn host_expression(&self, number: u64) -> Option<HostExpression> {
        let (code, ty) = match number {
            1 => ("divide", Scalar::Int4),
            2 => ("parity", Scalar::Text),
            _ => return None,
        };
        let (text, code) = (code.to_owned(), code.to_owned());
        let is_builtin = true;
        Some(HostExpression {
            text,
            code,
            caller: 7,
            is_builtin,
            ty: Type::Scalar(ty),
            typmod: -1,
            extents: vec![],
        })
    }
}

fn plan(sql: &str) -> ViewPlan {
    let tables = DdlCatalog::parse("CREATE TABLE t (a int, b int); CREATE TABLE u (a int, b int)");
    plan_view(sql, &Expressions(tables.unwrap())).unwrap()
}

fn answer(call: &HostCall, args: &[Datum]) -> Answer {
    let HostWork::Expression { code, caller: 7, .. } = &call.work else {
        panic!("not a call of these tests: {call:?}")
    };
    match (code.as_str(), args) {
        (_, [Datum::Null]) => Ok(Datum::Null),
        ("divide", [Datum::Int4(0)]) => Err(DataError::new("22012", "division by zero")),
        ("divide", [Datum::Int4(n)]) => Ok(Datum::Int4(10 / n)),
        ("parity", [Datum::Int4(n)]) => Ok(Datum::text(if n % 2 == 0 { "even" } else { "odd" })),
        _ => panic!("{code} of {args:?}"),
    }
}

/// The same in this thread, for the naive evaluator.
struct Local;

impl Evaluator for Local {
    fn evaluate(&self, call: &HostCall, args: &[&Datum]) -> Answer {
        answer(call, &args.iter().map(|arg| (*arg).clone()).collect::<Vec<_>>())
    }
}

const QUERIES: [&str; 7] = [
    "SELECT a, eddy.host_call(2, b) FROM t",
    "SELECT a FROM t WHERE eddy.host_call(2, eddy.host_call(1, a)) = 'even'",
    "SELECT t.b, u.b FROM t JOIN u ON eddy.host_call(2, t.a) = eddy.host_call(2, u.a)",
    "SELECT eddy.host_call(2, a) AS p, count(*), sum(eddy.host_call(1, b)) FROM t GROUP BY 1",
    "SELECT a, CASE WHEN a <> 0 THEN eddy.host_call(1, a) END FROM t",
    "SELECT a, row_number() OVER (PARTITION BY eddy.host_call(2, a) ORDER BY a, b) FROM t",
    "WITH RECURSIVE r(a) AS (SELECT a FROM t UNION SELECT eddy.host_call(1, r.a) FROM r WHERE r.a > 0) SELECT a FROM r",
];

#[test]
fn output_equals_naive_evaluation_at_every_time() {
    host::install(Rc::new(Local));
    for seed in 0..40 {
        for (number, sql) in QUERIES.iter().enumerate() {
            let plan = plan(sql);
            let spill = (seed % 4 == 3).then(|| nothing_in_memory("eddy-host-calls"));
            let mut host = Host::with(Config { spill, ..config(1 + seed as usize % 2) });
            host.evaluate = answer;
            let random = Random::new(seed * 100 + number as u64);
            compare(&mut host, &plan, random);
        }
    }
}

/// Random rows of both tables, half of them taken back later, in batches of random sizes.
fn compare(host: &mut Host, plan: &ViewPlan, mut random: Random) {
    const TIMES: Time = 8;
    let mut held: Vec<BTreeMap<Row, i64>> = vec![BTreeMap::new(); plan.sources.len()];
    let mut expected = Vec::new();
    host.engine.create_spilling_dataflow(DataflowId(1), plan, 1);
    for time in 1..=TIMES {
        for (source, rows) in held.iter_mut().enumerate() {
            let mut updates = Vec::new();
            for _ in 0..random.below(4) {
                let mut value = || match random.below(6) {
                    0 => Datum::Null,
                    n => Datum::Int4(n as i32 - 1),
                };
                let columns: Vec<Datum> =
                    plan.sources[source].columns.iter().map(|_| value()).collect();
                updates.push((Row::pack(&columns), 1));
            }
            let back = rows.iter().filter(|_| random.below(2) == 0);
            updates.extend(back.map(|(row, _)| (row.clone(), -1)).collect::<Vec<_>>());
            for (row, diff) in updates {
                let count = rows.entry(row.clone()).or_insert(0);
                *count += diff;
                if *count == 0 {
                    rows.remove(&row);
                }
                host.update(1, source, vec![(row, time, diff)]);
            }
        }
        expected.push(evaluate(plan, &held, 100).expect("the recursion ends"));
        if random.below(2) == 0 {
            host.advance(time + 1);
        }
    }
    host.advance(TIMES + 1);
    for (index, expected) in expected.into_iter().enumerate() {
        let (oks, errs) = host.output(1).at(index as Time + 1);
        assert_eq!(errs.is_empty(), expected.1.is_empty(), "errors at {index}: {errs:?}");
        if errs.is_empty() {
            assert_eq!(oks, expected.0, "at {index} of {:#?}", plan.root);
        }
    }
}

#[test]
fn rows_are_asked_for_together_and_answers_are_remembered() {
    let plan = plan("SELECT a FROM t WHERE eddy.host_call(2, eddy.host_call(1, a)) = 'even'");
    let mut host = Host::new(1);
    host.evaluate = answer;
    host.create(1, &plan, 1);
    let row = |n: i32| Row::pack(&[Datum::Int4(n)]);
    host.update(1, 0, (1..=500).map(|n| (row(n), 1, 1)).collect());
    host.advance(2);
    let asked = std::mem::take(&mut host.asked);
    assert_eq!(
        asked.iter().sum::<usize>(),
        500 + 6,
        "each of 10 / n, and the parity of each result"
    );
    assert!(asked.len() <= 4, "two rounds for a batch: {asked:?}");
    host.update(1, 0, (1..=500).map(|n| (row(n), 2, -1)).collect());
    host.advance(3);
    assert_eq!(host.asked, Vec::<usize>::new(), "what is taken back was asked for before");
    assert!(host.rows(1).is_empty());
}

#[test]
fn an_engine_ends_while_a_thread_waits_for_an_answer() {
    let plan = plan("SELECT eddy.host_call(2, a) FROM t");
    let mut engine = engine::Embedded::start(config(2));
    engine.create_dataflow(DataflowId(1), &plan, 1);
    let rows = (0..10_000).map(|n| (Row::pack(&[Datum::Int4(n)]), 1, 1)).collect();
    engine.update(DataflowId(1), plan::SourceId(0), rows);
    engine.advance(2);
    drop(engine);
}

/// What comes and goes at the same time is never seen by whoever reads a view, on whichever workers it does.
#[test]
fn rows_that_a_view_never_had_are_not_evaluated() {
    const LOWER: DataflowId = DataflowId(1);
    const UPPER: DataflowId = DataflowId(2);
    let lower = plan("SELECT t.a, t.b FROM t LEFT JOIN u ON u.a = t.a WHERE u.a IS NULL");
    let upper = plan("SELECT a, eddy.host_call(2, b) FROM t");
    let mut host = Host::with(config(2));
    host.evaluate = answer;
    host.create(LOWER.0, &lower, 1);
    host.create(UPPER.0, &upper, 1);
    host.engine.connect(LOWER, (UPPER, SourceId(0)), vec![0, 1], &Vec::new());
    let rows = |time, b: i32| -> Vec<(Row, Time, i64)> {
        let row = |a: i32| (Row::pack(&[Datum::Int4(a), Datum::Int4(b + a)]), time, 1);
        (0..200).map(row).collect()
    };
    let of = |name: &str| {
        let is_it = |source: &plan::Source| source.table.name == name;
        lower.sources.iter().position(is_it).expect("a source of the view")
    };
    host.update(LOWER.0, of("t"), rows(2, 1));
    host.update(LOWER.0, of("u"), rows(2, 0));
    host.advance(3);
    assert!(host.asked.is_empty(), "{:?} rows were evaluated", host.asked);
    assert!(host.rows(UPPER.0).is_empty());
}
