//! A program that follows the table of a view's changes by logical replication, as connectors for change data capture do: it reads what
//! pgoutput sends ([protocol](https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html)), is killed at random,
//! and goes on from where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::Cluster;
use harness::dice::Dice;
use harness::installation::Installation;
use postgres::Client;

use super::changes::{change, disturb, position, rows, TABLES, VIEWS};

const ROUNDS: usize = 12;
const CHANGES: usize = 25;

/// What a row of the table says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    lsn: String,
    diff: i64,
    /// The view's columns, as text.
    row: Vec<Option<String>>,
}

/// What the program keeps: in one transaction of its own, as it were.
#[derive(Default)]
struct Follower {
    /// The end of the last transaction that it has taken.
    position: u64,
    /// Multiplicities of rows.
    state: BTreeMap<Vec<Option<String>>, i64>,
    /// Groups that it has seen, to find out whether one comes twice.
    groups: BTreeSet<String>,
}

impl Follower {
    fn take(&mut self, end: u64, events: Vec<Event>) -> Result<()> {
        if end <= self.position {
            // It was killed before it could say that it has this.
            return Ok(());
        }
        let groups: BTreeSet<String> = events.iter().map(|event| event.lsn.clone()).collect();
        for group in groups {
            ensure!(self.groups.insert(group.clone()), "the changes of {group} come twice");
        }
        for Event { diff, row, .. } in events {
            let count = self.state.entry(row).or_default();
            *count += diff;
            ensure!(*count >= 0, "more rows go than have come");
        }
        self.state.retain(|_, count| *count != 0);
        self.position = end;
        Ok(())
    }

    /// Its rows as the view has them.
    fn rows(&self) -> Vec<String> {
        let text = |row: &Vec<Option<String>>| {
            let fields: Vec<&str> = row.iter().map(|v| v.as_deref().unwrap_or("")).collect();
            format!("({})", fields.join(","))
        };
        let mut rows: Vec<String> = self
            .state
            .iter()
            .flat_map(|(row, count)| std::iter::repeat_n(text(row), *count as usize))
            .collect();
        rows.sort();
        rows
    }
}

pub fn check(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "events", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    for (view, query) in VIEWS {
        client.batch_execute(&format!(
            "CREATE INCREMENTAL VIEW {view} WITH (changes = '1 day') AS {query}"
        ))?;
    }
    let (view, _) = VIEWS[0];
    client.batch_execute(&format!(
        "CREATE PUBLICATION events FOR TABLE {view}_changes WITH (publish = 'insert')"
    ))?;
    client.batch_execute(&format!("TABLE {view}"))?;
    client.batch_execute("SELECT pg_create_logical_replication_slot('events', 'pgoutput')")?;
    let mut follower = Follower::default();
    follower.take(1, initial(&mut client, view)?)?;
    let mut dice = Dice::new(1);
    for round in 0..ROUNDS {
        for _ in 0..CHANGES {
            change(&mut client, &mut dice)?;
        }
        if dice.chance(50) {
            disturb(&mut client, &mut dice)?;
        }
        let found = rows(&mut client, &format!("TABLE {view}"))?;
        let end = position(&mut client)?;
        if dice.chance(60) {
            read(&cluster, &mut follower, &end, Some(dice.range(1, 60) as u64))?;
        }
        read(&cluster, &mut follower, &end, None)?;
        ensure!(follower.rows() == found, "round {round}: {:?}, not {found:?}", follower.rows());
    }
    cluster.print_crashes()
}

/// What the table has before anything is sent.
fn initial(client: &mut Client, view: &str) -> Result<Vec<Event>> {
    let query = format!("SELECT lsn::text, diff, a::text, b::text FROM {view}_changes");
    let rows = client.query(&query, &[])?;
    let event = |row: &postgres::Row| Event {
        lsn: row.get(0),
        diff: row.get(1),
        row: vec![row.get(2), row.get(3)],
    };
    Ok(rows.iter().map(event).collect())
}

