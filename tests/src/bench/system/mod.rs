//! `system/*`: what the whole path costs, from a COMMIT through the WAL, the dataflows and the view's
//! heap to a reader, in throwaway clusters.

mod activity;
mod attach;
mod growth;
mod latency;
mod peers;
mod pgbench;
mod subject;
mod throughput;
mod writers;

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Result};
use postgres::Client;

use super::record::{Output, Recorder};
use super::Extent;
use crate::cluster::{Cluster, Settings};
use crate::installation::Build;

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
    System { name: growth::NAME, measure: growth::measure },
    System { name: attach::NAME, measure: attach::measure },
    System { name: peers::NAME, measure: peers::measure },
];

/// What a benchmark is told.
pub struct Setting<'a> {
    pub build: &'a Build,
    pub extent: &'a Extent,
    /// Folder for plots.
    pub output: &'a Path,
}

impl System {
    pub fn run(&self, build: &Build, extent: &Extent, output: &Output) -> Result<()> {
        let mut recorder = Recorder::create(output, self.name)?;
        let setting = Setting { build, extent, output: &output.folder };
        (self.measure)(&setting, &mut recorder)
    }
}

impl Setting<'_> {
    /// Runs `body` with a fresh cluster that has room for measurements.
    fn with_cluster<T>(
        &self,
        settings: Settings,
        body: impl FnOnce(&mut Cluster, &Path) -> Result<T>,
    ) -> Result<T> {
        let settings: Vec<_> = crate::LARGE.iter().chain(settings).copied().collect();
        crate::with_cluster(self.build, &settings, body)
    }

    fn is_quick(&self) -> bool {
        self.extent.quick
    }

    fn choose<T>(&self, full: T, quick: T) -> T {
        if self.is_quick() {
            quick
        } else {
            full
        }
    }

    /// Rows of the largest base table.
    fn rows(&self, full: u32, quick: u32) -> u32 {
        self.extent.rows.unwrap_or(self.choose(full, quick))
    }

    fn rates(&self, full: &[u64], quick: &[u64]) -> Vec<u64> {
        self.extent.rates.clone().unwrap_or_else(|| self.choose(full, quick).to_vec())
    }

    /// Repetitions, with the short mode's own number.
    fn pairs(&self) -> usize {
        self.choose(self.extent.pairs, 1)
    }

    /// Sizes of tables, ascending.
    fn sizes(&self, full: &[u32], quick: &[u32]) -> Vec<u32> {
        self.extent.sizes.clone().unwrap_or_else(|| self.choose(full, quick).to_vec())
    }

    fn duration(&self, full: f64, quick: f64) -> Result<Duration> {
        let seconds = self.extent.seconds.unwrap_or(self.choose(full, quick));
        Ok(Duration::try_from_secs_f64(seconds)?)
    }
}

/// Waits until the views have everything committed so far.
fn wait_for_views(client: &mut Client) -> Result<()> {
    let row = client.query_one(
        "SELECT eddy.wait_for_lsn(pg_current_wal_insert_lsn(), interval '10 minutes')",
        &[],
    )?;
    ensure!(row.get::<_, bool>(0), "the views did not become current within 10 minutes");
    Ok(())
}

/// A measurement of a view that is wrong says nothing.
fn verify(client: &mut Client, view: &str) -> Result<()> {
    let row = client.query_one(&format!("SELECT * FROM eddy.verify_view('{view}')"), &[])?;
    let (missing, surplus): (i64, i64) = (row.get(0), row.get(1));
    ensure!(missing == 0 && surplus == 0, "{view}: {missing} rows missing, {surplus} surplus");
    Ok(())
}
