//! Cost per transaction when many single-row transactions, each with its own time, come in one batch:
//! `cargo run --release -p engine --example many_times [edges]`

#[path = "../tests/common/mod.rs"]
mod common;

use common::plans::*;
use common::{Host, Random};
use plan::Recursion;
use std::time::Instant;

fn main() {
    let edges = std::env::args().nth(1).map_or(100_000, |a| a.parse().expect("a number"));
    for form in [Recursion::FixpointDistinct, Recursion::WorkingTableDistinct { key: vec![col(0)] }]
    {
        for batch in [1, 10, 100, 1000, 10_000] {
            run(edges, form.clone(), batch);
        }
    }
}

fn run(edges: u64, form: Recursion, batch: u64) {
    let mut random = Random::new(edges);
    let nodes = edges / 3;
    let graph: Vec<[i64; 2]> =
        (0..edges).map(|_| [random.below(nodes) as i64, random.below(nodes) as i64]).collect();
    let mut host = Host::new(1);
    println!("{form:?}, {edges} edges, batches of {batch}:");
    host.create(1, &reach(form), 1);
    host.update(1, 0, graph.iter().map(|edge| (row(edge), 1, 1)).collect());
    host.update(1, 1, vec![(row(&graph[0][..1]), 1, 1)]);
    host.advance(2);
    host.outputs.clear();
    let mut time = 2;
    let start = Instant::now();
    let rounds = (1000 / batch).max(1);
    for _ in 0..rounds {
        for _ in 0..batch {
            let edge = graph[random.below(edges) as usize];
            host.update(1, 0, vec![(row(&edge), time, -1), (row(&edge), time + 1, 1)]);
            time += 2;
        }
        host.advance(time);
    }
    println!("  {:?} per transaction", start.elapsed() / (2 * batch * rounds) as u32);
}
