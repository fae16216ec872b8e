//! Tables of views' changes, and `eddy.view_changes`, which says whose they are and since when.

use super::ids::{RelationId, ViewId};
use super::own_rows::{self, Field};
use super::relation::RelationRef;
use super::xact;
use crate::pg::versions::tuple;
use pgrx::pg_sys::{self, Oid};
use std::ffi::CStr;

pub(super) const TABLE: &CStr = c"view_changes";

/// A column of such a table before those of its view.
pub struct Column {
    pub name: &'static str,
    ty: Oid,
    /// As it is declared.
    pub declared: &'static str,
}

/// These columns.
pub const COLUMNS: [Column; 4] = [
    Column { name: "lsn", ty: pg_sys::PG_LSNOID, declared: "pg_catalog.pg_lsn NOT NULL" },
    Column { name: "xid", ty: pg_sys::XID8OID, declared: "pg_catalog.xid8" },
    Column {
        name: "committed_at",
        ty: pg_sys::TIMESTAMPTZOID,
        declared: "pg_catalog.timestamptz NOT NULL",
    },
    Column { name: "diff", ty: pg_sys::INT8OID, declared: "pg_catalog.int8 NOT NULL" },
];

/// Puts on record that a view has a table of its changes, which says all that has happened to it after a position. Needs a
/// transaction.
pub fn note(view: ViewId, table: RelationId, since: u64, at: i64) {
    let table = Field::Oid(table.to_u32());
    own_rows::put(TABLE, &[Field::Oid(view.to_u32()), table, Field::Lsn(since), Field::Time(at)]);
}

/// A table of changes, and from when on it has all of them.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    pub table: RelationId,
    /// All after this position are there.
    pub since: u64,
    /// When that was.
    pub since_at: i64,
}

/// What is on record of the table of a view's changes, as the active snapshot sees it.
pub fn kept(view: ViewId) -> Option<Kept> {
    match own_rows::read(TABLE, Some(view.to_u32())).pop()?[..] {
        [_, Field::Oid(table), Field::Lsn(since), Field::Time(since_at)] => {
            Some(Kept { table: RelationId::new(table), since, since_at })
        }
        _ => None,
    }
}

/// The table of a view's changes. Needs a transaction, whose own doing it sees.
pub fn of(view: ViewId) -> Option<RelationId> {
    xact::with_new_snapshot(|| kept(view)).map(|kept| kept.table)
}

/// Changes up to a position have been removed from the table of a view. Needs a transaction.
pub fn note_removed(view: ViewId, lsn: u64, at: i64) {
    let kept = xact::with_new_snapshot(|| kept(view));
    if let Some(Kept { table, .. }) = kept.filter(|kept| kept.since < lsn) {
        note(view, table, lsn, at);
    }
}

/// Whether a table still begins with the columns that tables of changes begin with.
pub fn has_own_columns(table: &RelationRef<'_>) -> bool {
    // SAFETY: the descriptor of an open relation.
    let columns = unsafe { tuple::columns(table.descriptor()) };
    let own = COLUMNS.iter().map(|column| column.ty);
    columns.iter().map(|column| column.atttypid).take(COLUMNS.len()).eq(own)
}

/// A view goes, or its changes are not kept any more. Needs a transaction.
pub fn forget(view: ViewId) {
    own_rows::remove(TABLE, view.to_u32());
}

/// Whether a table has the columns for the changes of a view. Behind them there may be others, which become NULL.
pub fn is_of(table: &RelationRef<'_>, view: &RelationRef<'_>) -> bool {
    // SAFETY: descriptors of open relations.
    let (columns, of_view) =
        unsafe { (tuple::columns(table.descriptor()), tuple::columns(view.descriptor())) };
    let of_view = of_view.iter().map(|column| column.atttypid);
    let expected: Vec<Oid> = COLUMNS.iter().map(|column| column.ty).chain(of_view).collect();
    let is_not_null = |place| {
        // SAFETY: as above.
        unsafe { tuple::is_not_null(table.descriptor(), place) }
    };
    table.kind() == pg_sys::RELKIND_RELATION
        && table.is_logged()
        && columns.len() >= expected.len()
        && columns.iter().map(|column| column.atttypid).zip(&expected).all(|(has, ty)| has == *ty)
        && (expected.len()..columns.len())
            .all(|place| columns[place].attisdropped || !is_not_null(place))
}
