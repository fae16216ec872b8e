//! Views that depend on the present time, against the naive evaluator at every time: random rows, random bounds, a
//! clock that moves at random times.
//!
//! `ENGINE_SEEDS=5000 cargo test -p engine --test temporal` tries more, `ENGINE_SEED=42` just that one.

mod common;
#[path = "common/counted.rs"]
mod counted;

use common::history::{apply, feed, removal, Contents, Event, History};
use common::plans::{col, distinct, get, join, letrec, map, project, union};
use common::{config, nothing_in_memory, seeds, Host, Output, Random};
use counted::{alone, MB};
use engine::{Config, DataflowId, Engine, Time};
use plan::clock;
use plan::expr::Expr;
use plan::func::{Arithmetic, Blanks, Comparison, Func, Number};
use plan::naive::evaluate;
use plan::row::Row;
use plan::types::{Column, Scalar, Type};
use plan::value::Datum;
use plan::{
    Aggregate, AggregateFunc, Diff, LocalId, Mfp, Plan, Recursion, Source, SourceId, ViewPlan,
};
use std::collections::BTreeMap;
use std::panic::catch_unwind;

const TIMES: Time = 14;
const CLOCK: usize = 2;
const BIGINT: Type = Type::Scalar(Scalar::Int8);

/// Two tables of a number, two instants and perhaps a text, and the clock.
fn sources(has_text: bool) -> Vec<Source> {
    let text = has_text.then_some(("name", Type::Scalar(Scalar::Text)));
    let columns = [("k", BIGINT), ("a", clock::TIME), ("b", clock::TIME)].into_iter().chain(text);
    let column =
        |(name, ty): (&str, Type)| Column { name: name.to_owned(), ty, typmod: -1, nullable: true };
    let schema: Vec<Column> = columns.map(column).collect();
    let table = |name: &str| Source {
        table: plan::types::TableName { schema: None, name: name.to_owned(), only: false },
        columns: (0..schema.len()).collect(),
        schema: schema.clone(),
    };
    vec![table("t0"), table("t1"), clock::source()]
}

fn view(root: Plan, has_text: bool) -> ViewPlan {
    ViewPlan { sources: sources(has_text), root, columns: vec![], key: None, locals: vec![] }
}

fn temporal(input: Plan, from: Vec<usize>, until: Vec<usize>, output: &[usize]) -> Plan {
    let (input, output) = (Box::new(input), output.to_vec());
    Plan::Temporal { input, clock: SourceId(CLOCK), from, until, output }
}

fn source(id: usize) -> Plan {
    Plan::Source(SourceId(id))
}

/// A view that depends on the present time in one way or another.
fn random_view(random: &mut Random) -> ViewPlan {
    let has_text = random.below(3) == 0;
    let arity = if has_text { 4 } else { 3 };
    let root = match random.below(9) {
        0 => any_temporal(random, arity, &[0]),
        1 => any_temporal(random, arity, &(0..arity).collect::<Vec<_>>()),
        2 => map(any_temporal(random, arity, &[0, 1]), quotient(2)),
        3 => {
            let input = map(
                source(0),
                Mfp { project: vec![3 + usize::from(has_text), 1, 2], ..quotient(arity) },
            );
            bounded(random, input, &[0])
        }
        4 => distinct(any_temporal(random, arity, &[arity - 1, 0])),
        5 => {
            let (left, right) =
                (any_temporal(random, arity, &[0, 2]), any_temporal(random, arity, &[1, 0]));
            join((left, 0), (right, 1), project(4, &[0, 1, 2]))
        }
        6 => {
            let inner = any_temporal(random, arity, &[2, 0, 1]);
            temporal(inner, vec![2], vec![0], &[1])
        }
        7 => {
            let min = |column| Aggregate {
                func: AggregateFunc::Min(clock::TIME),
                arg: Some(col(column)),
            };
            let input = Box::new(any_rows(random, arity));
            let key = vec![col(0)];
            let groups = Plan::Reduce { input, key, aggregates: vec![min(1), min(2)] };
            bounded(random, groups, &[0, 2])
        }
        _ => reached(random, arity),
    };
    view(root, has_text)
}

/// Rows of the tables.
fn any_rows(random: &mut Random, arity: usize) -> Plan {
    match random.below(5) {
        0 => union(vec![source(0), source(1)]),
        1 => {
            let func = Func::Compare(Comparison::Gt, Blanks::Significant);
            let test =
                Expr::Call { func, args: vec![col(0), Expr::Literal(Datum::Int8(1), BIGINT)] };
            let all: Vec<usize> = (0..arity).collect();
            map(source(1), Mfp { filter: vec![test], ..project(arity, &all) })
        }
        n => source(n as usize % 2),
    }
}

fn any_temporal(random: &mut Random, arity: usize, output: &[usize]) -> Plan {
    let input = any_rows(random, arity);
    bounded(random, input, output)
}

