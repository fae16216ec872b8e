//! C strings of the server as owned text.

use std::ffi::{c_char, CStr};

/// A copy of the text of a C string; empty for null.
///
/// # Safety
/// Null, or a C string.
pub unsafe fn owned(value: *const c_char) -> String {
    if value.is_null() {
        return String::new();
    }
    // SAFETY: per contract.
    unsafe { CStr::from_ptr(value).to_string_lossy().into_owned() }
}
