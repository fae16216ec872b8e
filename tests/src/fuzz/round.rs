//! A round: a batch of queries becomes views, the tables change, and each view must follow its query.

use std::time::Instant;

use anyhow::{Context, Result};
use harness::cluster::{wait_for, Cluster};
use harness::dice::Dice;
use harness::report::Counts;
use postgres::{Client, NoTls};

use super::schema;
use super::shrink::{shorten, Failing};
use super::tally::{Tally, INVALID};
use super::verdict::{compare, create_copies, is_bug, is_limit, state_of, Verdict};
use super::DATABASE;

/// Times that the tables change in a round.
const CHANGES: usize = 3;
/// So many failures are shortened: each takes time.
const SHORTENED: usize = 4;

struct View {
    name: String,
    query: String,
}

pub struct Round<'a> {
    client: Client,
    dice: Dice,
    tally: &'a mut Tally,
    counts: &'a mut Counts,
    /// When the run is over.
    end: Instant,
    views: Vec<View>,
    /// Brings the tables to where all views were right, or were created.
    before: String,
    /// What changed the tables since then.
    changes: String,
    /// The query at work, for the report of a crash.
    pub at_work: String,
}

/// Makes the tables, and their owner, who is no superuser: what the queries call must not do harm.
pub fn prepare(cluster: &Cluster) -> Result<()> {
    let mut admin = cluster.connect("postgres")?;
    admin.batch_execute("CREATE ROLE fuzz LOGIN")?;
    admin.batch_execute(&format!("CREATE DATABASE {DATABASE} OWNER fuzz"))?;
    cluster
        .connect(DATABASE)?
        .batch_execute("CREATE EXTENSION pg_eddy; GRANT ALL ON SCHEMA public TO fuzz")?;
    let mut client = connect(cluster)?;
    for table in schema::TABLES {
        client.batch_execute(&table.create())?;
    }
    create_copies(&mut client)
}

fn connect(cluster: &Cluster) -> Result<Client> {
    let mut config = cluster.config(DATABASE);
    config.user("fuzz");
    let timeout = std::time::Duration::from_secs(60);
    let mut client =
        wait_for("the server to accept connections", timeout, || Ok(config.connect(NoTls).ok()))?;
    client.batch_execute(
        "SET jit = off; SET client_min_messages = error; SET statement_timeout = '3s';
         SET eddy.read_timeout = '10s'",
    )?;
    Ok(client)
}

