//! What must not end, ends; and ends alone.

mod common;
#[path = "common/counted.rs"]
mod counted;

use common::plans::*;
use common::{config, Host};
use counted::{alone, MB};
use engine::memory::{allocated, Account};
use engine::{Config, DataflowId, Engine, StopReason};
use plan::expr::Expr;
use plan::func::{Number, TableFunc};
use plan::table_function::{TableCall, TableFunction};
use plan::value::Datum;
use plan::{Mfp, Plan, Recursion};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A healthy view beside the one that is to be stopped.
fn with_witness(config: Config) -> Host {
    let mut host = Host::with(config);
    host.create(1, &reach(Recursion::FixpointDistinct), 1);
    host.update(1, 0, vec![(row(&[1, 2]), 1, 1)]);
    host.update(1, 1, vec![(row(&[1]), 1, 1)]);
    host
}

fn assert_witness_lives(host: &mut Host, time: u64) {
    host.update(1, 0, vec![(row(&[2, 3]), time, 1)]);
    host.advance(time + 1);
    assert_eq!(host.rows(1), [1, 2, 3].map(|n| (row(&[n]), 1)).into());
    host.update(1, 0, vec![(row(&[2, 3]), time + 1, -1)]);
    host.advance(time + 2);
    assert_eq!(host.rows(1).len(), 2);
}

#[test]
fn recursion_beyond_the_limit_is_stopped_alone() {
    let _alone = alone();
    for workers in [1, 2] {
        for form in [Recursion::FixpointAll, Recursion::WorkingTableAll] {
            let mut host = with_witness(Config { max_recursion: 50, ..config(workers) });
            host.create(2, &reach(form), 1);
            host.update(2, 0, vec![(row(&[1, 2]), 1, 1), (row(&[2, 1]), 1, 1)]);
            host.update(2, 1, vec![(row(&[1]), 1, 1)]);
            host.advance(2);
            host.wait(|host| !host.stopped.is_empty());
            let reason = StopReason::RecursionLimit { iteration: 50 };
            assert_eq!(host.stopped, [(DataflowId(2), reason)].into());
            assert!(!host.outputs.contains_key(&DataflowId(2)));
            assert_witness_lives(&mut host, 2);
            // Updates for it are ignored; its name can be used again.
            host.update(2, 1, vec![(row(&[1]), 4, 1)]);
            host.create(2, &view(&[1], source(0), 1), 4);
            host.update(2, 0, vec![(row(&[9]), 4, 1)]);
            host.advance(5);
            assert_eq!(host.rows(2), [(row(&[9]), 1)].into());
        }
    }
}

/// A chain that is as long as allowed is not stopped.
#[test]
fn recursion_up_to_the_limit_is_not_stopped() {
    let _alone = alone();
    for form in all_forms() {
        let mut host = Host::with(Config { max_recursion: 50, ..config(1) });
        host.create(1, &reach(form), 1);
        host.update(1, 0, (0..50).map(|n| (row(&[n, n + 1]), 1, 1)).collect());
        host.update(1, 1, vec![(row(&[0]), 1, 1)]);
        host.advance(2);
        assert_eq!(host.rows(1).len(), 51);
        // Shortened and grown again in one go.
        host.update(1, 0, vec![(row(&[25, 26]), 2, -1), (row(&[25, 26]), 3, 1)]);
        host.advance(4);
        assert_eq!(host.rows(1).len(), 51);
        host.update(1, 0, vec![(row(&[50, 51]), 4, 1)]);
        host.engine.advance(5);
        host.wait(|host| host.frontier >= 5 || !host.stopped.is_empty());
        host.wait(|host| host.frontier >= 5);
        let reason = StopReason::RecursionLimit { iteration: 50 };
        assert_eq!(host.stopped, [(DataflowId(1), reason)].into());
    }
}

