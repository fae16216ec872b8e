//! `pg_upgrade`, by copies, by links and by swapping directories: workers stay away while it runs, and the new server has views
//! of every kind, live and right.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use harness::timing::readable;
use postgres::Client;

use super::column_versions;
use super::site::{Record, Server, Site};
use super::times::Times;
use super::views::{self, DATABASE};
use super::writers::Writers;

/// From this version on new clusters have checksums, which the old one must have, too.
const CHECKSUMS: u32 = 18;

/// From this version on it can move the old cluster's directories, which is tried on one way: what is in them is the same.
const SWAPS: u32 = 18;

/// From this version on slots for logical decoding come along, if nothing is left in them.
const MOVES_SLOTS: u32 = 17;

const PATIENCE: Duration = Duration::from_secs(60);

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
    // Statistics that it writes at any moment would be left in a slot.
    let mut old = from.start(site.folder(), "old", &[("autovacuum", "off")])?;
    views::create(&old)?;
    let writers = Writers::start(&[&old]);
    writers.await_more(100)?;
    writers.finish()?;
    let mut new = to.start(site.folder(), "new", &[])?;
    column_versions::forget(&old, &new)?;
    // Whoever copies, copies a server that was stopped in the middle of work.
    let has_slot = from.major >= MOVES_SLOTS && mode != "--copy";
    if has_slot {
        empty_slot(&old)?;
    }
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
    views::expect_alive(&mut client)?;
    if has_slot {
        expect_changes(&mut client)?;
    }
    Ok(())
}

/// A slot of somebody else, who has everything that tables and views did; nothing comes after it when the server is stopped.
fn empty_slot(old: &Cluster) -> Result<()> {
    let mut client = old.connect(DATABASE)?;
    let sql = "SELECT FROM pg_create_logical_replication_slot('own', 'test_decoding')";
    client.query(sql, &[])?;
    client.batch_execute("UPDATE item SET n = n + 1 WHERE id > 5")?;
    views::expect_right(&mut client)?;
    let sql = "SELECT pg_current_wal_insert_lsn()::text";
    let written: String = client.query_one(sql, &[])?.get(0);
    let flushed = "SELECT pg_current_wal_flush_lsn() >= $1::text::pg_lsn";
    wait_for("what was written to be on disk", PATIENCE, || {
        Ok(client.query_one(flushed, &[&written])?.get::<_, bool>(0).then_some(()))
    })?;
    expect_changes(&mut client)
}

/// The slot has changes of a view, and has nothing any more.
fn expect_changes(client: &mut Client) -> Result<()> {
    let sql = "SELECT count(*) FROM pg_logical_slot_get_changes('own', NULL, NULL)
               WHERE data LIKE 'table public.kept: %'";
    let changes: i64 = client.query_one(sql, &[])?.get(0);
    ensure!(changes > 0, "the slot has nothing of the view");
    Ok(())
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
