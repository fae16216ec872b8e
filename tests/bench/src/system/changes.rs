//! What it costs to keep the changes of a view, or to have its rows in a table, too: the same view with such a table and without one,
//! and logical replication of a table that has the same rows.
//!
//! Many rows: an owner gets another name, and with it all rows of the view that name it; the time counts from the end of COMMIT to a
//! read. Few rows: many transactions that replace one row each, until the view has all of them; and one of them alone until a read.

use std::time::Duration;

use anyhow::Result;
use harness::cluster::Cluster;
use harness::timing::{median, readable, timed};
use postgres::Client;
use serde_json::json;

use super::setting::{verify, wait_for_views, Setting};
use super::subject::run_script;
use super::writers::turn;
use crate::compare::Ratio;
use crate::record::Recorder;

pub const NAME: &str = "system/changes";

const OWNERS: u32 = 40;
/// Rows of the view for each.
const SHARE: u32 = 5000;
const QUICK_SHARE: u32 = 100;
/// Transactions of one row.
const SINGLE: u32 = 20_000;
const QUICK_SINGLE: u32 = 200;
/// Those that are waited for, one by one.
const AWAITED: u32 = 300;

const TABLES: &str = "
    SET client_min_messages = warning; SET synchronous_commit = off; SET eddy.read_timeout = '10min';
    CREATE EXTENSION pg_eddy;
    CREATE TABLE owner (id int PRIMARY KEY, name text NOT NULL);
    CREATE TABLE part (id int PRIMARY KEY, owner int NOT NULL, amount int NOT NULL);
    INSERT INTO part SELECT i, (i - 1) / {share}, i % 77 FROM generate_series(1, {share} * {owners}) i;
    INSERT INTO owner SELECT i, 'owner ' || i FROM generate_series(0, {owners} - 1) i;
    VACUUM ANALYZE part, owner;";

const VIEW: &str = "
    CREATE INCREMENTAL VIEW subject {options} AS
        SELECT p.id, p.amount, o.name FROM part p JOIN owner o ON o.id = p.owner;
    SELECT FROM subject LIMIT 1;";

/// The columns of the view as those of a table.
const COLUMNS: &str = "subject (id int PRIMARY KEY, amount int, name text)";

/// What is sent, and what sends it: its slot is made beforehand, for a subscription in the same cluster would wait for itself.
const SENT: &str = "
    INSERT INTO subject SELECT p.id, p.amount, o.name FROM part p JOIN owner o ON o.id = p.owner;
    CREATE PUBLICATION sent FOR TABLE subject;
    SELECT pg_create_logical_replication_slot('sent', 'pgoutput');";

/// Many transactions of one row each.
const PROCEDURE: &str = "
    CREATE PROCEDURE change_single(n int) LANGUAGE plpgsql AS $$
    BEGIN
        FOR i IN 1..n LOOP
            UPDATE {table} SET amount = amount + 1 WHERE id = 1 + i * 7919 % ({share} * {owners});
            COMMIT;
        END LOOP;
    END$$";

/// Another name for an owner, in the view's tables, and in the table that is sent.
const OWNER: &str = "UPDATE owner SET name = {name} WHERE id = {owner}";
const OWNED: &str =
    "UPDATE subject SET name = {name} WHERE id > {owner} * {share} AND id <= ({owner} + 1) * {share}";
const NAMES: &str = "CASE WHEN name LIKE 'owner%' THEN 'other ' ELSE 'owner ' END || {owner}";

/// A database with the view, or with a table instead that is sent to another one.
struct Side {
    name: &'static str,
    client: Client,
    is_sent: bool,
    rates: Vec<Rates>,
}

/// Rows a second of many; transactions a second of single rows, and seconds of one of these alone.
#[derive(Clone, Copy)]
struct Rates {
    many: f64,
    single: f64,
    latency: f64,
}

/// Prints a table and records every run.
pub fn measure(setting: &Setting, recorder: &mut Recorder) -> Result<()> {
    println!("{NAME}: a view, one with a table of its changes, one with a table of its rows, and a table that is replicated");
    setting.with_cluster(&[], |cluster, _| {
        let share = setting.choose(SHARE, QUICK_SHARE);
        let mut sides = [
            Side::view(cluster, "view", share, "")?,
            Side::view(cluster, "changes", share, "WITH (changes = '1 hour')")?,
            Side::view(cluster, "mirror", share, "WITH (storage = table)")?,
            Side::sent(cluster, share)?,
        ];
        // The first run warms caches.
        for run in 0..=setting.pairs() {
            for number in turn(run, sides.len()) {
                let rates = sides[number].run(setting, share)?;
                if run > 0 {
                    sides[number].rates.push(rates);
                }
            }
        }
        for side in sides.iter_mut().filter(|side| !side.is_sent) {
            verify(&mut side.client, "subject")?;
        }
        print(&sides, recorder)
    })
}

