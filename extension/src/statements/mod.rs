//! The statements on incremental views, seen through the utility hook.

mod bodies;
mod changes_table;
mod companion;
mod create;
mod cross_products;
mod functions;
mod identity;
mod label;
mod mirror;
mod outdated;
mod own_settings;
mod persistence;
mod refresh;
mod replace;
mod sharing;
mod suspended;
mod verify;

use crate::errors::Error;
use crate::hooks::label as provider;
use crate::hooks::object_access::{self, Drops};
use crate::hooks::statement::{Statement, Target};
use crate::hooks::utility::{self, Call, Handler, Then};
use crate::pg::{catalog, records, registry};
use crate::reads;
use crate::syntax;
use pgrx::pg_sys::{self, Oid};
use refresh::Manner;
pub use verify::require_incremental;

pub fn install() {
    utility::install(Handler {
        before,
        created: create::created,
        refilled: refresh::after,
        altered: companion::follow,
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
        Statement::Copy(relation) => {
            if is_incremental(&relation) {
                call.copy_query();
            }
            Ok(Then::Run)
        }
        Statement::Refresh { view, .. } if view.oid.is_some_and(registry::is_own) => {
            refresh::tell_kept(&view);
            Ok(Then::Done)
        }
        Statement::Refresh { view, concurrently, with_data } => {
            refresh::before(call, &view, Manner { concurrently, with_data, incremental })
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

/// `DROP INCREMENTAL VIEW` and the like act on incremental views only. A missing relation is left to
/// PostgreSQL's own message.
fn require_kind(target: &Target, incremental: bool) -> Result<(), Error> {
    if !incremental || target.oid.is_none() || is_incremental(target) {
        return Ok(());
    }
    Err(Error::not_incremental(&target.name))
}
