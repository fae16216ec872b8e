//! Subscriptions that ask where a row came from (`origin`): two servers that replicate a table to each other, and databases that
//! follow one of them, with all it has or with what was written there alone. Views over the table are right in each of them,
//! and no row comes around.

use anyhow::{ensure, Context, Result};
use harness::cluster::Cluster;
use postgres::Client;

use super::site::{Record, Site};
use super::subscriber::{await_copied, await_subscriber};
use super::times::Times;
use crate::ledger::{differences, View};

/// Versions from this one on know what has come from elsewhere, and apply large transactions in parallel.
const FIRST: u32 = 16;

/// A small part of transactions is kept in memory: large ones are sent, and handed to views, while they run.
const SETTINGS: &[(&str, &str)] = &[("logical_decoding_work_mem", "64kB")];

/// The table has no key: a row that comes around is there twice.
const SCHEMA: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE TABLE link (site text, src int, dst int);
    ALTER TABLE link REPLICA IDENTITY FULL;
    CREATE PUBLICATION links FOR TABLE link";

const VIEWS: [View; 2] = [
    ("shares", "SELECT site, count(*) AS links, sum(src + dst) AS ends FROM link GROUP BY site"),
    (
        "paths",
        "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM link WHERE src < 100 UNION \
         SELECT r.a, l.dst FROM r JOIN link l ON l.src = r.b) SELECT a, b FROM r",
    ),
];

/// Links that each of two servers makes one by one, of which it takes 10 away, and those that it makes at once.
const ONE_BY_ONE: i64 = 30;
const REMOVED: i64 = 10;
const AT_ONCE: i64 = 5000;

pub fn run(site: &Site, _times: &mut Times, record: Record) {
    if site.major() < FIRST {
        return;
    }
    let mut mesh = match Mesh::start(site) {
        Ok(mesh) => mesh,
        Err(error) => return record("two servers that subscribe to each other", Err(error)),
    };
    let written = mesh.write().context("writing on both sides");
    record("two servers that replicate to each other have their views, no row twice", written);
    record("views follow a subscription with origin = any", mesh.follows_everything());
    record("views follow a subscription with origin = none", mesh.follows_one_side());
}

/// A database with the table and views over it.
struct Place {
    name: &'static str,
    client: Client,
}

/// Two servers, `left` and `right`, that subscribe to each other; on `left` two more databases that subscribe to `right`.
struct Mesh {
    left: Place,
    right: Place,
    everything: Place,
    one_side: Place,
    /// They run as long as the sessions are used.
    _servers: [Cluster; 2],
}

impl Mesh {
    fn start(site: &Site) -> Result<Mesh> {
        let servers = [site.start("left", SETTINGS)?, site.start("right", SETTINGS)?];
        let [on_left, on_right] = &servers;
        let mut left = Place::create(on_left, "left_side")?;
        let mut right = Place::create(on_right, "right_side")?;
        let mut everything = Place::create(on_left, "everything")?;
        let mut one_side = Place::create(on_left, "one_side")?;
        left.subscribe(on_right, "right_side", "none")?;
        right.subscribe(on_left, "left_side", "none")?;
        everything.subscribe(on_right, "right_side", "any")?;
        one_side.subscribe(on_right, "right_side", "none")?;
        Ok(Mesh { left, right, everything, one_side, _servers: servers })
    }

    /// Both sides write, in turn, so that what comes from the other side is between what is their own.
    fn write(&mut self) -> Result<()> {
        for number in 0..ONE_BY_ONE {
            for side in [&mut self.left, &mut self.right] {
                side.client.batch_execute(&format!(
                    "INSERT INTO link VALUES (current_database(), {number}, ({number} * 7 + 3) % 30)"
                ))?;
            }
        }
        for side in [&mut self.left, &mut self.right] {
            side.client.batch_execute(&format!(
                "UPDATE link SET dst = dst + 1 WHERE site = current_database() AND src % 2 = 0;
                 INSERT INTO link SELECT current_database(), i, i FROM generate_series(1000, 999 + {AT_ONCE}) i;
                 DELETE FROM link WHERE site = current_database() AND src < {REMOVED}"
            ))?;
        }
        self.settle()?;
        let own = ONE_BY_ONE - REMOVED + AT_ONCE;
        for place in [&mut self.left, &mut self.right] {
            place.expect_links(&[("left_side", own), ("right_side", own)])?;
            place.expect_right()?;
        }
        ensure!(self.left.digest()? == self.right.digest()?, "the two sides differ");
        Ok(())
    }

    /// Waits until what each side has committed has come wherever it goes.
    fn settle(&mut self) -> Result<()> {
        // What the left side wrote goes on from the right one.
        await_subscriber(&mut self.left.client)?;
        await_subscriber(&mut self.right.client)
    }

    fn follows_everything(&mut self) -> Result<()> {
        self.everything.expect_right()?;
        let wanted = self.right.digest()?;
        ensure!(self.everything.digest()? == wanted, "it is not what the publisher has");
        Ok(())
    }

    fn follows_one_side(&mut self) -> Result<()> {
        self.one_side.expect_links(&[("right_side", ONE_BY_ONE - REMOVED + AT_ONCE)])?;
        self.one_side.expect_right()
    }
}

impl Place {
    fn create(server: &Cluster, name: &'static str) -> Result<Place> {
        server.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
        let mut client = server.connect(name)?;
        client.batch_execute(SCHEMA)?;
        for (view, query) in VIEWS {
            client.batch_execute(&format!("CREATE INCREMENTAL VIEW {view} AS {query}"))?;
        }
        Ok(Place { name, client })
    }

    fn subscribe(&mut self, publisher: &Cluster, database: &str, origin: &str) -> Result<()> {
        let (name, source) = (self.name, publisher.connection_text());
        self.client.batch_execute(&format!(
            "CREATE SUBSCRIPTION {name} CONNECTION '{source} dbname={database}' PUBLICATION links
             WITH (origin = {origin}, streaming = parallel, synchronous_commit = on)"
        ))?;
        await_copied(&mut self.client)
    }

    /// The links of each site in the view, and no failure of a subscription on the way.
    fn expect_links(&mut self, wanted: &[(&str, i64)]) -> Result<()> {
        let rows = self.client.query("SELECT site, links FROM shares ORDER BY site", &[])?;
        let found: Vec<(String, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let wanted: Vec<(String, i64)> =
            wanted.iter().map(|(site, links)| ((*site).to_owned(), *links)).collect();
        ensure!(found == wanted, "{} has {found:?}", self.name);
        let failures = "SELECT coalesce(sum(apply_error_count), 0)::bigint \
                        FROM pg_stat_subscription_stats WHERE subname = current_database()";
        let failures: i64 = self.client.query_one(failures, &[])?.get(0);
        ensure!(failures == 0, "{} could not apply what came", self.name);
        Ok(())
    }

    /// The views are what their queries are, for a fresh read.
    fn expect_right(&mut self) -> Result<()> {
        let wrong = differences(&mut self.client, &VIEWS)?;
        ensure!(wrong.is_empty(), "{}: {}", self.name, wrong.join("; "));
        Ok(())
    }

    fn digest(&mut self) -> Result<String> {
        let sql = "SELECT md5(string_agg(l::text, ',' ORDER BY l::text)) FROM link l";
        let links: Option<String> = self.client.query_one(sql, &[])?.get(0);
        links.context("there are no links")
    }
}
