//! `system/*`: what the whole path costs, from a COMMIT through the WAL, the dataflows and the view's
//! heap to a reader, in throwaway clusters.

mod activity;
mod apply;
mod attach;
mod changes;
mod checkpoints;
mod growth;
mod latency;
mod memory;
mod orders;
mod peers;
mod permissions;
mod pgbench;
mod setting;
mod start;
mod subject;
mod throughput;
mod ttc;
mod views;
mod writers;

use anyhow::Result;
use harness::installation::Build;

use crate::extent::Extent;
use crate::record::{Output, Recorder};
use setting::Setting;

/// A benchmark of the whole path.
pub struct System {
    pub name: &'static str,
    measure: fn(&Setting, &mut Recorder) -> Result<()>,
}

/// All of them, in the order in which they run.
pub const ALL: &[System] = &[
    System { name: latency::NAME, measure: latency::measure },
    System { name: throughput::NAME, measure: throughput::measure },
    System { name: writers::NAME, measure: writers::measure },
    System { name: views::NAME, measure: views::measure },
    System { name: growth::NAME, measure: growth::measure },
    System { name: ttc::NAME, measure: ttc::measure },
    System { name: permissions::NAME, measure: permissions::measure },
    System { name: apply::NAME, measure: apply::measure },
    System { name: changes::NAME, measure: changes::measure },
    System { name: attach::NAME, measure: attach::measure },
    System { name: start::NAME, measure: start::measure },
    System { name: checkpoints::NAME, measure: checkpoints::measure },
    System { name: peers::NAME, measure: peers::measure },
];

impl System {
    pub fn run(&self, build: &Build, extent: &Extent, output: &Output) -> Result<()> {
        let mut recorder = Recorder::create(output, self.name)?;
        let setting = Setting { build, extent, output: &output.folder };
        (self.measure)(&setting, &mut recorder)
    }
}