/// Valid as one of the first columns, or both, say.
fn bounded(random: &mut Random, input: Plan, output: &[usize]) -> Plan {
    let (from, until) = match random.below(6) {
        0 => (vec![1], vec![]),
        1 => (vec![], vec![2]),
        2 => (vec![1, 2], vec![]),
        3 => (vec![], vec![1, 2]),
        _ => (vec![1], vec![2]),
    };
    temporal(input, from, until, output)
}

/// A number by which ten is divided, behind the columns.
fn quotient(arity: usize) -> Mfp {
    let ten = Expr::Literal(Datum::Int8(10), BIGINT);
    let func = Func::Arithmetic(Arithmetic::Divide, Number::Int8);
    let maps = vec![Expr::Call { func, args: vec![ten, col(0)] }];
    Mfp { input_arity: arity, maps, filter: vec![], project: vec![0, arity] }
}

/// From some numbers, while they are valid, each next one that is: within no loop, one, or two.
fn reached(random: &mut Random, arity: usize) -> Plan {
    let func = Func::Arithmetic(Arithmetic::Add, Number::Int8);
    let next = Expr::Call { func, args: vec![col(0), Expr::Literal(Datum::Int8(1), BIGINT)] };
    let edges = Mfp { input_arity: 1, maps: vec![next], filter: vec![], project: vec![0, 1] };
    let value = map(any_temporal(random, arity, &[0]), edges);
    let step = |id| join((get(id), 0), (get(0), 0), project(3, &[2]));
    let base = any_temporal(random, arity, &[0]);
    let reached = letrec(1, Recursion::FixpointDistinct, base, step(1), get(1));
    let nested =
        letrec(2, Recursion::FixpointDistinct, get(1), union(vec![get(2), step(2)]), get(2));
    let body = match (reached, random.below(2)) {
        (Plan::LetRec { id, recursion, base, step, .. }, 1) => {
            Plan::LetRec { id, recursion, base, step, body: Box::new(nested) }
        }
        (reached, _) => reached,
    };
    Plan::Let { id: LocalId(0), value: Box::new(value), body: Box::new(body) }
}

fn instant(random: &mut Random) -> Datum {
    match random.below(14) {
        0 => Datum::Null,
        1 => Datum::Timestamp(i64::MIN),
        2 => Datum::Timestamp(i64::MAX),
        _ => Datum::Timestamp(random.below(12) as i64),
    }
}

fn random_row(random: &mut Random, has_text: bool) -> Row {
    let mut values = vec![Datum::Int8(random.below(5) as i64), instant(random), instant(random)];
    if has_text {
        let long = "a text that does not fit into the row itself".to_owned();
        values.push(Datum::text(if random.below(2) == 0 { long } else { "short".to_owned() }));
    }
    Row::pack(&values)
}

fn tick(now: i64) -> Row {
    Row::pack(&[Datum::Timestamp(now)])
}

/// The clock starts at some time and moves now and then, sometimes twice at one time.
fn clock_events(random: &mut Random, now: &mut Option<i64>, time: Time) -> Vec<Event> {
    let mut events = Vec::new();
    let starts = time >= 3 || random.below(3) == 0;
    for _ in 0..random.below(3) {
        let next = now.map_or(-1, |now| now) + random.below(4) as i64;
        if !starts || *now == Some(next) {
            continue;
        }
        events.extend(now.map(|now| Event::Update(CLOCK, tick(now), -1)));
        events.push(Event::Update(CLOCK, tick(next), 1));
        *now = Some(next);
    }
    events
}

/// A history that ends with no rows, and a clock that goes on. In between the updates of a time there may be less
/// of a row than nothing.
fn random_history(random: &mut Random, has_text: bool) -> History {
    let mut contents: Contents = vec![BTreeMap::new(); CLOCK];
    let mut history = History::new();
    let mut now = None;
    for time in 1..TIMES {
        let mut events = Vec::new();
        for _ in 0..if time == 1 { random.below(16) } else { random.below(7) } {
            let source = random.below(2) as usize;
            let present: Vec<Row> = contents[source].keys().cloned().collect();
            let event = match random.below(16) {
                0 => Event::Truncate(source),
                1..7 if !present.is_empty() => {
                    let row = present[random.below(present.len() as u64) as usize].clone();
                    Event::Update(source, row, -1)
                }
                other => {
                    Event::Update(source, random_row(random, has_text), 1 + Diff::from(other == 8))
                }
            };
            apply(&mut contents, std::slice::from_ref(&event));
            events.push(event);
        }
        if !events.iter().any(|event| matches!(event, Event::Truncate(_))) {
            events.reverse();
        }
        let ticks = clock_events(random, &mut now, time);
        let at = random.below(events.len() as u64 + 1) as usize;
        events.splice(at..at, ticks);
        history.insert(time, events);
    }
    history.insert(TIMES, removal(&contents));
    history
}

fn run(plan: &ViewPlan, history: &History, advances: &[Time], config: Config) -> Output {
    let mut host = Host::with(config);
    host.engine.create_spilling_dataflow(DataflowId(1), plan, 1);
    feed(&mut host, history, advances);
    host.advance(TIMES + 1);
    assert_eq!(host.stopped, BTreeMap::new());
    host.output(1)
}

