//! Everything at once: writers change tables, processes are ended and stopped, tables and views are locked, altered and filled
//! with what cannot be computed, and readers check all the while. A read is right, or an error that names its culprit; a view that
//! nobody attacks is there; and when all is quiet every view equals its query.
//!
//! The same seed gives the same disturbances in the same order, not at the same instants.

mod attacker;
mod attacks;
mod guards;
mod outcome;
mod processes;
mod readers;
mod scene;
mod standby;
mod verdict;
mod views;
mod witness;
mod writers;

use std::path::Path;
use std::thread::{scope, Scope};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Result};
use harness::cluster::{Cluster, Settings};
use harness::report::Counts;

use scene::Scene;
use views::{TABLES, VIEWS};

const DATABASE: &str = "chaos";

/// Functions that do not end are known soon; recursions as well.
pub const SETTINGS: Settings = &[
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("max_prepared_transactions", "10"),
    ("wal_keep_size", "4GB"),
    ("max_wal_size", "4GB"),
    ("eddy.evaluation_timeout", "200ms"),
    ("eddy.max_recursion", "500"),
];

/// What is checked all the time.
const CHECKS: [&str; 8] = [
    witness::CHECK,
    readers::INVARIANTS,
    readers::EXACT,
    guards::CHECK,
    standby::CHECK,
    writers::CHECK,
    attacker::CHECK,
    processes::CHECK,
];

#[derive(Clone, Debug, clap::Args)]
pub struct Extent {
    /// Minutes of disturbances
    #[arg(long, default_value_t = Extent::default().minutes)]
    pub minutes: f64,
    /// Decides which disturbances come, and in which order
    #[arg(long, default_value_t = Extent::default().seed)]
    pub seed: u64,
    /// Only disturbances whose names have these words
    #[arg(long, default_value = "")]
    pub only: String,
}

impl Default for Extent {
    fn default() -> Extent {
        Extent { minutes: 3.0, seed: 1, only: String::new() }
    }
}

/// One test per check, one per kind of reader, one per view at the end, and some for what is left.
pub fn run(cluster: &mut Cluster, folder: &Path, extent: &Extent) -> Result<Counts> {
    println!("chaos: {} minutes, seed {}", extent.minutes, extent.seed);
    let mut client = cluster.connect("postgres")?;
    // Every other seed has all that a view could have in common with others computed as if it had.
    let from = if extent.seed % 2 == 1 { "1" } else { "3" };
    cluster.configure_and_wait(&mut client, "eddy.share_plans_from", from)?;
    client.batch_execute(&format!("CREATE DATABASE {DATABASE}"))?;
    let mut client = cluster.connect(DATABASE)?;
    client.batch_execute(TABLES)?;
    for view in &VIEWS {
        client.batch_execute(&view.creation())?;
    }
    drop(client);
    let standby = cluster.start_standby(folder, "standby")?;
    let scene = Scene::new(cluster.config(DATABASE), cluster.log_file());
    let end = scene.began + Duration::from_secs_f64(60.0 * extent.minutes);
    disturb_all(&scene, cluster, &standby, end, extent);
    let mut counts = Counts::default();
    check_views(cluster, &mut counts);
    counts.check("nothing is left behind", check_rest(cluster));
    counts.check("the log has no error of ours", verdict::expect_quiet_log(cluster));
    counts.check("a promoted standby", standby::take_over(cluster, &standby, DATABASE));
    scene.print_summary();
    let kept = std::env::temp_dir();
    scene.keep_log(cluster, &kept.join(format!("pg_eddy-chaos-{}.log", extent.seed)));
    scene.keep_log(&standby, &kept.join(format!("pg_eddy-chaos-{}-standby.log", extent.seed)));
    for check in CHECKS {
        counts.check(check, no_violation(&scene, check));
    }
    for reader in ["witness", readers::STATES, "exact", "guards", "standby"] {
        counts.check(
            &format!("reader \"{reader}\" often came to a result"),
            came_far(&scene, reader, extent),
        );
    }
    Ok(counts)
}

/// Starts all threads, and returns when they have ended.
fn disturb_all(
    scene: &Scene,
    cluster: &mut Cluster,
    standby: &Cluster,
    end: Instant,
    extent: &Extent,
) {
    let seed = extent.seed;
    scope(|threads| {
        start_readers(threads, scene, seed);
        threads.spawn(|| standby::read(scene, standby, DATABASE));
        for (number, (name, draw)) in writers::WRITERS.into_iter().enumerate() {
            threads.spawn(move || writers::write(scene, name, draw, seed ^ (number as u64 + 100)));
        }
        threads.spawn(move || writers::write_numbers(scene, seed));
        for number in guards::GUARDS {
            threads.spawn(move || guards::guard(scene, number));
        }
        let attacking = threads.spawn(move || attacker::attack(scene, end, seed, &extent.only));
        processes::disturb(scene, cluster, end, seed, &extent.only);
        if attacking.join().is_err() {
            scene.violation(attacker::CHECK, "the attacker panicked");
        }
        scene.end_writers();
        scene.end();
    });
}

fn start_readers<'scope, 'env>(
    threads: &'scope Scope<'scope, 'env>,
    scene: &'env Scene,
    seed: u64,
) {
    threads.spawn(move || witness::watch(scene, seed));
    for number in 0..2 {
        threads.spawn(move || readers::read_states(scene, seed + number));
        threads.spawn(move || readers::read_exactly(scene, seed + number));
    }
}

/// All are quiet: one test per view.
fn check_views(cluster: &Cluster, counts: &mut Counts) {
    for view in &VIEWS {
        let right = cluster
            .connect_when_ready(DATABASE)
            .and_then(|mut client| verdict::expect_right(&mut client, view));
        counts.check(&format!("\"{}\" equals its query", view.name), right);
    }
}

fn check_rest(cluster: &Cluster) -> Result<()> {
    verdict::expect_nothing_left(&mut cluster.connect_when_ready(DATABASE)?)
}

fn no_violation(scene: &Scene, check: &str) -> Result<()> {
    match &scene.violations_of(check)[..] {
        [] => Ok(()),
        [first, ..] => bail!("{} times, first {first}", scene.violations_of(check).len()),
    }
}

/// Readers that mostly fail check nothing.
fn came_far(scene: &Scene, reader: &str, extent: &Extent) -> Result<()> {
    let reads = scene.reads(reader, readers::RIGHT);
    let least = (20.0 * extent.minutes) as usize;
    ensure!(reads >= least, "{reads} reads came to a result, {least} are wanted");
    Ok(())
}
