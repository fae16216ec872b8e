//! What is computed with an engine, wherever it is.
#![allow(dead_code)] // Every test file uses its own part of it.

#[path = "../../../tests/common/plans.rs"]
pub mod plans;

use engine::{Config, DataflowId, Engine, Form, OutputForm, Response, StopReason, Time};
use plan::row::Row;
use plan::{Diff, Recursion, SourceId, ViewPlan};
use plans::{reach, row, source, view};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest time that anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

pub const LOWER: DataflowId = DataflowId(1);
pub const UPPER: DataflowId = DataflowId(2);

pub fn config() -> Config {
    Config {
        workers: 1,
        max_recursion: 100,
        memory_limit: 0,
        spill: None,
        output: OutputForm::Net,
        waker: Arc::new(|| {}),
        thread_start: Arc::new(|_| {}),
    }
}

/// What has come of an engine.
#[derive(Default)]
pub struct Outcome {
    pub rows: BTreeMap<(DataflowId, Row), Diff>,
    pub frontiers: BTreeMap<DataflowId, Time>,
    pub stopped: Vec<(DataflowId, StopReason)>,
    pub ended: Option<String>,
}

impl Outcome {
    pub fn take(&mut self, engine: &mut dyn Engine) {
        for response in engine.poll() {
            match response {
                Response::Deltas { dataflow, oks, .. } => {
                    for (row, _, diff) in oks {
                        *self.rows.entry((dataflow, row)).or_default() += diff;
                    }
                    self.rows.retain(|_, count| *count != 0);
                }
                Response::Frontier { dataflow, time } => {
                    self.frontiers.insert(dataflow, time);
                }
                Response::Stopped { dataflow, reason } => self.stopped.push((dataflow, reason)),
                Response::Saved { .. } => panic!("nothing is to be saved"),
                Response::Evaluate(_) => panic!("nothing is to be asked"),
                Response::Ended { reason } => self.ended = Some(reason),
            }
        }
    }

    pub fn wait(&mut self, engine: &mut dyn Engine, is_there: impl Fn(&Outcome) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_there(self) {
            assert!(Instant::now() < until, "waited for too long");
            self.take(engine);
            thread::sleep(Duration::from_millis(1));
        }
    }
}

pub fn create(engine: &mut dyn Engine, id: DataflowId, plan: &ViewPlan) {
    engine.create_reading(id, (plan, Form::of(plan)), &[], 1);
}

/// Random changes of a graph, what can be reached in it, and a view over that, which comes later.
pub fn run(engine: &mut dyn Engine) -> Vec<BTreeMap<(DataflowId, Row), Diff>> {
    let lower = reach(Recursion::FixpointDistinct);
    let mut outcome = Outcome::default();
    create(engine, LOWER, &lower);
    engine.update(LOWER, SourceId(1), vec![(row(&[0]), 1, 1)]);
    let mut number = 1_u64;
    let mut next = |below: u64| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (number >> 33) % below
    };
    let mut edges: Vec<[i64; 2]> = Vec::new();
    let mut all = Vec::new();
    for time in 2..60 {
        let mut updates = Vec::new();
        for _ in 0..20 {
            match next(3) {
                0 if !edges.is_empty() => {
                    let gone = edges.swap_remove(next(edges.len() as u64) as usize);
                    updates.push((row(&gone), time, -1));
                }
                _ => {
                    edges.push([next(30) as i64, next(30) as i64]);
                    updates.push((row(&edges[edges.len() - 1]), time, 1));
                }
            }
        }
        engine.update(LOWER, SourceId(0), updates);
        engine.advance(time + 1);
        if time == 30 {
            // What the lower one has put out is on its way, or not polled.
            let upper = view(&[1], source(0), 1);
            engine.create_reading(UPPER, (&upper, Form::of(&upper)), &[], time + 1);
            let seen = outcome.rows.iter().filter(|((of, _), _)| *of == LOWER);
            let seen = seen.map(|((_, row), count)| (row.clone(), time, *count)).collect();
            engine.connect(LOWER, (UPPER, SourceId(0)), vec![0], &seen);
            engine.advance(time + 1);
        }
        if time % 7 == 0 || time > 50 {
            let is_through = |id, of: &Outcome| of.frontiers.get(&id) == Some(&(time + 1));
            outcome
                .wait(engine, |of| is_through(LOWER, of) && (time < 30 || is_through(UPPER, of)));
            all.push(outcome.rows.clone());
        }
    }
    all
}
