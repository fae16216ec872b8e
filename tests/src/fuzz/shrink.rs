//! A failing query with as much left out as can be.

use std::time::{Duration, Instant};

use anyhow::Result;
use postgres::Client;

use super::verdict::{compare, state_of, Verdict};
use crate::oracle::shrink::minimize;

/// What a shorter query must show as well.
pub enum Failing {
    /// CREATE raises this SQLSTATE.
    Creation(String),
    /// The view differs from its query.
    Comparison,
}

const TIME: Duration = Duration::from_secs(25);

/// Leaves out words: most of what is left over is no SQL, which is told in no time.
pub fn shorten(
    client: &mut Client,
    kind: &Failing,
    query: &str,
    before: &str,
    changes: &str,
) -> Result<String> {
    let end = Instant::now() + TIME;
    let mut lost = None;
    let kept = minimize(words(query), |words| {
        if lost.is_some() || Instant::now() > end {
            return false;
        }
        let shown = shows(client, kind, &text(words), before, changes);
        shown.unwrap_or_else(|error| {
            lost = Some(error);
            false
        })
    });
    match lost {
        Some(error) => Err(error),
        None => Ok(text(&kept)),
    }
}

/// Whether the view of `query` shows the failure before or after the changes.
fn shows(
    client: &mut Client,
    kind: &Failing,
    query: &str,
    before: &str,
    changes: &str,
) -> Result<bool> {
    // What is not even SQL need not have its tables.
    if let Err(error) = client.prepare(query) {
        state_of(error)?;
        return Ok(false);
    }
    client.batch_execute(before)?;
    let create = format!("CREATE INCREMENTAL VIEW shorter AS {query}");
    let created = match client.batch_execute(&create) {
        Ok(()) => Ok(()),
        Err(_) => client.batch_execute(&format!("{create} WITH NO DATA")),
    };
    let shown = match (created, kind) {
        (Err(error), Failing::Creation(state)) => return Ok(state_of(error)? == *state),
        (Err(error), Failing::Comparison) => return state_of(error).map(|_| false),
        (Ok(()), Failing::Creation(_)) => false,
        (Ok(()), Failing::Comparison) => {
            let is_wrong = |client: &mut Client| {
                Ok::<_, anyhow::Error>(matches!(
                    compare(client, "shorter", query)?,
                    Verdict::Wrong(_)
                ))
            };
            is_wrong(client)? || {
                client.batch_execute(changes)?;
                is_wrong(client)?
            }
        }
    };
    client.batch_execute("DROP INCREMENTAL VIEW shorter")?;
    Ok(shown)
}

fn text(words: &[String]) -> String {
    words.join(" ").replace("( ", "(").replace(" )", ")").replace("cast (", "cast(")
}

fn words(query: &str) -> Vec<String> {
    let spaced = ["(", ")", ","]
        .iter()
        .fold(query.to_owned(), |text, mark| text.replace(mark, &format!(" {mark} ")));
    spaced.split_whitespace().map(str::to_owned).collect()
}
