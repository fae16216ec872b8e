//! What operators do with servers that have incremental views: standbys, promotion and the way back, base backups, recovery
//! to a point in time, subscribers, new versions of PostgreSQL, dumps. One file a scenario.
//!
//! Each operation is timed: from the command that ends the outage to the first fresh read, and to the moment at which
//! all views are known to be right. The table of these times ends the run; the book has it.
//!
//! Scenarios that lead from one version of PostgreSQL to another take all installations that they are given; with one only,
//! they lead from that to itself.

mod backups;
mod cascade;
mod column_versions;
mod conversion;
mod decoding;
mod dumps;
mod failover;
mod lag;
mod origins;
mod point_in_time;
mod promotion;
mod site;
mod standby;
mod subscriber;
mod times;
mod upgrade;
mod views;
mod writers;

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{anyhow, bail, Result};
use harness::installation::Build;
use harness::report::Counts;

use site::{Record, Site};
use times::Times;

/// Runs the checks of one file.
type Scenario = fn(&Site, &mut Times, Record);

const SCENARIOS: [(&str, Scenario); 12] = [
    ("standby", standby::run),
    ("promotion", promotion::run),
    ("cascade", cascade::run),
    ("decoding", decoding::run),
    ("failover", failover::run),
    ("backups", backups::run),
    ("point_in_time", point_in_time::run),
    ("subscriber", subscriber::run),
    ("origins", origins::run),
    ("conversion", conversion::run),
    ("upgrade", upgrade::run),
    ("dumps", dumps::run),
];

/// Those that do more, or anything, with newer versions than the oldest.
const OF_NEWER: [&str; 5] = ["failover", "decoding", "backups", "origins", "conversion"];

#[derive(Clone, Debug, Default, clap::Args)]
pub struct Extent {
    /// Names of scenarios, none for all
    scenarios: Vec<String>,
    /// Another version of PostgreSQL, and the library built for it; may be given several times
    #[arg(long = "other", value_name = "PG_CONFIG=LIBRARY")]
    others: Vec<Other>,
}

impl Extent {
    /// What a newer version has that the oldest has not.
    pub fn of_newer() -> Extent {
        Extent { scenarios: OF_NEWER.map(str::to_owned).to_vec(), others: Vec::new() }
    }
}

/// An installation beside the one of the build.
#[derive(Clone, Debug)]
pub struct Other {
    pg_config: PathBuf,
    library: PathBuf,
}

impl FromStr for Other {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Other> {
        let (pg_config, library) =
            text.split_once('=').ok_or_else(|| anyhow!("PG_CONFIG=LIBRARY is expected"))?;
        Ok(Other { pg_config: pg_config.into(), library: library.into() })
    }
}

/// One test per check, and the table of times.
pub fn run(build: &Build, extent: &Extent) -> Result<Counts> {
    let wanted = &extent.scenarios;
    let unknown = |name: &&String| SCENARIOS.iter().all(|(scenario, _)| scenario != name);
    if let Some(name) = wanted.iter().find(unknown) {
        bail!("there is no scenario {name}");
    }
    let others = extent.others.iter().map(|other| Build {
        pg_config: other.pg_config.clone(),
        library: other.library.clone(),
        project: build.project.clone(),
        settings: build.settings.clone(),
    });
    let site = Site::prepare(build, others)?;
    let mut counts = Counts::default();
    let mut times = Times::default();
    let mut record = |name: &str, result| counts.check(name, result);
    for (name, scenario) in SCENARIOS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            scenario(&site, &mut times, &mut record);
        }
    }
    print!("{times}");
    Ok(counts)
}
