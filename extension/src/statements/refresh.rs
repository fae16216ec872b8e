//! `REFRESH`: of an incremental view it fills the view anew, if it is meant so. Cron jobs and frameworks, which know plain
//! materialized views only, want the view to be fresh: it is waited for, and left as it is.

use super::changes_table::{self, Rows};
use super::{identity, is_incremental, mirror, own_settings, require_kind, tagged};
use crate::compile::{self, Known};
use crate::errors::Error;
use crate::hooks::statement::Target;
use crate::hooks::utility::{Call, Then};
use crate::pg::{catalog, report, view_statistics};
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
    if asks_for_rows && catalog::may_refresh(oid) && reads::wait_for_rows(oid.into())? {
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
    if is_filled_by_dataflow(oid)? {
        call.skip_data();
    }
    changes_table::provide(oid)?;
    mirror::provide(oid)?;
    changes_table::enter(oid, Rows::Go);
    let settings = own_settings::enter_view(oid)?;
    Ok(Then::Refill { view: oid, tagged: incremental, settings })
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

/// Plans the view by what is known of its tables now, and gives them the replica identity that it lacks, as one that a dump
/// made without data may. That at the end, as writers wait from then on.
pub fn after(view: Oid) -> Result<(), Error> {
    changes_table::enter(view, Rows::Come);
    mirror::refill(view);
    let compiled = compile::compile_view_by(view.into(), Known::Now);
    if let Ok(view) = &compiled {
        view_statistics::note(view.relid, &view.query.figures.text());
    }
    match compiled {
        Ok(view) if catalog::is_owned_by_user(view.relid.into()) => {
            identity::provide(&view.query.sources)
        }
        _ => Ok(()),
    }
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
