//! Recursions of which the best row by key is kept: shortest and widest paths in cyclic graphs, and trees of them, at
//! every time, against a program that knows nothing of plans.

mod common;

use common::plans::*;
use common::{config, Host, Random};
use engine::{StopReason, Time};
use plan::expr::Expr;
use plan::func::{Arithmetic, Blanks, Func, Number};
use plan::partition::SortKey;
use plan::row::Row;
use plan::value::Datum;
use plan::{Mfp, Plan, Recursion, ViewPlan};
use std::collections::{BTreeMap, BTreeSet};

const NODES: u64 = 12;
const TIMES: Time = 60;

/// Source, target, weight; a weight may be NULL.
type Edge = (i64, i64, Option<i64>);

/// What a path's value is made of its part's and an edge's weight, and which is kept.
#[derive(Clone, Copy, Debug)]
enum Path {
    /// The least sum; an unknown weight makes an unknown sum.
    Shortest,
    /// The greatest of the least weights, where all are known.
    Widest,
    /// The least sum, then the greatest node before; that there is none comes first.
    Tree,
}

fn paths(path: Path) -> ViewPlan {
    if matches!(path, Path::Tree) {
        return tree();
    }
    let (func, best, start) = match path {
        Path::Widest => (Func::Least(Blanks::Significant), SortKey::greatest(1, BIGINT), 1000),
        _ => (Func::Arithmetic(Arithmetic::Add, Number::Int8), SortKey::least(1, BIGINT), 0),
    };
    let base = Plan::Constant { arity: 2, rows: vec![(row(&[0, start]), 1)] };
    let next = Expr::Call { func, args: vec![col(1), col(4)] };
    let is_known = Expr::Not(Box::new(Expr::IsNull(Box::new(col(4)))));
    let filter = match path {
        Path::Widest => vec![is_known],
        _ => vec![],
    };
    let closure = Mfp { input_arity: 5, maps: vec![next], filter, project: vec![3, 5] };
    let step = join((get(0), 0), (source(0), 0), closure);
    let adds = matches!(path, Path::Shortest);
    let recursion = Recursion::FixpointExtreme { key: vec![0], order: vec![best], adds };
    view(&[3], letrec(0, recursion, base, step, get(0)), 2)
}

/// The node before, the node, the value.
fn tree() -> ViewPlan {
    let root = Row::pack(&[Datum::Null, Datum::Int8(0), Datum::Int8(0)]);
    let base = Plan::Constant { arity: 3, rows: vec![(root, 1)] };
    let add = Func::Arithmetic(Arithmetic::Add, Number::Int8);
    let next = Expr::Call { func: add, args: vec![col(2), col(5)] };
    let closure = Mfp { input_arity: 6, maps: vec![next], filter: vec![], project: vec![1, 4, 6] };
    let step = join((get(0), 1), (source(0), 0), closure);
    let nodes = SortKey { descending: true, nulls_first: true, ..SortKey::ascending(0, BIGINT) };
    let order = vec![SortKey::least(2, BIGINT), nodes];
    let recursion = Recursion::FixpointExtreme { key: vec![1], order, adds: true };
    view(&[3], letrec(0, recursion, base, step, get(0)), 3)
}

fn expect(path: Path, edges: &BTreeMap<Edge, i64>) -> BTreeMap<Row, i64> {
    let best = best_values(path, edges);
    let datum = |value: Option<i64>| value.map_or(Datum::Null, Datum::Int8);
    let row = |(node, value): (&i64, &Option<i64>)| {
        let (node_datum, value_datum) = (Datum::Int8(*node), datum(*value));
        if !matches!(path, Path::Tree) {
            return Row::pack(&[node_datum, value_datum]);
        }
        let leads_here = |edge: &&Edge| {
            let before = best.get(&edge.0);
            let sum = before.map(|before| before.zip(edge.2).map(|(value, weight)| value + weight));
            edge.1 == *node && sum == Some(*value)
        };
        let before = match (node, value) {
            (0, Some(0)) => None,
            _ => edges.keys().filter(leads_here).map(|edge| edge.0).max(),
        };
        Row::pack(&[datum(before), node_datum, value_datum])
    };
    best.iter().map(|entry| (row(entry), 1)).collect()
}

/// The value of the best path to each node, by trying all edges until nothing improves.
fn best_values(path: Path, edges: &BTreeMap<Edge, i64>) -> BTreeMap<i64, Option<i64>> {
    // The unknown value is worse than any.
    let mut best: BTreeMap<i64, Option<i64>> = BTreeMap::new();
    best.insert(0, Some(if matches!(path, Path::Widest) { 1000 } else { 0 }));
    loop {
        let mut improved = false;
        for (source, target, weight) in edges.keys() {
            let Some(value) = best.get(source).copied() else { continue };
            let next = match path {
                Path::Widest if weight.is_none() => continue,
                Path::Widest => value.min(*weight),
                _ => value.zip(*weight).map(|(value, weight)| value + weight),
            };
            let is_better = match best.get(target) {
                None => true,
                Some(None) => next.is_some(),
                Some(Some(known)) => next.is_some_and(|next| match path {
                    Path::Widest => next > *known,
                    _ => next < *known,
                }),
            };
            if is_better {
                best.insert(*target, next);
                improved = true;
            }
        }
        if !improved {
            return best;
        }
    }
}

