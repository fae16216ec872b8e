//! Recovery to a point in time from a base backup and an archive of the WAL: the views are as they were then.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use harness::cluster::{wait_for, Cluster};
use postgres::Client;

use super::site::{Record, Site};
use super::times::Times;
use super::views::{self, DATABASE};
use super::writers::Writers;

const PATIENCE: Duration = Duration::from_secs(60);

/// All rows of the views that what comes after the point changes.
const CONTENTS: &str = "
    SELECT md5(string_agg(v, ',' ORDER BY v)) FROM (
        SELECT 'm' || m::text AS v FROM moves m UNION ALL SELECT 'b' || b::text FROM by_branch b
        UNION ALL SELECT 'r' || r::text FROM reach r UNION ALL SELECT 'p' || p::text FROM other.pairs p) all_rows";

pub fn run(site: &Site, times: &mut Times, record: Record) {
    record("views are as they were at the time that a server is recovered to", check(site, times));
}

fn check(site: &Site, times: &mut Times) -> Result<()> {
    let folder = site.folder();
    let archive = folder.join("archive");
    fs::create_dir(&archive)?;
    site.installation().user.own(&archive)?;
    let copy = format!("cp %p {}/%f", archive.display());
    let archived = site.start("archived", &[("archive_mode", "on"), ("archive_command", &copy)])?;
    let mut client = views::create(&archived)?;
    let writers = Writers::start(&[&archived]);
    writers.await_more(100)?;
    let mut restored = archived.back_up(folder, "restored", &[])?;
    writers.await_more(200)?;
    writers.finish()?;
    let contents = contents(&mut client)?;
    let time: String = client.query_one("SELECT clock_timestamp()::text", &[])?.get(0);
    // What nobody wants to have happened.
    client.batch_execute("DELETE FROM edge; DELETE FROM history; UPDATE account SET branch = 0")?;
    views::expect_equal(&mut client)?;
    await_archive(&mut client, &archive)?;
    let fetch = format!("cp {}/%f %p", archive.display());
    restored.set(&[
        ("archive_mode", "off"),
        ("restore_command", &fetch),
        ("recovery_target_time", &time),
        ("recovery_target_action", "pause"),
    ])?;
    restored.signal_file("recovery.signal")?;
    let began = Instant::now();
    restored.start()?;
    look(&restored, &contents, began, times)?;
    let began = Instant::now();
    restored.connect(DATABASE)?.batch_execute("SELECT pg_wal_replay_resume()")?;
    times.recovered("end of recovery to a point in time", &restored, began)?;
    let mut client = restored.connect(DATABASE)?;
    let found = self::contents(&mut client)?;
    ensure!(found == contents, "the views are not as they were");
    views::expect_alive(&mut client)
}

/// Before recovery is ended one looks whether the point is the right one, also in views.
fn look(restored: &Cluster, contents: &str, began: Instant, times: &mut Times) -> Result<()> {
    let mut client = restored.connect_when_ready(DATABASE)?;
    wait_for("recovery to pause", PATIENCE, || {
        let row = client.query_one("SELECT pg_get_wal_replay_pause_state()", &[])?;
        Ok((row.get::<_, String>(0) == "paused").then_some(()))
    })?;
    let found = self::contents(&mut client)?;
    ensure!(found == contents, "before the end of recovery the views are not as they were");
    let took = harness::timing::readable(began.elapsed());
    times.remark(format!("recovery to a point in time, paused there: readable after {took}"));
    Ok(())
}

fn contents(client: &mut Client) -> Result<String> {
    Ok(client.query_one(CONTENTS, &[])?.get(0))
}

/// The archive has everything up to now.
fn await_archive(client: &mut Client, archive: &Path) -> Result<()> {
    let sql = "SELECT pg_walfile_name(pg_current_wal_lsn()), pg_switch_wal()::text";
    let segment: String = client.query_one(sql, &[])?.get(0);
    let sql = "SELECT last_archived_wal >= $1 FROM pg_stat_archiver";
    wait_for(&format!("{segment} in {}", archive.display()), PATIENCE, || {
        let has: Option<bool> = client.query_one(sql, &[&segment])?.get(0);
        Ok(has.unwrap_or(false).then_some(()))
    })
}
