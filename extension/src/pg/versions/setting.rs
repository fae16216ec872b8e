//! Records of settings, and the memory that holds their texts: from 16 on PostgreSQL's own instead of the C library's.

use pgrx::pg_sys;
use std::ffi::{c_char, CStr};

/// The records of all settings.
///
/// # Safety
/// The slice must not be used after a setting has been added.
pub unsafe fn records<'a>() -> &'a [*mut pg_sys::config_generic] {
    let mut count = 0;
    // SAFETY: an array of that many records.
    unsafe {
        #[cfg(feature = "pg15")]
        let first = {
            count += pg_sys::GetNumConfigOptions();
            pg_sys::get_guc_variables()
        };
        #[cfg(not(feature = "pg15"))]
        let first = pg_sys::get_guc_variables(&mut count);
        std::slice::from_raw_parts(first, usize::try_from(count).unwrap_or(0))
    }
}

/// Puts a copy of `text` in place of the value that the check of a setting has been given; false if there is no memory.
///
/// # Safety
/// The first argument of a check of a setting.
pub unsafe fn replace(value: *mut *mut c_char, text: &CStr) -> bool {
    // SAFETY: the value comes from the same memory.
    unsafe {
        #[cfg(feature = "pg15")]
        let copy = libc::strdup(text.as_ptr());
        #[cfg(not(feature = "pg15"))]
        let copy = pg_sys::guc_strdup(pg_sys::LOG as std::ffi::c_int, text.as_ptr());
        if copy.is_null() {
            return false;
        }
        #[cfg(feature = "pg15")]
        libc::free((*value).cast());
        #[cfg(not(feature = "pg15"))]
        pg_sys::guc_free((*value).cast());
        *value = copy;
        true
    }
}
