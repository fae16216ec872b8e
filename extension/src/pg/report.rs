//! Error positions: pgrx's reports have none, so a context callback of the hook adds it.

use pgrx::pg_sys;
use std::sync::atomic::{AtomicI64, Ordering};

/// Byte offset in the source text of the error being raised, -1 for none.
static LOCATION: AtomicI64 = AtomicI64::new(-1);

/// Remembers where the error about to be raised points to.
pub fn set_location(byte_offset: usize) {
    LOCATION.store(i64::try_from(byte_offset).unwrap_or(-1), Ordering::Relaxed);
}

/// Context callback for hooks that know the source text: `arg` is a `*const c_char`.
///
/// # Safety
/// To be called by PostgreSQL while an error is raised, with a valid C string as `arg`.
pub unsafe extern "C-unwind" fn add_position(arg: *mut std::ffi::c_void) {
    extern "C-unwind" {
        fn errposition(cursorpos: std::ffi::c_int) -> std::ffi::c_int;
        fn pg_mbstrlen_with_len(s: *const std::ffi::c_char, limit: std::ffi::c_int) -> i32;
    }
    let location = LOCATION.swap(-1, Ordering::Relaxed);
    if location < 0 {
        return;
    }
    // SAFETY: errposition may be called in a context callback; the text is longer than the
    // offset, which came from the parser of that very text.
    unsafe {
        errposition(pg_mbstrlen_with_len(arg.cast(), location as i32) + 1);
    }
}

/// A frame of PostgreSQL's error context stack that adds positions; must outlive its use. Forgets a
/// location that was set outside of such a frame.
pub fn position_frame(source: *const std::ffi::c_char) -> pg_sys::ErrorContextCallback {
    LOCATION.store(-1, Ordering::Relaxed);
    pg_sys::ErrorContextCallback {
        previous: std::ptr::null_mut(),
        callback: Some(add_position),
        arg: source.cast_mut().cast(),
    }
}
