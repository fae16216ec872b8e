//! Where scenarios run: installations of PostgreSQL with the extension, and a folder for their servers.

use std::path::Path;

use anyhow::Result;
use harness::cluster::{Cluster, Settings};
use harness::installation::{Build, Installation, PrivateInstallation};

/// Takes down the result of a check.
pub type Record<'a> = &'a mut dyn FnMut(&str, Result<()>);

/// Settings that every operation needs or bears: data that may be lost with the machine, and what pg_rewind asks for.
const SETTINGS: Settings = &[("fsync", "off"), ("wal_log_hints", "on"), ("wal_keep_size", "512MB")];

/// A PostgreSQL and the version it has.
pub struct Server {
    pub major: u32,
    private: PrivateInstallation,
}

pub struct Site {
    /// In the order of their versions.
    servers: Vec<Server>,
    /// Which of them the runner was built for.
    own: usize,
}

impl Site {
    pub fn prepare(build: &Build, others: impl Iterator<Item = Build>) -> Result<Site> {
        let mut servers = vec![Server::prepare(build)?];
        for other in others {
            servers.push(Server::prepare(&other)?);
        }
        let own = servers[0].major;
        servers.sort_by_key(|server| server.major);
        let own = servers.iter().position(|server| server.major == own).unwrap_or(0);
        Ok(Site { servers, own })
    }

    /// The version of the server that most scenarios are about.
    pub fn major(&self) -> u32 {
        self.servers[self.own].major
    }

    pub fn installation(&self) -> &Installation {
        &self.servers[self.own].private.installation
    }

    /// Folder for servers.
    pub fn folder(&self) -> &Path {
        self.servers[self.own].private.folder()
    }

    /// Makes a server with settings beyond those that all have here, and starts it.
    pub fn start(&self, name: &str, settings: Settings) -> Result<Cluster> {
        self.servers[self.own].start(self.folder(), name, settings)
    }

    /// From each version to the next, and from the first to the last; from the only one to itself.
    pub fn ways(&self) -> Vec<(&Server, &Server)> {
        let mut ways: Vec<(&Server, &Server)> =
            self.servers.windows(2).map(|pair| (&pair[0], &pair[1])).collect();
        let (first, last) = (&self.servers[0], &self.servers[self.servers.len() - 1]);
        if ways.len() != 1 {
            ways.push((first, last));
        }
        ways
    }

    /// From each version to each later one; from the only one to itself.
    pub fn all_ways(&self) -> Vec<(&Server, &Server)> {
        let later = |at: usize| self.servers[at + 1..].iter();
        let ways: Vec<(&Server, &Server)> = (0..self.servers.len())
            .flat_map(|at| later(at).map(move |to| (&self.servers[at], to)))
            .collect();
        match ways.is_empty() {
            true => self.ways(),
            false => ways,
        }
    }
}

impl Server {
    fn prepare(build: &Build) -> Result<Server> {
        let private = PrivateInstallation::create(build)?;
        Ok(Server { major: private.installation.major, private })
    }

    pub fn installation(&self) -> &Installation {
        &self.private.installation
    }

    pub fn start(&self, folder: &Path, name: &str, settings: Settings) -> Result<Cluster> {
        let settings = [SETTINGS, settings].concat();
        Cluster::start_new(self.installation(), folder, name, &settings)
    }
}