/// Reads what there is up to a position; is killed after some milliseconds, if so many are given.
fn read(
    cluster: &Cluster,
    follower: &mut Follower,
    end: &str,
    killed_after: Option<u64>,
) -> Result<()> {
    let program = cluster.installation().program("pg_recvlogical");
    let mut command: Command = cluster.client_program(&program);
    command.args(["-d", "postgres", "--slot", "events", "--start", "--no-loop", "-f", "-"]);
    command.args(["-o", "proto_version=1", "-o", "publication_names=events", "-F", "0"]);
    command.arg(format!("--endpos={end}")).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = command.spawn().context("pg_recvlogical")?;
    if let Some(milliseconds) = killed_after {
        thread::sleep(Duration::from_millis(milliseconds));
        process.kill()?;
    }
    let output = process.wait_with_output()?;
    ensure!(killed_after.is_some() || output.status.success(), "pg_recvlogical failed");
    let mut message = Message(&output.stdout);
    let mut events = Vec::new();
    // What it was killed in the middle of comes again.
    while let Some(part) = message.next(&mut events)? {
        if let Part::Commit { end } = part {
            follower.take(end, std::mem::take(&mut events))?;
        }
    }
    Ok(())
}

/// What a message is.
enum Part {
    Commit { end: u64 },
    Other,
}

/// Messages, each with a line feed behind it.
struct Message<'a>(&'a [u8]);

impl Message<'_> {
    /// Reads the next message, an insertion into `events`; `None` if it is not whole.
    fn next(&mut self, events: &mut Vec<Event>) -> Result<Option<Part>> {
        let start = self.0;
        let mut read = || -> Option<Result<Part>> {
            let part = match self.bytes(1)?[0] {
                b'B' => {
                    self.bytes(20)?;
                    events.clear();
                    Ok(Part::Other)
                }
                b'C' => {
                    self.bytes(9)?;
                    let end = self.number(8)?;
                    self.bytes(8)?;
                    Ok(Part::Commit { end })
                }
                b'R' => {
                    self.bytes(4)?;
                    self.text()?;
                    self.text()?;
                    self.bytes(1)?;
                    for _ in 0..self.number(2)? {
                        self.bytes(1)?;
                        self.text()?;
                        self.bytes(8)?;
                    }
                    Ok(Part::Other)
                }
                b'I' => {
                    self.bytes(5)?;
                    events.push(event(self.row()?)?);
                    Ok(Part::Other)
                }
                other => Err(anyhow::anyhow!("a message of kind {:?}", char::from(other))),
            };
            (self.bytes(1)? == b"\n").then_some(part)
        };
        match read() {
            Some(part) => part.map(Some),
            None => {
                self.0 = start;
                Ok(None)
            }
        }
    }

    fn bytes(&mut self, count: usize) -> Option<&[u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn number(&mut self, bytes: usize) -> Option<u64> {
        let bytes = self.bytes(bytes)?;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn text(&mut self) -> Option<String> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = String::from_utf8_lossy(self.bytes(end)?).into_owned();
        self.bytes(1)?;
        Some(text)
    }

    fn row(&mut self) -> Option<Vec<Option<String>>> {
        let count = self.number(2)?;
        let mut row = Vec::new();
        for _ in 0..count {
            row.push(match self.bytes(1)?[0] {
                b't' => {
                    let length = self.number(4)? as usize;
                    Some(String::from_utf8_lossy(self.bytes(length)?).into_owned())
                }
                _ => None,
            });
        }
        Some(row)
    }
}

/// A row of a table of changes.
fn event(row: Vec<Option<String>>) -> Option<Event> {
    let mut fields = row.into_iter();
    let (lsn, _xid, _at) = (fields.next()??, fields.next()?, fields.next()??);
    let diff = fields.next()??.parse().ok()?;
    Some(Event { lsn, diff, row: fields.collect() })
}
