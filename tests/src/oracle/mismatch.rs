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
    /// A table beside it, its mirror or that of its changes, does not come to the same rows.
    Beside { table: String, rows: i64 },
}

impl Mismatch {
    /// Whether both are the same failure, for all one can tell.
    pub fn is_like(&self, other: &Mismatch) -> bool {
        match (self, other) {
            (Mismatch::Rows { .. }, Mismatch::Rows { .. })
            | (Mismatch::Inside { .. }, Mismatch::Inside { .. })
            | (Mismatch::Beside { .. }, Mismatch::Beside { .. }) => true,
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
            Mismatch::Beside { table, rows } => write!(f, "differs from {table} in {rows} rows"),
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

/// The SQLSTATE of what is longer than PostgreSQL can have it.
const TOO_LONG: &str = "54000";

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
            let mismatch = match (missing, surplus) {
                (0, 0) => compare_beside(reader, view)?,
                _ => Some(Mismatch::Rows { missing, surplus }),
            };
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
    let mirror = format!("SELECT WHERE to_regclass('{view}_table') IS NOT NULL");
    if of_view.as_deref() == Some(TOO_LONG) && reader.query_opt(&mirror, &[])?.is_some() {
        // Its key has a value that no index takes.
        reader.batch_execute(&format!("ALTER INCREMENTAL VIEW {view} RESET (storage)"))?;
        return compare(reader, view, query);
    }
    let report = error.as_db_error().map(|report| format!("{report:?}"));
    let error = report.unwrap_or_else(|| error.to_string());
    let mismatch = Some(Mismatch::States { of_view, of_query, error });
    Ok(Verdict { mismatch, ..Verdict::default() })
}

/// Compares a view with the tables beside it, if it has any.
fn compare_beside(reader: &mut Client, view: &str) -> Result<Option<Mismatch>> {
    let sql = "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum), \
               to_regclass($1 || '_table') IS NOT NULL, to_regclass($1 || '_changes') IS NOT NULL \
               FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0";
    let row = reader.query_one(&sql.replace("$1", &format!("'{view}'")), &[])?;
    let (columns, is_mirrored, has_changes): (Option<String>, bool, bool) =
        (row.get(0), row.get(1), row.get(2));
    let columns = columns.unwrap_or_default();
    let tables = [("table", "1", is_mirrored), ("changes", "diff", has_changes)];
    for (suffix, count, _) in tables.into_iter().filter(|(.., is_there)| *is_there) {
        let table = format!("{view}_{suffix}");
        // As text: not all types can be compared.
        let sql = format!(
            "SELECT count(*) FROM (SELECT FROM ( \
                 SELECT ROW({columns})::text AS r, 1 AS n FROM {view} \
                 UNION ALL SELECT ROW({columns})::text, -{count} FROM {table}) q \
             GROUP BY r HAVING sum(n) <> 0) d"
        );
        let rows: i64 = reader.query_one(&sql, &[]).with_context(|| sql.clone())?.get(0);
        if rows != 0 {
            return Ok(Some(Mismatch::Beside { table, rows }));
        }
    }
    Ok(None)
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
