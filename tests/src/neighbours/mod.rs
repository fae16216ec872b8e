//! Neighbours: other extensions and programs that people run beside this one. Each shows what users did and nothing of ours,
//! or does its work on tables and views, which are right afterwards.
//!
//! What an installation does not have is said to be not run, and counts as neither passed nor failed.

mod activity;
mod auto_explain;
mod cube;
mod explain;
mod pg_cron;
mod pg_partman;
mod pg_repack;
mod pg_stat_statements;
mod pgaudit;
mod pgbouncer;
mod pgvector;
mod postgis;
mod scene;
mod statistics;

use std::path::Path;

use anyhow::Result;
use harness::cluster::{Cluster, Settings};
use harness::installation::Installation;
use harness::report::Counts;

use scene::{is_there, Needs};

/// Which checks are run.
#[derive(clap::Args, Default)]
pub struct Selection {
    /// Only the checks whose names have one of these words
    words: Vec<String>,
}

impl Selection {
    fn has(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }
}

type Check = fn(&Cluster) -> Result<()>;

/// A check, what it needs of the installation beside PostgreSQL, and its name.
struct Neighbour {
    name: &'static str,
    needs: Needs,
    check: Check,
}

const fn neighbour(name: &'static str, needs: Needs, check: Check) -> Neighbour {
    Neighbour { name, needs, check }
}

/// Those that see each statement. What they see depends on who comes first in `shared_preload_libraries`.
const WATCHERS: [Neighbour; 3] = [
    neighbour(
        "pg_stat_statements has users' statements alone",
        Needs::Library("pg_stat_statements"),
        pg_stat_statements::check,
    ),
    neighbour(
        "auto_explain has users' statements alone",
        Needs::Library("auto_explain"),
        auto_explain::check,
    ),
    neighbour("pgaudit has each read once", Needs::Library("pgaudit"), pgaudit::check),
];

const OTHERS: [Neighbour; 14] = [
    neighbour("statistics: decoding rolls nothing back", Needs::Nothing, statistics::rollbacks),
    neighbour("statistics: slots keep their names", Needs::Nothing, statistics::slot_names),
    neighbour("statistics: a slot's name is taken", Needs::Nothing, statistics::taken_name),
    neighbour("activity: readers that wait", Needs::Nothing, activity::waiting_reader),
    neighbour("activity: the worker names the view it is at", Needs::Nothing, activity::worker),
    neighbour("explain: how long a statement has waited", Needs::Nothing, explain::waited),
    neighbour("explain: all formats, functions, left out", Needs::Nothing, explain::forms),
    neighbour("explain: errors on the way", Needs::Nothing, explain::errors),
    neighbour("pgbouncer in transaction mode", Needs::Program("pgbouncer"), pgbouncer::check),
    neighbour("pg_partman beneath a view", Needs::Extension("pg_partman"), pg_partman::check),
    neighbour("pg_repack of a base table", Needs::Extension("pg_repack"), pg_repack::check),
    neighbour("cube in joins", Needs::Extension("cube"), cube::check),
    neighbour("PostGIS in views", Needs::Extension("postgis"), postgis::check),
    neighbour("pgvector in views", Needs::Extension("vector"), pgvector::check),
];

/// What is preloaded beside this extension, where it is there.
const PRELOADED: [&str; 4] = ["pg_stat_statements", "auto_explain", "pgaudit", "pg_cron"];

const CRON: &str = "pg_cron: jobs write, compare and refresh";

/// For those that see statements: all of what they can see.
const SETTINGS: Settings = &[
    ("fsync", "off"),
    ("max_prepared_transactions", "10"),
    ("auto_explain.log_min_duration", "0"),
    ("pgaudit.log", "all"),
    ("cron.use_background_workers", "on"),
];

/// And also the statements of functions.
const NESTED: Settings =
    &[("pg_stat_statements.track", "all"), ("auto_explain.log_nested_statements", "on")];

/// One test per check; those who watch twice, preloaded before this extension and after it.
pub fn run(installation: &Installation, folder: &Path, selection: &Selection) -> Result<Counts> {
    let mut counts = Counts::default();
    let there: Vec<&str> =
        PRELOADED.into_iter().filter(|name| is_there(installation, Needs::Library(name))).collect();
    let before = [&there[..], &["pg_eddy"]].concat().join(",");
    let after = [&["pg_eddy"], &there[..]].concat().join(",");

    let preload = [("shared_preload_libraries", before.as_str())];
    let settings = [SETTINGS, &preload[..]].concat();
    let cluster = Cluster::start_new(installation, folder, "before", &settings)?;
    // A job may have to wait for a minute.
    let runs_cron = selection.has(CRON) && there.contains(&"pg_cron");
    let scheduled = runs_cron.then(|| pg_cron::schedule(&cluster));
    for neighbour in WATCHERS.iter().chain(&OTHERS) {
        try_one(neighbour, "", &cluster, selection, &mut counts);
    }
    match scheduled {
        Some(scheduled) => counts.check(CRON, scheduled.and_then(|mut c| pg_cron::finish(&mut c))),
        None if selection.has(CRON) => counts.leave_out(CRON, "library pg_cron is not there"),
        None => {}
    }
    cluster.print_crashes()?;
    drop(cluster);

    let preload = [("shared_preload_libraries", after.as_str())];
    let settings = [SETTINGS, NESTED, &preload[..]].concat();
    let cluster = Cluster::start_new(installation, folder, "after", &settings)?;
    for neighbour in &WATCHERS {
        try_one(neighbour, ", functions' too, loaded later", &cluster, selection, &mut counts);
    }
    cluster.print_crashes()?;
    Ok(counts)
}

fn try_one(
    neighbour: &Neighbour,
    how: &str,
    cluster: &Cluster,
    selection: &Selection,
    counts: &mut Counts,
) {
    let name = format!("{}{how}", neighbour.name);
    if !selection.has(&name) {
        return;
    }
    match is_there(cluster.installation(), neighbour.needs) {
        true => counts.check(&name, (neighbour.check)(cluster)),
        false => counts.leave_out(&name, &format!("{} is not there", neighbour.needs)),
    }
}
