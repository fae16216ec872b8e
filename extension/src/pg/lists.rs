//! PostgreSQL's lists as vectors.

use pgrx::pg_sys;

/// The cells of a list of pointers; empty for NIL.
///
/// # Safety
/// `list` must be null or a valid list whose cells point to `T`.
pub unsafe fn pointers<T>(list: *const pg_sys::List) -> Vec<*mut T> {
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: a list has `length` cells at `elements`.
    unsafe {
        let length = usize::try_from((*list).length).unwrap_or(0);
        let cells = std::slice::from_raw_parts((*list).elements, length);
        cells.iter().map(|c| c.ptr_value.cast::<T>()).collect()
    }
}

/// The cells of a list of OIDs; empty for NIL.
///
/// # Safety
/// `list` must be null or a valid list of OIDs.
pub unsafe fn oids(list: *const pg_sys::List) -> Vec<pg_sys::Oid> {
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: a list has `length` cells at `elements`.
    unsafe {
        let length = usize::try_from((*list).length).unwrap_or(0);
        let cells = std::slice::from_raw_parts((*list).elements, length);
        cells.iter().map(|c| c.oid_value).collect()
    }
}

/// The cells of a list of integers; empty for NIL.
///
/// # Safety
/// `list` must be null or a valid list of integers.
pub unsafe fn integers(list: *const pg_sys::List) -> Vec<i32> {
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: a list has `length` cells at `elements`.
    unsafe {
        let length = usize::try_from((*list).length).unwrap_or(0);
        let cells = std::slice::from_raw_parts((*list).elements, length);
        cells.iter().map(|c| c.int_value).collect()
    }
}
