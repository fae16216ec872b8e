//! A view against its query, where the query may have more than one right answer.
//!
//! Random queries number rows whose order is open, take the first value of peers, add floats. So a difference
//! counts only if PostgreSQL itself always gives one answer: the query is run again over copies of the tables that are
//! stored in other orders, by other plans. If these answers differ, it is skipped.

use anyhow::{Context, Result};
use harness::comparison::{comparison, rounded};
use postgres::{Client, SimpleQueryMessage};

use super::schema::TABLES;

/// How a view and its query compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Equal,
    /// Equal when floats are rounded: sums of them depend on the order of addition.
    EqualButDigits,
    /// Both raise an error: the SQLSTATEs of the view and of the query.
    BothFail(String, String),
    /// The view raises this SQLSTATE for something that PostgreSQL does not come to: README.md tells of it.
    Eager(String),
    /// PostgreSQL raises this SQLSTATE for something that the view does not come to.
    Lazy(String),
    /// Cannot be compared, and why.
    Skipped(String),
    /// The view is wrong: how.
    Wrong(String),
}

/// Rows as text in the order of the text, or the SQLSTATE of the error.
type Answer = std::result::Result<Vec<String>, String>;

/// Ways of planning, as the settings that forbid the others.
const PLANS: [&str; 6] = [
    "",
    "SET enable_hashjoin = off; SET enable_hashagg = off",
    "SET enable_nestloop = off; SET enable_sort = off",
    "SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off",
    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off",
    "SET join_collapse_limit = 1; SET from_collapse_limit = 1; SET enable_hashagg = off",
];

/// Orders of the stored rows that are tried with each plan.
const SHUFFLES: usize = 6;

/// Tables of the same names, with the same rows in other orders.
pub fn create_copies(client: &mut Client) -> Result<()> {
    let mut script = "CREATE SCHEMA shuffled;\n".to_owned();
    for table in TABLES {
        let name = table.name;
        script.push_str(&format!("CREATE TABLE shuffled.{name} (LIKE public.{name});\n"));
    }
    Ok(client.batch_execute(&script)?)
}

/// An error is that of a session that was lost.
pub fn compare(client: &mut Client, view: &str, query: &str) -> Result<Verdict> {
    match client.query_one(&comparison(view, query), &[]) {
        Ok(row) if (row.get::<_, i64>(0), row.get::<_, i64>(1)) == (0, 0) => {
            return Ok(Verdict::Equal)
        }
        Ok(_) => {}
        Err(error) => drop(state_of(error)?),
    }
    let of_view = answer(client, &format!("SELECT v::text FROM {view} v"))?;
    let of_query = answer(client, &format!("SELECT q::text FROM ({query}) q"))?;
    match (&of_view, &of_query) {
        (_, Err(state)) if is_limit(state) => {
            return Ok(Verdict::Skipped(format!("the query takes too much ({state})")))
        }
        (Err(state), _) if is_bug(state) => {
            return Ok(Verdict::Wrong(format!("the view raises {state}")))
        }
        (Err(view), Err(query)) => return Ok(Verdict::BothFail(view.clone(), query.clone())),
        (Err(state), _) if is_limit(state) => {
            return Ok(Verdict::Skipped(format!("the view takes too much ({state})")))
        }
        (Ok(view), Ok(query)) if view == query => return Ok(Verdict::Equal),
        (Ok(view), Ok(query)) if rounded(view) == rounded(query) => {
            return Ok(Verdict::EqualButDigits)
        }
        _ => {}
    }
    if !is_determined(client, query, &of_query)? {
        return Ok(Verdict::Skipped("PostgreSQL's answer depends on order or plan".into()));
    }
    match (&of_view, &of_query) {
        (Ok(_), Err(state)) if fails_while_planned(client, query, state)? => Ok(Verdict::Skipped(
            format!("PostgreSQL fails at a constant that no row needs ({state})"),
        )),
        (Err(state), Ok(_)) if afresh(client, query)? == of_view => {
            Ok(Verdict::Eager(state.clone()))
        }
        (Ok(_), Err(state)) if afresh(client, query)? == of_view => {
            Ok(Verdict::Lazy(state.clone()))
        }
        _ => Ok(Verdict::Wrong(difference(&of_view, &of_query))),
    }
}

/// Whether PostgreSQL raises the error without looking at a row: it computes with constants while it plans.
fn fails_while_planned(client: &mut Client, query: &str, state: &String) -> Result<bool> {
    Ok(answer(client, &format!("EXPLAIN {query}"))?.err().as_ref() == Some(state))
}