/// Edges with their copies, after each time; half of the changes delete.
fn random_history(random: &mut Random) -> Vec<BTreeMap<Edge, i64>> {
    let mut edges: BTreeMap<Edge, i64> = BTreeMap::new();
    let mut history = vec![];
    for time in 0..TIMES {
        for _ in 0..if time == 0 { 30 } else { 1 + random.below(3) } {
            let present: Vec<Edge> = edges.keys().copied().collect();
            if random.below(2) == 0 && !present.is_empty() {
                let edge = present[random.below(present.len() as u64) as usize];
                let copies = edges.entry(edge).or_default();
                *copies -= 1;
                if *copies == 0 {
                    edges.remove(&edge);
                }
            } else {
                let weight = match random.below(8) {
                    0 => None,
                    // The order of encoded integers is not that of their values.
                    1 => Some(random.below(100_000) as i64),
                    _ => Some(random.below(4) as i64),
                };
                let (source, target) = (random.below(NODES) as i64, random.below(NODES) as i64);
                *edges.entry((source, target, weight)).or_default() += 1;
            }
        }
        history.push(edges.clone());
    }
    history
}

fn check(path: Path, history: &[BTreeMap<Edge, i64>], workers: usize, batch: usize) {
    let mut host = Host::with(config(workers));
    host.create(1, &paths(path), 1);
    let mut before = BTreeMap::new();
    for (index, edges) in history.iter().enumerate() {
        let time = index as Time + 1;
        let touched: BTreeSet<&Edge> = edges.keys().chain(before.keys()).collect();
        let copies = |edges: &BTreeMap<Edge, i64>, edge| edges.get(edge).copied().unwrap_or(0);
        let updates = touched.into_iter().map(|edge| {
            let weight = edge.2.map_or(Datum::Null, Datum::Int8);
            let row = Row::pack(&[Datum::Int8(edge.0), Datum::Int8(edge.1), weight]);
            (row, time, copies(edges, edge) - copies(&before, edge))
        });
        host.update(1, 0, updates.filter(|(.., diff)| *diff != 0).collect());
        before = edges.clone();
        if (index + 1) % batch == 0 {
            host.advance(time + 1);
        }
    }
    host.advance(history.len() as Time + 1);
    for (index, edges) in history.iter().enumerate() {
        let (rows, errs) = host.output(1).at(index as Time + 1);
        assert!(errs.is_empty());
        assert_eq!(rows, expect(path, edges), "{path:?} time {} {workers} {batch}", index + 1);
    }
}

#[test]
fn best_paths_in_cyclic_graphs_are_right_at_every_time() {
    for seed in 0..12 {
        let history = random_history(&mut Random::new(seed));
        for path in [Path::Shortest, Path::Widest, Path::Tree] {
            for (workers, batch) in [(1, 1), (1, 7), (1, 1000), (2, 1), (2, 13)] {
                check(path, &history, workers, batch);
            }
        }
    }
}

#[test]
fn as_many_rounds_as_there_are_nodes_are_not_endless() {
    // The more steps the shorter: every node's path becomes shorter in each of its rounds.
    const LENGTH: i64 = 80;
    let pairs = (0..LENGTH).flat_map(|a| (a + 1..LENGTH).map(move |b| (a, b)));
    let all: BTreeMap<Edge, i64> =
        pairs.map(|(a, b)| ((a, b, Some((b - a) * (b - a))), 1)).collect();
    let without = |edge: Edge| all.iter().filter(move |(e, _)| **e != edge).map(|(e, n)| (*e, *n));
    let last = (LENGTH - 2, LENGTH - 1, Some(1));
    // Then all paths get longer, then there are none, then all are as they were.
    let none = BTreeMap::new();
    let history = [
        all.clone(),
        without((0, 1, Some(1))).collect(),
        none,
        all.clone(),
        without(last).collect(),
    ];
    for (workers, batch) in [(1, 1), (1, 5), (2, 2)] {
        check(Path::Shortest, &history, workers, batch);
        check(Path::Tree, &history, workers, batch);
    }
}

#[test]
fn a_path_that_becomes_better_for_ever_is_stopped() {
    for (workers, path) in [(1, Path::Shortest), (2, Path::Shortest), (1, Path::Tree)] {
        let mut host = Host::new(workers);
        host.create(1, &paths(path), 1);
        let ring = (0..NODES as i64).map(|n| (row(&[n, (n + 1) % NODES as i64, 1]), 1, 1));
        host.update(1, 0, ring.collect());
        host.advance(2);
        assert_eq!(host.rows(1).len(), NODES as usize);
        host.update(1, 0, vec![(row(&[7, 3, -5]), 2, 1)]);
        host.advance(3);
        let reason = host.stopped.values().next().cloned();
        // Far from the limit of the recursion: soon after there were more rounds than nodes.
        let is_soon = matches!(reason, Some(StopReason::Endless { iteration: ..100 }));
        assert!(is_soon, "{reason:?}");
    }
}