/// Walks in a dense cyclic graph, counted per pair of ends: twenty times as many in every iteration,
/// in no more memory.
#[test]
fn exploding_multiplicities_are_stopped_without_a_limit() {
    let _alone = alone();
    for workers in [1, 2] {
        let mut host = with_witness(Config { max_recursion: 1_000_000, ..config(workers) });
        let step = join((get(0), 1), (source(0), 0), project(4, &[0, 3]));
        let pairs = letrec(0, Recursion::FixpointAll, source(1), step, get(0));
        host.create(2, &view(&[2, 2], pairs, 2), 1);
        let dense = (0..20).flat_map(|a| (0..20).map(move |b| (row(&[a, b]), 1, 1))).collect();
        host.update(2, 0, dense);
        host.update(2, 1, (0..1000).map(|a| (row(&[a, a % 20]), 1, 1)).collect());
        host.advance(2);
        host.wait(|host| !host.stopped.is_empty());
        let reason = &host.stopped[&DataflowId(2)];
        assert!(
            matches!(reason, StopReason::TooManyCopies { iteration: 8.., copies } if *copies > 1 << 40)
        );
        assert_witness_lives(&mut host, 2);
    }
}

/// A product of tables whose multiplicity does not fit 64 bits, without any recursion.
#[test]
fn overflowing_multiplicity_is_stopped() {
    let _alone = alone();
    let mut host = with_witness(config(1));
    let square = cross(source(0), source(1), project(2, &[0]));
    host.create(2, &view(&[1, 1], square, 1), 1);
    host.update(2, 0, vec![(row(&[1]), 1, 1 << 40)]);
    host.update(2, 1, vec![(row(&[1]), 1, 1 << 40)]);
    host.engine.advance(2);
    host.wait(|host| !host.stopped.is_empty());
    let reason = StopReason::TooManyCopies { iteration: 0, copies: i64::MAX as u64 };
    assert_eq!(host.stopped, [(DataflowId(2), reason)].into());
    assert_witness_lives(&mut host, 2);
}

/// Ever longer numbers: no two rows are equal, memory grows by a factor per iteration.
#[test]
fn growing_recursion_stays_near_the_memory_limit() {
    let _alone = alone();
    let base = allocated();
    let limit = base + 200 * MB;
    let mut host =
        with_witness(Config { memory_limit: limit, max_recursion: 1_000_000, ..config(1) });
    // Each row (a, b, c) is followed by (b, c, x) for every x: all words over an alphabet.
    let step = cross(get(0), source(0), project(9, &[1, 2, 3, 4, 5, 6, 7, 8]));
    let words = letrec(0, Recursion::WorkingTableAll, source(1), step, get(0));
    host.create(2, &view(&[1, 8], words, 8), 1);
    host.update(2, 0, (0..8).map(|x| (row(&[x]), 1, 1)).collect());
    host.update(2, 1, vec![(row(&[-1; 8]), 1, 1)]);
    host.engine.advance(2);
    let mut peak = 0;
    while host.stopped.is_empty() {
        peak = peak.max(allocated());
        host.wait_a_moment();
    }
    assert!(matches!(host.stopped[&DataflowId(2)], StopReason::MemoryLimit { .. }));
    assert!(peak < limit + 300 * MB, "peak {} MB above", (peak - base) / MB);
    assert_witness_lives(&mut host, 2);
    // Its thread gives the memory back.
    host.wait_until(|_| allocated() < base + 50 * MB);
}

