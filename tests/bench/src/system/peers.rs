//! Peers: the same join and aggregate views under the same load, maintained by pg_eddy, by pg_ivm
//! where it is installed in the server, and not at all. pg_ivm maintains within the writers'
//! transactions, so its cost shows in their rate, and readers are never behind.

use std::path::Path;

use anyhow::Result;
use harness::cluster::Cluster;
use harness::load::Load;
use harness::timing::median;
use postgres::Client;
use serde_json::json;

use super::pgbench::{create_database, load, VIEWS};
use super::setting::{wait_for_views, Setting};
use super::writers::turn;
use crate::compare::Ratio;
use crate::record::Recorder;

pub const NAME: &str = "system/peers";

const SCALE: u32 = 10;
const QUICK_SCALE: u32 = 1;
const SECONDS: f64 = 20.0;
const QUICK_SECONDS: f64 = 1.0;

/// An aggregate and a join that both extensions support.
const COMPARED: [&str; 2] = ["branch_totals", "teller_branches"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    None,
    PgEddy,
    PgIvm,
}

impl Peer {
    const ALL: [Peer; 3] = [Peer::None, Peer::PgEddy, Peer::PgIvm];

    fn as_str(self) -> &'static str {
        match self {
            Peer::None => "none",
            Peer::PgEddy => "pg_eddy",
            Peer::PgIvm => "pg_ivm",
        }
    }
}

/// A database in which a view is maintained by one of them.
struct Side {
    peer: Peer,
    load: Load,
    client: Client,
    rates: Vec<f64>,
}

/// Prints the rates, or that there is nothing to compare with, and records either.
pub fn measure(setting: &Setting, recorder: &mut Recorder) -> Result<()> {
    println!("{NAME}: pgbench's TPC-B-like transactions per second with one view, 8 clients");
    setting.with_cluster(&[], |cluster, folder| {
        let mut client = cluster.connect("postgres")?;
        let installed = client.query_opt(
            "SELECT default_version FROM pg_available_extensions WHERE name = 'pg_ivm'",
            &[],
        )?;
        let version: Option<String> = installed.and_then(|row| row.get(0));
        recorder.write(&json!({ "kind": "peer", "name": NAME, "pg_ivm": version }))?;
        let Some(version) = version else {
            println!("pg_ivm is not installed in this server: nothing to compare with\n");
            return Ok(());
        };
        println!("pg_ivm {version}");
        println!("{:<16} {:<8} {:>9} {:>6}  spread", "view", "by", "tps", "ratio");
        for view in COMPARED {
            measure_view(setting, cluster, folder, view, recorder)?;
        }
        println!("(ratios to no view, by pairs)\n");
        Ok(())
    })
}

fn measure_view(
    setting: &Setting,
    cluster: &Cluster,
    folder: &Path,
    view: &str,
    recorder: &mut Recorder,
) -> Result<()> {
    let scale = setting.choose(SCALE, QUICK_SCALE);
    let sides = Peer::ALL.map(|peer| Side::create(cluster, folder, peer, view, scale));
    let mut sides = sides.into_iter().collect::<Result<Vec<Side>>>()?;
    let seconds = setting.duration(SECONDS, QUICK_SECONDS)?.as_secs().max(1) as u32;
    for pair in 0..setting.pairs() {
        for index in turn(pair, sides.len()) {
            let side = &mut sides[index];
            side.rates.push(side.load.run(cluster, seconds)?);
            side.settle()?;
            recorder.write(&json!({
                "kind": "peers", "name": NAME, "view": view, "by": side.peer.as_str(),
                "scale": scale, "run": pair, "seconds": seconds,
                "transactions_per_second": side.rates[pair],
            }))?;
        }
    }
    for side in &sides {
        let ratio = Ratio::of_pairs(&side.rates, &sides[0].rates);
        println!("{view:<16} {:<8} {:>9.0} {ratio}", side.peer.as_str(), median(&side.rates));
    }
    Ok(())
}

impl Side {
    fn create(
        cluster: &Cluster,
        folder: &Path,
        peer: Peer,
        view: &str,
        scale: u32,
    ) -> Result<Side> {
        let database = format!("{view}_{}", peer.as_str());
        create_database(cluster, &database, scale)?;
        let mut client = cluster.connect(&database)?;
        client.batch_execute("SET client_min_messages = warning")?;
        let query = VIEWS.iter().find(|(name, _)| *name == view).map_or("", |(_, query)| query);
        match peer {
            Peer::None => {}
            Peer::PgEddy => client.batch_execute(&format!(
                "CREATE EXTENSION pg_eddy; CREATE INCREMENTAL VIEW {view} AS {query}"
            ))?,
            Peer::PgIvm => {
                client.batch_execute("CREATE EXTENSION pg_ivm")?;
                // Its schema has changed between its versions.
                let function = client.query_one(
                    "SELECT p.oid::regproc::text FROM pg_proc p WHERE p.proname = 'create_immv'",
                    &[],
                )?;
                let function: String = function.get(0);
                client.execute(&format!("SELECT {function}($1, $2)"), &[&view, &query])?;
            }
        }
        let load = load(folder, &database, scale)?;
        let mut side = Side { peer, load, client, rates: vec![] };
        side.settle()?;
        side.load.run(cluster, 1)?;
        side.settle()?;
        Ok(side)
    }

    /// The next run must not share the machine with what is left of this one.
    fn settle(&mut self) -> Result<()> {
        if self.peer == Peer::PgEddy {
            wait_for_views(&mut self.client)?;
        }
        Ok(())
    }
}
