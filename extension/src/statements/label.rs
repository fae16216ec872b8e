//! `SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW …`: the statement by which dumps make views incremental.
//!
//! A label is refused for what CREATE would refuse. Rights are not asked for: a dump grants them later, and the worker
//! looks at those of the view's owner anyway. Nor is the replica identity of tables changed for a view that
//! has no data yet: a dump creates keys later, and the REFRESH that follows them sees to the rest.

use super::{create, identity};
use crate::compile;
use crate::errors::{Error, ErrorKind};
use crate::hooks::label::Labelling;
use crate::pg::relation::{with_relation, Lock, RelationRef};
use crate::pg::{catalogs, process, registry};
use crate::shared;
use pgrx::pg_sys::{self, Oid};
use serde_json::{Map, Value};

/// The label of an incremental view without options.
pub const INCREMENTAL: &str = "incremental";

/// The latest version of the label's options.
const VERSION: u64 = 1;

/// Checks a label, and does what CREATE does beside it.
pub fn check(labelling: Labelling) -> Result<(), Error> {
    let is_view = |relation: &Oid| {
        catalogs::relation_kind(*relation) == Some(pg_sys::RELKIND_MATVIEW)
            && !registry::is_own(*relation)
    };
    let Some(view) = labelling.relation.filter(is_view) else {
        let message = "labels of \"pg_eddy\" are for materialized views only";
        return Err(Error::new(ErrorKind::WrongObjectType, message));
    };
    if let Some(label) = labelling.label {
        check_text(&label)?;
        // The old server has accepted the view; the new one has neither data nor a worker yet.
        if !process::is_binary_upgrade() {
            check_view(view)?;
        }
        registry::note_labelled(view);
    } else {
        registry::announce(view);
    }
    Ok(())
}

/// The text is the word `incremental`, which a JSON object with options may follow: its `version` says
/// what they mean.
fn check_text(label: &str) -> Result<(), Error> {
    let invalid = || {
        Error::new(ErrorKind::InvalidParameter, format!("invalid label \"{label}\""))
            .hint(format!("The label of an incremental view is \"{INCREMENTAL}\"."))
    };
    let options = label.strip_prefix(INCREMENTAL).ok_or_else(invalid)?;
    if options.is_empty() {
        return Ok(());
    }
    let mut options: Map<String, Value> = serde_json::from_str(options).map_err(|_| invalid())?;
    let version = options.remove("version").map_or(Some(VERSION), |version| version.as_u64());
    match version.ok_or_else(invalid)? {
        0 => return Err(invalid()),
        1..=VERSION => {}
        later => {
            let message = format!("labels of version {later} are not known");
            return Err(Error::unsupported(message).hint("Install a later version of pg_eddy."));
        }
    }
    options.keys().next().map_or(Ok(()), |name| {
        let message = format!("unrecognized option \"{name}\" of an incremental view");
        Err(Error::new(ErrorKind::InvalidParameter, message))
    })
}

fn check_view(view: Oid) -> Result<(), Error> {
    create::require_server()?;
    create::require_extension()?;
    shared::require_worker()?;
    let compiled = compile::compile_view(view)?;
    let has_data = |view: RelationRef<'_>| view.is_populated();
    if with_relation(view.to_u32(), Lock::AccessShare, has_data) == Some(true) {
        identity::provide(&compiled.sources)?;
    }
    Ok(())
}