/// One owner's dataflows, idle by now, have most of the memory when another's grows a little.
#[test]
fn who_has_little_is_not_stopped_for_who_has_much() {
    const MANY: i64 = 200_000;
    const FEW: i64 = 20_000;
    let _alone = alone();
    let limit = allocated() + 100 * MB;
    let mut host = Host::with(Config { memory_limit: limit, ..config(1) });
    let rows = |count: i64| (0..count).map(|n| (row(&[n]), 1, 1)).collect();
    for (id, owner, count) in [(1, 7, MANY), (2, 7, 2 * MANY), (3, 8, 0)] {
        host.create(id, &view(&[1], distinct(source(0)), 1), 1);
        host.engine.set_owner(DataflowId(id), owner);
        host.update(id, 0, rows(count));
    }
    host.advance(2);
    host.outputs.clear();
    assert!(host.stopped.is_empty());
    let ballast = vec![1_u8; limit - MB - allocated()];
    let many = (0..FEW).map(|n| (row(&[n]), 2, 1)).collect();
    host.update(3, 0, many);
    host.engine.advance(3);
    host.wait(|host| !host.stopped.is_empty() && host.frontier >= 3);
    assert_eq!(host.stopped.keys().collect::<Vec<_>>(), [&DataflowId(2)]);
    assert_eq!(host.rows(3).len(), FEW as usize);
    drop(ballast);
}

/// One row of which others are made without end.
fn endless_series(closure: Mfp) -> Plan {
    let args = vec![col(0), Expr::Literal(Datum::Int8(i64::MAX), BIGINT)];
    let call = TableCall { func: TableFunc::Series(Number::Int8), args };
    let table_function = TableFunction::of(vec![call]);
    Plan::TableFunction { input: Box::new(source(0)), table_function, closure }
}

#[test]
fn a_series_without_end_stays_near_the_memory_limit() {
    let _alone = alone();
    let base = allocated();
    let limit = base + 100 * MB;
    let mut host = with_witness(Config { memory_limit: limit, ..config(1) });
    host.create(2, &view(&[1], endless_series(project(2, &[0, 1])), 2), 1);
    host.update(2, 0, vec![(row(&[1]), 1, 1)]);
    host.engine.advance(2);
    host.wait_until(|host| !host.stopped.is_empty());
    assert!(matches!(host.stopped[&DataflowId(2)], StopReason::MemoryLimit { .. }));
    assert_witness_lives(&mut host, 2);
    host.wait_until(|_| allocated() < base + 50 * MB);
}

/// None of the rows is kept, so it is not for want of memory that others get to work.
#[test]
fn a_series_without_end_lets_others_work_and_can_be_dropped() {
    let _alone = alone();
    let mut host = Host::new(1);
    let no_row = Mfp { filter: vec![Expr::IsNull(Box::new(col(1)))], ..project(2, &[0]) };
    host.create(1, &view(&[1], endless_series(no_row), 1), 1);
    host.update(1, 0, vec![(row(&[1]), 1, 1)]);
    host.engine.advance(2);
    host.engine.drop_dataflow(DataflowId(1));
    host.create(2, &view(&[1], source(0), 1), 2);
    host.update(2, 0, vec![(row(&[7]), 2, 1)]);
    host.advance(3);
    assert_eq!(host.rows(2), [(row(&[7]), 1)].into());
}

#[test]
fn dropping_a_dataflow_frees_its_memory() {
    let _alone = alone();
    for workers in [1, 2] {
        let mut host = Host::new(workers);
        host.advance(1);
        let base = allocated();
        host.create(1, &reach(Recursion::FixpointDistinct), 1);
        host.update(1, 0, (0..600_000).map(|n| (row(&[n % 1000, n]), 1, 1)).collect());
        host.update(1, 1, vec![(row(&[1]), 1, 1)]);
        host.advance(2);
        host.outputs.clear();
        assert!(allocated() > base + 20 * MB);
        host.wait_until(|host| host.engine.stats(DataflowId(1)).state_bytes > 10 * MB);
        host.engine.drop_dataflow(DataflowId(1));
        host.create(2, &view(&[1], source(0), 1), 2);
        host.advance(3);
        host.wait_until(|_| allocated() < base + 5 * MB);
    }
}

