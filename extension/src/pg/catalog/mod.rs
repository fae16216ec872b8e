//! Look-ups in PostgreSQL's catalogs, as owned data.

mod collations;
mod families;
mod functions;
mod relations;
mod rights;
mod statistics;

pub use super::relation::Attribute;
pub use collations::*;
pub use families::*;
pub use functions::*;
pub use relations::*;
pub use rights::*;
pub use statistics::*;

use crate::pg::strings::owned;
use pgrx::pg_sys::{self, Oid};
use std::ffi::CString;

/// Whether an object has been there since initdb: none of users' own.
pub fn is_builtin(object: Oid) -> bool {
    object.to_u32() < pg_sys::FirstNormalObjectId
}

/// A name as SQL spells it.
pub fn quoted(name: &str) -> String {
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: returns the name itself or a palloc'd string.
    unsafe { owned(pg_sys::quote_identifier(name.as_ptr())) }
}
