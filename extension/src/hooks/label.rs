//! Our provider of security labels: PostgreSQL asks it before it sets or removes a label.

use crate::errors::Error;
use crate::pg::registry;
use pgrx::pg_sys::{self, Oid};
use std::ffi::{c_char, CStr};
use std::sync::OnceLock;

/// A label about to be set, or removed.
pub struct Labelling {
    /// The relation; `None` for a column or anything else.
    pub relation: Option<Oid>,
    /// `None` if the label is removed.
    pub label: Option<String>,
}

/// Decides whether that may be. The user owns the object: PostgreSQL has looked.
pub type Check = fn(Labelling) -> Result<(), Error>;

static CHECK: OnceLock<Check> = OnceLock::new();

/// Registers the provider, once per process.
pub fn install(check: Check) {
    if CHECK.set(check).is_err() {
        return;
    }
    // SAFETY: at library load, with a name and a function that live as long as the library.
    unsafe { pg_sys::register_label_provider(registry::PROVIDER.as_ptr(), Some(before_label)) }
}

/// # Safety
/// For PostgreSQL to call, as this hook.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn before_label(
    object: *const pg_sys::ObjectAddress,
    label: *const c_char,
) {
    let Some(check) = CHECK.get() else { return };
    // SAFETY: PostgreSQL passes an object and a C string, or null.
    let labelling = unsafe {
        let is_relation =
            (*object).classId == pg_sys::RelationRelationId && (*object).objectSubId == 0;
        let text = || CStr::from_ptr(label).to_string_lossy().into_owned();
        Labelling {
            relation: is_relation.then_some((*object).objectId),
            label: (!label.is_null()).then(text),
        }
    };
    if let Err(error) = check(labelling) {
        error.raise();
    }
}