#[test]
fn memory_does_not_grow_with_the_number_of_transactions() {
    let _alone = alone();
    let mut host = Host::new(1);
    let plan = view(
        &[2, 1],
        distinct(letrec(0, Recursion::FixpointDistinct, source(1), reach_step(), get(0))),
        1,
    );
    host.create(1, &plan, 1);
    host.update(1, 0, (0..100).map(|n| (row(&[n, n + 1]), 1, 1)).collect());
    host.update(1, 1, vec![(row(&[0]), 1, 1)]);
    let mut time = 2;
    let mut run = |host: &mut Host, batches: u64| {
        for _ in 0..batches {
            for toggle in 0..20 {
                let diff = if toggle % 2 == 0 { -1 } else { 1 };
                host.update(1, 0, vec![(row(&[97, 98]), time, diff)]);
                time += 1;
            }
            host.advance(time);
            host.outputs.clear();
        }
    };
    run(&mut host, 100);
    let early = allocated();
    run(&mut host, 1000);
    assert!(allocated() < early + MB, "grew by {} bytes", allocated() - early);
}

#[test]
fn dropping_the_engine_ends_a_dataflow_that_never_would() {
    let _alone = alone();
    for workers in [1, 2] {
        let mut host = Host::with(Config { max_recursion: u64::MAX, ..config(workers) });
        host.create(1, &reach(Recursion::FixpointAll), 1);
        host.update(1, 0, vec![(row(&[1, 2]), 1, 1), (row(&[2, 1]), 1, 1)]);
        host.update(1, 1, vec![(row(&[1]), 1, 1)]);
        host.engine.advance(2);
        host.wait_until(|host| host.engine.stats(DataflowId(1)).iterations > 100);
        let start = Instant::now();
        drop(host);
        assert!(start.elapsed() < Duration::from_secs(2));
    }
}

#[test]
fn a_panic_stops_its_dataflow_and_no_other() {
    let _alone = alone();
    for workers in [1, 2] {
        let mut host = Host::new(workers);
        host.create(2, &view(&[1], source(0), 1), 1);
        // No plan of ours refers to an unbound name.
        host.create(1, &view(&[], get(5), 1), 1);
        host.wait(|host| !host.stopped.is_empty());
        assert!(matches!(host.stopped[&DataflowId(1)], StopReason::Failed { .. }));
        host.update(2, 0, vec![(row(&[7]), 1, 1)]);
        host.advance(2);
        assert_eq!(host.rows(2).len(), 1);
    }
}

#[test]
fn a_costly_dataflow_delays_no_other() {
    let _alone = alone();
    let mut host = Host::with(Config { max_recursion: u64::MAX, ..config(1) });
    host.create(1, &reach(Recursion::FixpointAll), 1);
    host.create(2, &view(&[1], source(0), 1), 1);
    host.update(1, 0, vec![(row(&[1, 2]), 1, 1), (row(&[2, 1]), 1, 1)]);
    host.update(1, 1, vec![(row(&[1]), 1, 1)]);
    host.update(2, 0, vec![(row(&[7]), 1, 1)]);
    host.engine.advance(2);
    host.wait(|host| host.frontiers.get(&DataflowId(2)) == Some(&2));
    assert_eq!(host.rows(2).len(), 1);
    assert_eq!(host.frontiers.get(&DataflowId(1)), None, "it never ends");
}

/// There are fewer numbers of accounts than dataflows in the life of a process.
#[test]
fn accounts_are_used_again_though_threads_leave_something_on_them() {
    thread_local!(static LEFT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) });
    let _alone = alone();
    for _ in 0..66_000 {
        let account = Account::open();
        let thread = std::thread::spawn(move || {
            let _entered = account.enter();
            // Goes when nobody counts for this thread any more.
            LEFT.with(|left| left.borrow_mut().resize(100, 0));
        });
        thread.join().expect("ends");
    }
    let _others = vec![0_u8; 16 * MB];
    let account = Account::open();
    let entered = account.enter();
    let _own = vec![0_u8; MB];
    drop(entered);
    assert!((MB..2 * MB).contains(&account.bytes()), "{} bytes", account.bytes());
}
