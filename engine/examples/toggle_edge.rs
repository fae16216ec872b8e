//! Cost of deleting and re-inserting one edge of a random cyclic graph, by size of the graph:
//! `cargo run --release -p engine --example toggle_edge [edges …]`

#[path = "../tests/common/mod.rs"]
mod common;

use common::plans::*;
use common::Host;
use engine::memory::{allocated, CountingAllocator};
use engine::Engine;
use plan::Recursion;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const TOGGLES: usize = 100;

fn main() {
    let sizes: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().expect("a number")).collect();
    let sizes = if sizes.is_empty() { vec![10_000, 100_000, 1_000_000] } else { sizes };
    for edges in sizes {
        run(edges);
    }
}

fn run(edges: u64) {
    let mut random = common::Random::new(edges);
    // Three edges per node: nearly all nodes can be reached, over many cycles.
    let nodes = edges / 3;
    let graph: Vec<[i64; 2]> =
        (0..edges).map(|_| [random.below(nodes) as i64, random.below(nodes) as i64]).collect();
    let mut host = Host::new(1);
    let before = allocated();
    host.create(1, &reach(Recursion::FixpointDistinct), 1);
    let start = Instant::now();
    host.update(1, 0, graph.iter().map(|edge| (row(edge), 1, 1)).collect());
    host.update(1, 1, vec![(row(&graph[0][..1]), 1, 1)]);
    host.advance(2);
    let load = start.elapsed();
    let rows = host.rows(1).len();
    let bytes = allocated() - before;
    host.outputs.clear();
    let mut times: Vec<Duration> = Vec::new();
    let mut time = 2;
    for _ in 0..TOGGLES {
        let edge = graph[random.below(edges) as usize];
        for diff in [-1, 1] {
            let start = Instant::now();
            host.update(1, 0, vec![(row(&edge), time, diff)]);
            time += 1;
            host.advance(time);
            times.push(start.elapsed());
        }
    }
    times.sort();
    println!(
        "{edges} edges: {rows} rows in {load:?}, {} MB; toggle median {:?}, p90 {:?}, max {:?}; {:?}",
        bytes >> 20,
        times[times.len() / 2],
        times[times.len() * 9 / 10],
        times[times.len() - 1],
        host.engine.stats(engine::DataflowId(1)),
    );
}