/// The answer of a view that is made from the rows of today. If it is another one, an error has come or gone too late.
fn afresh(client: &mut Client, query: &str) -> Result<Answer> {
    let create = format!("CREATE INCREMENTAL VIEW afresh AS {query} WITH NO DATA");
    if let Err(error) = client.batch_execute(&create) {
        return Ok(Err(state_of(error)?));
    }
    let found = answer(client, "SELECT v::text FROM afresh v")?;
    client.batch_execute("DROP INCREMENTAL VIEW afresh")?;
    Ok(found)
}

/// Whether PostgreSQL gives this answer whatever the order of the stored rows and the plan.
fn is_determined(client: &mut Client, query: &str, expected: &Answer) -> Result<bool> {
    // All that has a name in the query stands in this schema.
    let query = query.replace("public.", "shuffled.");
    let plans = PLANS.iter().cycle().take(PLANS.len() * SHUFFLES);
    for (number, plan) in plans.enumerate() {
        let mut script = format!("SELECT setseed({});", number as f64 / 100.0);
        for table in TABLES {
            let name = table.name;
            script.push_str(&format!(
                "TRUNCATE shuffled.{name}; \
                 INSERT INTO shuffled.{name} SELECT * FROM public.{name} ORDER BY random();"
            ));
        }
        client.batch_execute(&script)?;
        client.batch_execute(plan)?;
        let found = answer(client, &format!("SELECT q::text FROM ({query}) q"));
        client.batch_execute(RESET)?;
        let is_same = match (&found?, expected) {
            (Ok(found), Ok(expected)) => rounded(found) == rounded(expected),
            (found, expected) => found == expected,
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Takes back [`PLANS`].
const RESET: &str =
    "RESET enable_hashjoin; RESET enable_hashagg; RESET enable_nestloop; RESET enable_sort;
    RESET enable_mergejoin; RESET enable_material; RESET enable_memoize; RESET enable_seqscan;
    RESET join_collapse_limit; RESET from_collapse_limit";

fn answer(client: &mut Client, sql: &str) -> Result<Answer> {
    match client.simple_query(sql) {
        Ok(messages) => {
            let text = |message: &SimpleQueryMessage| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
                _ => None,
            };
            let mut rows: Vec<String> = messages.iter().filter_map(text).collect();
            rows.sort();
            Ok(Ok(rows))
        }
        Err(error) => Ok(Err(state_of(error)?)),
    }
}

/// What functions of PostgreSQL say, as internal errors, of type modifiers that no parser makes, and of results of more than
/// 1 GB (a `char` of that length); with the SQLSTATEs that they should have.
const OF_FUNCTIONS: [(&str, &str); 3] = [
    ("invalid INTERVAL typmod", "22023"),
    ("unrecognized interval typmod", "22023"),
    ("invalid memory alloc request size", "54000"),
];

/// The SQLSTATE of an error of the server.
pub fn state_of(error: postgres::Error) -> Result<String> {
    let Some(report) = error.as_db_error().filter(|_| !error.is_closed()) else {
        return Err(error).context("the session was lost");
    };
    let state = report.code().code();
    let mut known = OF_FUNCTIONS.iter().filter(|_| state == "XX000");
    let of_function = known.find(|(start, _)| report.message().starts_with(start));
    Ok(of_function.map_or(state, |(_, state)| state).to_owned())
}

/// What no user may ever see.
pub fn is_bug(state: &str) -> bool {
    state.starts_with("XX") || state == "57P02"
}

/// Too little time, memory or room, and views that are not current in time.
pub fn is_limit(state: &str) -> bool {
    ["53", "54"].iter().any(|class| state.starts_with(class)) || ["57014", "55000"].contains(&state)
}

fn difference(of_view: &Answer, of_query: &Answer) -> String {
    match (of_view, of_query) {
        (Ok(view), Ok(query)) => format!(
            "the view has {} rows, the query {}; the first that only one has: {:?} and {:?}",
            view.len(),
            query.len(),
            view.iter().find(|row| !query.contains(row)),
            query.iter().find(|row| !view.contains(row)),
        ),
        (Ok(rows), Err(state)) => {
            format!("the view has {} rows, the query raises {state}", rows.len())
        }
        (Err(state), Ok(rows)) => {
            format!("the view raises {state}, the query has {} rows", rows.len())
        }
        (Err(view), Err(query)) => format!("the view raises {view}, the query {query}"),
    }
}
