//! The statements on incremental views, seen through the utility hook.

mod bodies;
mod changes_table;
mod create;
mod cross_products;
mod functions;
mod identity;
mod label;
mod outdated;
mod own_settings;
mod persistence;
mod replace;
mod sharing;
mod verify;

use crate::compile::{self, Known};
use crate::errors::{Error, ErrorKind};
use crate::hooks::label as provider;
use crate::hooks::object_access::{self, Drops};
use crate::hooks::statement::{Statement, Target};
use crate::hooks::utility::{self, Call, Handler, Then};
use crate::pg::sqlstate::SqlState;
use crate::pg::{catalog, records, registry, view_statistics};
use crate::reads;
use crate::syntax;
use changes_table::Rows;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::pg_sys::{self, Oid};
use pgrx::PgLogLevel;
pub use verify::require_incremental;

pub fn install() {
    utility::install(Handler {
        before,
        created: create::created,
        refilled,
        altered: changes_table::follow,
        adopted: identity::adopt,
    });
    registry::install();
    provider::install(label::check);
    object_access::install(Drops { extension: extension_dropped, relation: relation_dropped });
}

fn extension_dropped(extension: Oid) {
    if registry::extension() == Some(extension) {
        registry::remove_all();
    }
}

fn relation_dropped(relation: Oid) {
    let is_view = catalog::relation_kind(relation) == Some(pg_sys::RELKIND_MATVIEW);
    if is_view && registry::contains(relation) {
        records::forget(relation.into());
    }
}

/// Checks a statement before PostgreSQL runs it.
fn before(call: &mut Call, statement: Statement) -> Result<Then, Error> {
    let incremental = syntax::written_incremental(call.source(), call.start());
    match statement {
        Statement::Create(creation) => create::before(call, creation, incremental),
        Statement::Replace(replacement) => replace::before(call, replacement, incremental),
        Statement::Explain { creation, options } => {
            create::explain(call, creation, &options, incremental)
        }
        Statement::Scan(targets) => {
            let views = targets.iter().filter_map(|target| target.oid);
            let are_own =
                |view: &Oid| registry::contains(*view) && catalog::is_owned_by_user(*view);
            views.filter(are_own).for_each(|view| reads::wait_until_filled(view.into()));
            Ok(Then::Run)
        }
        Statement::NewChild(child) => Ok(Then::Adopt(child)),
        Statement::SetLogged { table, is_logged, child } => {
            persistence::before_change(&table, is_logged)?;
            Ok(child.map_or(Then::Run, Then::Adopt))
        }
        Statement::Drop(targets) => {
            targets.iter().try_for_each(|t| require_kind(t, incremental))?;
            Ok(tagged(incremental))
        }
        Statement::SetOptions(target) => {
            require_kind(&target, incremental)?;
            if let Some(view) = target.oid.filter(|view| registry::contains(*view)) {
                own_settings::change(call, &target, view)?;
            }
            Ok(tagged(incremental))
        }
        Statement::Alter(target) => {
            require_kind(&target, incremental)?;
            let view = target.oid.filter(|view| registry::contains(*view));
            Ok(view.map_or(tagged(incremental), |view| Then::Alter { view, tagged: incremental }))
        }
        Statement::Comment(target) => {
            require_kind(&target, incremental)?;
            Ok(tagged(incremental))
        }
        Statement::Refresh { view, .. } if view.oid.is_some_and(registry::is_own) => {
            tell_kept(&view);
            Ok(Then::Done)
        }
        Statement::Refresh { view, concurrently } => {
            require_kind(&view, incremental)?;
            match is_incremental(&view) {
                true if concurrently => Err(refuse_concurrent_refresh(&view)),
                true => Ok(match view.oid {
                    Some(oid) => {
                        if prepare_refresh(oid)? {
                            call.skip_data();
                        }
                        changes_table::provide(oid)?;
                        changes_table::enter(oid, Rows::Go);
                        let settings = own_settings::enter_view(oid)?;
                        Then::Refill { view: oid, tagged: incremental, settings }
                    }
                    None => tagged(incremental),
                }),
                false => Ok(tagged(incremental)),
            }
        }
    }
}

fn tagged(incremental: bool) -> Then {
    if incremental {
        Then::RunTagged
    } else {
        Then::Run
    }
}

fn is_incremental(target: &Target) -> bool {
    target.oid.is_some_and(registry::contains)
}

/// Answers whether the view's query should not be run to fill it. A view that cannot be planned any more, and one of another
/// owner, are left to PostgreSQL, which knows why.
fn prepare_refresh(view: Oid) -> Result<bool, Error> {
    let Ok(view) = compile::compile_view(view.into()) else { return Ok(false) };
    if catalog::is_owned_by_user(view.relid.into()) {
        identity::check(&view.query.sources)?;
    }
    Ok(compile::is_beyond_sql(&view.query))
}

/// Plans the view by what is known of its tables now, and gives them the replica identity that it lacks, as one that a dump
/// made without data may. That at the end, as writers wait from then on.
fn refilled(view: Oid) -> Result<(), Error> {
    changes_table::enter(view, Rows::Come);
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
fn tell_kept(target: &Target) {
    let message = format!("materialized view \"{}\" is kept by pg_eddy", target.name);
    let code = SqlState::SUCCESSFUL_COMPLETION.for_pgrx();
    ErrorReport::new(code, message, "pg_eddy").report(PgLogLevel::NOTICE);
}

/// `DROP INCREMENTAL VIEW` and the like act on incremental views only. A missing relation is left to
/// PostgreSQL's own message.
fn require_kind(target: &Target, incremental: bool) -> Result<(), Error> {
    if !incremental || target.oid.is_none() || is_incremental(target) {
        return Ok(());
    }
    let message = format!("\"{}\" is not an incremental view", target.name);
    Err(Error::new(ErrorKind::WrongObjectType, message))
}

/// Core's concurrent refresh would change stored rows behind the worker's back, one by one.
fn refuse_concurrent_refresh(view: &Target) -> Error {
    Error::unsupported(format!(
        "REFRESH CONCURRENTLY is not supported for incremental view \"{}\"",
        view.name
    ))
    .hint("The view keeps itself up to date. Use REFRESH without CONCURRENTLY to rebuild it.")
}
