//! Mirrors: ordinary tables with the rows of views, and `eddy.view_mirrors`, which says whose they are.

use super::ids::{RelationId, ViewId};
use super::key_scan;
use super::own_rows::{self, Field};
use super::relation::{with_relation, Lock, RelationRef};
use super::xact;
use crate::pg::versions::tuple;
use pgrx::pg_sys;
use std::ffi::CStr;

pub(super) const TABLE: &CStr = c"view_mirrors";

/// The mirror of a view, and the index by which its rows are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirror {
    pub table: RelationId,
    /// A unique one of the columns of the view's key.
    pub index: RelationId,
}

/// Puts on record that a view has a mirror. Needs a transaction.
pub fn note(view: ViewId, table: RelationId) {
    own_rows::put(TABLE, &[Field::Oid(view.to_u32()), Field::Oid(table.to_u32())]);
}

/// A view goes, or has no mirror any more. Needs a transaction.
pub fn forget(view: ViewId) {
    own_rows::remove(TABLE, view.to_u32());
}

/// The mirror of a view. Needs a transaction, whose own doing it sees.
pub fn of(view: ViewId) -> Option<RelationId> {
    let mut rows = xact::with_new_snapshot(|| own_rows::read(TABLE, Some(view.to_u32())));
    match rows.pop()?[..] {
        [_, Field::Oid(table)] => Some(RelationId::new(table)),
        _ => None,
    }
}

/// A mirror with its index of the columns of a key, which are counted from 0; `None` if it has no such index.
pub fn with_key(table: RelationId, key: &[usize]) -> Option<Mirror> {
    let index = with_relation(table, Lock::AccessShare, |table| key_scan::index_of(&table, key));
    index.flatten().map(|index| Mirror { table, index })
}

/// Whether a table has the columns of a view, and its rows are where they are looked for: it has no part in inheritance. Behind these
/// columns there may be others, which become NULL.
pub fn is_of(table: &RelationRef<'_>, view: &RelationRef<'_>) -> bool {
    // SAFETY: descriptors of open relations.
    let (columns, of_view) =
        unsafe { (tuple::columns(table.descriptor()), tuple::columns(view.descriptor())) };
    let may_be_null = |place: usize| {
        let column = &columns[place];
        // SAFETY: as above; a domain is looked up by its number.
        unsafe {
            !tuple::is_not_null(table.descriptor(), place)
                && column.attgenerated == 0
                && !pg_sys::DomainHasConstraints(column.atttypid)
        }
    };
    let types = columns.iter().map(|column| column.atttypid);
    table.kind() == pg_sys::RELKIND_RELATION
        && table.is_logged()
        && !table.inherits()
        && columns.len() >= of_view.len()
        && types.zip(of_view).all(|(ty, of_view)| ty == of_view.atttypid)
        && (of_view.len()..columns.len())
            .all(|place| columns[place].attisdropped || may_be_null(place))
}

/// An error, PostgreSQL's, if a table is published in a way by which subscribers would not know which of its rows change.
pub fn require_identity(table: &RelationRef<'_>, deletes: bool, updates: bool) {
    // SAFETY: an open relation.
    unsafe {
        if deletes || updates {
            pg_sys::CheckCmdReplicaIdentity(table.as_raw(), pg_sys::CmdType::CMD_DELETE);
        }
        if updates {
            pg_sys::CheckCmdReplicaIdentity(table.as_raw(), pg_sys::CmdType::CMD_UPDATE);
        }
    }
}
