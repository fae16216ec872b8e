//! `REFRESH`: of an incremental view it fills the view anew, if it is meant so. Cron jobs and frameworks, which know plain
//! materialized views only, want the view to be fresh: it is waited for, and left as it is.
//!
//! A view that serves goes on doing so until the dataflow that is to maintain it from then on is there, and its rows have been
//! compared with those (`worker::former`). Any other is filled by PostgreSQL, by running its query.

use super::changes_table::{self, Rows};
use super::{identity, is_incremental, mirror, own_settings, require_kind, tagged};
use crate::compile::{self, CompiledView, Known};
use crate::errors::Error;
use crate::hooks::statement::Target;
use crate::hooks::utility::{Call, Then};
use crate::pg::{catalog, locks, registry, report, view_statistics};
use crate::{reads, syntax};
use pgrx::pg_sys::Oid;

/// How a view is to be refreshed.
#[derive(Clone, Copy)]
pub struct Manner {
    pub concurrently: bool,
    pub with_data: bool,
    /// Whether the word is INCREMENTAL.
    pub incremental: bool,
}

pub fn before(call: &mut Call, view: &Target, manner: Manner) -> Result<Then, Error> {
    let Manner { concurrently, with_data, incremental } = manner;
    require_kind(view, incremental)?;
    let Some(oid) = view.oid.filter(|_| is_incremental(view)) else {
        return Ok(tagged(incremental));
    };
    // Without the word there is no other way to fill it anew.
    let asks_for_rows = !incremental && with_data && syntax::has_the_word();
    let has_rows = || match reads::runs_query_of(oid.into()) {
        true => Ok(true),
        false => reads::wait_for_rows(oid.into()),
    };
    if asks_for_rows && catalog::may_refresh(oid) && has_rows()? {
        tell_fresh(view);
        return Ok(Then::Done);
    }
    if concurrently && !catalog::may_refresh(oid) {
        // PostgreSQL has the message.
        return Ok(tagged(incremental));
    }
    if concurrently {
        if asks_for_rows && reads::is_filled_now(oid.into()) {
            tell_fresh(view);
            return Ok(Then::Done);
        }
        if asks_for_rows {
            reads::raise_errors_of(&[oid.into()]);
        }
        return Err(refuse_concurrent_refresh(view));
    }
    if with_data && catalog::may_refresh(oid) && reads::is_served(oid.into()) {
        if let Some(planned) = plan_now(oid) {
            call.require_writable(c"REFRESH INCREMENTAL VIEW");
            locks::against_changes(oid);
            call.between_event_triggers(oid, || serve_on(&planned))?;
            return Ok(Then::Refreshed { tagged: incremental });
        }
    }
    if is_filled_by_dataflow(oid)? {
        call.skip_data();
    }
    changes_table::provide(oid)?;
    mirror::provide(oid)?;
    changes_table::enter(oid, Rows::Go);
    let settings = own_settings::enter_view(oid)?;
    Ok(Then::Refill { view: oid, tagged: incremental, settings })
}

/// Plans a view by what is known of its tables now, if its rows can stay where they are while it is attached anew.
fn plan_now(view: Oid) -> Option<CompiledView> {
    let planned = compile::compile_view_by(view.into(), Known::Now).ok()?;
    // The table that has its rows, too, is filled by the statement.
    planned.mirror.is_none().then_some(planned)
}

/// Has the worker build another dataflow, by another plan, while the view serves as it is. Then its rows are compared.
fn serve_on(planned: &CompiledView) -> Result<(), Error> {
    let view = planned.relid;
    view_statistics::note(view, &planned.query.figures.text());
    registry::announce(view.into());
    registry::note_changed(view.into());
    provide_identity(planned)
}

/// Gives the tables the replica identity that they lack, as those may that a dump made without data.
fn provide_identity(view: &CompiledView) -> Result<(), Error> {
    match catalog::is_owned_by_user(view.relid.into()) {
        true => identity::provide(&view.query.sources),
        false => Ok(()),
    }
}

/// Answers whether the view's query should not be run to fill it. A view that cannot be planned any more, and one of another
/// owner, are left to PostgreSQL, which knows why.
fn is_filled_by_dataflow(view: Oid) -> Result<bool, Error> {
    let Ok(view) = compile::compile_view(view.into()) else { return Ok(false) };
    if catalog::is_owned_by_user(view.relid.into()) {
        identity::check(&view.query.sources)?;
    }
    Ok(compile::is_beyond_sql(&view.query))
}

/// Plans a view that was filled anew by what is known of its tables now. Writers wait from then on, if these get another
/// replica identity.
pub fn after(view: Oid) -> Result<(), Error> {
    changes_table::enter(view, Rows::Come);
    mirror::refill(view);
    let Ok(compiled) = compile::compile_view_by(view.into(), Known::Now) else { return Ok(()) };
    view_statistics::note(compiled.relid, &compiled.query.figures.text());
    provide_identity(&compiled)
}

/// Relations of the extension are not emptied by those who refresh all materialized views there are.
pub fn tell_kept(target: &Target) {
    let message = format!("materialized view \"{}\" is kept by pg_eddy", target.name);
    report::tell(report::notice(message));
}

fn tell_fresh(target: &Target) {
    let message = format!("incremental view \"{}\" keeps itself up to date, and is", target.name);
    report::tell(report::notice(message).set_hint("REFRESH INCREMENTAL VIEW fills it anew."));
}

/// Core's concurrent refresh would change stored rows behind the worker's back, one by one.
fn refuse_concurrent_refresh(view: &Target) -> Error {
    let message =
        format!("REFRESH CONCURRENTLY is not supported for incremental view \"{}\"", view.name);
    Error::unsupported(message)
        .hint("The view keeps itself up to date. Use REFRESH without CONCURRENTLY to rebuild it.")
}
