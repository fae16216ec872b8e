//! Slots that move to a standby (`failover`): a primary that waits for a standby before it sends to subscribers keeps its own
//! views fresh all the same, and a standby with such slots takes over, views and subscribers included.

use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use postgres::Client;

use super::site::{Record, Site};
use super::subscriber::{await_copied, await_subscriber};
use super::times::Times;
use crate::graph::{expect_alive, expect_rows, graph_database, worker_pid};

/// Versions from this one on have such slots.
const FIRST: u32 = 17;

const PATIENCE: Duration = Duration::from_secs(60);

const DATABASE: &str = "graph";

/// The physical slot of the standby, for which those who send to subscribers wait.
const SETTINGS: &[(&str, &str)] = &[("synchronized_standby_slots", "standby")];

pub fn run(site: &Site, _times: &mut Times, record: Record) {
    if site.major() < FIRST {
        return;
    }
    let mut servers = match Servers::start(site) {
        Ok(servers) => servers,
        Err(error) => return record("a standby with slots that have moved there", Err(error)),
    };
    let spared = servers.views_are_spared();
    record("views are fresh while subscribers wait for a standby that is down", spared);
    record("slots move to a standby, those of workers excepted", servers.slots_move());
    let taken_over = servers.takes_over();
    record("a standby with slots takes over, views and subscribers included", taken_over);
}

struct Servers {
    primary: Cluster,
    standby: Cluster,
    client: Client,
    /// The database that subscribes, on a server of its own.
    copy: Client,
    _subscriber: Cluster,
}

impl Servers {
    fn start(site: &Site) -> Result<Servers> {
        let primary = site.start("leader", SETTINGS)?;
        let mut client = graph_database(&primary, DATABASE)?;
        client.batch_execute(
            "CREATE PUBLICATION edges FOR TABLE edge;
             SELECT pg_create_physical_replication_slot('standby', true)",
        )?;
        // Slots are asked for in a database.
        let arguments = ["--write-recovery-conf", "--slot=standby", "--dbname=dbname=postgres"];
        let mut standby = primary.back_up(site.folder(), "synchronized", &arguments)?;
        standby.set(&[
            ("hot_standby_feedback", "on"),
            ("sync_replication_slots", "on"),
            // Nobody follows it.
            ("synchronized_standby_slots", ""),
        ])?;
        standby.start()?;
        // How soon it connects again.
        let subscriber = site.start("copying", &[("wal_retrieve_retry_interval", "100ms")])?;
        let mut copy = graph_database(&subscriber, DATABASE)?;
        copy.batch_execute("TRUNCATE edge")?;
        copy.batch_execute(&format!(
            "CREATE SUBSCRIPTION copied CONNECTION '{} dbname={DATABASE}' PUBLICATION edges
             WITH (failover = true, synchronous_commit = on)",
            primary.connection_text()
        ))?;
        await_copied(&mut copy)?;
        Ok(Servers { primary, standby, client, copy, _subscriber: subscriber })
    }
    /// A worker that was there before, and one that starts meanwhile.
    fn views_are_spared(&mut self) -> Result<()> {
        self.standby.stop()?;
        self.client
            .batch_execute("SET eddy.read_timeout = '20s'; INSERT INTO edge VALUES (3, 1)")?;
        expect_rows(&mut self.client, "reach", 9)?;
        let waits = "SELECT count(*) FROM pg_stat_activity \
                     WHERE backend_type = 'walsender' AND wait_event = 'WaitForStandbyConfirmation'";
        wait_for("the subscriber to be kept waiting", PATIENCE, || {
            Ok((self.client.query_one(waits, &[])?.get::<_, i64>(0) == 1).then_some(()))
        })?;
        let pid = worker_pid(&mut self.client)?.context("the primary has no worker")?;
        self.client.query_one("SELECT pg_terminate_backend($1, 10000)", &[&pid])?;
        self.client.batch_execute("DELETE FROM edge WHERE src = 1")?;
        expect_rows(&mut self.client, "reach", 3)?;
        self.client.batch_execute("INSERT INTO edge VALUES (1, 2)")?;
        expect_rows(&mut self.client, "reach", 9)?;
        expect_rows(&mut self.copy, "reach", 3).context("the subscriber was not kept waiting")?;
        self.standby.start()?;
        await_subscriber(&mut self.client)?;
        expect_rows(&mut self.copy, "reach", 9)
    }

    /// A slot moves as soon as the primary's has gone on from where the standby could begin.
    fn slots_move(&mut self) -> Result<()> {
        let mut replica = self.standby.connect("postgres")?;
        let moved = "SELECT count(*) FROM pg_replication_slots \
                     WHERE slot_name = 'copied' AND failover AND synced AND NOT temporary";
        wait_for("the subscriber's slot to move", PATIENCE, || {
            let sql = "INSERT INTO edge VALUES (8, 9); DELETE FROM edge WHERE src = 8";
            self.client.batch_execute(sql)?;
            self.client.batch_execute("SELECT pg_log_standby_snapshot()")?;
            Ok((replica.query_one(moved, &[])?.get::<_, i64>(0) == 1).then_some(()))
        })?;
        let slots = "SELECT count(*), count(*) FILTER (WHERE slot_name LIKE 'pg_eddy%') FROM pg_replication_slots";
        let row = replica.query_one(slots, &[])?;
        let (all, ours): (i64, i64) = (row.get(0), row.get(1));
        ensure!((all, ours) == (1, 0), "{all} slots have moved, {ours} of them of workers");
        Ok(())
    }

    /// The primary is gone at once. The subscriber goes on with what was its standby.
    fn takes_over(&mut self) -> Result<()> {
        self.client.batch_execute("INSERT INTO edge VALUES (4, 5)")?;
        expect_rows(&mut self.client, "reach", 10)?;
        await_subscriber(&mut self.client)?;
        self.primary.stop_immediately()?;
        self.standby.promote()?;
        let mut client = wait_for("the standby to be promoted", PATIENCE, || {
            let mut client = self.standby.connect(DATABASE)?;
            let row = client.query_one("SELECT NOT pg_is_in_recovery()", &[])?;
            Ok(row.get::<_, bool>(0).then_some(client))
        })?;
        expect_rows(&mut client, "reach", 10)?;
        self.copy.batch_execute(&format!(
            "ALTER SUBSCRIPTION copied CONNECTION '{} dbname={DATABASE}'",
            self.standby.connection_text()
        ))?;
        client.batch_execute("DELETE FROM edge WHERE src > 2")?;
        expect_alive(&mut client)?;
        await_subscriber(&mut client)?;
        expect_alive(&mut self.copy).context("the subscriber")?;
        let slots =
            "SELECT string_agg(slot_name, ' ' ORDER BY slot_name) FROM pg_replication_slots";
        let slots: String = client.query_one(slots, &[])?.get(0);
        ensure!(slots.starts_with("copied pg_eddy_"), "slots after the promotion: {slots}");
        Ok(())
    }
}
