//! Dataflows that end and go on elsewhere, against those that are never interrupted, at every time: random plans, random
//! histories, cut twice.
//!
//! `ENGINE_SEEDS=5000 cargo test -p engine --test checkpoints` tries more, `ENGINE_SEED=42` just that one.

mod common;

use common::expected::{compare, expect};
use common::generate::random_view;
use common::history::*;
use common::plans::row;
use common::{config, seeds, Host, Output, Random};
use engine::{as_computed, Config, DataflowId, Engine, Form, OutputForm, StopReason, Time};
use plan::ViewPlan;
use std::collections::BTreeMap;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

const MAX_RECURSION: u64 = 12;
const TIMES: Time = 12;
const VIEW: DataflowId = DataflowId(1);

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("eddy-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn host(workers: usize) -> Host {
    Host::with(Config { max_recursion: MAX_RECURSION, ..config(workers) })
}

fn create(host: &mut Host, plan: &ViewPlan, workers: usize, from: Option<&Path>, as_of: Time) {
    let plan = as_computed(plan, workers, true);
    let checkpoints = host.engine.checkpoints().expect("it is alone");
    checkpoints.create_kept(VIEW, (&plan, Form::of(&plan)), from, as_of);
}

fn save(host: &mut Host, path: &Path) -> Result<u64, String> {
    host.engine.checkpoints().expect("it is alone").save(VIEW, path);
    host.wait(|host| host.saved.contains_key(&VIEW) || !host.stopped.is_empty());
    host.saved.remove(&VIEW).unwrap_or_else(|| Err("stopped".into()))
}

#[test]
fn what_goes_on_elsewhere_puts_out_what_it_would_have() {
    let directory = directory("checkpoints");
    let mut outcomes = BTreeMap::new();
    for seed in seeds(300) {
        let outcome = catch_unwind(|| check(seed, &directory)).unwrap_or_else(|_| {
            let mut random = Random::new(seed);
            println!("{:#?}", random_view(&mut random).root);
            println!("{:#?}", random_history(&mut random, TIMES));
            panic!("failed with ENGINE_SEED={seed}")
        });
        *outcomes.entry(outcome).or_insert(0) += 1;
    }
    println!("{outcomes:?}");
    fs::remove_dir_all(&directory).unwrap();
}

/// Runs one case; says what kind it was.
fn check(seed: u64, directory: &Path) -> &'static str {
    let mut random = Random::new(seed);
    let plan = random_view(&mut random);
    let history = random_history(&mut random, TIMES);
    let Ok(Some(expected)) = catch_unwind(|| expect(&plan, &history, MAX_RECURSION)) else {
        return "not computed";
    };
    let first = 2 + random.below(TIMES - 3);
    let cuts = [first, first + 1 + random.below(TIMES - first)];
    for (workers, advance_each) in [(1, true), (1, false), (2, true)] {
        let Some(output) = interrupted(&plan, &history, (workers, advance_each), cuts, directory)
        else {
            return "cannot be saved";
        };
        compare(&expected, &output);
        let mut whole = host(workers);
        create(&mut whole, &plan, workers, None, 1);
        feed(&mut whole, &history, &(2..=TIMES).collect::<Vec<_>>());
        whole.advance(TIMES + 1);
        if expected.values().all(|(_, errs)| errs.is_empty()) {
            assert_eq!(whole.output(1).oks, output.oks, "seed {seed}, {workers} workers");
        }
    }
    match expected.values().any(|(_, errs)| !errs.is_empty()) {
        true => "errors",
        false if expected.values().all(|(oks, _)| oks.is_empty()) => "empty",
        false => "rows",
    }
}

/// All that is put out by dataflows that go on where the one before was saved; `None` if it cannot be.
fn interrupted(
    plan: &ViewPlan,
    history: &History,
    (workers, advance_each): (usize, bool),
    cuts: [Time; 2],
    directory: &Path,
) -> Option<Output> {
    let mut all = Output::default();
    let mut from: Option<PathBuf> = None;
    let mut start = 1;
    for (number, end) in cuts.into_iter().chain([TIMES + 1]).enumerate() {
        let mut host = host(workers);
        create(&mut host, plan, workers, from.as_deref(), start);
        let part: History = history.range(start..end).map(|(t, e)| (*t, e.clone())).collect();
        let advances = if advance_each { (start + 1..end).collect() } else { Vec::new() };
        feed(&mut host, &part, &advances);
        host.advance(end);
        if let Some(reason) = host.stopped.remove(&VIEW) {
            panic!("stopped from {start} to {end}: {reason:?}");
        }
        let output = host.output(1);
        assert!(output
            .oks
            .keys()
            .chain(output.errs.keys())
            .all(|time| (start..end).contains(time)));
        all.oks.extend(output.oks);
        all.errs.extend(output.errs);
        let path = directory.join(format!("state{number}"));
        match save(&mut host, &path) {
            Ok(bytes) => assert!(bytes > 0),
            Err(error) if error.ends_with("cannot be saved") => return None,
            Err(error) => panic!("not saved: {error}"),
        }
        (from, start) = (Some(path), end);
    }
    Some(all)
}

