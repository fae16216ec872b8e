//! Cost per single-row transaction of aggregates over one table, by size of the batch:
//! `cargo run --release -p engine --example aggregates [rows]`

#[path = "../tests/common/mod.rs"]
mod common;

use common::plans::*;
use common::{Host, Random};
use engine::memory::{allocated, CountingAllocator};
use plan::{Aggregate, AggregateFunc, Plan, ViewPlan};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Groups by one column of three; or none, for one group of all rows.
fn grouped(key: Option<usize>, aggregates: &[(AggregateFunc, Option<usize>)]) -> ViewPlan {
    let arity = usize::from(key.is_some()) + aggregates.len();
    let aggregates =
        aggregates.iter().map(|(func, arg)| Aggregate { func: *func, arg: arg.map(col) });
    let key = key.into_iter().map(col).collect();
    let root = Plan::Reduce { input: Box::new(source(0)), key, aggregates: aggregates.collect() };
    view(&[3], root, arity)
}

fn main() {
    let rows = std::env::args().nth(1).map_or(100_000, |a| a.parse().expect("a number"));
    use AggregateFunc::*;
    let views = [
        ("sums by 100 groups", grouped(Some(1), &[(Count, None), (SumInt8, Some(2))])),
        ("sums by row", grouped(Some(0), &[(Count, None), (SumInt8, Some(2))])),
        (
            "extremes by 100 groups",
            grouped(Some(1), &[(Min(BIGINT), Some(2)), (Max(BIGINT), Some(2))]),
        ),
        ("extremes of all", grouped(None, &[(Min(BIGINT), Some(2)), (Max(BIGINT), Some(2))])),
    ];
    for (name, plan) in views {
        for batch in [1, 10, 100, 1000, 10_000] {
            run(name, &plan, rows, batch);
        }
    }
}

fn run(name: &str, plan: &ViewPlan, rows: u64, batch: u64) {
    let mut random = Random::new(rows);
    let mut table: Vec<[i64; 3]> = (0..rows as i64).map(|id| [id, id % 100, 0]).collect();
    let mut host = Host::new(1);
    let before = allocated();
    host.create(1, plan, 1);
    host.update(1, 0, table.iter().map(|values| (row(values), 1, 1)).collect());
    host.advance(2);
    host.outputs.clear();
    let bytes = allocated() - before;
    let mut time = 2;
    let start = Instant::now();
    let rounds = (20_000 / batch).clamp(1, 2000);
    for _ in 0..rounds {
        let mut updates = Vec::new();
        for _ in 0..batch {
            let values = &mut table[random.below(rows) as usize];
            updates.push((row(values), time, -1));
            values[2] += random.below(10_001) as i64 - 5000;
            updates.push((row(values), time, 1));
            time += 1;
        }
        host.update(1, 0, updates);
        host.advance(time);
        host.outputs.clear();
    }
    let each = start.elapsed() / (batch * rounds) as u32;
    println!("{name}, {rows} rows, batches of {batch}: {each:?} each, {} kB", bytes >> 10);
}
