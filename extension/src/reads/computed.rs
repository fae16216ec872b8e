//! The queries of views, which statements run that cannot be shown the stored rows.
//!
//! A query runs as the owner of the view, in a security-restricted operation, under the settings of the view, as REFRESH does. With
//! code of users in it, or in what its tables have for the planner, it runs for those alone who may act as the owner: in a
//! session of others, what they have run before could decide what names in the owner's functions mean. So it is, too, for the views that
//! it reads in turn: who counts is whose statement it is. A recursion that passes the limits of a running view is an error.

use super::beneath::tables_beneath;
use super::errors;
use super::views::with_views;
use crate::errors::Error;
use crate::hooks::planner;
use crate::hooks::query_scan::Handlers;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::query::Store;
use crate::pg::relation::{with_relation, Lock};
use crate::pg::{catalog, guc, registry, report, view_settings, xact};
use crate::rewrite::computed_views::ViewQuery;
use crate::shared;
use pgrx::pg_sys::Oid;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

thread_local! {
    /// For whom the query of a view is being run.
    static READER: Cell<Option<Oid>> = const { Cell::new(None) };
}

/// Set-up at library load.
pub fn install() {
    planner::install(Handlers { is_computed, tables, check, compute });
}

fn is_computed(view: ViewId) -> bool {
    let mut is_known = false;
    with_views(|known| is_known = known.contains(&view));
    is_known
}

fn tables(view: ViewId) -> Vec<RelationId> {
    tables_beneath(&[view])
}

/// Runs the query of a view under the active snapshot. An error says in its context which view it is of.
fn compute(view: ViewId, store: &Store) {
    let name = catalog::qualified_name(view);
    let work = || try_compute(view, store).unwrap_or_else(|error| error.raise());
    let Err(error) = report::noting_codes(|| xact::catching(work)) else { return };
    let context = format!("query of incremental view \"{name}\"");
    report::set_code(report::code_of(report::of_caught(&error)), Some(&context));
    error.rethrow()
}

/// An error if the query of a view cannot be run, or that of one that it reads.
fn check(view: ViewId) {
    let mut checked = BTreeSet::new();
    let outcome = for_reader(|reader| try_check(view, reader, &mut checked));
    outcome.unwrap_or_else(|error| error.raise());
}

/// The same, but for views that have been checked: a view's query has an entry for the view itself.
fn try_check(view: ViewId, reader: Oid, checked: &mut BTreeSet<ViewId>) -> Result<(), Error> {
    if !checked.insert(view) {
        return Ok(());
    }
    let owner = owner(view)?;
    let beneath = xact::as_user(owner, || {
        let query = runnable(view, owner, reader)?;
        Ok::<_, Error>(query.reads())
    })?;
    let mut views = beneath.into_iter().map(ViewId::from).filter(|view| is_computed(*view));
    views.try_for_each(|view| try_check(view, reader, checked))
}

/// The query of a view, for the current user, who is its owner, and for whose statement it is.
fn runnable(view: ViewId, owner: Oid, reader: Oid) -> Result<ViewQuery, Error> {
    let query = ViewQuery::of(view)?;
    if !query.can_run() {
        return Err(errors::beyond_sql(view));
    }
    if !catalog::may_act_as(reader, owner) && !query.is_builtin() {
        return Err(errors::code_of_owner(view));
    }
    Ok(query)
}

fn try_compute(view: ViewId, store: &Store) -> Result<(), Error> {
    let owner = owner(view)?;
    let settings = registry::label(view.into())?.settings;
    for_reader(|reader| {
        xact::as_user(owner, || {
            view_settings::set_for_now(&settings);
            // The worker has no session's.
            guc::set_for_now(c"quote_all_identifiers", c"off");
            let query = runnable(view, owner, reader)?;
            count(view);
            planner::keep_rows(query, store);
            Ok(())
        })
    })
}

/// Runs `work` for whose statement it is: the current user, but where the query of a view is being run already.
fn for_reader<R>(work: impl FnOnce(Oid) -> R) -> R {
    struct Restore(Option<Oid>);
    impl Drop for Restore {
        fn drop(&mut self) {
            READER.set(self.0);
        }
    }
    let former = READER.get();
    let reader = former.unwrap_or_else(catalog::current_user);
    let _restore = Restore(former);
    READER.set(Some(reader));
    work(reader)
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