/// Runs one case; answers how many rows there were at all times together, and whether there were errors.
fn check(seed: u64) -> (usize, bool) {
    let mut random = Random::new(seed);
    let plan = random_view(&mut random);
    let has_text = plan.sources[0].schema.len() > 3;
    let history = random_history(&mut random, has_text);
    let mut contents: Contents = vec![BTreeMap::new(); CLOCK + 1];
    let mut expected = BTreeMap::new();
    for (time, events) in &history {
        apply(&mut contents, events);
        assert!(contents[CLOCK].len() <= 1);
        expected.insert(*time, evaluate(&plan, &contents, 100).unwrap());
    }
    let whole = vec![TIMES + 1];
    let single: Vec<Time> = (2..=TIMES + 1).collect();
    let mixed: Vec<Time> =
        (2..=TIMES).filter(|_| random.below(3) == 0).chain(whole.clone()).collect();
    let in_memory =
        [(1, &whole), (1, &single), (2, &mixed), (2, &whole)].map(|(n, a)| (n, a, None));
    let on_disk =
        [(1, &single), (2, &mixed)].map(|(n, a)| (n, a, Some(nothing_in_memory("eddy-temporal"))));
    for (workers, advances, spill) in in_memory.into_iter().chain(on_disk) {
        let output = run(&plan, &history, advances, Config { spill, ..config(workers) });
        for (time, (oks, errs)) in &expected {
            let (actual_oks, actual_errs) = output.at(*time);
            assert_eq!(errs.is_empty(), actual_errs.is_empty(), "time {time}: {errs:?}");
            if errs.is_empty() {
                assert_eq!(*oks, actual_oks, "time {time}, {workers} workers");
            }
        }
    }
    assert!(expected[&TIMES].0.is_empty());
    let rows = expected.values().map(|(oks, _)| oks.len()).sum();
    (rows, expected.values().any(|(_, errs)| !errs.is_empty()))
}

#[test]
fn what_is_valid_equals_naive_evaluation_at_every_time() {
    let seeds = seeds(300);
    let is_one = seeds.end - seeds.start == 1;
    let (mut rows, mut failing) = (0, 0);
    for seed in seeds {
        let checked = catch_unwind(|| check(seed)).unwrap_or_else(|_| {
            let mut random = Random::new(seed);
            let plan = random_view(&mut random);
            println!("{:#?}", plan.root);
            println!("{:#?}", random_history(&mut random, plan.sources[0].schema.len() > 3));
            panic!("failed with ENGINE_SEED={seed}")
        });
        rows += checked.0;
        failing += usize::from(checked.1);
    }
    println!("{rows} rows, {failing} cases with errors");
    assert!(is_one || rows > 1000 && failing > 5, "{rows} rows, {failing} cases with errors");
}

fn rows(count: i64, from: i64, until: i64) -> impl Iterator<Item = Row> {
    let values = move |k| [Datum::Int8(k), Datum::Timestamp(from), Datum::Timestamp(until)];
    (0..count).map(move |k| Row::pack(&values(k)))
}

#[test]
fn only_rows_that_are_or_will_be_valid_are_kept() {
    for workers in [1, 2] {
        let _alone = alone();
        let mut host = Host::new(workers);
        host.create(1, &view(temporal(source(0), vec![1], vec![2], &[0]), false), 1);
        let state = |host: &Host| host.engine.stats(DataflowId(1)).state_bytes;
        // Apart from the rows there is the dataflow itself.
        let is_small = |host: &Host| state(host) < MB;
        host.update(1, CLOCK, vec![(tick(100), 1, 1)]);
        host.update(1, 0, rows(50_000, 0, 100).map(|row| (row, 1, 1)).collect());
        host.update(1, 0, rows(50_000, 300, 300).map(|row| (row, 1, 1)).collect());
        host.update(1, 0, rows(10, i64::MAX, i64::MAX).map(|row| (row, 1, 1)).collect());
        host.advance(2);
        host.wait_until(is_small);
        assert!(host.rows(1).is_empty());
        host.update(1, 0, rows(50_000, 200, 300).map(|row| (row, 2, 1)).collect());
        host.update(1, 0, rows(10, 100, 300).map(|row| (row, 2, 1)).collect());
        host.advance(3);
        host.wait_until(|host| state(host) > 2 * MB);
        assert_eq!(host.rows(1).len(), 10);
        host.update(1, CLOCK, vec![(tick(250), 3, 1), (tick(100), 3, -1)]);
        host.advance(4);
        assert_eq!(host.rows(1).len(), 50_000);
        host.update(1, CLOCK, vec![(tick(250), 4, -1), (tick(300), 4, 1)]);
        host.advance(5);
        host.wait_until(is_small);
        assert!(host.rows(1).is_empty());
        // Nothing is left to be retracted, whenever a row is deleted.
        host.update(1, 0, rows(50_000, 200, 300).map(|row| (row, 5, -1)).collect());
        host.advance(6);
        assert!(host.rows(1).is_empty());
        host.wait_until(is_small);
    }
}