#[test]
fn what_cannot_be_read_is_no_beginning() {
    let directory = directory("no-checkpoint");
    let mut random = Random::new(0);
    let plan = common::plans::reach(plan::Recursion::FixpointDistinct);
    let other = random_view(&mut random);
    let path = directory.join("state");
    let mut saved = host(1);
    create(&mut saved, &plan, 1, None, 1);
    saved.advance(2);
    save(&mut saved, &path).unwrap();
    let refused = |plan: &ViewPlan, workers, path: &Path| {
        let mut host = host(workers);
        create(&mut host, plan, workers, Some(path), 2);
        host.wait(|host| !host.stopped.is_empty());
        match host.stopped.remove(&VIEW) {
            Some(StopReason::NotRestored { message }) => message,
            reason => panic!("{reason:?}"),
        }
    };
    assert!(refused(&plan, 1, &directory.join("nothing")).contains("No such file"));
    assert_eq!(refused(&other, 1, &path), "it is of another plan");
    fs::copy(directory.join("state.0"), directory.join("state.1")).unwrap();
    assert_eq!(refused(&plan, 2, &path), "it is of 1 threads, not 2");
    let whole = fs::read(directory.join("state.0")).unwrap();
    fs::write(directory.join("state.0"), &whole[..whole.len() / 2]).unwrap();
    assert_eq!(refused(&plan, 1, &path), "it is damaged");
    // Others are not concerned.
    assert_eq!(save(&mut host(1), &path), Err("there is no such dataflow".into()));
    assert!(save(&mut saved, &directory.join("missing/state")).is_err());
    save(&mut saved, &path).unwrap();
    let mut again = host(1);
    create(&mut again, &plan, 1, Some(&path), 2);
    again.advance(3);
    assert!(again.stopped.is_empty());
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn what_comes_while_it_is_written_is_not_in_it() {
    const NODES: i64 = 100_000;
    let directory = directory("live-checkpoint");
    let path = directory.join("state");
    let plan = common::plans::reach(plan::Recursion::FixpointDistinct);
    // A tree, each node of which has ten beneath it, and its root.
    let edges =
        |time, diff| (2..=NODES).map(move |n| (row(&[(n + 8) / 10, n]), time, diff)).collect();
    for workers in [1, 2] {
        let mut saved = host(workers);
        create(&mut saved, &plan, workers, None, 1);
        saved.update(1, 0, edges(1, 1));
        saved.update(1, 1, vec![(row(&[1]), 1, 1)]);
        saved.advance(2);
        saved.engine.checkpoints().expect("it is alone").save(VIEW, &path);
        saved.update(1, 0, edges(2, -1));
        saved.advance(3);
        assert_eq!(saved.output(1).oks[&2].len() as i64, NODES - 1);
        saved.wait(|host| host.saved.contains_key(&VIEW));
        saved.saved.remove(&VIEW).expect("it has come").expect("it is saved");
        let mut again = host(workers);
        create(&mut again, &plan, workers, Some(&path), 2);
        again.update(1, 0, edges(2, -1));
        again.advance(3);
        assert_eq!(again.output(1).oks, saved.output(1).oks.split_off(&2));
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn net_output_goes_on() {
    let directory = directory("net-checkpoint");
    let path = directory.join("state");
    let mut random = Random::new(7);
    let plan = common::plans::reach(plan::Recursion::FixpointDistinct);
    let history = random_history(&mut random, TIMES);
    let net = || Host::with(Config { output: OutputForm::Net, ..config(1) });
    let (mut whole, mut half) = (net(), net());
    let cut = TIMES / 2;
    let part = |from, to| -> History {
        history.range(from..to).map(|(time, events)| (*time, events.clone())).collect()
    };
    for host in [&mut whole, &mut half] {
        create(host, &plan, 1, None, 1);
        feed(host, &part(1, cut), &[]);
        host.advance(cut);
    }
    save(&mut half, &path).unwrap();
    let mut rest = net();
    create(&mut rest, &plan, 1, Some(&path), cut);
    for host in [&mut whole, &mut rest] {
        feed(host, &part(cut, TIMES), &[]);
        host.advance(TIMES);
    }
    let later = |host: &Host| -> Vec<_> {
        host.output(1).oks.into_values().next_back().into_iter().collect()
    };
    assert_eq!(later(&whole), later(&rest));
    fs::remove_dir_all(&directory).unwrap();
}
