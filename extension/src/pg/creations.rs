//! `eddy.view_creations`: since when a view is incremental in this database.
//!
//! The row is written in the transaction that makes a view incremental, be it CREATE or the label that a dump sets, and removed in
//! the one that drops the view or its label. A worker that starts removes those of views that were dropped where the library was not
//! loaded.

use super::own_rows::{self, Field};
use super::xact;
use crate::pg::ids::ViewId;
use std::ffi::CStr;

const TABLE: &CStr = c"view_creations";

/// A view has become incremental now. Needs a transaction.
pub fn note(view: ViewId) {
    own_rows::put(TABLE, &[Field::Oid(view.to_u32()), Field::Time(xact::now())]);
}

/// The views on record, some of which may be gone. Needs a transaction with an active snapshot.
pub fn recorded() -> Vec<ViewId> {
    let view = |row: Vec<Field>| match row.first() {
        Some(Field::Oid(number)) => Some(ViewId::new(*number)),
        _ => None,
    };
    own_rows::read(TABLE, None).into_iter().filter_map(view).collect()
}

/// A view goes, or is incremental no more. Needs a transaction.
pub fn forget(view: ViewId) {
    own_rows::remove(TABLE, view.to_u32());
}
