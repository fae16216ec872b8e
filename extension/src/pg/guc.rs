//! Settings of the server by name.

use crate::pg::strings::owned;
use pgrx::pg_sys;
use std::ffi::CStr;
use std::ffi::CString;

/// The search path under which code of one user runs in a session of another, and text is deparsed and parsed. Temporary
/// tables and types are last: left out they would be found first, and be what a name of PostgreSQL's own means.
pub const SAFE_SEARCH_PATH: &CStr = c"pg_catalog, pg_temp";

/// The value of a setting that is there and that everybody may see.
pub fn get(name: &CStr) -> String {
    // SAFETY: the value is copied.
    unsafe { owned(pg_sys::GetConfigOption(name.as_ptr(), true, false)) }
}

/// The value that a setting, which everybody may see, has in this session without SET.
pub fn get_default(name: &CStr) -> String {
    // SAFETY: the value is copied; a setting that there is not raises an error.
    unsafe { owned(pg_sys::GetConfigOptionResetString(name.as_ptr())) }
}

/// Whether this server has a setting of that name.
pub fn exists(name: &CStr) -> bool {
    // SAFETY: missing settings are allowed, the result is only compared.
    unsafe { !pg_sys::GetConfigOption(name.as_ptr(), true, false).is_null() }
}

/// Whether a setting has this value now.
pub fn has_value(name: &CStr, value: &CStr) -> bool {
    // SAFETY: what it points to is only compared, at once.
    unsafe {
        let now = pg_sys::GetConfigOption(name.as_ptr(), true, false);
        !now.is_null() && CStr::from_ptr(now) == value
    }
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
    set(name, value, 0);
}

/// The same, but a wrong value sets nothing.
pub fn try_set_for_now(name: &CStr, value: &CStr) {
    set(name, value, pg_sys::DEBUG1 as i32);
}

/// A wrong value is reported at a level, with 0 as an error.
fn set(name: &CStr, value: &CStr, level: i32) {
    // SAFETY: C strings; a wrong value raises an error.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            level,
            false,
        );
    }
}

/// All settings of this process that are not as they are by default, for another one.
pub fn save() -> Vec<u8> {
    // SAFETY: as many bytes as PostgreSQL says it needs, of which it fills the first.
    unsafe {
        let size = pg_sys::EstimateGUCStateSpace();
        let mut bytes = vec![0_u8; size];
        pg_sys::SerializeGUCState(size, bytes.as_mut_ptr().cast());
        bytes
    }
}

/// Takes over the settings that [`save`] has taken in another process of this server. Needs a transaction without a
/// snapshot. What is wrong with them raises an error.
pub fn restore(mut saved: Vec<u8>) {
    let size = saved.first_chunk().map(|size| usize::from_ne_bytes(*size));
    if size.is_none_or(|size| size > saved.len()) {
        pgrx::error!("pg_eddy: settings of another process are damaged");
    }
    // SAFETY: PostgreSQL's own form, as it is given to parallel workers, with as many bytes as it says.
    unsafe { pg_sys::RestoreGUCState(saved.as_mut_ptr().cast()) }
}

/// What a text says that is a boolean; `None` if it is none.
pub fn bool_of(text: &str) -> Option<bool> {
    let text = CString::new(text).ok()?;
    let mut value = false;
    // SAFETY: reads a C string, writes a value of ours.
    unsafe { pg_sys::parse_bool(text.as_ptr(), &mut value) }.then_some(value)
}
