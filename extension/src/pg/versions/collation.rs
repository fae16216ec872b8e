//! Collations whose order or case is that of C. 18 keeps it with the locale.

use pgrx::pg_sys::{self, Oid};

/// Whether a collation orders by bytes, and whether it changes the case of ASCII alone.
pub fn is_c(collation: Oid) -> (bool, bool) {
    // SAFETY: look-ups; guarded because they may raise errors.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| look_up(collation)) }
}

/// # Safety
/// To be called guarded.
#[cfg(not(feature = "pg18"))]
unsafe fn look_up(collation: Oid) -> (bool, bool) {
    unsafe extern "C-unwind" {
        fn lc_collate_is_c(collation: Oid) -> bool;
        fn lc_ctype_is_c(collation: Oid) -> bool;
    }
    // SAFETY: look-ups.
    unsafe { (lc_collate_is_c(collation), lc_ctype_is_c(collation)) }
}

/// # Safety
/// To be called guarded.
#[cfg(feature = "pg18")]
unsafe fn look_up(collation: Oid) -> (bool, bool) {
    /// How PostgreSQL's own begins.
    #[repr(C)]
    struct Locale {
        provider: std::ffi::c_char,
        is_deterministic: bool,
        collate_is_c: bool,
        ctype_is_c: bool,
    }
    unsafe extern "C-unwind" {
        fn pg_newlocale_from_collation(collation: Oid) -> *const Locale;
    }
    // SAFETY: a look-up, which answers with a locale or raises an error.
    unsafe {
        let locale = &*pg_newlocale_from_collation(collation);
        (locale.collate_is_c, locale.ctype_is_c)
    }
}
