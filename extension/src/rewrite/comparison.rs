//! The rows by which a view and its query differ, counted in one query over the tree of the view's rule: no text goes
//! from one user to another, and no name of the query is looked up again.
//!
//! ```sql
//! SELECT count(*) FROM (SELECT … FROM v AS query_of_view EXCEPT ALL SELECT … FROM v AS rows_of_view)
//! SELECT count(*) FROM (SELECT … FROM (query of v) AS query_of_view EXCEPT ALL SELECT … FROM v AS rows_of_view)
//! ```

use crate::errors::Error;
use crate::pg::query::Query;
use crate::pg::{catalog, lists, types};
use crate::rewrite::nodes;
use crate::rewrite::tree::{self, Tree};
use pgrx::pg_sys::{self, Oid};
use std::ffi::{CStr, CString};

/// Begins the text of a query that has limits whatever becomes of its rows. It is in the text, because a
/// flag would be left behind by a query that fails before it runs.
pub const LIMITED: &CStr = c"/* as a running view, limited */ ";

/// What the view's name stands for, where its query is to be read.
const QUERY: &str = "query_of_view";
/// And where its rows are.
const STORED: &str = "rows_of_view";

/// Numbers of rows, with duplicates, that a view lacks and that it should not have, under the active snapshot, as the
/// current user, whose search path is the safe one.
pub fn count_differences(view: Oid) -> Result<(i64, i64), Error> {
    Ok((count_rows(view, QUERY, STORED)?, count_rows(view, STORED, QUERY)?))
}

/// The number of rows of the one that the other has not.
fn count_rows(view: Oid, left: &str, right: &str) -> Result<i64, Error> {
    let name = catalog::qualified_name(view);
    let columns = listed(&attributes_of(view)?);
    // The view may keep just the best rows of a recursion that has no end.
    let limited = LIMITED.to_string_lossy();
    let select = |alias: &str| format!("SELECT {columns} FROM {name} AS {alias}");
    let text = format!(
        "{limited}SELECT pg_catalog.count(*) FROM (({}) EXCEPT ALL ({})) AS difference",
        select(left),
        select(right)
    );
    count(text, view)
}

/// The number of rows, with duplicates, by which a view differs from a table that begins with its columns, under the same conditions.
pub fn count_differences_from(view: Oid, table: Oid) -> Result<i64, Error> {
    let (of_view, mut of_table) = (attributes_of(view)?, attributes_of(table)?);
    of_table.truncate(of_view.len());
    let select = |relation: Oid, columns: &[catalog::Attribute]| {
        let name = catalog::qualified_name(relation);
        format!("SELECT {} FROM {name} AS {STORED}", listed(columns))
    };
    let (rows, mirrored) = (select(view, &of_view), select(table, &of_table));
    let text = format!(
        "SELECT pg_catalog.count(*) FROM ((({rows}) EXCEPT ALL ({mirrored})) UNION ALL (({mirrored}) EXCEPT ALL ({rows}))) AS difference"
    );
    count(text, view)
}

/// Runs a query that counts, with the view's query in the place of what has the name of that.
fn count(text: String, view: Oid) -> Result<i64, Error> {
    let text = CString::new(text).map_err(|_| Error::internal("a name contains a zero byte"))?;
    // SAFETY: text of our own, of names quoted as needed; its tree is changed before it is planned.
    unsafe {
        let parsed = pg_sys::raw_parser(text.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_DEFAULT);
        let statements = lists::pointers::<pg_sys::RawStmt>(parsed);
        let statement = statements.first().ok_or_else(|| Error::internal("no statement"))?;
        let (none, no_hook) = (std::ptr::null(), std::ptr::null_mut());
        let query = pg_sys::parse_analyze_fixedparams(*statement, text.as_ptr(), none, 0, no_hook);
        read_query(query, view)?;
        let query = Tree::from_node(query.cast()).rewritten();
        let query = Query::plan(query.as_node().cast(), text.as_ptr());
        Ok(query.value(std::ptr::null_mut(), |count| count.map_or(0, |count| count.value() as i64)))
    }
}

fn attributes_of(relation: Oid) -> Result<Vec<catalog::Attribute>, Error> {
    let gone = || Error::internal("the view to be compared does not exist");
    Ok(catalog::describe_relation(relation).ok_or_else(gone)?.attributes)
}

/// Columns in a list, as text those whose type has no equality.
fn listed(columns: &[catalog::Attribute]) -> String {
    let value = |column: &catalog::Attribute| {
        let name = catalog::quoted(&column.name);
        match types::has_equality(column.type_oid) {
            true => name,
            false => format!("{name}::pg_catalog.text"),
        }
    };
    columns.iter().map(value).collect::<Vec<_>>().join(", ")
}

/// Puts the query of the view where the view is read under that name.
///
/// # Safety
/// A complete query that nobody else looks at.
unsafe fn read_query(query: *mut pg_sys::Query, view: Oid) -> Result<(), Error> {
    let gone = || Error::internal("the view to be compared has no query");
    // SAFETY: a tree of our own; an entry that was a relation becomes a subquery with the same columns.
    unsafe {
        for query in Tree::from_node(query.cast()).queries() {
            for entry in lists::pointers::<pg_sys::RangeTblEntry>(query.rtable) {
                if (*entry).relid != view || tree::entry_name(&*entry) != QUERY {
                    continue;
                }
                let subquery = Tree::of_view(view).ok_or_else(gone)?;
                nodes::become_subquery(entry, subquery.as_node().cast());
            }
        }
    }
    Ok(())
}
