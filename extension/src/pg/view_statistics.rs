//! `eddy.view_statistics`: the statistics by which views are planned.
//!
//! A view is planned again and again, at each start of the worker and whenever something it depends on may have changed. So that
//! its plan stays as it is, whatever ANALYZE finds meanwhile, it is planned by what was known when it was made incremental or
//! refreshed, which is written in that transaction. A view that is not on record is planned as if nothing were known.

use super::own_rows::{self, Field};
use super::xact;
use crate::pg::ids::ViewId;
use std::ffi::CStr;

const TABLE: &CStr = c"view_statistics";

/// What is on record of a view.
pub struct Noted {
    pub statistics: String,
    /// When, as PostgreSQL counts time. Where it is new, the view has been refreshed.
    pub at: i64,
}

/// Puts on record what a view is planned by from now on. Needs a transaction.
pub fn note(view: ViewId, statistics: &str) {
    let (key, now) = (Field::Oid(view.to_u32()), Field::Time(xact::now()));
    own_rows::put(TABLE, &[key, Field::Text(statistics.to_owned()), now]);
}

/// What a view is planned by. Needs a transaction with an active snapshot.
pub fn of(view: ViewId) -> Option<Noted> {
    let row = own_rows::read(TABLE, Some(view.to_u32())).pop()?;
    match <[Field; 3]>::try_from(row).ok()? {
        [_, Field::Text(statistics), Field::Time(at)] => Some(Noted { statistics, at }),
        _ => None,
    }
}

/// A view goes, or is incremental no more. Needs a transaction.
pub fn forget(view: ViewId) {
    own_rows::remove(TABLE, view.to_u32());
}
