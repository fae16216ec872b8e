//! The list of workloads with their sizes, their types forgotten.

use std::sync::Arc;

use anyhow::Result;
use engine::{Config, Engine};

use crate::graph::{Edges, RandomGraph};
use crate::hand_side::HandSide;
use crate::programs::{Closure, Degrees, Distances, Join3, Labels, Reach};
use crate::sql_side::SqlSide;
use crate::workload::{History, Side, SideName, Workload};

/// Size of a workload's base tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub nodes: u64,
    pub edges: u64,
}

/// A workload by name.
pub struct Entry {
    pub name: &'static str,
    /// For timing; the first is the default.
    pub sizes: &'static [Size],
    /// For the short mode and for comparing checksums.
    pub quick_size: Size,
    workload: fn(Size) -> Box<dyn Startable>,
}

impl Entry {
    pub fn workload(&self, size: Size) -> Box<dyn Startable> {
        (self.workload)(size)
    }
}

/// How an engine is started.
pub type StartEngine<'a> = dyn Fn(Config) -> Result<Box<dyn Engine>> + 'a;

/// A workload that can be started on either side.
pub trait Startable {
    fn start(&self, side: SideName, workers: usize) -> Result<Box<dyn Side>>;
    /// SQL, on so many threads of an engine that is started so.
    fn start_on(&self, workers: usize, start: &StartEngine) -> Result<Box<dyn Side>>;
    fn load_size(&self) -> u64;
    fn about(&self) -> String;
}

impl<W: Workload> Startable for Arc<W> {
    fn start(&self, side: SideName, workers: usize) -> Result<Box<dyn Side>> {
        let workload = Arc::clone(self);
        Ok(match side {
            SideName::Hand => Box::new(HandSide::start(workload, workers)?),
            SideName::Sql => Box::new(SqlSide::start(workload, workers)?),
        })
    }

    fn start_on(&self, workers: usize, start: &StartEngine) -> Result<Box<dyn Side>> {
        Ok(Box::new(SqlSide::start_on(Arc::clone(self), workers, start)?))
    }

    fn load_size(&self) -> u64 {
        self.history().load_size()
    }

    fn about(&self) -> String {
        W::about(self)
    }
}

const fn size(nodes: u64, edges: u64) -> Size {
    Size { nodes, edges }
}

const SEED: u64 = 1;

/// All workloads, in the order in which they run.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "engine/E1",
        sizes: &[size(1_000, 2_000), size(1_000_000, 10_000_000)],
        quick_size: size(60, 120),
        workload: |size| Box::new(Arc::new(Distances::new(edges(size)))),
    },
    Entry {
        name: "engine/E2",
        sizes: &[size(1_000_000, 5_000_000), size(10_000_000, 50_000_000)],
        quick_size: size(1_000, 5_000),
        workload: |size| Box::new(Arc::new(Degrees { edges: edges(size) })),
    },
    Entry {
        name: "engine/reach",
        sizes: &[size(100_000, 200_000), size(1_000_000, 10_000_000)],
        quick_size: size(100, 200),
        workload: |size| Box::new(Arc::new(Reach { edges: edges(size) })),
    },
    Entry {
        name: "engine/labels",
        sizes: &[size(64_000, 280_000), size(640_000, 2_800_000)],
        quick_size: size(100, 300),
        workload: |size| Box::new(Arc::new(Labels { edges: edges(size) })),
    },
    Entry {
        name: "engine/tc",
        sizes: &[size(100_000, 80_000), size(1_000_000, 800_000)],
        quick_size: size(100, 80),
        workload: |size| Box::new(Arc::new(Closure { edges: edges(size) })),
    },
    Entry {
        name: "engine/join3",
        sizes: &[size(50_000, 1_000_000), size(500_000, 10_000_000)],
        quick_size: size(50, 1_000),
        workload: |size| Box::new(Arc::new(Join3 { customers: size.nodes, items: size.edges })),
    },
];

fn edges(size: Size) -> Edges {
    Edges { graph: RandomGraph { nodes: size.nodes, seed: SEED }, count: size.edges }
}

/// The workload of the open loop and of the closed loop's main figure.
pub fn out_degrees() -> &'static Entry {
    let entry = ENTRIES.iter().find(|entry| entry.name == "engine/E2");
    entry.expect("the list has it")
}
