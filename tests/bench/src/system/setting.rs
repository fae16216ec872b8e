//! What a benchmark of the whole path is told, and what each does before and after it measures.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Result};
use harness::cluster::{Cluster, Settings};
use harness::installation::Build;
use harness::throwaway::{with_cluster, with_clusters, LARGE};
use postgres::Client;

use crate::extent::Extent;

/// What a benchmark is told.
pub struct Setting<'a> {
    pub build: &'a Build,
    pub extent: &'a Extent,
    pub output: &'a Path,
}

impl Setting<'_> {
    /// Runs `body` with a fresh cluster that has room for measurements.
    pub fn with_cluster<T>(
        &self,
        settings: Settings,
        body: impl FnOnce(&mut Cluster, &Path) -> Result<T>,
    ) -> Result<T> {
        let settings: Vec<_> = LARGE.iter().chain(settings).copied().collect();
        with_cluster(self.build, &settings, body)
    }

    /// The same with a cluster for each of the names: what a server does beside its load falls on no other.
    pub fn with_clusters<T>(
        &self,
        names: &[String],
        settings: Settings,
        body: impl FnOnce(&[Cluster], &Path) -> Result<T>,
    ) -> Result<T> {
        let settings: Vec<_> = LARGE.iter().chain(settings).copied().collect();
        with_clusters(self.build, &settings, names, body)
    }

    pub fn is_quick(&self) -> bool {
        self.extent.quick
    }

    pub fn choose<T>(&self, full: T, quick: T) -> T {
        if self.is_quick() {
            quick
        } else {
            full
        }
    }

    /// Rows of the largest base table.
    pub fn rows(&self, full: u32, quick: u32) -> u32 {
        self.extent.rows.unwrap_or(self.choose(full, quick))
    }

    pub fn rates(&self, full: &[u64], quick: &[u64]) -> Vec<u64> {
        self.extent.rates.clone().unwrap_or_else(|| self.choose(full, quick).to_vec())
    }

    /// Repetitions, with the short mode's own number.
    pub fn pairs(&self) -> usize {
        self.choose(self.extent.pairs, 1)
    }

    /// Sizes of tables, ascending.
    pub fn sizes(&self, full: &[u32], quick: &[u32]) -> Vec<u32> {
        self.extent.sizes.clone().unwrap_or_else(|| self.choose(full, quick).to_vec())
    }

    /// Numbers of views, ascending.
    pub fn views(&self, full: &[u32], quick: &[u32]) -> Vec<u32> {
        self.extent.views.clone().unwrap_or_else(|| self.choose(full, quick).to_vec())
    }

    pub fn duration(&self, full: f64, quick: f64) -> Result<Duration> {
        let seconds = self.extent.seconds.unwrap_or(self.choose(full, quick));
        Ok(Duration::try_from_secs_f64(seconds)?)
    }
}

/// Waits until the views have everything committed so far.
pub fn wait_for_views(client: &mut Client) -> Result<()> {
    let row = client.query_one(
        "SELECT eddy.wait_for_lsn(pg_current_wal_insert_lsn(), interval '10 minutes')",
        &[],
    )?;
    ensure!(row.get::<_, bool>(0), "the views did not become current within 10 minutes");
    Ok(())
}

/// A measurement of a view that is wrong says nothing.
pub fn verify(client: &mut Client, view: &str) -> Result<()> {
    let row = client.query_one(&format!("SELECT * FROM eddy.verify_view('{view}')"), &[])?;
    let (missing, surplus): (i64, i64) = (row.get(0), row.get(1));
    ensure!(missing == 0 && surplus == 0, "{view}: {missing} rows missing, {surplus} surplus");
    Ok(())
}
