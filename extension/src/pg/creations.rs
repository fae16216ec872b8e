//! `eddy.view_creations`: since when a view is incremental in this database.
//!
//! The row is written in the transaction that makes a view incremental, be it CREATE or the label that a dump sets. The worker
//! removes it after the view.

use super::own_rows::{self, Field};
use super::xact;
use crate::pg::ids::ViewId;
use pgrx::pg_sys::Oid;
use std::ffi::CStr;

const TABLE: &CStr = c"view_creations";

/// A view has become incremental now. Needs a transaction.
pub fn note(view: Oid) {
    own_rows::put(TABLE, &[Field::Oid(view.to_u32()), Field::Time(xact::now())]);
}

/// A view is gone. Needs a transaction.
pub fn forget(view: ViewId) {
    own_rows::remove(TABLE, view.to_u32());
}
