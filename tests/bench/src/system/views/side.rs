//! A server with a number of views over the orders, or with none, under the load.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use harness::cluster::Cluster;
use harness::load::Load;
use postgres::Client;

use super::super::memory::Memory;
use super::super::orders;
use super::followed::{Followed, Latencies};

pub struct Side<'a> {
    pub views: u32,
    orders: u32,
    cluster: &'a Cluster,
    load: Load,
    control: Client,
    pub followed: Option<Followed>,
    /// Transactions per second, run by run.
    pub rates: Vec<f64>,
    /// From the end of the load until all views are fresh.
    pub delays: Vec<Duration>,
    /// After all views have come to follow their tables.
    pub attached: Option<Memory>,
    /// After each run and its catching up.
    pub loaded: Vec<Memory>,
    pub latencies: Option<Latencies>,
    /// When the worker has nothing more to give back.
    pub rested: Option<Memory>,
}

impl Side<'_> {
    pub fn create<'a>(
        cluster: &'a Cluster,
        folder: &Path,
        views: u32,
        orders: u32,
    ) -> Result<Side<'a>> {
        let mut control = cluster.connect("postgres")?;
        orders::create_tables(&mut control, orders)?;
        let mut followed = None;
        if views > 0 {
            let queries = (0..views).map(orders::filtered);
            followed = Some(Followed::create(cluster.connect("postgres")?, queries)?);
        }
        let load = orders::load(folder, orders)?;
        let (rates, delays, loaded, latencies) = (vec![], vec![], vec![], None);
        let mut side = Side {
            views,
            orders,
            cluster,
            load,
            control,
            followed,
            rates,
            delays,
            attached: None,
            loaded,
            latencies,
            rested: None,
        };
        side.attached = side.memory()?;
        // Warms the caches, and the pages have free space afterwards, as they always do in the end.
        side.load.run(cluster, 1)?;
        side.catch_up()?;
        Ok(side)
    }

    pub fn run(&mut self, seconds: u32) -> Result<()> {
        // Dead rows of the runs before are no part of this one.
        self.control.batch_execute("VACUUM orders")?;
        self.catch_up()?;
        self.rates.push(self.load.run(self.cluster, seconds)?);
        let delay = self.catch_up()?;
        self.delays.push(delay);
        let memory = self.memory()?;
        self.loaded.extend(memory);
        Ok(())
    }

    pub fn follow(&mut self, changes: u32) -> Result<()> {
        if let Some(followed) = &mut self.followed {
            self.latencies = Some(followed.follow(self.orders, changes)?);
        }
        Ok(())
    }

    pub fn memory(&mut self) -> Result<Option<Memory>> {
        self.followed.as_mut().map(|followed| Memory::read(&mut followed.client)).transpose()
    }

    fn catch_up(&mut self) -> Result<Duration> {
        self.followed.as_mut().map_or(Ok(Duration::ZERO), Followed::wait)
    }
}
