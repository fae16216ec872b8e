//! A copy of the company's tables with some of the views, or none, and what is done to it.

use std::time::Duration;

use anyhow::{ensure, Result};
use harness::cluster::Cluster;
use harness::dice::Dice;
use harness::timing::timed;
use hdrhistogram::Histogram;
use postgres::{Client, Statement};

use super::company::{grant, revocation, Company, Membership};
use super::View;
use crate::record::add_time;
use crate::run::new_histogram;
use crate::system::setting::{verify, wait_for_views};

/// There is one side at a time.
const DATABASE: &str = "side";

pub struct Side {
    pub name: &'static str,
    client: Client,
    views: &'static [View],
    company: Company,
}

/// A run of changes.
pub struct Changed {
    pub changes: u32,
    /// Rows of views that were written.
    pub rows: i64,
    /// Until the last COMMIT, and until all was in the views.
    pub writing: Duration,
    pub elapsed: Duration,
}

impl Changed {
    pub fn changes_per_second(&self) -> f64 {
        f64::from(self.changes) / self.elapsed.as_secs_f64()
    }

    pub fn rows_per_second(&self) -> f64 {
        self.rows as f64 / self.elapsed.as_secs_f64()
    }
}

/// A view as it was created.
pub struct Created {
    pub view: &'static str,
    pub rows: i64,
    /// From CREATE to the end of the first read.
    pub first_read: Duration,
    /// The query with plain views in place of the others.
    pub afresh: Duration,
}

/// From COMMIT to the end of a read of a person's list that shows it.
pub struct Latencies {
    pub revoked: Histogram<u64>,
    pub granted: Histogram<u64>,
    /// Revocations that took nothing away, because other rules allow the same: these are not counted.
    pub without_effect: u32,
}

/// What a person may see, and whether a person may see a file, by views and afresh.
pub struct Reads {
    pub list: Histogram<u64>,
    pub list_afresh: Histogram<u64>,
    /// Files of a list.
    pub files: Histogram<u64>,
    pub check: Histogram<u64>,
    /// Of the pairs that are watched.
    pub watched: Histogram<u64>,
    pub check_afresh: Histogram<u64>,
}

/// The queries for one person, prepared.
struct Statements {
    list: Statement,
    list_afresh: Statement,
    check: Statement,
    watched: Statement,
    check_afresh: Statement,
}

impl Side {
    /// A database with the tables of `company`, of which `template` is one.
    pub fn create(
        cluster: &Cluster,
        template: &str,
        name: &'static str,
        views: &'static [View],
        company: &Company,
    ) -> Result<Side> {
        cluster.connect("postgres")?.batch_execute(&format!(
            "CREATE DATABASE {DATABASE} TEMPLATE {template} STRATEGY file_copy"
        ))?;
        let mut client = cluster.connect(DATABASE)?;
        client.batch_execute(
            "SET client_min_messages = warning; SET jit = off; SET synchronous_commit = off;
             SET eddy.read_timeout = '10min'",
        )?;
        Ok(Side { name, client, views, company: company.clone() })
    }

    /// A worker beside the next side would read its changes, too.
    pub fn remove(self, cluster: &Cluster) -> Result<()> {
        drop(self.client);
        let remove = format!("DROP DATABASE {DATABASE}");
        Ok(cluster.connect("postgres")?.batch_execute(&remove)?)
    }

    pub fn create_views(&mut self) -> Result<Vec<Created>> {
        if self.views.is_empty() {
            return Ok(Vec::new());
        }
        self.client.batch_execute("CREATE EXTENSION pg_eddy; CREATE SCHEMA afresh")?;
        let mut created = Vec::new();
        for View { name, sql, index } in self.views {
            let plain = format!(
                "SET search_path = afresh, public; CREATE VIEW afresh.{name} AS {sql}; \
                 RESET search_path"
            );
            let create = format!("CREATE INCREMENTAL VIEW {name} AS {sql}");
            let first = timed(|| {
                self.client.batch_execute(&create)?;
                Ok(self.client.execute(&format!("SELECT FROM {name} LIMIT 1"), &[])?)
            });
            let first_read = first?.1;
            self.client.batch_execute(&format!(
                "{plain}; CREATE UNIQUE INDEX ON {name} ({index}); ANALYZE {name}"
            ))?;
            let count = format!("SELECT count(*) FROM afresh.{name}");
            let (row, afresh) = timed(|| Ok(self.client.query_one(&count, &[])?))?;
            created.push(Created { view: name, rows: row.get(0), first_read, afresh });
        }
        Ok(created)
    }

    // ---- changes -----------------------------------------------------------------------------

    /// Commits changes one by one, as fast as one session can, and waits until the views have them.
    pub fn change(&mut self, changes: u32) -> Result<Changed> {
        self.settle()?;
        let before = self.rows_written()?;
        let start = std::time::Instant::now();
        for _ in 0..changes {
            let change = self.company.next_change();
            self.client.batch_execute(&change)?;
        }
        let writing = start.elapsed();
        self.settle()?;
        let elapsed = start.elapsed();
        Ok(Changed { changes, rows: self.rows_written()? - before, writing, elapsed })
    }

    fn settle(&mut self) -> Result<()> {
        if self.views.is_empty() {
            return Ok(());
        }
        wait_for_views(&mut self.client)
    }

