//! Settings of the server by name.

use crate::pg::catalogs;
use pgrx::pg_sys;
use std::ffi::CStr;

/// The search path under which code of one user runs in a session of another, and text is deparsed and parsed. Temporary
/// tables and types are last: left out they would be found first, and be what a name of PostgreSQL's own means.
pub const SAFE_SEARCH_PATH: &CStr = c"pg_catalog, pg_temp";

/// The value of a setting that is there and that everybody may see.
pub fn get(name: &CStr) -> String {
    // SAFETY: the value is copied.
    unsafe { catalogs::owned(pg_sys::GetConfigOption(name.as_ptr(), true, false)) }
}

/// Whether this server has a setting of that name.
pub fn exists(name: &CStr) -> bool {
    // SAFETY: missing settings are allowed, the result is only compared.
    unsafe { !pg_sys::GetConfigOption(name.as_ptr(), true, false).is_null() }
}

/// Sets a setting for this process only.
pub fn set_for_process(name: &CStr, value: &CStr) {
    // SAFETY: both strings outlive the call, which copies them.
    unsafe {
        pg_sys::SetConfigOption(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_SUSET,
            pg_sys::GucSource::PGC_S_OVERRIDE,
        );
    }
}

/// Sets what everybody may set, until the nest level ends.
pub fn set_for_now(name: &CStr, value: &CStr) {
    // SAFETY: C strings; a wrong value raises an error.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}
