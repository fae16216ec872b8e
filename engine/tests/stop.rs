//! A dataflow that is stopped lets go wherever it is, and gives its memory back; one that is not does not fill the memory
//! with what it is about to use up.

mod common;
#[path = "common/counted.rs"]
mod counted;

use common::plans::*;
use common::{config, Host};
use counted::{alone, MB};
use engine::memory::allocated;
use engine::Engine;
use engine::{Config, DataflowId, Spill, StopReason};
use plan::expr::Expr;
use plan::func::{self, Number, TableFunc};
use plan::partition::{Count, SortKey, TopK, Work};
use plan::row::Row;
use plan::table_function::{TableCall, TableFunction};
use plan::types::{Scalar, Type};
use plan::value::Datum;
use plan::{Aggregate, AggregateFunc, Mfp, Plan, Recursion};
use std::time::{Duration, Instant};

const TEXT: Type = Type::Scalar(Scalar::Text);
const INTEGER: Type = Type::Scalar(Scalar::Int4);

/// Longest time from the wish to drop a dataflow to the return of its memory. It is a matter of milliseconds, where nobody
/// else wants the processors.
const AT_ONCE: Duration = Duration::from_secs(3);

/// Lets no row pass.
fn nothing(arity: usize) -> Mfp {
    Mfp { filter: vec![Expr::IsNull(Box::new(col(0)))], ..project(arity, &[0]) }
}

fn count(input: Plan) -> Plan {
    let aggregates = vec![Aggregate { func: AggregateFunc::Count, arg: None }];
    Plan::Reduce { input: Box::new(input), key: vec![], aggregates }
}

/// A row for each number from a row's first column to no end.
fn endless(closure: Mfp) -> Plan {
    let args = vec![col(0), Expr::Literal(Datum::Int8(i64::MAX), BIGINT)];
    let call = TableCall { func: TableFunc::Series(Number::Int8), args };
    let table_function = TableFunction::of(vec![call]);
    Plan::TableFunction { input: Box::new(source(0)), table_function, closure }
}

/// Every plan takes hours for the rows of the test, whether or not anything comes of it.
fn costly() -> Vec<(&'static str, Plan)> {
    let square = |closure| cross(source(0), source(0), closure);
    let all = || square(project(2, &[0, 1]));
    let far = join((all(), 1), (all(), 1), nothing(3));
    vec![
        ("a product of which nothing is kept", square(nothing(2))),
        ("a product that is counted", count(all())),
        ("products joined by key", far),
        ("a series without end", endless(nothing(2))),
        ("rows mapped after a product", map(all(), nothing(2))),
        (
            "a product in a recursion",
            letrec(
                0,
                Recursion::FixpointDistinct,
                source(0),
                cross(get(0), source(0), nothing(2)),
                get(0),
            ),
        ),
    ]
}

#[test]
fn a_dataflow_that_is_dropped_lets_go_at_once() {
    let _alone = alone();
    let directory = std::env::temp_dir().join("eddy-stop");
    let spill = Some(Spill { directory, above: 256 * MB, limit: u64::MAX });
    for (name, plan) in costly() {
        for (workers, spill) in [(1, None), (2, None), (1, spill.clone())] {
            let mut host = Host::with(Config { spill, ..config(workers) });
            let base = allocated();
            host.engine.create_spilling_dataflow(DataflowId(1), &view(&[1], plan.clone(), 1), 1);
            host.update(1, 0, (0..300_000).map(|n| (row(&[n]), 1, 1)).collect());
            host.engine.advance(2);
            // It has taken its rows, and so is at work.
            host.wait_until(|host| host.engine.stats(DataflowId(1)).state_bytes > 3 * MB);
            let start = Instant::now();
            host.engine.drop_dataflow(DataflowId(1));
            host.wait_until(|_| allocated() < base + 2 * MB);
            let took = start.elapsed();
            assert!(took < AT_ONCE, "{name}, {workers} threads: {took:?}");
            assert!(host.stopped.is_empty());
        }
    }
}

