//! What a neighbour needs, what users do beside it, and what it has logged.

use std::fmt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{anyhow, ensure, Context, Result};
use harness::cluster::{signal_process, stop_at_rest, wait_for, Cluster};
use harness::installation::Installation;
use postgres::Client;
use rustix::process::Signal;

use crate::graph::worker_pid;

/// Longest wait for what has to happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What a check needs beside PostgreSQL.
#[derive(Clone, Copy)]
pub enum Needs {
    Nothing,
    /// A library that is preloaded.
    Library(&'static str),
    /// An extension that is created.
    Extension(&'static str),
    /// A program that is not PostgreSQL's.
    Program(&'static str),
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Needs::Nothing => write!(f, "nothing"),
            Needs::Library(name) => write!(f, "library {name}"),
            Needs::Extension(name) => write!(f, "extension {name}"),
            Needs::Program(name) => write!(f, "program {name}"),
        }
    }
}

/// Whether an installation has what a check needs.
pub fn is_there(installation: &Installation, needs: Needs) -> bool {
    match needs {
        Needs::Nothing => true,
        Needs::Library(name) => installation.lib.join(format!("{name}.so")).is_file(),
        Needs::Extension(name) => {
            installation.share.join("extension").join(format!("{name}.control")).is_file()
        }
        Needs::Program(name) => find_program(name).is_some(),
    }
}

/// A program of the machine; those for administrators need not be in everybody's path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// A new database with the extension.
pub fn database(cluster: &Cluster, name: &str) -> Result<Client> {
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = cluster.connect(name)?;
    client.batch_execute("SET client_min_messages = warning; CREATE EXTENSION pg_eddy")?;
    Ok(client)
}

/// Statements of a user that make use of all that this extension looks up: types with comparison functions of their
/// own, a function that only PostgreSQL evaluates, with a statement in it, comparison, and what is listed.
pub const SESSION: [&str; 17] = [
    "CREATE TABLE word (id int PRIMARY KEY, word text COLLATE \"C\", price numeric, tags jsonb)",
    "CREATE TABLE page (id int PRIMARY KEY, word int REFERENCES word)",
    "CREATE FUNCTION loud(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE
     AS $$ BEGIN RETURN upper(t) || (SELECT min(relname) FROM pg_catalog.pg_class); END $$",
    "INSERT INTO word SELECT i, 'w' || i, i, '{}' FROM generate_series(1, 50) i",
    "INSERT INTO page SELECT i, i % 50 + 1 FROM generate_series(1, 200) i",
    "CREATE INCREMENTAL VIEW shout AS
     SELECT loud(w.word) AS word, w.tags, count(*) AS pages, sum(w.price) AS price
     FROM word w JOIN page p ON p.word = w.id GROUP BY w.word, w.tags",
    "SELECT count(*) FROM shout",
    "UPDATE word SET word = word || '!' WHERE id < 10",
    "DELETE FROM page WHERE id < 20",
    "SELECT pages FROM shout ORDER BY pages LIMIT 1",
    "SELECT relation, state FROM eddy.views",
    "SELECT * FROM eddy.verify_view('shout')",
    "REFRESH INCREMENTAL VIEW shout",
    "CREATE OR REPLACE INCREMENTAL VIEW shout AS
     SELECT loud(w.word) AS word, w.tags, count(*) AS pages, sum(w.price) AS price, max(p.id) AS page
     FROM word w JOIN page p ON p.word = w.id GROUP BY w.word, w.tags",
    "REFRESH MATERIALIZED VIEW shout",
    "EXPLAIN CREATE INCREMENTAL VIEW louder AS SELECT word FROM shout",
    "SELECT sum(pages) FROM shout",
];

/// What the function of the session does, by its text.
pub const IN_FUNCTION: &str = "upper(t) ||";

/// The read of the session that waits for so long that the reader looks for reasons.
pub const LONG_READ: &str = "SELECT min(pages) FROM shout";

/// Runs the session in a database of that name.
pub fn run_session(cluster: &Cluster, client: &mut Client, database: &str) -> Result<()> {
    for statement in SESSION {
        client.batch_execute(statement)?;
    }
    wait_long(cluster, client, database)
}

fn wait_long(cluster: &Cluster, client: &mut Client, database: &str) -> Result<()> {
    let mut observer = cluster.connect("postgres")?;
    let worker = worker_pid(&mut cluster.connect(database)?)?.context("there is no worker")?;
    stop_at_rest(&mut observer, worker)?;
    client.batch_execute("DELETE FROM page WHERE id < 30")?;
    let mut reader = cluster.connect(database)?;
    let reading = thread::spawn(move || reader.batch_execute(LONG_READ));
    let waits = "SELECT 1 FROM pg_stat_activity WHERE query = $1
                 AND query_start < clock_timestamp() - interval '500 ms'";
    let waited = wait_for("a reader that waits for long", PATIENCE, || {
        Ok(observer.query_opt(waits, &[&LONG_READ])?.map(|_| ()))
    });
    signal_process(worker, Signal::CONT)?;
    waited?;
    Ok(reading.join().map_err(|_| anyhow!("the reader panicked"))??)
}

/// What the server has logged since its log had a length: entries with their first line's kind of process, and the text.
pub fn entries_since(cluster: &Cluster, length: usize) -> Result<Vec<String>> {
    let log = cluster.log()?.split_off(length);
    let mut entries: Vec<String> = Vec::new();
    for line in log.lines() {
        match entries.last_mut() {
            // Every entry begins with a date, and what goes on does so with a tab.
            Some(entry) if line.starts_with('\t') => {
                entry.push('\n');
                entry.push_str(line);
            }
            _ => entries.push(line.to_owned()),
        }
    }
    Ok(entries)
}

/// The view has the rows of its query.
pub fn expect_right(client: &mut Client, view: &str) -> Result<()> {
    let sql = "SELECT missing, surplus FROM eddy.verify_view($1::text::regclass)";
    let row = client.query_one(sql, &[&view])?;
    let (missing, surplus): (i64, i64) = (row.get(0), row.get(1));
    ensure!((missing, surplus) == (0, 0), "{view} lacks {missing} rows and has {surplus} too many");
    Ok(())
}

/// A join of the view looks at what is nearby, and not at all pairs.
pub fn expect_range_join(client: &mut Client, view: &str) -> Result<()> {
    let sql = "SELECT eddy.explain_view($1::text::regclass)";
    let plan: String = client.query_one(sql, &[&view])?.get(0);
    ensure!(plan.contains("Range join"), "{view} looks at all pairs:\n{plan}");
    Ok(())
}

/// A number that a query returns.
pub fn number(client: &mut Client, sql: &str) -> Result<i64> {
    Ok(client.query_one(sql, &[])?.get(0))
}

/// A new folder for a neighbour that runs as the server's user.
pub fn folder(cluster: &Cluster, name: &str) -> Result<PathBuf> {
    let folder = cluster.socket_folder().join(name);
    std::fs::create_dir(&folder)?;
    cluster.installation().user.own(&folder)?;
    Ok(folder)
}

/// A file for it.
pub fn write_file(cluster: &Cluster, file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text)?;
    cluster.installation().user.own(file)
}
