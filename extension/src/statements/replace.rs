//! `CREATE OR REPLACE INCREMENTAL VIEW`: another query for a view that stays what it is to everybody else.
//!
//! As with plain views the columns that it had are the first of those that it gets. What the statement does not name of its
//! options stays, too.

use super::companion::Origin;
use super::{changes_table, create, identity, mirror, own_settings};
use crate::compile::{self, CompiledQuery, Known};
use crate::errors::{Error, ErrorKind};
use crate::hooks::replacement::Replacement;
use crate::hooks::statement::Creation;
use crate::hooks::utility::{Call, Then};
use crate::pg::definition::{self, Column};
use crate::pg::ids::ViewId;
use crate::pg::{catalog, locks, registry, types, xact};
use crate::rewrite::tree::Tree;
use crate::shared;
use pgrx::pg_sys::Oid;
use rules::security_label::{Label, Storage};

/// Creates the view, or replaces the one that is there.
pub fn before(call: &mut Call, replacement: Replacement, written: bool) -> Result<Then, Error> {
    if !written && !replacement.asks_to_be_incremental() {
        return Ok(Then::Run);
    }
    if replacement.has_check_option() {
        return Err(Error::unsupported("WITH CHECK OPTION is not supported for incremental views")
            .hint("Nobody writes to an incremental view: leave it out."));
    }
    replacement.require_persistence(written)?;
    let mut creation = call.become_creation(replacement)?;
    if existing(&creation).is_none() {
        return create::before(call, creation, written);
    }
    call.require_writable(c"CREATE INCREMENTAL VIEW");
    shared::require_server()?;
    create::require_extension()?;
    create::require_no_contradiction(call, &mut creation, written)?;
    match lock(&creation)? {
        None => create::before(call, creation, written),
        Some(view) => {
            replace(call, creation, view)?;
            Ok(Then::Replaced { tagged: written })
        }
    }
}

fn existing(creation: &Creation) -> Option<Oid> {
    creation.existing_in(creation.schema())
}

/// Locks the view of the name. While the lock is waited for the name may become that of another one, or of none.
fn lock(creation: &Creation) -> Result<Option<Oid>, Error> {
    let name = creation.name();
    while let Some(view) = existing(creation) {
        require_owned(view, &name)?;
        locks::against_all(view);
        if existing(creation) == Some(view) {
            require_owned(view, &name)?;
            return Ok(Some(view));
        }
        locks::let_go(view);
    }
    Ok(None)
}

fn replace(call: &mut Call, mut creation: Creation, view: Oid) -> Result<(), Error> {
    definition::require_unused(view, c"CREATE OR REPLACE INCREMENTAL VIEW");
    shared::require_worker()?;
    let (label, before) = own_settings::of_replacement(call, &mut creation, view)?;
    let added = added_columns(&definition::columns(view), &creation.columns()?)?;
    check(call, &creation, view, &label)?;
    let change = || change(&creation, view, &added, (&before, &label));
    call.between_event_triggers(view, change)
}

fn require_owned(view: Oid, name: &str) -> Result<(), Error> {
    if !registry::contains(view) {
        return Err(Error::not_incremental(name));
    }
    if !catalog::is_owned_by_user(view) {
        return Err(Error::not_owner("materialized view", name));
    }
    Ok(())
}

/// Refuses what CREATE would refuse to the view's owner.
fn check(call: &Call, creation: &Creation, view: Oid, label: &Label) -> Result<(), Error> {
    let tree = Tree::copy_of(creation.query());
    let Some(described) = catalog::describe_relation(view) else { return Ok(()) };
    let compiled = xact::as_user(described.owner, || {
        let locate = |table: &str| call.locate_table(table);
        let compiled = compile::compile_query(&tree, &label.settings, Known::Now, &locate)?;
        compile::require_rights(&tree)?;
        Ok::<CompiledQuery, Error>(compiled)
    })?;
    let beneath = compile::beneath(&compiled);
    let view = ViewId::from(view);
    if compiled.views.contains(&view.into())
        || beneath.iter().any(|lower| lower.query.views.contains(&view.into()))
    {
        let message = format!("incremental view \"{}\" would read itself", described.name);
        return Err(Error::new(ErrorKind::InvalidObjectDefinition, message));
    }
    identity::check(&compiled.sources)
}

fn change(
    creation: &Creation,
    view: Oid,
    added: &[Column],
    (before, label): (&Label, &Label),
) -> Result<(), Error> {
    definition::add_columns_to_view(view, added);
    creation.set_options_of(view);
    creation.store_query_of(view);
    if before.options.changes.is_some() && label.options.changes.is_some() {
        changes_table::add_columns(view, added)?;
    }
    if (before.options.storage, label.options.storage) == (Storage::Table, Storage::Table) {
        mirror::add_columns(view, added)?;
    }
    registry::insert(view, label);
    registry::note_changed(view);
    let kept = (before.options.changes, label.options.changes);
    changes_table::change(view, kept, Origin::Altered)?;
    mirror::change(
        (view, &label.settings),
        (before.options.storage, label.options.storage),
        Origin::Altered,
    )?;
    create::defined(view)
}

/// The columns that a view gets behind those that it has, which must be the first of the new ones.
fn added_columns(former: &[Column], new: &[Column]) -> Result<Vec<Column>, Error> {
    let refuse = |message: String| Error::new(ErrorKind::InvalidTableDefinition, message);
    if new.len() < former.len() {
        return Err(refuse("cannot drop columns from an incremental view".to_owned()));
    }
    for (former, new) in former.iter().zip(new) {
        if former.name != new.name {
            let message = format!(
                "cannot change name of column \"{}\" of an incremental view to \"{}\"",
                former.name, new.name
            );
            return Err(
                refuse(message).hint("ALTER INCREMENTAL VIEW ... RENAME COLUMN ... changes names.")
            );
        }
        if (former.ty, former.typmod) != (new.ty, new.typmod) {
            let spelled = |column: &Column| types::spelled_type(column.ty, column.typmod);
            return Err(refuse(format!(
                "cannot change data type of column \"{}\" of an incremental view from {} to {}",
                former.name,
                spelled(former),
                spelled(new)
            )));
        }
        if former.collation != new.collation {
            return Err(refuse(format!(
                "cannot change collation of column \"{}\" of an incremental view from {} to {}",
                former.name,
                catalog::collation_name(former.collation),
                catalog::collation_name(new.collation)
            )));
        }
    }
    for (place, column) in new.iter().enumerate().skip(former.len()) {
        let name = &column.name;
        if column.is_system() {
            let message = format!("column name \"{name}\" conflicts with a system column name");
            return Err(Error::new(ErrorKind::DuplicateColumn, message));
        }
        if new[..place].iter().any(|other| other.name == *name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(Error::new(ErrorKind::DuplicateColumn, message));
        }
        if column.lacks_collation() {
            let message = format!("no collation was derived for column \"{name}\"");
            return Err(Error::new(ErrorKind::IndeterminateCollation, message)
                .hint("Use the COLLATE clause to set the collation explicitly."));
        }
    }
    Ok(new[former.len()..].to_vec())
}
