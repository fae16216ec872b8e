//! Incremental views over tables that logical replication fills: they follow it, also on a standby of the subscriber
//! that takes over.

use std::sync::RwLockWriteGuard;
use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use harness::cluster::{wait_for, Cluster};
use postgres::Client;

use super::site::{Record, Site};
use super::times::Times;
use super::views::{self, DATABASE};
use super::writers::Writers;
use crate::ledger;

const PATIENCE: Duration = Duration::from_secs(60);

/// More rows than are decoded in memory: the publisher sends them while their transaction runs.
const LARGE: &str = "INSERT INTO history (moved) SELECT 1 FROM generate_series(1, 20000)";

pub fn run(site: &Site, times: &mut Times, record: Record) {
    let servers = || -> Result<(Cluster, Cluster)> {
        let publisher = site.start("publisher", &[("logical_decoding_work_mem", "64kB")])?;
        let mut client = views::create_tables(&publisher)?;
        client.batch_execute(
            "ALTER TABLE edge REPLICA IDENTITY FULL; ALTER TABLE history REPLICA IDENTITY FULL;
             CREATE PUBLICATION everything FOR ALL TABLES",
        )?;
        Ok((publisher, site.start("subscriber", &[])?))
    };
    let (publisher, mut subscriber) = match servers() {
        Ok(servers) => servers,
        Err(error) => return record("a publisher and a subscriber", Err(error)),
    };
    let followed = follow(&publisher, &subscriber, times);
    record("views of a subscriber follow what is replicated into their tables", followed);
    let failed_over = fail_over(site, &publisher, &mut subscriber, times);
    record("a standby of the subscriber takes over, views included", failed_over);
}

/// The tables are there, empty; the first copy of the publisher's rows comes into views that are there before it.
fn follow(publisher: &Cluster, subscriber: &Cluster, times: &mut Times) -> Result<()> {
    let mut client = views::create_tables(subscriber)?;
    client.batch_execute("TRUNCATE account, edge, history, item")?;
    views::create_views(&mut client)?;
    let subscribe = format!(
        "CREATE SUBSCRIPTION bank CONNECTION '{} dbname={DATABASE}' PUBLICATION everything \
         WITH (streaming = on, synchronous_commit = on)",
        publisher.connection_text()
    );
    let began = Instant::now();
    client.batch_execute(&subscribe)?;
    let writers = Writers::start(&[publisher]);
    await_copied(&mut client)?;
    let operation = "first copy of a subscription into tables with views, under load";
    let hold = || still(&writers, publisher);
    times.recovered_under_load(operation, subscriber, began, hold)?;
    let mut source = publisher.connect(DATABASE)?;
    source.batch_execute(LARGE)?;
    for _ in 0..50 {
        views::expect_whole(&mut client)?;
    }
    writers.await_more(200)?;
    writers.finish()?;
    compare(publisher, &mut client)
}

/// The subscriber is gone at once. Its standby has all that the publisher was told to be safe, because it was synchronous.
fn fail_over(
    site: &Site,
    publisher: &Cluster,
    subscriber: &mut Cluster,
    times: &mut Times,
) -> Result<()> {
    let standby = subscriber.back_up(site.folder(), "successor", &["--write-recovery-conf"]);
    let mut standby = standby?;
    // The one in the lead waits for it; it will not wait for anybody.
    standby.set(&[("synchronous_standby_names", ""), ("cluster_name", "successor")])?;
    standby.start()?;
    let mut client = subscriber.connect(DATABASE)?;
    subscriber.configure_and_wait(&mut client, "synchronous_standby_names", "successor")?;
    wait_for("the standby to be a synchronous one", PATIENCE, || {
        let sql = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        Ok((client.query_one(sql, &[])?.get::<_, i64>(0) == 1).then_some(()))
    })?;
    let writers = Writers::start(&[publisher]);
    writers.await_more(200)?;
    subscriber.stop_immediately()?;
    let began = Instant::now();
    standby.promote()?;
    let hold = || still(&writers, publisher);
    let operation = "promotion of a subscriber's standby, under load";
    times.recovered_under_load(operation, &standby, began, hold)?;
    writers.await_more(100)?;
    writers.finish()?;
    compare(publisher, &mut standby.connect(DATABASE)?)
}

/// Holds the writers, and waits until the subscriber has everything.
pub(super) fn still<'a>(
    writers: &'a Writers,
    publisher: &Cluster,
) -> Result<RwLockWriteGuard<'a, ()>> {
    let guard = writers.hold();
    await_subscriber(&mut publisher.connect(DATABASE)?)?;
    Ok(guard)
}

/// Waits until the subscriber has everything that was committed on the publisher.
pub(super) fn await_subscriber(source: &mut Client) -> Result<()> {
    let lsn: String = source.query_one("SELECT pg_current_wal_lsn()::text", &[])?.get(0);
    let sql = "SELECT coalesce(bool_and(confirmed_flush_lsn >= $1::text::pg_lsn), false) \
               FROM pg_replication_slots WHERE slot_type = 'logical' AND NOT temporary";
    wait_for("the subscriber to catch up", PATIENCE, || {
        Ok(source.query_one(sql, &[&lsn])?.get::<_, bool>(0).then_some(()))
    })
}

/// The views of the subscriber are what the queries are on the publisher.
pub(super) fn compare(publisher: &Cluster, client: &mut Client) -> Result<()> {
    let mut source = publisher.connect(DATABASE)?;
    await_subscriber(&mut source)?;
    views::expect_right(client)?;
    for (name, query) in ledger::VIEWS {
        let digest = |from: &str| {
            format!("SELECT md5(string_agg(q::text, ',' ORDER BY q::text)) FROM {from} q")
        };
        let wanted: Option<String> = source.query_one(&digest(&format!("({query})")), &[])?.get(0);
        let found: Option<String> = client.query_one(&digest(name), &[])?.get(0);
        ensure!(found == wanted, "{name} is not what the publisher has");
    }
    Ok(())
}

/// All tables have been copied and are followed.
pub(super) fn await_copied(client: &mut Client) -> Result<()> {
    let sql = "SELECT count(*) > 0 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel";
    wait_for("the tables to be copied", PATIENCE, || {
        Ok(client.query_one(sql, &[])?.get::<_, bool>(0).then_some(()))
    })
}