    fn rows_written(&mut self) -> Result<i64> {
        if self.views.is_empty() {
            return Ok(0);
        }
        let sum = "SELECT sum(updates)::bigint FROM eddy.views";
        Ok(self.client.query_one(sum, &[])?.get(0))
    }

    /// Each view must be its query.
    pub fn verify(&mut self) -> Result<()> {
        self.views.iter().try_for_each(|view| verify(&mut self.client, view.name))
    }

    // ---- revocations -------------------------------------------------------------------------

    /// Takes persons out of groups they are in.
    pub fn revoke_from_persons(&mut self, number: u64) -> Result<Latencies> {
        let mut dice = Dice::new(1);
        let memberships = self.company.of_persons.held.clone();
        let pick = move || {
            let membership = *dice.pick(&memberships);
            (membership, membership.0)
        };
        self.revoke(number, pick)
    }

    /// Takes groups out of groups, and looks at the list of a person who is in the former.
    pub fn revoke_from_groups(&mut self, number: u64) -> Result<Latencies> {
        let mut dice = Dice::new(2);
        let (of_groups, of_persons) =
            (self.company.of_groups.held.clone(), self.company.of_persons.held.clone());
        let pick = move || loop {
            let membership = *dice.pick(&of_groups);
            let is_in = |of_person: &&Membership| of_person.1 == membership.0;
            let persons: Vec<&Membership> = of_persons.iter().filter(is_in).collect();
            if !persons.is_empty() {
                return (membership, dice.pick(&persons).0);
            }
        };
        self.revoke(number, pick)
    }

    /// Revokes and grants again until `number` revocations have had an effect on the list of the person.
    fn revoke(
        &mut self,
        number: u64,
        mut pick: impl FnMut() -> (Membership, i32),
    ) -> Result<Latencies> {
        let [revoked, granted] = [new_histogram(), new_histogram()];
        let mut latencies = Latencies { revoked, granted, without_effect: 0 };
        let list = self.client.prepare("SELECT file FROM visible WHERE person = $1")?;
        self.settle()?;
        while latencies.revoked.len() < number {
            let (membership, person) = pick();
            let before = self.files(&list, person)?.0;
            self.client.batch_execute(&revocation(membership))?;
            let (after, until_gone) = self.files(&list, person)?;
            self.settle()?;
            // Else what was timed is not what was right.
            ensure!(self.files(&list, person)?.0 == after, "a list was late for {membership:?}");
            self.client.batch_execute(&grant(membership))?;
            let (again, until_back) = self.files(&list, person)?;
            ensure!(again == before, "{membership:?} came back as something else");
            if after == before {
                latencies.without_effect += 1;
                ensure!(latencies.without_effect < 10_000, "revocations have no effect");
                continue;
            }
            add_time(&mut latencies.revoked, until_gone);
            add_time(&mut latencies.granted, until_back);
        }
        Ok(latencies)
    }

    /// The list of a person, in order.
    fn files(&mut self, list: &Statement, person: i32) -> Result<(Vec<i32>, Duration)> {
        let (rows, time) = timed(|| Ok(self.client.query(list, &[&person])?))?;
        let mut files: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
        files.sort_unstable();
        Ok((files, time))
    }

    // ---- reads -------------------------------------------------------------------------------

    /// Lists and checks of persons, which must be the same by view and afresh.
    pub fn read(&mut self, number: usize) -> Result<Reads> {
        let statements = self.prepare()?;
        let mut reads = Reads {
            list: new_histogram(),
            list_afresh: new_histogram(),
            files: new_histogram(),
            check: new_histogram(),
            watched: new_histogram(),
            check_afresh: new_histogram(),
        };
        self.settle()?;
        for turn in 0..number {
            let person = self.company.person();
            let (files, time) = self.files(&statements.list, person)?;
            add_time(&mut reads.list, time);
            let (expected, time) = self.files(&statements.list_afresh, person)?;
            add_time(&mut reads.list_afresh, time);
            ensure!(files == expected, "the list of person {person} is wrong");
            reads.files.saturating_record(files.len() as u64);
            let pair = self.company.watched[turn % self.company.watched.len()];
            let (allowed, time) = self.check(&statements.check, pair)?;
            add_time(&mut reads.check, time);
            let (watched, time) = self.check(&statements.watched, pair)?;
            add_time(&mut reads.watched, time);
            let (expected, time) = self.check(&statements.check_afresh, pair)?;
            add_time(&mut reads.check_afresh, time);
            ensure!([allowed, watched] == [expected; 2], "the check of {pair:?} is wrong");
        }
        Ok(reads)
    }

    fn prepare(&mut self) -> Result<Statements> {
        let mut prepare = |sql: &str| self.client.prepare(sql);
        Ok(Statements {
            list: prepare("SELECT file FROM visible WHERE person = $1")?,
            list_afresh: prepare(include_str!("list_afresh.sql"))?,
            check: prepare("SELECT EXISTS (SELECT FROM visible WHERE person = $1 AND file = $2)")?,
            watched: prepare("SELECT allowed FROM checked WHERE person = $1 AND file = $2")?,
            check_afresh: prepare(include_str!("check_afresh.sql"))?,
        })
    }

    fn check(&mut self, check: &Statement, (person, file): (i32, i32)) -> Result<(bool, Duration)> {
        let (row, time) = timed(|| Ok(self.client.query_one(check, &[&person, &file])?))?;
        Ok((row.get(0), time))
    }
}
