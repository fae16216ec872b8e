//! A view against its query. Rows are compared as text, which every type has, and which says more than equality does.

use anyhow::{Context, Result};
use harness::comparison::{comparison, rounded};
use postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

use super::case::Case;

pub enum Comparison {
    Equal {
        has_rows: bool,
        /// Another one for other rows.
        digest: String,
        /// Rows are equal but written differently, as groups of a type where that can be.
        has_other_texts: bool,
    },
    /// View and query both fail, with this SQLSTATE.
    BothFail(String),
    /// The view fails, with this SQLSTATE, where its query has rows; and how both ended.
    ViewFails(String, String),
    Different(String),
}

/// Rows as text, in the order of the text, or an SQLSTATE and what comes with it.
type Answer = std::result::Result<Vec<String>, (String, String)>;

/// Of rows that only one has, so many are shown.
const SHOWN: usize = 4;

/// An error is that of a session that was lost.
pub fn compare(client: &mut Client, view: &str, case: &Case) -> Result<Comparison> {
    let found = run(client, case, &statement(view, &case.sql))?;
    if let Ok(row) = &found {
        let number = |index: usize| row.get(index).unwrap_or_default();
        if (number(0), number(1)) == ("0", "0") {
            return Ok(Comparison::Equal {
                has_rows: number(2) != "0",
                digest: number(3).to_owned(),
                has_other_texts: false,
            });
        }
    }
    let of_query = answer(client, case, &format!("({})", case.sql))?;
    let of_view = answer(client, case, view)?;
    match (&of_view, &of_query) {
        (Err((view, _)), Err((query, _))) if view == query => {
            return Ok(Comparison::BothFail(view.clone()))
        }
        (Ok(view_rows), Ok(query_rows)) => {
            let is_near = case.is_rounded && rounded(view_rows) == rounded(query_rows);
            if is_near || is_equal(client, view, case)? {
                return Ok(Comparison::Equal {
                    has_rows: !query_rows.is_empty(),
                    digest: query_rows.join("\n"),
                    has_other_texts: true,
                });
            }
        }
        _ => {}
    }
    let how = difference(&of_view, &of_query);
    Ok(match (of_view, of_query) {
        (Err((state, _)), Ok(_)) => Comparison::ViewFails(state, how),
        _ => Comparison::Different(how),
    })
}

/// The numbers of missing rows, of surplus rows and of all rows, and the digest of these. No column has the name of the row.
fn statement(view: &str, query: &str) -> String {
    format!(
        "WITH q AS MATERIALIZED (SELECT \"the row\"::text AS x FROM ({query}) AS \"the row\"), \
         v AS MATERIALIZED (SELECT \"the row\"::text AS x FROM {view} AS \"the row\") \
         SELECT (SELECT count(*) FROM (TABLE q EXCEPT ALL TABLE v) d), \
         (SELECT count(*) FROM (TABLE v EXCEPT ALL TABLE q) d), \
         (SELECT count(*) FROM q), (SELECT coalesce(sum(hashtextextended(x, 0)::numeric), 0) FROM q)"
    )
}

/// The one row that a statement returns, or its error.
fn run(
    client: &mut Client,
    case: &Case,
    sql: &str,
) -> Result<std::result::Result<SimpleQueryRow, (String, String)>> {
    let messages = match client.simple_query(&case.within_settings(sql)) {
        Ok(messages) => messages,
        Err(error) => {
            let error = report(error)?;
            client.batch_execute("ROLLBACK")?;
            return Ok(Err(error));
        }
    };
    let row = messages.into_iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    Ok(Ok(row.context("a comparison returns a row")?))
}

fn answer(client: &mut Client, case: &Case, relation: &str) -> Result<Answer> {
    let sql = format!("SELECT \"the row\"::text FROM {relation} AS \"the row\"");
    match client.simple_query(&case.within_settings(&sql)) {
        Ok(messages) => {
            let text = |message: &SimpleQueryMessage| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
                _ => None,
            };
            let mut rows: Vec<String> = messages.iter().filter_map(text).collect();
            rows.sort();
            Ok(Ok(rows))
        }
        Err(error) => {
            let error = report(error)?;
            client.batch_execute("ROLLBACK")?;
            Ok(Err(error))
        }
    }
}

/// Whether the values are equal, whatever their texts. Types without equality have no other texts for equal values.
fn is_equal(client: &mut Client, view: &str, case: &Case) -> Result<bool> {
    let found = run(client, case, &comparison(view, &case.sql))?;
    Ok(found.is_ok_and(|row| (row.get(0), row.get(1)) == (Some("0"), Some("0"))))
}

/// The SQLSTATE and the message of an error of the server.
pub fn report(error: postgres::Error) -> Result<(String, String)> {
    match error.as_db_error().filter(|_| !error.is_closed()) {
        Some(report) => Ok((report.code().code().to_owned(), report.message().to_owned())),
        None => Err(error).context("the session was lost"),
    }
}

fn difference(of_view: &Answer, of_query: &Answer) -> String {
    let outcome = |answer: &Answer| match answer {
        Ok(rows) => format!("{} rows", rows.len()),
        Err((state, message)) => format!("{state} ({message})"),
    };
    let mut text = format!("the view has {}, its query {}", outcome(of_view), outcome(of_query));
    if let (Ok(view), Ok(query)) = (of_view, of_query) {
        for (what, rows) in [("missing", without(query, view)), ("surplus", without(view, query))] {
            for row in rows.iter().take(SHOWN) {
                text.push_str(&format!("\n    {what}: {row}"));
            }
            if rows.len() > SHOWN {
                text.push_str(&format!("\n    {what}: {} more", rows.len() - SHOWN));
            }
        }
    }
    text
}

/// The rows of one side that the other has not, each as often as that.
fn without(rows: &[String], others: &[String]) -> Vec<String> {
    let mut left: Vec<&String> = others.iter().collect();
    let mut result = Vec::new();
    for row in rows {
        match left.iter().position(|other| *other == row) {
            Some(at) => drop(left.swap_remove(at)),
            None => result.push(row.clone()),
        }
    }
    result
}