/// Twenty-five million pairs, of which one number comes.
#[test]
fn what_is_used_up_at_once_does_not_fill_the_memory() {
    let _alone = alone();
    let base = allocated();
    let mut host = Host::with(Config { memory_limit: base + 256 * MB, ..config(1) });
    let pairs = cross(source(0), source(0), project(2, &[0, 1]));
    let grouped = distinct(map(pairs, project(2, &[0])));
    host.create(1, &view(&[1], count(grouped), 1), 1);
    host.update(1, 0, (0..5_000).map(|n| (row(&[n]), 1, 1)).collect());
    host.engine.advance(2);
    let mut peak = 0;
    while host.frontier < 2 && host.stopped.is_empty() {
        peak = peak.max(allocated());
        host.wait_a_moment();
    }
    assert_eq!(host.rows(1), [(row(&[5_000]), 1)].into(), "peak {} MB", (peak - base) / MB);
}

/// A text of so many characters for each row.
fn texts(length: i32, rest: Plan) -> Plan {
    let text = Expr::Literal(Datum::Text("x".into()), TEXT);
    let length = Expr::Literal(Datum::Int4(length), INTEGER);
    let repeat = func::function("repeat", &[TEXT, INTEGER]).expect("it is native").func;
    let long = Expr::Call { func: repeat, args: vec![text, length] };
    map(rest, Mfp { input_arity: 1, maps: vec![long], filter: vec![], project: vec![0, 1] })
}

/// Two hundred rows are fewer than are counted before a look at the memory in use, but of ten megabytes each.
#[test]
fn few_rows_of_many_bytes_are_noticed() {
    let _alone = alone();
    let base = allocated();
    let limit = 100 * MB;
    let mut host = Host::with(Config { memory_limit: base + limit, ..config(1) });
    host.create(1, &view(&[1], distinct(texts(10 << 20, source(0))), 2), 1);
    host.update(1, 0, (0..200).map(|n| (row(&[n]), 1, 1)).collect());
    host.engine.advance(2);
    let mut peak = 0;
    while host.frontier < 2 && host.stopped.is_empty() {
        peak = peak.max(allocated());
        host.wait_a_moment();
    }
    assert!(matches!(host.stopped[&DataflowId(1)], StopReason::MemoryLimit { .. }));
    assert!(peak < base + limit + 64 * MB, "peak {} MB", (peak - base) / MB);
    host.wait_until(|_| allocated() < base + 5 * MB);
}

/// What dataflows say they hold is what the allocator counts, whoever allocated it and whoever frees it.
#[test]
fn figures_add_up_to_what_is_allocated() {
    let _alone = alone();
    for workers in [1, 2] {
        let mut host = Host::new(workers);
        host.engine.advance(1);
        let base = allocated();
        let long = |n: i64| Row::pack(&[Datum::Int8(n), Datum::Text(format!("{n:060}").into())]);
        let order = SortKey::ascending(0, BIGINT);
        let work = Work::TopK(TopK {
            offset: Count::Fixed(0),
            limit: Some(Count::Fixed(5)),
            with_ties: false,
        });
        let plans = [
            join((source(0), 0), (source(0), 0), project(3, &[0, 1])),
            distinct(source(0)),
            Plan::Partition { input: Box::new(source(0)), key: vec![], order: vec![order], work },
        ];
        for (id, plan) in (1..).zip(plans) {
            let mut view = view(&[2], plan, 2);
            view.sources[0].schema[1].ty = TEXT;
            host.create(id, &view, 1);
            host.update(id, 0, (0..200_000).map(|n| (long(n), 1, 1)).collect());
        }
        host.advance(2);
        host.outputs.clear();
        let figures = |host: &Host| -> Vec<usize> {
            (1..4).map(|id| host.engine.stats(DataflowId(id)).state_bytes).collect()
        };
        let adds_up = |host: &Host| {
            let (sum, held) = (figures(host).iter().sum::<usize>(), allocated() - base);
            sum.abs_diff(held) < held / 5
        };
        host.wait_until(adds_up);
        assert!(figures(&host).iter().all(|bytes| *bytes > 20 * MB), "{:?}", figures(&host));
        // All of it goes, and no account is left with what is not there.
        for id in 1..4 {
            host.update(id, 0, (0..200_000).map(|n| (long(n), 2, -1)).collect());
        }
        host.advance(3);
        host.outputs.clear();
        for id in 1..4 {
            host.engine.drop_dataflow(DataflowId(id));
        }
        host.wait_until(|_| allocated() < base + 5 * MB);
    }
}
