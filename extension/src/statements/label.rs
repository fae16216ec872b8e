//! `SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW …`: the statement by which dumps make views incremental.
//!
//! A label is refused for what CREATE would refuse. Rights are not asked for: a dump grants them later, and the worker
//! looks at those of the view's owner anyway. Nor is the replica identity of tables changed for a view that
//! has no data yet: a dump creates keys later, and the REFRESH that follows them sees to the rest.

use super::companion::Origin;
use super::{changes_table, create, identity, mirror};
use crate::compile::{self, CompiledView, Known};
use crate::errors::{Error, ErrorKind};
use crate::hooks::label::Labelling;
use crate::pg::relation::{self, with_relation, Lock, RelationRef};
use crate::pg::{catalog, creations, process, records, registry, view_settings, view_statistics};
use crate::shared;
use pgrx::pg_sys::{self, Oid};
use rules::security_label::{Label, Options, Storage};
use rules::view_settings::ViewSettings;

/// Checks a label, and does what CREATE does beside it.
pub fn check(labelling: Labelling) -> Result<(), Error> {
    let is_view = |relation: &Oid| {
        catalog::relation_kind(*relation) == Some(pg_sys::RELKIND_MATVIEW)
            && !registry::is_own(*relation)
    };
    let Some(view) = labelling.relation.filter(is_view) else {
        let message = "labels of \"pg_eddy\" are for materialized views only";
        return Err(Error::new(ErrorKind::WrongObjectType, message));
    };
    if let Some(label) = labelling.label {
        let Label { settings, options } =
            Label::read(&label).map_err(|fault| Error::label(&label, fault))?;
        // The old server has accepted the view; the new one has neither data nor a worker yet.
        if !process::is_binary_upgrade() {
            let is_new = !registry::contains(view);
            let known = if is_new { Known::Now } else { Known::on_record(view.into()) };
            let compiled = check_view(view, &settings, known)?;
            let before = match is_new {
                true => Options::default(),
                false => registry::label(view)?.options,
            };
            // Of a view without data the REFRESH makes it: a dump may be about to do so.
            let has_data = relation::is_populated(view.into());
            if before.changes.is_some() || has_data {
                changes_table::change(view, (before.changes, options.changes), Origin::Dump)?;
            }
            if before.storage == Storage::Table || has_data {
                mirror::change((view, &settings), (before.storage, options.storage), Origin::Dump)?;
            }
            if is_new {
                creations::note(view.into());
                view_statistics::note(view.into(), &compiled.query.figures.text());
            }
        }
        registry::note_labelled(view);
    } else {
        if registry::contains(view) {
            let Label { settings, options: before } = registry::label(view)?;
            changes_table::change(view, (before.changes, None), Origin::Altered)?;
            mirror::change((view, &settings), (before.storage, Storage::View), Origin::Altered)?;
            records::forget(view.into());
        }
        registry::announce(view);
    }
    Ok(())
}

fn check_view(view: Oid, settings: &ViewSettings, known: Known) -> Result<CompiledView, Error> {
    shared::require_server()?;
    create::require_extension()?;
    shared::require_worker()?;
    check_settings(settings)?;
    // It has no label yet, or another one.
    let compiled = compile::compile_view_with(view.into(), settings, known)?;
    let has_data = |view: RelationRef<'_>| view.is_populated();
    if with_relation(view, Lock::AccessShare, has_data) == Some(true) {
        identity::provide(&compiled.query.sources)?;
    }
    Ok(compiled)
}

/// Settings must be written as the server writes them: a part of a value would leave the rest to whoever reads it.
fn check_settings(settings: &ViewSettings) -> Result<(), Error> {
    let read = view_settings::with(settings, view_settings::current);
    let mut pairs = settings.iter().zip(read.iter());
    match pairs.find(|((_, written), (_, read))| written != read) {
        None => Ok(()),
        Some(((name, written), (_, read))) => {
            let message =
                format!("invalid setting \"{name}\" of an incremental view: \"{written}\"");
            Err(Error::new(ErrorKind::InvalidParameter, message)
                .hint(format!("Write it in full, as in \"{read}\".")))
        }
    }
}
