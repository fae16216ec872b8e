//! Servers that cannot maintain views: CREATE fails at once, and names the setting.

use std::path::Path;

use anyhow::Result;
use harness::cluster::{Cluster, Settings};
use harness::installation::Installation;

use super::check::{expect_hint, Record};

/// Settings under which CREATE must fail at once, and the setting that the hint must name.
const UNFIT: [(Settings, &str); 3] = [
    (&[("wal_level", "replica")], "wal_level"),
    (&[("max_replication_slots", "0")], "max_replication_slots"),
    (&[("max_worker_processes", "0")], "max_worker_processes"),
];

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    for (settings, named) in UNFIT {
        let result = refuses_unfit_settings(installation, folder, settings, named);
        record(&format!("CREATE fails with a hint at {named}"), result);
    }
    record("CREATE fails without preloading", refuses_without_preloading(installation, folder));
}

fn refuses_unfit_settings(
    installation: &Installation,
    folder: &Path,
    settings: Settings,
    named: &str,
) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, &format!("unfit_{named}"), settings)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_eddy; CREATE TABLE t (a int PRIMARY KEY)")?;
    expect_hint(&mut client, "CREATE INCREMENTAL VIEW v AS SELECT a FROM t", named)
}

fn refuses_without_preloading(installation: &Installation, folder: &Path) -> Result<()> {
    let settings = &[("shared_preload_libraries", "")];
    let cluster = Cluster::start_new(installation, folder, "not_preloaded", settings)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_eddy; LOAD 'pg_eddy'; CREATE TABLE t (a int)")?;
    let create = "CREATE MATERIALIZED VIEW v WITH (incremental) AS SELECT a FROM t";
    expect_hint(&mut client, create, "shared_preload_libraries")
}
