//! Work follows the change, not the size of what is there. Bounds are far above what a change
//! takes and far below what a rescan would.

mod common;

use common::plans::*;
use common::{Host, Random};
use plan::{Aggregate, AggregateFunc, Plan, Recursion, ViewPlan};
use std::time::{Duration, Instant};

/// Median time from feeding a change to seeing its effect.
fn median(mut change: impl FnMut(usize)) -> Duration {
    let mut times: Vec<Duration> = (0..21)
        .map(|i| {
            let start = Instant::now();
            change(i);
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

fn min_and_count(keys: Vec<usize>) -> ViewPlan {
    let arity = keys.len() + 3;
    let aggregate = |func, arg: Option<usize>| Aggregate { func, arg: arg.map(col) };
    let root = Plan::Reduce {
        input: Box::new(source(0)),
        key: keys.into_iter().map(col).collect(),
        aggregates: vec![
            aggregate(AggregateFunc::Min(BIGINT), Some(1)),
            aggregate(AggregateFunc::Max(BIGINT), Some(1)),
            aggregate(AggregateFunc::Count, None),
        ],
    };
    view(&[2], root, arity)
}

#[test]
fn deleting_the_minimum_of_a_large_group_does_not_rescan_it() {
    const ROWS: i64 = 1_000_000;
    let mut host = Host::new(1);
    host.create(1, &min_and_count(vec![0]), 1);
    host.update(1, 0, (0..ROWS).map(|n| (row(&[7, n]), 1, 1)).collect());
    host.advance(2);
    assert_eq!(host.rows(1), [(row(&[7, 0, ROWS - 1, ROWS]), 1)].into());
    host.outputs.clear();
    let mut time = 2;
    let took = median(|i| {
        host.update(1, 0, vec![(row(&[7, i as i64]), time, -1)]);
        time += 1;
        host.advance(time);
    });
    println!("delete of the minimum: {took:?}");
    assert!(took < Duration::from_millis(50), "took {took:?}");
    let last = host.output(1).oks.pop_last().unwrap().1;
    assert_eq!(last[&row(&[7, 21, ROWS - 1, ROWS - 21])], 1);
}

#[test]
fn toggling_an_edge_costs_the_same_in_a_large_graph() {
    const EDGES: u64 = 300_000;
    for form in [Recursion::FixpointDistinct, Recursion::WorkingTableDistinct { key: vec![col(0)] }]
    {
        let mut random = Random::new(1);
        let mut node = || random.below(EDGES / 3) as i64;
        let graph: Vec<[i64; 2]> = (0..EDGES).map(|_| [node(), node()]).collect();
        let mut host = Host::new(1);
        host.create(1, &reach(form), 1);
        host.update(1, 0, graph.iter().map(|edge| (row(edge), 1, 1)).collect());
        host.update(1, 1, (0..10).map(|n| (row(&[n]), 1, 1)).collect());
        host.advance(2);
        assert!(host.rows(1).len() > 80_000);
        host.outputs.clear();
        let mut time = 2;
        let took = median(|i| {
            for diff in [-1, 1] {
                host.update(1, 0, vec![(row(&graph[i * 1000]), time, diff)]);
                time += 1;
                host.advance(time);
            }
        });
        println!("delete and insert of an edge: {took:?}");
        assert!(took < Duration::from_millis(100), "took {took:?}");
    }
}

/// The time for a batch of `times` transactions that all change the same group, row and edge.
fn hot_batch(plan: &ViewPlan, times: u64) -> Duration {
    let mut host = Host::new(1);
    host.create(1, plan, 1);
    host.update(1, 0, (0..100).map(|n| (row(&[n, n + 1]), 1, 1)).collect());
    if plan.sources.len() > 1 {
        host.update(1, 1, vec![(row(&[0]), 1, 1)]);
    }
    host.advance(2);
    let start = Instant::now();
    for time in 2..times + 2 {
        let diff = if time % 2 == 0 { -1 } else { 1 };
        host.update(1, 0, vec![(row(&[90, 91]), time, diff)]);
    }
    host.advance(times + 2);
    assert_eq!(host.output(1).oks.len() as u64, times + 1);
    start.elapsed()
}

#[test]
fn many_transactions_in_one_batch_cost_a_multiple_of_one() {
    for plan in [min_and_count(vec![]), reach(Recursion::FixpointDistinct)] {
        let few = hot_batch(&plan, 1000);
        let many = hot_batch(&plan, 8000);
        println!("1000 transactions in {few:?}, 8000 in {many:?}");
        // Quadratic work would be 64 times as much.
        assert!(many < 30 * few.max(Duration::from_millis(20)), "{few:?}, then {many:?}");
    }
}

#[test]
fn a_change_of_a_delta_join_looks_up_its_own_matches_only() {
    const ROWS: i64 = 300_000;
    let mut host = Host::new(1);
    let inputs = vec![source(0), source(1), source(0)];
    host.create(1, &view(&[2, 2], chain(inputs, project(6, &[0, 3, 5])), 3), 1);
    host.update(1, 0, (0..ROWS).map(|n| (row(&[n, n]), 1, 1)).collect());
    host.update(1, 1, (0..ROWS).map(|n| (row(&[n, n]), 1, 1)).collect());
    host.advance(2);
    assert_eq!(host.rows(1).len(), ROWS as usize);
    let mut time = 2;
    let took = median(|i| {
        let (n, diff) = (i as i64 / 2 * 1000, if i % 2 == 0 { -1 } else { 1 });
        host.outputs.clear();
        host.update(1, i / 2 % 2, vec![(row(&[n, n]), time, diff)]);
        time += 1;
        host.advance(time);
    });
    println!("a change of a delta join: {took:?}");
    assert!(took < Duration::from_millis(20), "took {took:?}");
}
