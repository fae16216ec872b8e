//! What concerns a server as a whole: its settings, several databases, dump and restore, a worker
//! that does not answer. Each check has databases of its own.

mod bugs;
mod caches;
mod chains;
mod changes;
mod check;
mod checkpoints;
mod culprits;
mod databases;
mod dumps;
mod engine_clusters;
mod engine_processes;
mod events;
mod freshness;
mod indexes;
mod io;
mod listeners;
mod memory;
mod mirrors;
mod monitoring;
mod orders;
mod processes;
mod publications;
mod replacing;
mod settings;
mod spill;
mod standbys;
mod start;
mod sub_plans;
mod types;
mod upgrade;
mod wal;
mod workers;

use std::path::Path;

use anyhow::{bail, Result};
use harness::cluster::Cluster;
use harness::installation::Installation;
use harness::report::Counts;

use check::{Group, Record};

/// What can be run alone.
const GROUPS: [(&str, Group); 20] = [
    ("bugs", bugs::run),
    ("caches", caches::run),
    ("changes", changes::run),
    ("checkpoints", checkpoints::run),
    ("mirrors", mirrors::run),
    ("culprits", culprits::run),
    ("engine_clusters", engine_clusters::run),
    ("engine_processes", engine_processes::run),
    ("freshness", freshness::run),
    ("indexes", indexes::run),
    ("sub_plans", sub_plans::run),
    ("io", io::run),
    ("memory", memory::run),
    ("monitoring", monitoring::run),
    ("processes", processes::run),
    ("replacing", replacing::run),
    ("settings", settings::run),
    ("start", start::run),
    ("upgrade", upgrade::run),
    ("wal", wal::run),
];

#[derive(Clone, Debug, Default, clap::Args)]
pub struct Selection {
    /// Names of groups, none for everything
    groups: Vec<String>,

    /// Names of groups to leave out
    #[arg(long)]
    without: Vec<String>,
}

impl Selection {
    /// Everything but what is the same whatever the server's version.
    pub fn of_version() -> Selection {
        let without = ["engine_clusters", "engine_processes", "memory"];
        Selection { groups: Vec::new(), without: without.map(str::to_owned).into() }
    }
}

/// One test per check.
pub fn run(installation: &Installation, folder: &Path, selection: &Selection) -> Result<Counts> {
    let wanted = &selection.groups;
    let unknown = |name: &&String| GROUPS.iter().all(|(group, _)| group != name);
    if let Some(name) = wanted.iter().chain(&selection.without).find(unknown) {
        bail!("there is no group {name}");
    }
    let mut counts = Counts::default();
    let mut record = |name: &str, result| counts.check(name, result);
    for (name, group) in GROUPS {
        let is_wanted = wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
        if is_wanted && selection.without.iter().all(|without| without != name) {
            group(installation, folder, &mut record);
        }
    }
    if !wanted.is_empty() {
        return Ok(counts);
    }
    run_shared(installation, folder, &mut record)?;
    record("state ten times the memory goes to disk", spill::check(installation, folder));
    Ok(counts)
}

/// Checks that share one cluster.
fn run_shared(installation: &Installation, folder: &Path, record: Record) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "shared", &[("fsync", "off")])?;
    let checks = [&databases::CHECKS[..], &workers::CHECKS, &types::CHECKS, &chains::CHECKS];
    for (name, check) in checks.into_iter().flatten().chain(&dumps::CHECKS) {
        record(name, check(&cluster));
    }
    let dumped = dumps::check_servers(&cluster, installation, folder);
    record("a dump of all databases restores views, where a worker can maintain them", dumped);
    let published = publications::check(&cluster, installation, folder);
    record("publications of all tables have nothing of the extension", published);
    record("a standby has the views", standbys::check(&cluster, folder));
    cluster.print_crashes()
}
