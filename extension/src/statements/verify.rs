//! `eddy.verify_view`: compares a view with its query.

use crate::compile::{self, SourceTable};
use crate::errors::{Error, ErrorKind};
use crate::pg::{catalog, guc, locks, registry, report, view_settings, xact};
use crate::rewrite::tree::Tree;
use crate::rewrite::{comparison, recursive_references};
use crate::{reads, shared};
use pgrx::pg_sys::Oid;
use rules::security_label::Label;

/// Numbers of rows, with duplicates, that the view lacks and that it should not have.
///
/// Base tables are locked against writes, the view is waited for, and both sides are read under one
/// snapshot that begins afterwards. The query runs as the view's owner, in a security-restricted operation, under the settings of the view, as REFRESH does, and
/// for the same callers: in a session of others, what they have run before could decide what names in the owner's functions
/// mean. A recursion of it that passes the limits of a running view is an error.
pub fn verify(view: Oid) -> Result<(i64, i64), Error> {
    require_incremental(view)?;
    if !catalog::is_owned_by_user(view) {
        return Err(Error::not_owner("materialized view", &catalog::relation_name(view)));
    }
    // Beneath plain views, too.
    if Tree::of_view(view).is_some_and(|tree| recursive_references::are_in(&tree.rewritten())) {
        let name = catalog::relation_name(view);
        let message = format!("cannot compare incremental view \"{name}\" with its query");
        return Err(Error::unsupported(message)
            .detail("PostgreSQL has no eddy.recursive(); only the dataflow computes it."));
    }
    let compiled = compile::compile_view(view.into())?;
    let Label { settings, .. } = registry::label(view)?;
    let beneath = compile::beneath(&compiled.query);
    let beneath = beneath.iter().flat_map(|view| &view.query.sources);
    let sources: Vec<&SourceTable> = compiled.query.sources.iter().chain(beneath).collect();
    for source in sources.iter().filter(|source| !source.is_clock() && !source.is_view) {
        let table = Oid::from(source.table);
        if !catalog::may_block_writes(table) {
            let name = catalog::relation_name(table);
            let message = format!("permission denied to lock table \"{name}\"");
            return Err(Error::new(ErrorKind::InsufficientPrivilege, message)
                .detail("Comparing needs the rights of LOCK TABLE ... IN SHARE MODE."));
        }
        source.tables().into_iter().for_each(locks::against_writes);
    }
    reads::wait_current()?;
    let compare = || {
        view_settings::set_for_now(&settings);
        // Nobody writes what the view is made from, which has been waited for. A snapshot from before that is
        // another matter.
        if !xact::uses_one_snapshot() {
            guc::set_for_now(c"eddy.freshness", c"stale");
        }
        xact::with_new_snapshot(|| {
            // An older snapshot may see another state of the mirror than the view is read in.
            if let Some(mirror) = compiled.mirror.filter(|_| !xact::uses_one_snapshot()) {
                tell_differences(view, mirror.table.into())?;
            }
            comparison::count_differences(view)
        })
    };
    match sources.iter().any(|source| source.is_clock()) {
        true => {
            let present = time_of_view(view)?;
            xact::at_time(present, || xact::as_user(compiled.owner, compare))
        }
        false => xact::as_user(compiled.owner, compare),
    }
}

/// Warns of a mirror that is not what the view is: somebody has taken its guard away and written it.
fn tell_differences(view: Oid, mirror: Oid) -> Result<(), Error> {
    let differences = comparison::count_differences_from(view, mirror)?;
    if differences > 0 {
        let table = catalog::relation_name(mirror);
        let message = format!("table \"{table}\" differs from the view in {differences} rows");
        let notice = report::notice(message);
        report::warn(notice.set_hint("REFRESH INCREMENTAL VIEW fills both anew."));
    }
    Ok(())
}

/// The present time of a view, which it keeps until the end of the transaction.
fn time_of_view(view: Oid) -> Result<i64, Error> {
    let unknown = || Error::state("no worker maintains incremental views in this database");
    let database = shared::my_database().ok_or_else(unknown)?;
    locks::against_writes(view);
    reads::wait_for_clock(database)
}

/// Fails unless a relation is an incremental view.
pub fn require_incremental(view: Oid) -> Result<(), Error> {
    if registry::contains(view) {
        return Ok(());
    }
    if catalog::relation_kind(view).is_none() {
        return Err(Error::no_relation(view.to_u32()));
    }
    Err(Error::not_incremental(&catalog::relation_name(view)))
}
