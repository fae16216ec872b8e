//! The corpus: ordinary queries of our own making, each construct in each clause with values of each type.
//!
//! Each query of `tests/corpus/queries` becomes a view, and the tables change. A view must have the rows of its query after each
//! step. What is refused must be expected, by name: the corpus says beside the query which message comes, and the reference
//! has the same list.

mod case;
mod compare;
mod file;
mod refusals;
mod script;
mod session;
mod tally;
mod template;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

use anyhow::{ensure, Context, Result};
use harness::cleanup;
use harness::cluster::Cluster;
use harness::report::Counts;

use case::Case;
use refusals::Refusals;
use script::Script;
use session::{Outcome, Session};
use tally::{list, Tally};

/// Where the corpus is, below the project.
const FOLDER: &str = "tests/corpus";
/// Databases in which batches run at the same time.
const DATABASES: usize = 2;
/// Views of a batch.
const BATCH: usize = 100;
/// Fewer queries than these are no corpus.
const LEAST_QUERIES: usize = 1500;
/// Of them views must support so many percent.
const LEAST_ACCEPTED: usize = 97;
/// In more percent of the queries rows may not be equal but written differently.
const MOST_OTHER_TEXTS: usize = 1;

#[derive(Clone, Debug, Default, clap::Args)]
pub struct Selection {
    /// Words: the queries whose place (`text.sql:17`) or text has one of them (all queries without any)
    pub words: Vec<String>,
}

impl Selection {
    fn has(&self, case: &Case) -> bool {
        let place = case.place.to_string();
        let is_in =
            |word: &String| place.contains(word.as_str()) || case.sql.contains(word.as_str());
        self.words.is_empty() || self.words.iter().any(is_in)
    }
}

/// The tables of what is refused, for the reference.
pub fn tables_of_refusals(project: &Path) -> Result<String> {
    Ok(read(&project.join(FOLDER))?.1.tables())
}

/// Each query is one test.
pub fn run(cluster: &Cluster, project: &Path, selection: &Selection) -> Result<Counts> {
    let folder = project.join(FOLDER);
    let (cases, _) = read(&folder)?;
    let script = Script::read(&folder)?;
    let major = cluster.installation().major;
    let chosen: Vec<&Case> =
        cases.iter().filter(|case| case.is_for(major) && selection.has(case)).collect();
    ensure!(!chosen.is_empty(), "no query has one of these words");
    let outcomes = play(cluster, &script, &chosen)?;
    let (mut counts, mut tally) = (Counts::default(), Tally::default());
    for (case, outcome) in chosen.iter().zip(&outcomes) {
        tally.count(case, outcome);
        if let Outcome::Wrong(how) = outcome {
            let failure =
                format!("{}: {how}\n    {};", case.place, case.sql.replace('\n', "\n    "));
            println!("{failure}");
            counts.note(&failure);
        }
        counts.record(!matches!(outcome, Outcome::Wrong(_)));
    }
    println!("{tally}");
    if selection.words.is_empty() {
        counts.check("corpus: enough queries, nearly all accepted", expect_accepted(&tally));
        counts.check("corpus: each query is there once", expect_different(&cases));
        counts.check("corpus: rows are written as those of queries", expect_texts(&tally));
    }
    counts.check("corpus: changes of the tables reach each query", expect_changes(&tally));
    Ok(counts)
}

/// All queries, in the order of the files' names.
fn read(folder: &Path) -> Result<(Vec<Case>, Refusals)> {
    let queries = folder.join("queries");
    let entries = fs::read_dir(&queries).with_context(|| queries.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    let (mut cases, mut refusals) = (Vec::new(), Refusals::default());
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        file::read(&name, &fs::read_to_string(&path)?, &mut cases, &mut refusals)?;
    }
    refusals.check(&cases)?;
    Ok((cases, refusals))
}

/// Plays the queries, a batch after the other in each of the databases.
fn play(cluster: &Cluster, script: &Script, cases: &[&Case]) -> Result<Vec<Outcome>> {
    let batches: Vec<&[&Case]> = cases.chunks(BATCH).collect();
    let next = AtomicUsize::new(0);
    let played = Mutex::new(BTreeMap::new());
    let play_some = |number: usize| -> Result<()> {
        let mut session = Session::open(cluster, &format!("corpus_{number}"), script)?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(batch) = batches.get(number).filter(|_| !cleanup::is_stopping()) else {
                return Ok(());
            };
            let outcomes = session.play(batch)?;
            played.lock().expect("no thread panics with it").insert(number, outcomes);
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..DATABASES).map(|number| scope.spawn(move || play_some(number))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no session panics"))
    })?;
    ensure!(!cleanup::is_stopping(), "stopped by a signal");
    let played = played.into_inner().expect("no thread panics with it");
    Ok(played.into_values().flatten().collect())
}

fn expect_accepted(tally: &Tally) -> Result<()> {
    let total = tally.total();
    let (accepted, all) = (total.accepted, total.all());
    ensure!(all >= LEAST_QUERIES, "only {all} queries");
    let share = format!("{:.1} %", 100.0 * accepted as f64 / all as f64);
    println!("corpus: {accepted} of {all} queries are supported, {share}");
    ensure!(accepted * 100 >= all * LEAST_ACCEPTED, "only {share}");
    Ok(())
}

fn expect_different(cases: &[Case]) -> Result<()> {
    let mut places = BTreeMap::new();
    let mut twice = Vec::new();
    for case in cases {
        let words: Vec<&str> = case.sql.split_whitespace().collect();
        if let Some(place) = places.insert((words.join(" "), &case.settings), &case.place) {
            twice.push(format!("{place} and {}: {}", case.place, case.sql));
        }
    }
    ensure!(twice.is_empty(), "not so:{}", list(&twice));
    Ok(())
}

/// Of values that are equal but written differently, as `1.0` and `1.00`, groups and the like have any.
fn expect_texts(tally: &Tally) -> Result<()> {
    let (others, all) = (tally.other_texts.len(), tally.total().all());
    ensure!(others * 100 <= all * MOST_OTHER_TEXTS, "not {others}:{}", list(&tally.other_texts));
    Ok(())
}

/// A query that has no rows, or always the same ones, shows little.
fn expect_changes(tally: &Tally) -> Result<()> {
    ensure!(tally.idle.is_empty(), "not {} of them:{}", tally.idle.len(), list(&tally.idle));
    Ok(())
}
