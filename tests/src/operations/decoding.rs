//! Logical decoding on a standby: slots of users there decode what tables and views of the primary do, views of a subscriber that
//! follows the standby are right, and neither views that come and go nor a promotion disturbs them.

use std::time::Duration;

use anyhow::{anyhow, ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use postgres::Client;

use super::lag::await_replayed;
use super::site::{Record, Site};
use super::times::Times;
use crate::graph::{expect_alive, expect_rows, graph_database};

/// Versions from this one on decode on standbys.
const FIRST: u32 = 16;

const PATIENCE: Duration = Duration::from_secs(60);

const DATABASE: &str = "graph";

pub fn run(site: &Site, _times: &mut Times, record: Record) {
    if site.major() < FIRST {
        return;
    }
    let mut servers = match Servers::start(site) {
        Ok(servers) => servers,
        Err(error) => return record("a standby with slots for logical decoding", Err(error)),
    };
    let decoded = servers.decodes();
    record("a standby decodes what its primary's tables and views do", decoded);
    record("workers and their slots stay away from a standby", servers.is_left_alone());
    record("eddy.views and eddy.check() say on a standby what they show", servers.tells());
    record("views come and go beside slots of a standby", servers.bears_statements());
    record("views of a standby's subscriber follow", servers.is_followed());
    record("slots of a standby go on after its promotion", servers.is_promoted());
}

/// On the primary there is another database, which subscribes to the standby.
struct Servers {
    primary: Cluster,
    standby: Cluster,
    client: Client,
    replica: Client,
    subscriber: Client,
}

impl Servers {
    fn start(site: &Site) -> Result<Servers> {
        let primary = site.start("decoded", &[])?;
        let mut client = graph_database(&primary, DATABASE)?;
        client.batch_execute(
            "CREATE PUBLICATION edges FOR TABLE edge;
             SELECT pg_create_physical_replication_slot('standby', true)",
        )?;
        let arguments = ["--write-recovery-conf", "--slot=standby"];
        let mut standby = primary.back_up(site.folder(), "decoding", &arguments)?;
        // Or the primary takes away rows of catalogs that decoding needs.
        standby.set(&[("hot_standby_feedback", "on")])?;
        standby.start()?;
        for (slot, plugin) in [("own", "test_decoding"), ("copied", "pgoutput")] {
            create_slot(&mut client, &standby, slot, plugin)?;
        }
        let mut subscriber = graph_database(&primary, "copy")?;
        subscriber.batch_execute(&format!(
            "CREATE SUBSCRIPTION copy CONNECTION '{} dbname={DATABASE}' PUBLICATION edges
             WITH (create_slot = false, slot_name = copied, copy_data = false, synchronous_commit = on)",
            standby.connection_text()
        ))?;
        let replica = standby.connect(DATABASE)?;
        Ok(Servers { primary, standby, client, replica, subscriber })
    }

    /// A loop is closed and opened, which makes six rows of the view and takes them away. Rows of views have an origin.
    fn decodes(&mut self) -> Result<()> {
        expect_alive(&mut self.client)?;
        await_replayed(&mut self.client, &mut self.replica)?;
        let sql = "SELECT count(*) FILTER (WHERE data LIKE 'table public.edge: %'),
                       count(*) FILTER (WHERE data LIKE 'table public.reach: %')
                   FROM pg_logical_slot_peek_changes('own', NULL, NULL, 'only-local', '1')";
        let row = self.replica.query_one(sql, &[])?;
        let (edges, pairs): (i64, i64) = (row.get(0), row.get(1));
        ensure!(
            (edges, pairs) == (2, 0),
            "{edges} changes of the table are local, {pairs} of the view"
        );
        let changes = self.changes()?;
        for (relation, kind, wanted) in [
            ("edge", "INSERT", 1),
            ("edge", "DELETE", 1),
            ("reach", "INSERT", 6),
            ("reach", "DELETE", 6),
        ] {
            let head = format!("table public.{relation}: {kind}:");
            let found = changes.iter().filter(|change| change.starts_with(&head)).count();
            ensure!(found == wanted, "{found} times {kind} of {relation}: {changes:#?}");
        }
        Ok(())
    }

    /// What the slot of the standby has that it has not said yet.
    fn changes(&mut self) -> Result<Vec<String>> {
        await_replayed(&mut self.client, &mut self.replica)?;
        let sql = "SELECT data FROM pg_logical_slot_get_changes('own', NULL, NULL)";
        Ok(self.replica.query(sql, &[])?.iter().map(|row| row.get(0)).collect())
    }

    fn is_left_alone(&mut self) -> Result<()> {
        let slots =
            "SELECT string_agg(slot_name, ' ' ORDER BY slot_name) FROM pg_replication_slots";
        let slots: Option<String> = self.replica.query_one(slots, &[])?.get(0);
        ensure!(slots.as_deref() == Some("copied own"), "the standby has slots {slots:?}");
        let ours = "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'pg_eddy%'";
        let ours: i64 = self.replica.query_one(ours, &[])?.get(0);
        ensure!(ours == 0, "{ours} processes of ours run on the standby");
        Ok(())
    }

    fn tells(&mut self) -> Result<()> {
        let sql = "SELECT state, message FROM eddy.views";
        let row = self.replica.query_one(sql, &[])?;
        let (state, message): (&str, Option<&str>) = (row.get(0), row.get(1));
        let is_told = message.is_some_and(|message| message.contains("in recovery"));
        ensure!(state == "stopped" && is_told, "the view is {state}: {message:?}");
        let rows = self.replica.query("SELECT level, subject, message FROM eddy.check()", &[])?;
        let found: Vec<[String; 3]> =
            rows.iter().map(|row| [row.get(0), row.get(1), row.get(2)]).collect();
        ensure!(found.is_empty(), "eddy.check() finds {found:?}");
        Ok(())
    }

    /// What happens to views while the slots are there: their rows are written anew, they get columns, names, indexes, and go.
    fn bears_statements(&mut self) -> Result<()> {
        self.client.batch_execute(
            "CREATE INCREMENTAL VIEW ends AS SELECT dst, count(*) FROM edge GROUP BY dst;
             CREATE UNIQUE INDEX ON ends (dst);
             ALTER INCREMENTAL VIEW ends RENAME TO targets",
        )?;
        self.client.batch_execute("REFRESH INCREMENTAL VIEW reach")?;
        self.client.batch_execute("INSERT INTO edge VALUES (7, 8)")?;
        expect_rows(&mut self.client, "targets", 3)?;
        // It may be behind the other: what is deleted before it has come is never written.
        self.client.batch_execute("SELECT count(*) FROM reach")?;
        for vacuum in ["VACUUM FULL targets", "VACUUM pg_class, pg_attribute"] {
            self.client.batch_execute(vacuum)?;
        }
        self.client.batch_execute("DELETE FROM edge WHERE src = 7")?;
        expect_rows(&mut self.client, "targets", 2)?;
        self.client.batch_execute("DROP INCREMENTAL VIEW targets")?;
        let changes = self.changes()?;
        for wanted in
            ["table public.reach: INSERT: a[integer]:7 b[integer]:8", "table public.targets: "]
        {
            let is_there = changes.iter().any(|change| change.starts_with(wanted));
            ensure!(is_there, "{wanted} is missing: {changes:#?}");
        }
        expect_rows(&mut self.replica, "reach", 3)
    }

    fn is_followed(&mut self) -> Result<()> {
        self.client.batch_execute("INSERT INTO edge VALUES (3, 1)")?;
        self.await_copy(9)?;
        self.client.batch_execute("DELETE FROM edge WHERE src = 3")?;
        self.await_copy(3)
    }

    fn await_copy(&mut self, rows: i64) -> Result<()> {
        wait_for("the standby's subscriber to follow", PATIENCE, || {
            Ok(expect_rows(&mut self.subscriber, "reach", rows).ok())
        })
    }

    /// The former primary stays, with the database that subscribes to what was its standby.
    fn is_promoted(&mut self) -> Result<()> {
        self.changes()?;
        self.standby.promote()?;
        let sql = "SELECT NOT pg_is_in_recovery()";
        wait_for("the standby to be promoted", PATIENCE, || {
            Ok(self.replica.query_one(sql, &[])?.get::<_, bool>(0).then_some(()))
        })?;
        expect_alive(&mut self.replica)?;
        let sql = "SELECT data FROM pg_logical_slot_get_changes('own', NULL, NULL)";
        let changes = self.replica.query(sql, &[])?;
        let inserts = changes.iter().filter(|row| row.get::<_, &str>(0).contains(".reach: INSERT"));
        ensure!(inserts.count() == 6, "the slot has something else: {changes:?}");
        self.replica.batch_execute("INSERT INTO edge VALUES (3, 1)")?;
        self.await_copy(9)?;
        expect_alive_beside(&self.primary)
    }
}

/// The former primary knows nothing of it.
fn expect_alive_beside(primary: &Cluster) -> Result<()> {
    expect_alive(&mut primary.connect(DATABASE)?)
}

/// Makes a slot on a standby. It waits there for its primary to say which transactions run.
fn create_slot(client: &mut Client, standby: &Cluster, name: &str, plugin: &str) -> Result<()> {
    let mut session = standby.connect(DATABASE)?;
    let sql = format!("SELECT pg_create_logical_replication_slot('{name}', '{plugin}')");
    let creation = std::thread::spawn(move || session.batch_execute(&sql));
    wait_for("a slot of the standby", PATIENCE, || {
        client.batch_execute("SELECT pg_log_standby_snapshot()")?;
        Ok(creation.is_finished().then_some(()))
    })?;
    let created = creation.join().map_err(|_| anyhow!("the thread panicked"))?;
    created.with_context(|| format!("creating slot {name}"))
}
