//! The sessions of a round, in a schema of their own.

use anyhow::Result;
use harness::cluster::Cluster;
use postgres::Client;

/// The settings under which views are created and compared with their queries.
pub const OF_VIEWS: &str =
    "SET TimeZone = 'Europe/Berlin'; SET DateStyle = 'ISO, DMY'; SET IntervalStyle = 'postgres';
     SET extra_float_digits = 1; SET bytea_output = 'hex'";

/// Those of a session that only writes.
const OF_OTHERS: &str =
    "SET TimeZone = 'America/New_York'; SET DateStyle = 'SQL, MDY'; SET IntervalStyle = 'iso_8601';
     SET extra_float_digits = -5; SET bytea_output = 'escape'";

pub struct Sessions {
    /// Two that write.
    pub writers: [Client; 2],
    /// One that compares.
    pub reader: Client,
}

impl Sessions {
    /// Opens sessions with `schema`, which is empty, in the search path.
    pub fn open(cluster: &Cluster, schema: &str) -> Result<Sessions> {
        drop_schema(cluster, schema)?;
        let connect = || -> Result<Client> {
            let mut client = cluster.connect_when_ready("postgres")?;
            // Queries over tables that were never analysed look expensive enough to be compiled.
            client.batch_execute(&format!(
                "SET jit = off; SET client_min_messages = warning; SET lock_timeout = '100ms';
                 SET statement_timeout = '30s';
                 CREATE EXTENSION IF NOT EXISTS pg_eddy;
                 CREATE SCHEMA IF NOT EXISTS {schema};
                 SET search_path = {schema}, public"
            ))?;
            Ok(client)
        };
        let (mut writers, mut reader) = ([connect()?, connect()?], connect()?);
        for client in [&mut writers[0], &mut reader] {
            client.batch_execute(OF_VIEWS)?;
        }
        writers[1].batch_execute(OF_OTHERS)?;
        // What it reads was computed once within the time, from fewer rows.
        reader.batch_execute("SET statement_timeout = '10s'")?;
        Ok(Sessions { writers, reader })
    }

    pub fn all(&mut self) -> impl Iterator<Item = &mut Client> {
        self.writers.iter_mut().chain([&mut self.reader])
    }
}

pub fn drop_schema(cluster: &Cluster, schema: &str) -> Result<()> {
    let sql = format!("SET client_min_messages = warning; DROP SCHEMA IF EXISTS {schema} CASCADE");
    Ok(cluster.connect_when_ready("postgres")?.batch_execute(&sql)?)
}

/// Has views keep indexes together, or each its own, from now on.
pub fn share_indexes(cluster: &Cluster, are_shared: bool) -> Result<()> {
    let mut client = cluster.connect_when_ready("postgres")?;
    client.batch_execute(&format!("ALTER SYSTEM SET eddy.share_indexes = {are_shared}"))?;
    // Every part of a plan, so that it need not be drawn several times.
    client.batch_execute("ALTER SYSTEM SET eddy.share_plans_from = 1")?;
    Ok(client.batch_execute("SELECT pg_reload_conf()")?)
}