fn filled(script: &str, share: u32) -> String {
    script.replace("{share}", &share.to_string()).replace("{owners}", &OWNERS.to_string())
}

impl Side {
    fn create(cluster: &Cluster, name: &'static str, share: u32, table: &str) -> Result<Side> {
        cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
        let mut client = cluster.connect(name)?;
        run_script(&mut client, &filled(TABLES, share))?;
        client.batch_execute(&filled(PROCEDURE, share).replace("{table}", table))?;
        Ok(Side { name, client, is_sent: false, rates: Vec::new() })
    }

    fn view(cluster: &Cluster, name: &'static str, share: u32, options: &str) -> Result<Side> {
        let mut side = Side::create(cluster, name, share, "part")?;
        run_script(&mut side.client, &VIEW.replace("{options}", options))?;
        Ok(side)
    }

    fn sent(cluster: &Cluster, share: u32) -> Result<Side> {
        let mut side = Side { is_sent: true, ..Side::create(cluster, "sent", share, "subject")? };
        side.client.batch_execute(&format!("CREATE TABLE {COLUMNS}"))?;
        run_script(&mut side.client, SENT)?;
        cluster.connect("postgres")?.batch_execute("CREATE DATABASE received")?;
        let mut receiver = cluster.connect("received")?;
        let folder = cluster.socket_folder().display();
        receiver.batch_execute(&format!("CREATE TABLE {COLUMNS}"))?;
        receiver.batch_execute(&format!(
            "CREATE SUBSCRIPTION received CONNECTION 'host={folder} port=5432 user=postgres dbname=sent' \
             PUBLICATION sent WITH (create_slot = false, slot_name = sent)"
        ))?;
        Ok(side)
    }

    fn run(&mut self, setting: &Setting, share: u32) -> Result<Rates> {
        self.settle()?;
        let mut time = Duration::ZERO;
        let statement = if self.is_sent { OWNED } else { OWNER };
        for owner in 0..OWNERS {
            let statement = filled(&statement.replace("{name}", NAMES), share);
            self.client.batch_execute(&statement.replace("{owner}", &owner.to_string()))?;
            time += timed(|| self.settle())?.1;
        }
        let many = f64::from(OWNERS * share) / time.as_secs_f64();
        let count = setting.choose(SINGLE, QUICK_SINGLE);
        let (_, time) = timed(|| {
            self.change_single(count)?;
            self.settle()
        })?;
        let single = f64::from(count) / time.as_secs_f64();
        let mut latencies = Vec::new();
        for _ in 0..AWAITED {
            self.change_single(1)?;
            latencies.push(timed(|| self.settle())?.1.as_secs_f64());
        }
        Ok(Rates { many, single, latency: median(&latencies) })
    }

    fn change_single(&mut self, count: u32) -> Result<()> {
        self.client.batch_execute(&format!("CALL change_single({count})")).map_err(Into::into)
    }

    /// All that has been committed has arrived.
    fn settle(&mut self) -> Result<()> {
        if !self.is_sent {
            return wait_for_views(&mut self.client);
        }
        let sql = "SELECT pg_current_wal_insert_lsn()::text";
        let target: String = self.client.query_one(sql, &[])?.get(0);
        let arrived = format!(
            "SELECT 1 FROM pg_stat_replication WHERE application_name = 'received' AND replay_lsn >= '{target}'"
        );
        while self.client.query_opt(&arrived, &[])?.is_none() {
            self.client.batch_execute("SELECT pg_sleep(0.0002)")?;
        }
        Ok(())
    }
}

fn print(sides: &[Side], recorder: &mut Recorder) -> Result<()> {
    println!(
        "{:<9} {:>10} {:>7} {:>10} {:>7} {:>9}",
        "", "rows/s", "cost", "single/s", "cost", "latency"
    );
    let of =
        |side: &Side, rate: fn(&Rates) -> f64| side.rates.iter().map(rate).collect::<Vec<f64>>();
    for side in sides {
        let (many, single) = (of(side, |rates| rates.many), of(side, |rates| rates.single));
        let latency = of(side, |rates| rates.latency);
        let cost_of_many = Ratio::of_pairs(&of(&sides[0], |rates| rates.many), &many);
        let cost_of_single = Ratio::of_pairs(&of(&sides[0], |rates| rates.single), &single);
        println!(
            "{:<9} {:>10.0} {:>7.2} {:>10.0} {:>7.2} {:>9}",
            side.name,
            median(&many),
            cost_of_many.median,
            median(&single),
            cost_of_single.median,
            readable(Duration::from_secs_f64(median(&latency))),
        );
        recorder.write(&json!({
            "kind": "changes", "name": NAME, "side": side.name, "rows_per_second": many,
            "single_per_second": single, "latency_seconds": latency,
            "cost_of_many": cost_of_many.median, "cost_of_single": cost_of_single.median,
        }))?;
    }
    println!("(cost: time as a multiple of that of the view alone, by pairs)\n");
    Ok(())
}
