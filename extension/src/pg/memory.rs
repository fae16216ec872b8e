//! PostgreSQL's memory contexts.

use pgrx::pg_sys;
use std::ffi::CStr;

/// A context of the usual sizes, which goes with its parent at the latest.
///
/// # Safety
/// The parent must be a memory context.
pub unsafe fn new_context(
    parent: pg_sys::MemoryContext,
    name: &'static CStr,
) -> pg_sys::MemoryContext {
    let sizes = [
        pg_sys::ALLOCSET_DEFAULT_MINSIZE,
        pg_sys::ALLOCSET_DEFAULT_INITSIZE,
        pg_sys::ALLOCSET_DEFAULT_MAXSIZE,
    ];
    let [least, initial, largest] = sizes.map(|size| size as usize);
    // SAFETY: per contract; the name is static, as required.
    unsafe { pg_sys::AllocSetContextCreateInternal(parent, name.as_ptr(), least, initial, largest) }
}
