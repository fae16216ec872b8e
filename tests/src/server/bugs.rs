//! A bug of ours, in a server whose environment asks for backtraces: the client gets the message alone, the log what helps to
//! find it.

use std::path::Path;

use anyhow::{ensure, Context, Result};
use harness::cluster::Cluster;
use harness::installation::Installation;
use harness::throwaway::FAST;
use postgres::Client;

use super::check::Record;

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    record("backtraces are in the log and nowhere else", check(installation, folder));
}

fn check(installation: &Installation, folder: &Path) -> Result<()> {
    let mut cluster = Cluster::start_new(installation, folder, "bugs", FAST)?;
    cluster.restart_in_environment("RUST_BACKTRACE", "1")?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_eddy")?;
    client.batch_execute("CREATE DATABASE other")?;
    cluster.connect("other")?.batch_execute("CREATE EXTENSION pg_eddy")?;
    // An error of PostgreSQL that passes through our code is none of our bugs.
    expect_message(&mut client, "CREATE INCREMENTAL VIEW v AS SELECT * FROM nowhere", "nowhere")?;
    expect_message(&mut client, "SELECT eddy.verify_view('pg_class')", "pg_class")?;
    let log = cluster.log()?;
    ensure!(!log.contains("a bug at"), "an error is taken for a bug: {log}");
    client.batch_execute("SET eddy.crash_point = 'hold=panic'")?;
    expect_message(&mut client, "DROP DATABASE other", "reached crash point")?;
    let log = cluster.log()?;
    for expected in ["pg_eddy: a bug at ", "reached crash point", "before_database_command"] {
        ensure!(log.contains(expected), "the log lacks {expected}: {log}");
    }
    client.batch_execute("RESET eddy.crash_point")?;
    Ok(client.batch_execute("DROP DATABASE other")?)
}

/// The statement fails with a message that has the word, and neither detail nor context.
fn expect_message(client: &mut Client, sql: &str, word: &str) -> Result<()> {
    let error = client.batch_execute(sql).err().context("no error")?;
    let report = error.as_db_error().context("the session was lost")?;
    ensure!(report.message().contains(word), "{report}");
    let more = (report.detail(), report.where_());
    ensure!(more == (None, None), "the client gets {more:?}");
    Ok(())
}
