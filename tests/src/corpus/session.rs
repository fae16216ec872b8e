//! A database with the tables of the corpus, in which batches of queries become views while the tables change.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use harness::cluster::Cluster;
use postgres::Client;

use super::case::{Case, Expected};
use super::compare::{compare, report, Comparison};
use super::script::Script;

/// Queries over tables that were never analysed look expensive enough to be compiled.
const SETTINGS: &str =
    "SET jit = off; SET client_min_messages = error; SET statement_timeout = '60s'; \
                        SET eddy.read_timeout = '30s'";

/// What became of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Accepted {
        /// The same rows at all steps.
        is_idle: bool,
        has_other_texts: bool,
    },
    Refused,
    Wrong(String),
}

pub struct Session<'s> {
    client: Client,
    script: &'s Script,
}

struct View {
    /// Which of the batch.
    number: usize,
    name: String,
    seen: Seen,
}

/// What the comparisons of a view have shown.
#[derive(Default)]
struct Seen {
    digests: BTreeSet<String>,
    has_rows: bool,
    has_other_texts: bool,
    failures: usize,
}

impl<'s> Session<'s> {
    pub fn open(cluster: &Cluster, database: &str, script: &'s Script) -> Result<Session<'s>> {
        cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {database}"))?;
        let mut client = cluster.connect(database)?;
        client.batch_execute("CREATE EXTENSION pg_eddy")?;
        client.batch_execute(SETTINGS)?;
        client.batch_execute(&script.schema).context("schema.sql")?;
        client.batch_execute(&script.data).context("data.sql")?;
        Ok(Session { client, script })
    }

    /// What becomes of each query of a batch. An error says that the session was lost, or that a script failed.
    pub fn play(&mut self, cases: &[&Case]) -> Result<Vec<Outcome>> {
        let mut outcomes: Vec<Option<Outcome>> = Vec::new();
        let mut views = Vec::new();
        for (number, case) in cases.iter().enumerate() {
            let name = format!("v{number}");
            let outcome = self.create(&name, case);
            let outcome = outcome.with_context(|| format!("{}: {}", case.place, case.sql))?;
            if outcome.is_none() {
                views.push(View { number, name, seen: Seen::default() });
            }
            outcomes.push(outcome);
        }
        let created: Vec<String> = views.iter().map(|view| view.name.clone()).collect();
        self.compare_all("as created", &mut views, cases, &mut outcomes)?;
        for step in &self.script.steps {
            self.client.batch_execute(&step.sql).with_context(|| step.name.clone())?;
            self.compare_all(&step.name, &mut views, cases, &mut outcomes)?;
        }
        for view in &views {
            outcomes[view.number] = Some(view.seen.outcome(cases[view.number]));
        }
        if !created.is_empty() {
            self.client.batch_execute(&format!("DROP INCREMENTAL VIEW {}", created.join(", ")))?;
        }
        outcomes.into_iter().map(|outcome| outcome.context("each query has an outcome")).collect()
    }

    /// Creates a view, or says why there is none.
    fn create(&mut self, name: &str, case: &Case) -> Result<Option<Outcome>> {
        let create = format!("CREATE INCREMENTAL VIEW {name} AS {}", case.sql);
        let Err((state, message)) = self.attempt(case, &create)? else {
            return Ok(match &case.expected {
                Expected::Refusal { construct, .. } => {
                    self.client.batch_execute(&format!("DROP INCREMENTAL VIEW {name}"))?;
                    Some(Outcome::Wrong(format!(
                        "accepted, where it should be refused: {construct}"
                    )))
                }
                _ => None,
            });
        };
        Ok(Some(match &case.expected {
            Expected::Refusal { error, .. } => match error.is(&state, &message) {
                true => Outcome::Refused,
                false => {
                    let expected = format!("{}: {}", error.state, error.message);
                    Outcome::Wrong(format!(
                        "refused with {state}: {message}\n    expected: {expected}"
                    ))
                }
            },
            // The query fails at rows of today; the view may come without them.
            Expected::Failure(expected) if *expected == state => {
                match self.attempt(case, &format!("{create} WITH NO DATA"))? {
                    Ok(()) => return Ok(None),
                    Err((state, message)) => {
                        Outcome::Wrong(format!("not created: {state}: {message}"))
                    }
                }
            }
            _ => Outcome::Wrong(format!("not created: {state}: {message}")),
        }))
    }

    fn attempt(
        &mut self,
        case: &Case,
        sql: &str,
    ) -> Result<std::result::Result<(), (String, String)>> {
        match self.client.batch_execute(&case.within_settings(sql)) {
            Ok(()) => Ok(Ok(())),
            Err(error) => {
                let error = report(error)?;
                self.client.batch_execute("ROLLBACK")?;
                Ok(Err(error))
            }
        }
    }

    /// Compares the views that were right so far. Those that are not any more have their outcome.
    fn compare_all(
        &mut self,
        step: &str,
        views: &mut Vec<View>,
        cases: &[&Case],
        outcomes: &mut [Option<Outcome>],
    ) -> Result<()> {
        for mut view in std::mem::take(views) {
            let case = cases[view.number];
            let found = compare(&mut self.client, &view.name, case);
            let found = found.with_context(|| format!("{}: {}", case.place, case.sql))?;
            match view.seen.add(found, case) {
                Ok(()) => views.push(view),
                Err(how) => {
                    let how = format!("wrong when {step}: {how}");
                    outcomes[view.number] = Some(Outcome::Wrong(how));
                }
            }
        }
        Ok(())
    }
}

impl Seen {
    /// An error says what is wrong.
    fn add(&mut self, found: Comparison, case: &Case) -> std::result::Result<(), String> {
        match found {
            Comparison::Equal { has_rows, digest, has_other_texts } => {
                self.digests.insert(digest);
                self.has_rows |= has_rows;
                self.has_other_texts |= has_other_texts;
                Ok(())
            }
            Comparison::BothFail(state) => match &case.expected {
                Expected::Failure(expected) if *expected == state => {
                    self.failures += 1;
                    Ok(())
                }
                _ => Err(format!(
                    "view and query both fail with {state}, which the corpus does not say"
                )),
            },
            Comparison::ViewFails(state, how) => match &case.expected {
                Expected::Eager(expected) if *expected == state => {
                    self.failures += 1;
                    Ok(())
                }
                _ => Err(how),
            },
            Comparison::Different(how) => Err(how),
        }
    }

    fn outcome(&self, case: &Case) -> Outcome {
        let is_idle = self.digests.len() + self.failures.min(1) < 2;
        let fails = matches!(case.expected, Expected::Failure(_));
        if fails && (self.failures == 0 || self.digests.is_empty()) {
            let how = if self.failures == 0 { "never" } else { "always" };
            return Outcome::Wrong(format!("the query {how} fails"));
        }
        if case.is_unchanged && !is_idle {
            return Outcome::Wrong("the rows change, which the corpus denies".to_owned());
        }
        Outcome::Accepted {
            is_idle: !case.is_unchanged && (is_idle || !self.has_rows && !fails),
            has_other_texts: self.has_other_texts && !case.is_rounded,
        }
    }
}
