//! Who listens to views is told that they have changed, and nobody waits for that.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{ensure, Result};
use harness::cluster::{wait_for, Cluster};
use harness::installation::Installation;
use postgres::fallible_iterator::FallibleIterator;
use postgres::Client;

const PATIENCE: Duration = Duration::from_secs(60);

/// One that comes later is not taken for one of the same.
const SILENCE: Duration = Duration::from_millis(300);

/// Channels and payloads.
type Told = Vec<(String, String)>;

pub fn check(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "listens", &[("fsync", "off")])?;
    let mut listener = cluster.connect("postgres")?;
    listener.batch_execute("LISTEN \"Shop.kinds\"; LISTEN \"public.items\"")?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(
        "SET client_min_messages = warning; CREATE EXTENSION pg_eddy; CREATE SCHEMA \"Shop\";
         CREATE TABLE item (id int PRIMARY KEY, kind int);
         ALTER TABLE item REPLICA IDENTITY FULL;
         INSERT INTO item SELECT i, i % 3 FROM generate_series(1, 30) i;
         CREATE INCREMENTAL VIEW \"Shop\".kinds WITH (notify) AS SELECT kind, count(*) AS n FROM item GROUP BY kind;
         CREATE INCREMENTAL VIEW items AS SELECT id FROM item",
    )?;
    client.batch_execute("TABLE \"Shop\".kinds; TABLE items")?;
    // It is attached.
    expect(&mut listener, "Shop.kinds")?;
    // A commit that changes it, one that does not, and one that is none.
    client
        .batch_execute("INSERT INTO item VALUES (31, 1); UPDATE item SET id = 32 WHERE id = 31")?;
    client.batch_execute("BEGIN; INSERT INTO item VALUES (33, 1); ROLLBACK")?;
    client.batch_execute("TABLE \"Shop\".kinds")?;
    let position = expect(&mut listener, "Shop.kinds")?;
    let is_position = format!("SELECT '{position}'::pg_lsn <= pg_current_wal_insert_lsn()");
    let is_position: bool = client.query_one(&is_position, &[])?.get(0);
    ensure!(is_position, "{position} has not come");
    // What is switched on and off is not computed again.
    let start = "SELECT starts FROM eddy.views WHERE relation = 'items'::regclass";
    let before: i64 = client.query_one(start, &[])?.get(0);
    client.batch_execute("ALTER INCREMENTAL VIEW items SET (notify = on)")?;
    client.batch_execute("ALTER INCREMENTAL VIEW \"Shop\".kinds RESET (notify)")?;
    // So many that an assistant writes them.
    client.batch_execute(
        "INSERT INTO item SELECT i, 1 FROM generate_series(100, 40100) i; TABLE items",
    )?;
    expect(&mut listener, "public.items")?;
    let after: i64 = client.query_one(start, &[])?.get(0);
    ensure!(before == after, "items started {after} times, not {before}");
    // Who fills the view tells nobody himself.
    client.batch_execute(
        "BEGIN; INSERT INTO item VALUES (90, 1); REFRESH INCREMENTAL VIEW items WITH NO DATA;
         REFRESH INCREMENTAL VIEW items; COMMIT; TABLE items",
    )?;
    expect(&mut listener, "public.items")?;
    held_up(&cluster, &mut client, &mut listener)?;
    cluster.print_crashes()
}

/// Somebody who has notified others waits for a standby in his commit: views do not wait for that, and who listens to them is told later.
fn held_up(cluster: &Cluster, client: &mut Client, listener: &mut Client) -> Result<()> {
    client.batch_execute("SET synchronous_commit = local; SET eddy.read_timeout = '20s'")?;
    cluster.configure_and_wait(client, "synchronous_standby_names", "nobody")?;
    let mut other = cluster.connect("postgres")?;
    let commits =
        thread::spawn(move || other.batch_execute("BEGIN; CREATE TABLE x (); NOTIFY x; COMMIT"));
    wait_for("a commit that waits for a standby", PATIENCE, || {
        let waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        Ok(client.query_opt(waits, &[])?.map(|_| ()))
    })?;
    client.batch_execute("INSERT INTO item VALUES (91, 1); TABLE items; TABLE \"Shop\".kinds")?;
    let during = told(listener)?;
    ensure!(during.is_empty(), "told {during:?}");
    cluster.configure_and_wait(client, "synchronous_standby_names", "")?;
    commits.join().expect("joins")?;
    expect(listener, "public.items").map(drop)
}

/// Waits until something is told: once, on that channel. Answers the payload.
fn expect(listener: &mut Client, channel: &str) -> Result<String> {
    let told = wait_for("who listens is told", PATIENCE, || {
        Ok(Some(told(listener)?).filter(|told| !told.is_empty()))
    })?;
    ensure!(told.len() == 1 && told[0].0 == channel, "told {told:?}, not of {channel}");
    Ok(told[0].1.clone())
}

/// What has been told, until there is silence.
fn told(listener: &mut Client) -> Result<Told> {
    let mut notifications = listener.notifications();
    let mut all = Vec::new();
    let mut waiting = notifications.timeout_iter(SILENCE);
    while let Some(told) = waiting.next()? {
        all.push((told.channel().to_owned(), told.payload().to_owned()));
    }
    Ok(all)
}
