//! Statements that compute incremental views while they run, in place of the stored rows: what has to be changed in their
//! queries, and the query that computes a view.
//!
//! ```sql
//! SELECT … FROM v WHERE …
//! SELECT … FROM (query of v) v WHERE …
//! UPDATE t SET … FROM v WHERE …
//! UPDATE t SET … FROM (SELECT v.a, v.b FROM v) v WHERE …
//! ```
//!
//! The first is for queries that return the same whoever runs them: as of a plain view, conditions and joins reach into them. The
//! others are scanned, so that they run as the owner, under the settings of the view, with its limits.

use crate::errors::Error;
use crate::pg::ids::ViewId;
use crate::pg::versions::rights;
use crate::pg::{catalog, lists};
use crate::rewrite::comparison::LIMITED;
use crate::rewrite::host_calls;
use crate::rewrite::nodes;
use crate::rewrite::tree::{self, Tree};
use crate::rewrite::wrapped;
use pgrx::pg_sys::{self, Oid};
use std::ffi::CString;

/// How a statement reads a view that it computes.
pub enum Reading {
    /// As a subquery.
    Query(ViewQuery),
    /// By a scan.
    Scan,
    /// It is not computed.
    Rows,
}

/// Has a query, rewritten and not yet planned, read computed rows: they are not in a table, have no place in it, and a row that is
/// locked or changed together with one of them keeps a copy of it. An error if it asks for what they have not.
///
/// # Safety
/// A complete query that nobody else looks at.
pub unsafe fn prepare(
    query: *mut pg_sys::Query,
    read: fn(ViewId) -> Result<Reading, Error>,
) -> Result<(), Error> {
    // SAFETY: per contract.
    let tree = unsafe { Tree::from_node(query.cast()) };
    for query in tree.queries() {
        let changes = query.resultRelation != 0 || !query.rowMarks.is_null();
        for (entry, number) in tree::range_table(query).into_iter().zip(1..) {
            // Up to 15 the query of a view has entries that stand for the view and that nobody reads.
            let is_view = entry.rtekind == pg_sys::RTEKind::RTE_RELATION
                && entry.relkind as u8 == pg_sys::RELKIND_MATVIEW
                && entry.inFromCl;
            // PostgreSQL refuses to lock rows of materialized views.
            if !is_view || tree::first_locked(query).is_some_and(|it| it.relid == entry.relid) {
                continue;
            }
            // Who may not read it is told so when the statement starts.
            let reading = match catalog::may_read(query, entry) {
                true => read(entry.relid.into())?,
                false => continue,
            };
            if !matches!(reading, Reading::Rows) {
                refuse_places(query, entry)?;
            }
            // SAFETY: an entry of a query of our own. The barrier keeps conditions of the reader from seeing rows that the view does not
            // have, and what is wrapped from being pulled up, so that its rows get copied.
            unsafe {
                let query = std::ptr::from_ref(query).cast_mut();
                let entry = std::ptr::from_ref(entry).cast_mut();
                match reading {
                    Reading::Query(inner) => {
                        let (subquery, _) = inner.into_parts();
                        prepare(subquery, read)?;
                        nodes::become_subquery(entry, subquery);
                        (*entry).security_barrier = true;
                    }
                    Reading::Scan if changes => {
                        (*wrapped::wrap(query, number, None)).security_barrier = true;
                    }
                    Reading::Scan | Reading::Rows => {}
                }
            }
        }
    }
    Ok(())
}

/// Computed rows have no ctid and the like, and no pages to take samples of.
fn refuse_places(query: &pg_sys::Query, entry: &pg_sys::RangeTblEntry) -> Result<(), Error> {
    let construct = if !entry.tablesample.is_null() {
        "TABLESAMPLE"
    } else if rights::reads_system_columns(query, entry) {
        "a system column"
    } else {
        return Ok(());
    };
    let name = catalog::qualified_name(ViewId::from(entry.relid));
    let message = format!("{construct} of incremental view \"{name}\" is not supported here");
    Err(Error::unsupported(message)
        .detail(
            "The stored rows are not what this statement has to see, so it runs the view's query.",
        )
        .hint("Set eddy.freshness = 'stale' to read the stored rows."))
}

/// The query of a view, which returns its rows.
pub struct ViewQuery {
    /// Rewritten for the view's owner.
    tree: Tree,
    /// What hooks and messages show: it has the limits of a running view.
    text: CString,
}

impl ViewQuery {
    /// For the current user, who is the view's owner. An error if the view does not exist any more.
    pub fn of(view: ViewId) -> Result<ViewQuery, Error> {
        let gone = || Error::internal("the view to be computed has no query");
        let tree = Tree::of_view(Oid::from(view)).ok_or_else(gone)?.rewritten();
        let text = format!(
            "{}query of incremental view {}",
            LIMITED.to_string_lossy(),
            catalog::qualified_name(view)
        );
        Ok(ViewQuery { tree, text: CString::new(text).unwrap_or_default() })
    }

    /// Whether it calls no functions but PostgreSQL's own.
    pub fn is_builtin(&self) -> bool {
        self.tree.queries().into_iter().all(|query| {
            let is_secured = |entry: &&pg_sys::RangeTblEntry| !entry.securityQuals.is_null();
            !tree::range_table(query).iter().any(is_secured)
                && !sorts_as_users_say(query)
                && tree::expressions(query).into_iter().all(host_calls::is_builtin)
        })
    }

    /// Whether it returns the same whoever runs it under whichever settings, and ends.
    pub fn is_plain(&self) -> bool {
        let is_recursive = |query: &pg_sys::Query| query.hasRecursive;
        let node = self.tree.as_node();
        // SAFETY: a complete query, which is only read.
        self.is_builtin()
            && !self.tree.queries().into_iter().any(is_recursive)
            && !unsafe { pg_sys::contain_mutable_functions(node) }
    }

    /// The query, which planning changes, and its text.
    pub fn into_parts(self) -> (*mut pg_sys::Query, CString) {
        (self.tree.as_node().cast(), self.text)
    }
}

/// Whether it sorts, groups or compares rows by an operator of users.
fn sorts_as_users_say(query: &pg_sys::Query) -> bool {
    let lists = [query.groupClause, query.sortClause, query.distinctClause];
    let is_of_users = |clause: *mut pg_sys::SortGroupClause| {
        // SAFETY: such lists hold clauses.
        let operators = unsafe { [(*clause).eqop, (*clause).sortop] };
        operators.into_iter().any(|operator| !catalog::is_builtin(operator))
    };
    // SAFETY: as above; windows hold two such lists each.
    unsafe {
        let windows = lists::pointers::<pg_sys::WindowClause>(query.windowClause);
        let of_windows = windows
            .into_iter()
            .flat_map(|window| [(*window).partitionClause, (*window).orderClause]);
        let mut clauses =
            lists.into_iter().chain(of_windows).flat_map(|list| lists::pointers(list));
        clauses.any(is_of_users)
    }
}
