//! One dataflow on threads of this process and spread over engines that are processes, in turn: what the same plan gains by a second
//! thread or process.

use std::fmt;

use anyhow::Result;
use engine::{Config, Embedded, Engine};
use engine_process::{Cluster, Secret};
use harness::engines::Engines;
use harness::installation::{Build, PrivateInstallation};
use harness::timing::median;
use serde_json::json;

use crate::compare::{ensure_equal, Ratio};
use crate::entry::{Entry, Size};
use crate::record::Recorder;
use crate::run::Run;

pub const NAME: &str = "engine/spread";

/// Where a dataflow runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In so many threads of this process.
    Threads(usize),
    /// In so many processes that listen, with a thread each.
    Processes(usize),
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Placement::Threads(1) => write!(f, "1 thread"),
            Placement::Threads(count) => write!(f, "{count} threads"),
            Placement::Processes(1) => write!(f, "1 process"),
            Placement::Processes(count) => write!(f, "{count} processes"),
        }
    }
}

const PLACEMENTS: [Placement; 4] = [
    Placement::Threads(1),
    Placement::Threads(2),
    Placement::Processes(1),
    Placement::Processes(2),
];

/// What is to be measured.
pub struct Extent<'a> {
    pub size: Size,
    pub batches: &'a [u64],
    pub pairs: usize,
    pub swaps: u64,
}

/// Prints a line per batch size: the time of each placement over that of one thread, and of two processes over one.
pub fn measure(
    build: &Build,
    entry: &Entry,
    extent: &Extent,
    recorder: &mut Recorder,
) -> Result<()> {
    let private = PrivateInstallation::create(build)?;
    let engines = Engines::start(&private.installation, private.folder(), 2)?;
    let secret = Secret::read(engines.secret())?;
    let start = |placement: Placement| {
        let workload = entry.workload(extent.size);
        Run::load(
            workload.load_size(),
            workload.start_on(placement.workers(), &|config| {
                Ok(match placement {
                    Placement::Threads(_) => Box::new(Embedded::start(config)) as Box<dyn Engine>,
                    Placement::Processes(count) => {
                        let addresses = &engines.addresses()[..count];
                        let config = Config { workers: 1, ..config };
                        Box::new(Cluster::start(addresses, &secret, &config)?)
                    }
                })
            })?,
        )
    };
    let mut runs = PLACEMENTS.map(start).into_iter().collect::<Result<Vec<Run>>>()?;
    for batch in extent.batches {
        let rounds = (extent.swaps / batch).max(1);
        let mut seconds: [Vec<f64>; PLACEMENTS.len()] = Default::default();
        for _ in 0..extent.pairs {
            for ((run, seconds), placement) in runs.iter_mut().zip(&mut seconds).zip(PLACEMENTS) {
                let segment = run.batches(*batch, rounds)?;
                seconds.push(segment.elapsed.as_secs_f64());
                recorder.write(&json!({
                    "kind": "spread", "name": entry.name, "nodes": extent.size.nodes, "edges": extent.size.edges,
                    "placement": placement.to_string(), "batch": batch, "swaps": segment.swaps,
                    "swaps_per_second": segment.swaps_per_second(),
                }))?;
            }
        }
        print!("{:<14} batches of {batch:>7}:", entry.name);
        for (placement, own) in PLACEMENTS.iter().zip(&seconds) {
            let rate = (batch * rounds) as f64 / median(own);
            print!("  {placement} {rate:>9.0}/s ({})", Ratio::of_pairs(own, &seconds[0]));
        }
        println!(
            "  2 processes are {:.2} times as fast as 1",
            1.0 / Ratio::of_pairs(&seconds[3], &seconds[2]).median
        );
    }
    for run in &runs[1..] {
        ensure_equal(entry, &runs[0].checksums, &run.checksums, runs[0].frontier())?;
    }
    Ok(())
}

impl Placement {
    /// Threads of a dataflow.
    fn workers(self) -> usize {
        match self {
            Placement::Threads(count) | Placement::Processes(count) => count,
        }
    }
}