impl<'a> Round<'a> {
    /// A session, and tables without views.
    pub fn start(
        cluster: &Cluster,
        seed: u64,
        tally: &'a mut Tally,
        counts: &'a mut Counts,
        end: Instant,
    ) -> Result<Round<'a>> {
        let mut client = connect(cluster)?;
        let left =
            client.query("SELECT matviewname FROM pg_matviews WHERE schemaname = 'public'", &[])?;
        for row in left {
            client.batch_execute(&format!("DROP INCREMENTAL VIEW {}", row.get::<_, String>(0)))?;
        }
        Ok(Round {
            client,
            dice: Dice::new(seed),
            tally,
            counts,
            end,
            views: Vec::new(),
            before: String::new(),
            changes: String::new(),
            at_work: String::new(),
        })
    }

    /// An error says that the session was lost, or that a change or a DROP failed.
    pub fn play(&mut self, queries: &[String]) -> Result<()> {
        let fill = schema::fill(&mut self.dice);
        self.client.batch_execute(&fill).context(fill)?;
        self.before = schema::contents(&mut self.client)?;
        for (number, query) in queries.iter().enumerate() {
            if Instant::now() > self.end {
                break;
            }
            self.at_work.clone_from(query);
            let failed = self.counts.failed;
            self.create(format!("v{number}"), query)?;
            if self.counts.failed == failed {
                self.counts.record(true);
            }
        }
        self.compare_all()?;
        for _ in 0..CHANGES {
            self.before = schema::contents(&mut self.client)?;
            self.changes = schema::changes(&mut self.dice);
            self.client.batch_execute(&self.changes).with_context(|| self.changes.clone())?;
            self.compare_all()?;
        }
        for view in std::mem::take(&mut self.views) {
            self.drop_view(&view)?;
        }
        Ok(())
    }

    fn create(&mut self, name: String, query: &str) -> Result<()> {
        self.tally.made += 1;
        let create = format!("CREATE INCREMENTAL VIEW {name} AS {query}");
        let Some((state, message)) = self.attempt(&create)? else {
            return self.accept(name, query);
        };
        if is_bug(&state) {
            return self.fail(Failing::Creation(state), query, &message);
        }
        if state == "0A000" {
            self.tally.refuse(&state, &message);
            return Ok(());
        }
        match self.attempt(&format!("SELECT q::text FROM ({query}) q"))? {
            Some((of_query, _)) if is_limit(&of_query) => {
                self.tally.skip(&format!("the query takes too much ({of_query})"));
                Ok(())
            }
            Some((of_query, message)) if of_query.starts_with("42") || of_query == "0A000" => {
                self.tally.skip(&format!("{INVALID}: {of_query} {}", message_head(&message)));
                Ok(())
            }
            Some((of_query, _)) => self.create_empty(name, query, &of_query),
            None if is_limit(&state) || state.starts_with("42") => {
                self.tally.refuse(&state, &message);
                Ok(())
            }
            None => self.fail(Failing::Creation(state), query, &message),
        }
    }

    /// The query fails on the rows of today, with `of_query`: the view may come without them.
    fn create_empty(&mut self, name: String, query: &str, of_query: &str) -> Result<()> {
        let create = format!("CREATE INCREMENTAL VIEW {name} AS {query} WITH NO DATA");
        match self.attempt(&create)? {
            None => self.accept(name, query),
            Some((state, message)) if is_bug(&state) => {
                self.fail(Failing::Creation(state), query, &message)
            }
            Some((state, message)) if state == "0A000" || is_limit(&state) => {
                self.tally.refuse(&state, &message);
                Ok(())
            }
            // A constant that cannot be computed.
            Some((state, _)) => {
                self.tally.fail_both(&format!("CREATE {state}"), of_query);
                Ok(())
            }
        }
    }

    fn accept(&mut self, name: String, query: &str) -> Result<()> {
        self.tally.accepted += 1;
        self.views.push(View { name, query: query.to_owned() });
        Ok(())
    }

    /// SQLSTATE and message of the statement's error; an error of ours if the session was lost.
    fn attempt(&mut self, sql: &str) -> Result<Option<(String, String)>> {
        match self.client.batch_execute(sql) {
            Ok(()) => Ok(None),
            Err(error) => {
                let message = error.as_db_error().map_or(String::new(), |e| e.message().to_owned());
                Ok(Some((state_of(error)?, message)))
            }
        }
    }

    /// Views that are wrong, or cannot be compared, go. One that raises too much or too little stays, as the error may go.
    fn compare_all(&mut self) -> Result<()> {
        for view in std::mem::take(&mut self.views) {
            self.at_work.clone_from(&view.query);
            match compare(&mut self.client, &view.name, &view.query)? {
                Verdict::Equal => self.tally.comparisons += 1,
                Verdict::EqualButDigits => self.tally.equal_but_digits += 1,
                Verdict::BothFail(of_view, of_query) => self.tally.fail_both(&of_view, &of_query),
                Verdict::Eager(state) => {
                    println!("fuzz: the view raises {state}, its query does not:\n{}", view.query);
                    self.tally.other_errors += 1;
                    let what =
                        format!("the view raises what PostgreSQL does not come to ({state})");
                    self.tally.skip(&what);
                }
                Verdict::Lazy(state) => {
                    println!("fuzz: the query raises {state}, its view does not:\n{}", view.query);
                    self.tally.other_errors += 1;
                    let what =
                        format!("PostgreSQL raises what the view does not come to ({state})");
                    self.tally.skip(&what);
                }
                Verdict::Skipped(reason) => {
                    self.tally.skip(&reason);
                    self.drop_view(&view)?;
                    continue;
                }
                Verdict::Wrong(how) => {
                    self.drop_view(&view)?;
                    self.fail(Failing::Comparison, &view.query, &how)?;
                    continue;
                }
            }
            self.views.push(view);
        }
        Ok(())
    }

    fn drop_view(&mut self, view: &View) -> Result<()> {
        let drop = format!("DROP INCREMENTAL VIEW {}", view.name);
        self.client.batch_execute(&drop).with_context(|| drop)
    }

    /// Records a failure and prints a script that shows it.
    fn fail(&mut self, kind: Failing, query: &str, how: &str) -> Result<()> {
        self.tally.wrong += 1;
        self.counts.record(false);
        println!("fuzz: {how}\n-- the query:\n{query}");
        let mut short = query.to_owned();
        if self.tally.wrong <= SHORTENED {
            let now = schema::contents(&mut self.client)?;
            short = shorten(&mut self.client, &kind, query, &self.before, &self.changes)?;
            self.client.batch_execute(&now)?;
        }
        println!("-- script for psql:\n{}", self.before);
        println!("CREATE INCREMENTAL VIEW wrong AS {short};\n{}\nTABLE wrong;", self.changes);
        println!("-- end of script");
        self.counts.note(&format!("{how}: {short}"));
        Ok(())
    }
}

fn message_head(message: &str) -> String {
    message.split_whitespace().take(4).collect::<Vec<_>>().join(" ")
}
