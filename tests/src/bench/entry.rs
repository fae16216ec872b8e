//! The list of workloads with their sizes, their types forgotten.

use std::sync::Arc;

use anyhow::Result;

use super::graph::RandomGraph;
use super::hand_side::HandSide;
use super::programs::Degrees;
use super::sql_side::SqlSide;
use super::workload::{Side, SideName, Workload};

/// Size of a workload's base tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub nodes: u64,
    pub edges: u64,
}

/// A workload by name.
pub struct Entry {
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
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

    /// `name` may be `engine`, `engine/E2` or `E2`.
    pub fn is_named(&self, name: &str) -> bool {
        let short = self.name.rsplit('/').next();
        self.name == name || short == Some(name) || self.name.split('/').next() == Some(name)
    }
}

/// A workload that can be started on either side.
pub trait Startable {
    fn start(&self, side: SideName, workers: usize) -> Result<Box<dyn Side>>;
    fn load_size(&self) -> u64;
}

impl<W: Workload> Startable for Arc<W> {
    fn start(&self, side: SideName, workers: usize) -> Result<Box<dyn Side>> {
        let workload = Arc::clone(self);
        Ok(match side {
            SideName::Hand => Box::new(HandSide::start(workload, workers)?),
            SideName::Sql => Box::new(SqlSide::start(workload, workers)?),
        })
    }

    fn load_size(&self) -> u64 {
        W::load_size(self)
    }
}

const fn size(nodes: u64, edges: u64) -> Size {
    Size { nodes, edges }
}

const SEED: u64 = 1;

/// All workloads, in the order in which they run.
pub const ENTRIES: &[Entry] = &[Entry {
    name: "engine/E2",
    about: "number of nodes of each out-degree",
    sizes: &[size(1_000_000, 5_000_000), size(10_000_000, 50_000_000)],
    quick_size: size(1_000, 5_000),
    workload: |size| {
        let graph = RandomGraph { nodes: size.nodes, seed: SEED };
        Box::new(Arc::new(Degrees { graph, edges: size.edges }))
    },
}];
