//! What it costs to have state on disk: the load of a view and changes of its tables, with all in memory, with a
//! dataflow that spills but need not, and with one that may have a tenth of its state in memory:
//! `cargo run --release -p engine --example spilling [rows]`

#[path = "../tests/common/mod.rs"]
mod common;

use common::plans::*;
use common::{config, Host, Random};
use engine::memory::{allocated, CountingAllocator};
use engine::{Config, DataflowId, Engine, Spill};
use plan::{Aggregate, AggregateFunc, Plan, Recursion, ViewPlan};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Rows of source 0; source 1 has one row, or one for each of them.
struct View {
    name: &'static str,
    plan: ViewPlan,
    row: fn(i64) -> [i64; 2],
    has_many: bool,
}

fn count(input: Plan, key: &[usize]) -> Plan {
    let key = key.iter().copied().map(col).collect();
    let aggregates = vec![Aggregate { func: AggregateFunc::Count, arg: None }];
    Plan::Reduce { input: Box::new(input), key, aggregates }
}

fn main() {
    let rows = std::env::args().nth(1).map_or(500_000, |a| a.parse().expect("a number"));
    let pairs = join((source(0), 0), (source(1), 0), project(4, &[0, 1, 3]));
    let reached = letrec(0, Recursion::FixpointDistinct, source(1), reach_step(), get(0));
    let views = [
        View {
            name: "join, distinct, count by 1000 groups",
            plan: view(&[2, 2], count(distinct(pairs), &[1]), 2),
            row: |n| [n, n % 1000],
            has_many: true,
        },
        View {
            name: "nodes reached in a tree, counted",
            plan: view(&[2, 1], count(reached, &[]), 1),
            row: |n| [n / 3, n + 1],
            has_many: false,
        },
    ];
    for view in views {
        let state = run(&view, rows, "in memory", None);
        run(&view, rows, "spills, need not", Some(usize::MAX));
        run(&view, rows, "on disk", Some(state / 10));
    }
}

/// Loads and changes a view; `memory` is what a dataflow that spills may have. Returns bytes of state.
fn run(view: &View, rows: i64, form: &str, memory: Option<usize>) -> usize {
    let directory = std::env::temp_dir().join(format!("eddy-spilling-{}", std::process::id()));
    let above = memory.unwrap_or(0).saturating_add(allocated());
    let spill = Spill { directory: directory.clone(), above, limit: u64::MAX };
    let mut host = Host::with(Config { spill: Some(spill), ..config(1) });
    match memory {
        None => host.engine.create_dataflow(DataflowId(1), &view.plan, 1),
        Some(_) => host.engine.create_spilling_dataflow(DataflowId(1), &view.plan, 1),
    }
    let start = Instant::now();
    for first in (0..rows).step_by(4096) {
        let some = first..rows.min(first + 4096);
        host.update(1, 0, some.clone().map(|n| (row(&(view.row)(n)), 1, 1)).collect());
        if view.has_many {
            host.update(1, 1, some.map(|n| (row(&[n, n % 7]), 1, 1)).collect());
        }
        while !host.engine.wait_for_room(DataflowId(1), Duration::from_secs(1)) {}
    }
    if !view.has_many {
        host.update(1, 1, vec![(row(&[0]), 1, 1)]);
    }
    host.advance(2);
    let load = start.elapsed();
    let mut random = Random::new(7);
    let mut time = 2;
    let each = [1, 100].map(|batch| {
        let start = Instant::now();
        let rounds = 100 / batch.min(10);
        for _ in 0..rounds {
            let keys: Vec<i64> = (0..batch).map(|_| random.below(rows as u64) as i64).collect();
            for diff in [-1, 1] {
                let changed = keys.iter().map(|n| (row(&(view.row)(*n)), time, diff)).collect();
                host.update(1, 0, changed);
                time += 1;
                host.advance(time);
            }
            host.outputs.clear();
        }
        start.elapsed() / (2 * batch * rounds) as u32
    });
    // Figures follow the last change.
    host.wait_until(|host| host.engine.stats(DataflowId(1)).state_bytes > 0);
    let stats = host.engine.stats(DataflowId(1));
    println!(
        "{}, {rows} rows, {form}: load {load:.1?}, a change {:.0?} alone, {:.0?} in hundreds; \
         {} MB of state, {} MB on disk",
        view.name,
        each[0],
        each[1],
        stats.state_bytes >> 20,
        stats.spilled_bytes >> 20
    );
    drop(host);
    // The directory is there only if something was written.
    let _ = std::fs::remove_dir(&directory);
    stats.state_bytes
}
