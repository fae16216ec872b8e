//! The queries of views, which statements run that cannot be shown the stored rows.
//!
//! A query that returns the same whoever runs it becomes a part of the statement, as that of a plain view does. Others run as
//! the owner of the view, in a security-restricted operation, under the settings of the view, as REFRESH does; with functions
//! of users in them for those alone who may act as the owner: in a session of others, what they have run before could decide
//! what names in the owner's functions mean. A recursion that passes the limits of a running view is an error.

use super::errors;
use super::views::with_views;
use crate::errors::Error;
use crate::hooks::planner;
use crate::hooks::query_scan::Handlers;
use crate::pg::ids::ViewId;
use crate::pg::query::Store;
use crate::pg::relation::{with_relation, Lock};
use crate::pg::{catalog, registry, view_settings, xact};
use crate::rewrite::computed_views::{Reading, ViewQuery};
use crate::shared;
use pgrx::pg_sys::Oid;
use std::sync::atomic::Ordering::Relaxed;

/// Set-up at library load.
pub fn install() {
    planner::install(Handlers { is_computed, reading, compute });
}

fn is_computed(view: ViewId) -> bool {
    let mut is_known = false;
    with_views(|known| is_known = known.contains(&view));
    is_known
}

/// How a statement reads a view that it computes.
fn reading(view: ViewId) -> Result<Reading, Error> {
    if !is_computed(view) {
        return Ok(Reading::Rows);
    }
    let query = xact::as_user(owner(view)?, || ViewQuery::of(view))?;
    if !query.is_plain() {
        return Ok(Reading::Scan);
    }
    count(view);
    Ok(Reading::Query(query))
}

/// Runs the query of a view under the active snapshot.
fn compute(view: ViewId, store: &Store) {
    if let Err(error) = try_compute(view, store) {
        error.raise();
    }
}

fn try_compute(view: ViewId, store: &Store) -> Result<(), Error> {
    let may_act_as_owner = catalog::is_owned_by_user(view.into());
    let settings = registry::label(view.into())?.settings;
    xact::as_user(owner(view)?, || {
        view_settings::set_for_now(&settings);
        let query = ViewQuery::of(view)?;
        if !may_act_as_owner && !query.is_builtin() {
            return Err(errors::code_of_owner(view));
        }
        count(view);
        planner::keep_rows(query, store);
        Ok(())
    })
}

fn owner(view: ViewId) -> Result<Oid, Error> {
    let owner = with_relation(view, Lock::AccessShare, |view| view.owner());
    let gone = || Error::internal("the view to be computed does not exist");
    owner.map(Oid::from).ok_or_else(gone)
}

/// Counts a statement that runs the query of a view.
fn count(view: ViewId) {
    if let Some(cell) = shared::view(view) {
        cell.query_reads.fetch_add(1, Relaxed);
    }
}
