//! The engine against the naive evaluator, at every time: random plans, random histories.
//!
//! `ENGINE_SEEDS=5000 cargo test -p engine --test random` tries more, `ENGINE_SEED=42` just that one.

mod common;

use common::expected::{compare, expect, Expected};
use common::generate::*;
use common::history::*;
use common::{config, nothing_in_memory, seeds, Host, Output, Random};
use engine::{Config, DataflowId, Engine, OutputForm, StopReason, Time};
use plan::ViewPlan;
use std::collections::BTreeMap;
use std::panic::catch_unwind;

const MAX_RECURSION: u64 = 12;
const TIMES: Time = 12;

#[test]
fn output_equals_naive_evaluation_at_every_time() {
    let seeds = seeds(300);
    let mut outcomes = BTreeMap::new();
    for seed in seeds {
        let outcome = catch_unwind(|| check(seed));
        let outcome = outcome.unwrap_or_else(|_| {
            let mut random = Random::new(seed);
            println!("{:#?}", random_view(&mut random).root);
            println!("{:#?}", random_history(&mut random, TIMES));
            panic!("failed with ENGINE_SEED={seed}")
        });
        *outcomes.entry(outcome).or_insert(0) += 1;
    }
    println!("{outcomes:?}");
}

/// Runs one case; says what kind it was.
fn check(seed: u64) -> &'static str {
    let mut random = Random::new(seed);
    let plan = random_view(&mut random);
    let history = random_history(&mut random, TIMES);
    let Ok(expected) = catch_unwind(|| expect(&plan, &history, MAX_RECURSION)) else {
        return "too many copies for the evaluator";
    };
    let whole: Vec<Time> = vec![TIMES + 1];
    let single: Vec<Time> = (2..=TIMES + 1).collect();
    let mixed: Vec<Time> =
        (2..=TIMES).filter(|_| random.below(3) == 0).chain(whole.clone()).collect();
    let mut first = None;
    let in_memory = [(1, &whole), (1, &single), (2, &mixed)].map(|(n, a)| (n, a, None));
    let on_disk =
        [(1, &single), (2, &mixed)].map(|(n, a)| (n, a, Some(nothing_in_memory("eddy-random"))));
    for (workers, advances, spill) in in_memory.into_iter().chain(on_disk) {
        let output = run(&plan, &history, advances, Config { spill, ..config(workers) });
        match (&expected, output) {
            (Some(expected), Ok(output)) => {
                compare(expected, &output);
                let first = first.get_or_insert_with(|| output.clone());
                if expected.values().all(|(_, errs)| errs.is_empty()) {
                    assert_eq!(first.oks, output.oks, "the same updates, however they are batched");
                }
            }
            (None, Err(_)) => {}
            (None, Ok(_)) => panic!("the recursion ended: {plan:#?}"),
            (Some(_), Err(reason)) => panic!("stopped: {reason:?}"),
        }
    }
    if let (Some(expected), Some(by_time)) = (&expected, first) {
        for workers in [1, 2] {
            check_net_output(&plan, &history, workers, &mixed, expected, &by_time);
            if expected.values().all(|(_, errs)| errs.is_empty()) {
                check_kept_times(&plan, &history, workers, &mixed, &by_time);
            }
        }
    }
    match expected {
        None => "recursion limit",
        Some(expected) if expected.values().any(|(_, errs)| !errs.is_empty()) => "errors",
        Some(expected) if expected.values().all(|(oks, _)| oks.is_empty()) => "empty",
        Some(_) => "rows",
    }
}

/// Updates that differ only in their times add up: right at each frontier, if not in between.
fn check_net_output(
    plan: &ViewPlan,
    history: &History,
    workers: usize,
    advances: &[Time],
    expected: &BTreeMap<Time, Expected>,
    by_time: &Output,
) {
    let config = Config { output: OutputForm::Net, ..config(workers) };
    let output = run(plan, history, advances, config).expect("it was not stopped before");
    let is_right_throughout = expected.values().all(|(_, errs)| errs.is_empty());
    let mut expected = expected.clone();
    expected.retain(|time, _| advances.contains(&(time + 1)));
    compare(&expected, &output);
    if is_right_throughout {
        assert!(output.oks.len() <= advances.len(), "one time for each frontier");
        if workers == 1 {
            assert!(output.times.iter().eq(by_time.oks.keys()), "when rows changed");
        }
    }
}

/// A dataflow that keeps its times puts out in an engine of net output what it does in one by time.
fn check_kept_times(
    plan: &ViewPlan,
    history: &History,
    workers: usize,
    advances: &[Time],
    by_time: &Output,
) {
    let config = Config { output: OutputForm::Net, ..config(workers) };
    let mut host = Host::with(Config { max_recursion: MAX_RECURSION, ..config });
    host.engine.create_spilling_dataflow(DataflowId(1), plan, 1);
    host.engine.keep_times(DataflowId(1));
    feed(&mut host, history, advances);
    host.advance(TIMES + 1);
    assert_eq!(host.output(1).oks, by_time.oks);
}

/// Feeds the history, waiting for output at each of `advances`.
fn run(
    plan: &ViewPlan,
    history: &History,
    advances: &[Time],
    config: Config,
) -> Result<Output, StopReason> {
    let mut host = Host::with(Config { max_recursion: MAX_RECURSION, ..config });
    host.engine.create_spilling_dataflow(DataflowId(1), plan, 1);
    feed(&mut host, history, advances);
    host.advance(TIMES + 1);
    match host.stopped.remove(&DataflowId(1)) {
        Some(reason) => Err(reason),
        None => Ok(host.output(1)),
    }
}
