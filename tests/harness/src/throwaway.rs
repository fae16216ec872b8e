//! Servers for the length of one call: a private installation, a cluster or several, gone afterwards whatever happens.

use std::path::Path;

use anyhow::Result;

use crate::cluster::{Cluster, Settings};
use crate::installation::{Build, PrivateInstallation};

/// Tests may lose their data when the machine dies; nothing else about the server changes.
pub const FAST: Settings = &[("fsync", "off"), ("full_page_writes", "off")];

/// Measurements need no checkpoint in the middle and room for their tables.
pub const LARGE: Settings = &[("max_wal_size", "8GB"), ("shared_buffers", "512MB")];

/// Runs `body` with a fresh cluster and the folder it is in. If `body` fails, the server's log is shown.
pub fn with_cluster<T>(
    build: &Build,
    settings: Settings,
    body: impl FnOnce(&mut Cluster, &Path) -> Result<T>,
) -> Result<T> {
    let private = PrivateInstallation::create(build)?;
    let mut cluster =
        Cluster::start_new(&private.installation, private.folder(), "cluster", settings)?;
    let result = body(&mut cluster, private.folder());
    if result.is_err() {
        eprintln!("the server's log ends with:\n{}", cluster.log_tail());
    }
    cluster.stop()?;
    result
}

/// Runs `body` with a fresh cluster for each of the names, and the folder they are in. If `body` fails, their logs are shown.
pub fn with_clusters<T>(
    build: &Build,
    settings: Settings,
    names: &[String],
    body: impl FnOnce(&[Cluster], &Path) -> Result<T>,
) -> Result<T> {
    let private = PrivateInstallation::create(build)?;
    let start =
        |name: &String| Cluster::start_new(&private.installation, private.folder(), name, settings);
    let mut clusters = names.iter().map(start).collect::<Result<Vec<Cluster>>>()?;
    let result = body(&clusters, private.folder());
    for (name, cluster) in names.iter().zip(&mut clusters) {
        if result.is_err() {
            eprintln!("the log of server {name} ends with:\n{}", cluster.log_tail());
        }
        cluster.stop()?;
    }
    result
}
