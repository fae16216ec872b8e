//! Failures shown again by other means: the statements of a round, or some of them, in a fresh schema.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use harness::cluster::Cluster;

use super::case::Case;
use super::inside;
use super::mismatch::{compare, Found, Mismatch};
use super::sessions::{drop_schema, Sessions};

const TIME: Duration = Duration::from_secs(60);
const TRIES: usize = 1000;

/// Nothing that a round does takes so long, unless what was left out kept it from taking for ever.
const LONGEST_STATEMENT: &str = "SET statement_timeout = '10s'";

/// A small case that shows what was found, and how many tries that took. `None` if it does not show again.
pub fn shrink(
    cluster: &Cluster,
    schema: &str,
    case: &Case,
    found: &Found,
) -> (Option<Case>, usize) {
    let deadline = Instant::now() + TIME;
    let mut tries = 0;
    let small = case.shrink(&found.view, |case| {
        if tries >= TRIES || Instant::now() > deadline {
            return false;
        }
        tries += 1;
        // A server that does not answer is another failure.
        play(cluster, schema, case, found).is_ok_and(|mismatch| {
            mismatch.is_some_and(|mismatch| mismatch.is_like(&found.mismatch))
        })
    });
    if let Err(error) = drop_schema(cluster, schema) {
        println!("oracle: after shrinking: {error:#}");
    }
    (small, tries)
}

/// Does what the case says and compares the view with its query.
fn play(cluster: &Cluster, schema: &str, case: &Case, found: &Found) -> Result<Option<Mismatch>> {
    let mut sessions = Sessions::open(cluster, schema)?;
    for session in sessions.all() {
        session.batch_execute(LONGEST_STATEMENT)?;
    }
    let mut last = None;
    for step in case.units.iter().flat_map(|unit| &unit.steps) {
        let result = sessions.writers[step.session].simple_query(&step.statement.sql());
        // Without what was left out some statements fail; then they are not needed either.
        last = match result {
            Ok(_) => None,
            Err(error) => {
                let code = error.code().map(|code| code.code().to_owned());
                Some((code.context("the session was lost")?, error.to_string()))
            }
        };
        if let Some((_, message)) = last.as_ref().filter(|(code, _)| code == inside::DIFFERS) {
            return Ok(Some(Mismatch::Inside { message: message.clone() }));
        }
    }
    if let Mismatch::NotCreated { .. } = found.mismatch {
        return Ok(last.map(|(state, message)| Mismatch::NotCreated { state, message }));
    }
    Ok(compare(&mut sessions.reader, &found.view, &found.query)?.mismatch)
}
