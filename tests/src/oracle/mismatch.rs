//! How a view can differ from its query.

use std::fmt;

use anyhow::{Context, Result};
use harness::comparison::comparison;
use postgres::error::SqlState;
use postgres::Client;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The view has other rows than its query.
    Rows { missing: i64, surplus: i64 },
    /// The comparison has failed: with what, and the SQLSTATEs with which view and query then end, if with an error.
    States { of_view: Option<String>, of_query: Option<String>, error: String },
    /// CREATE, the last statement, ends with an error that the query does not have.
    NotCreated { state: String, message: String },
    /// It differs where a transaction reads it.
    Inside { message: String },
}

impl Mismatch {
    /// Whether both are the same failure, for all one can tell.
    pub fn is_like(&self, other: &Mismatch) -> bool {
        match (self, other) {
            (Mismatch::Rows { .. }, Mismatch::Rows { .. })
            | (Mismatch::Inside { .. }, Mismatch::Inside { .. }) => true,
            (
                Mismatch::NotCreated { state: one, .. },
                Mismatch::NotCreated { state: other, .. },
            ) => one == other,
            (
                Mismatch::States { of_view, of_query, .. },
                Mismatch::States { of_view: other_view, of_query: other_query, .. },
            ) => (of_view, of_query) == (other_view, other_query),
            _ => false,
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Mismatch::Rows { missing, surplus } => {
                write!(f, "misses {missing} rows and has {surplus} surplus rows")
            }
            Mismatch::States { of_view, of_query, error } => write!(
                f,
                "ends with {}, its query with {}, their comparison with {error}",
                of_view.as_deref().unwrap_or("rows"),
                of_query.as_deref().unwrap_or("rows"),
            ),
            Mismatch::NotCreated { message, .. } => write!(f, "was not created: {message}"),
            Mismatch::Inside { message } => write!(f, "differs: {message}"),
        }
    }
}

/// A view that was found to be wrong.
#[derive(Clone, Debug)]
pub struct Found {
    pub view: String,
    pub query: String,
    pub mismatch: Mismatch,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "view {} {}", self.view, self.mismatch)
    }
}

impl std::error::Error for Found {}

/// What a comparison says.
#[derive(Default)]
pub struct Verdict {
    pub mismatch: Option<Mismatch>,
    /// Rows that are equal but written differently.
    pub differing_texts: i64,
    /// The query takes longer than a comparison may.
    pub is_too_costly: bool,
}

pub fn compare(reader: &mut Client, view: &str, query: &str) -> Result<Verdict> {
    let error = match reader.query_one(&comparison(view, query), &[]) {
        Ok(row) => {
            let (missing, surplus, differing_texts) = (row.get(0), row.get(1), row.get(2));
            let is_right = (missing, surplus) == (0, 0);
            let mismatch = (!is_right).then_some(Mismatch::Rows { missing, surplus });
            return Ok(Verdict { mismatch, differing_texts, is_too_costly: false });
        }
        Err(error) => error,
    };
    if error.code().is_none() {
        return Err(error).context("comparing a view with its query");
    }
    let of_view = outcome(reader, &format!("SELECT * FROM {view}"))?;
    if error.code() == Some(&SqlState::QUERY_CANCELED) && of_view.is_none() {
        return Ok(Verdict { is_too_costly: true, ..Verdict::default() });
    }
    let of_query = outcome(reader, &format!("SELECT q::text FROM ({query}) q"))?;
    if of_query == of_view && of_query.is_some() {
        return Ok(Verdict::default());
    }
    let report = error.as_db_error().map(|report| format!("{report:?}"));
    let error = report.unwrap_or_else(|| error.to_string());
    let mismatch = Some(Mismatch::States { of_view, of_query, error });
    Ok(Verdict { mismatch, ..Verdict::default() })
}

/// The SQLSTATE with which a query fails.
fn outcome(reader: &mut Client, sql: &str) -> Result<Option<String>> {
    match reader.simple_query(sql) {
        Ok(_) => Ok(None),
        Err(error) => match error.code() {
            Some(code) => Ok(Some(code.code().to_string())),
            None => Err(error.into()),
        },
    }
}
