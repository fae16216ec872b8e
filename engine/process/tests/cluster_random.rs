//! A cluster against the naive evaluator, at every time: random plans, random histories.
//!
//! `ENGINE_SEEDS=500 cargo test -p engine_process --test cluster_random` tries more, `ENGINE_SEED=42` just that one.

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "common/mod.rs"]
mod programs;

use common::expected::{compare, expect};
use common::generate::random_view;
use common::history::{feed, random_history, History};
use common::{config, seeds, Host, Output, Random, Tested};
use engine::{Config, DataflowId, Engine, OutputForm, StopReason, Time};
use engine_process::{Cluster, Secret};
use plan::ViewPlan;
use programs::{listeners, SecretFile};
use std::panic::catch_unwind;

const MAX_RECURSION: u64 = 12;
const TIMES: Time = 12;

impl Tested for Cluster {
    fn frontier(&self) -> Time {
        Cluster::frontier(self)
    }
}

#[test]
fn output_equals_naive_evaluation_at_every_time() {
    let file = SecretFile::new("random", "a secret of some length");
    let secret = Secret::read(&file.0).expect("a secret");
    let (_listeners, addresses) = listeners(3, &file);
    let mut compared = 0;
    for seed in seeds(40) {
        println!("ENGINE_SEED={seed}");
        let mut random = Random::new(seed);
        let plan = random_view(&mut random);
        let history = random_history(&mut random, TIMES);
        let Ok(expected) = catch_unwind(|| expect(&plan, &history, MAX_RECURSION)) else {
            continue;
        };
        let single: Vec<Time> = (2..=TIMES + 1).collect();
        let mixed: Vec<Time> =
            (2..=TIMES).filter(|_| random.below(3) == 0).chain([TIMES + 1]).collect();
        let cases = [
            (1, &single, OutputForm::ByTime),
            (2, &mixed, OutputForm::ByTime),
            (1, &mixed, OutputForm::Net),
        ];
        for (workers, advances, output) in cases {
            let config = Config { output, max_recursion: MAX_RECURSION, ..config(workers) };
            let start = |config| Cluster::start(&addresses, &secret, &config).expect("engines");
            let found = run(Host::of(config, start), &plan, &history, advances);
            match (&expected, found) {
                (Some(expected), Ok(output_found)) => {
                    let mut expected = expected.clone();
                    if output == OutputForm::Net {
                        expected.retain(|time, _| advances.contains(&(time + 1)));
                    }
                    compare(&expected, &output_found);
                    compared += 1;
                }
                (None, Err(_)) => {}
                (None, Ok(_)) => panic!("the recursion ended: {plan:#?}"),
                (Some(_), Err(reason)) => panic!("stopped: {reason:?}"),
            }
        }
    }
    assert!(compared > 0);
}

/// Feeds the history, waiting for output at each of `advances`.
fn run(
    mut host: Host<Cluster>,
    plan: &ViewPlan,
    history: &History,
    advances: &[Time],
) -> Result<Output, StopReason> {
    host.engine.create_spilling_dataflow(DataflowId(1), plan, 1);
    feed(&mut host, history, advances);
    host.advance(TIMES + 1);
    match host.stopped.remove(&DataflowId(1)) {
        Some(reason) => Err(reason),
        None => Ok(host.output(1)),
    }
}
