//! `pg_upgrade`, by copies, by links and by swapping directories: workers stay away while it runs, and the new server has views
//! of every kind, live and right.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{ensure, Context, Result};
use harness::timing::readable;

use super::column_versions;
use super::site::{Record, Server, Site};
use super::times::Times;
use super::views::{self, DATABASE};
use super::writers::Writers;

/// From this version on new clusters have checksums, which the old one must have, too.
const CHECKSUMS: u32 = 18;

/// From this version on it can move the old cluster's directories, which is tried on one way: what is in them is the same.
const SWAPS: u32 = 18;

pub fn run(site: &Site, times: &mut Times, record: Record) {
    let ways = site.ways();
    let swapped = ways.iter().position(|(_, to)| to.major >= SWAPS);
    for (number, (from, to)) in ways.into_iter().enumerate() {
        let swap = (Some(number) == swapped).then_some("--swap");
        for mode in ["--copy", "--link"].into_iter().chain(swap) {
            let way = format!("pg_upgrade {mode} from {} to {}", from.major, to.major);
            record(&format!("{way} moves views"), upgrade(site, from, to, mode, &way, times));
        }
    }
}

fn upgrade(
    site: &Site,
    from: &Server,
    to: &Server,
    mode: &str,
    way: &str,
    times: &mut Times,
) -> Result<()> {
    let mut old = from.start(site.folder(), "old", &[])?;
    views::create(&old)?;
    // The server is stopped in the middle of work.
    let writers = Writers::start(&[&old]);
    writers.await_more(100)?;
    writers.finish()?;
    let mut new = to.start(site.folder(), "new", &[])?;
    column_versions::forget(&old, &new)?;
    new.stop()?;
    old.stop()?;
    if to.major >= CHECKSUMS && from.major < CHECKSUMS {
        let data = old.data().display().to_string();
        old.run_as_owner("pg_checksums", &["--enable", "--no-sync", "--pgdata", &data])?;
    }
    let [old_bin, new_bin] =
        [from, to].map(|server| server.installation().bin.display().to_string());
    let [old_data, new_data] = [&old, &new].map(|cluster| cluster.data().display().to_string());
    let began = Instant::now();
    // Copying is what it does unless it is told otherwise, and older ones have no name for it.
    let mode: &[&str] = if mode == "--copy" { &[] } else { &[mode] };
    let arguments =
        ["--username=postgres", "--retain", "--old-bindir", &old_bin, "--new-bindir", &new_bin];
    let data = ["--old-datadir", &old_data, "--new-datadir", &new_data];
    let moved = new.run_as_owner("pg_upgrade", &[&arguments[..], &data, mode].concat());
    moved.with_context(|| last_errors(&new.data()))?;
    expect_no_workers(&new.data())?;
    let took = began.elapsed();
    let began = Instant::now();
    new.start()?;
    times.recovered(
        &format!("first start after {way} (which took {})", readable(took)),
        &new,
        began,
    )?;
    let mut client = new.connect(DATABASE)?;
    let indexes = "SELECT count(*) FROM pg_index WHERE indrelid IN ('reach'::regclass, 'by_branch'::regclass)";
    ensure!(client.query_one(indexes, &[])?.get::<_, i64>(0) == 2, "indexes are missing");
    views::expect_alive(&mut client)
}

/// Neither server has started anything by itself: the logs that pg_upgrade keeps tell.
fn expect_no_workers(data: &Path) -> Result<()> {
    let output = data.join("pg_upgrade_output.d");
    let run = fs::read_dir(&output)?.next().context("pg_upgrade kept no logs")??.path();
    let log = fs::read_to_string(run.join("log/pg_upgrade_server.log"))?;
    ensure!(log.contains("database system is ready"), "pg_upgrade's log has no start of a server");
    let line =
        log.lines().find(|line| line.contains("pg_eddy: ") || line.contains("pg_eddy launcher"));
    ensure!(line.is_none(), "a process of ours ran: {}", line.unwrap_or_default());
    Ok(())
}

/// What the logs of a failed run end with.
fn last_errors(data: &Path) -> String {
    let runs = fs::read_dir(data.join("pg_upgrade_output.d")).into_iter().flatten().flatten();
    let logs =
        runs.flat_map(|run| fs::read_dir(run.path().join("log")).into_iter().flatten().flatten());
    let texts = logs.filter_map(|log| fs::read_to_string(log.path()).ok());
    let lines = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter(|line| line.contains("error")).collect::<Vec<_>>().join("\n")
}
