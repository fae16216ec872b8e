//! Statements that compute incremental views while they run, in place of the stored rows: what has to be changed in their
//! queries, and the query that computes a view.
//!
//! ```sql
//! UPDATE t SET … FROM v WHERE …
//! UPDATE t SET … FROM (SELECT v.a, v.b FROM v) v WHERE …
//! ```

use crate::errors::Error;
use crate::pg::ids::ViewId;
use crate::pg::versions::rights;
use crate::pg::{catalog, lists, read};
use crate::rewrite::builtin::is_builtin;
use crate::rewrite::comparison::LIMITED;
use crate::rewrite::recursive_references;
use crate::rewrite::tree::{self, Tree};
use crate::rewrite::wrapped;
use pgrx::pg_sys::{self, Oid};
use std::ffi::CString;

/// Has a query, rewritten and not yet planned, read computed rows: they are not in a table, have no place in it, and where rows are
/// locked or changed together with some of them, these are kept as copies. An error if it asks for what they have not.
///
/// # Safety
/// A complete query that nobody else looks at.
pub unsafe fn prepare(
    query: *mut pg_sys::Query,
    is_computed: fn(ViewId) -> bool,
) -> Result<(), Error> {
    // SAFETY: per contract.
    let tree = unsafe { Tree::from_node(query.cast()) };
    let queries = tree.queries();
    let is_change = |query: &&pg_sys::Query| query.resultRelation != 0 || !query.rowMarks.is_null();
    // What a subquery reads may be pulled up to where that is.
    let changes = queries.iter().any(is_change);
    for query in queries {
        for (entry, number) in tree::range_table(query).into_iter().zip(1..) {
            // SAFETY: an entry of that query.
            let is_view =
                unsafe { read::is_materialized_view(entry) } && is_computed(entry.relid.into());
            // PostgreSQL refuses to lock rows of materialized views.
            if !is_view || tree::locks(query, number) {
                continue;
            }
            refuse_places(query, entry)?;
            if changes {
                // SAFETY: an entry of a query of our own. The barrier keeps it from being pulled up, so that its rows get copied.
                unsafe {
                    let entry = wrapped::wrap(std::ptr::from_ref(query).cast_mut(), number, None);
                    (*entry).security_barrier = true;
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

    /// Whether PostgreSQL can run it.
    pub fn can_run(&self) -> bool {
        !recursive_references::are_in(&self.tree)
    }

    /// The relations that it reads, plain views that it reads through among them.
    pub fn reads(&self) -> Vec<Oid> {
        tree::reads(&self.tree).map(|(_, entry)| entry.relid).collect()
    }

    /// Whether no code of users runs with it: in what it calls, and in what its tables have for the planner.
    pub fn is_builtin(&self) -> bool {
        let tables = self.reads();
        self.tree.queries().into_iter().all(|query| {
            let is_secured = |entry: &&pg_sys::RangeTblEntry| !entry.securityQuals.is_null();
            !tree::range_table(query).iter().any(is_secured)
                && !sorts_as_users_say(query)
                && tree::expressions(query).into_iter().all(is_builtin)
        }) && !catalog::have_code(&tables)
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
