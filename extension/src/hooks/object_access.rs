//! The object-access hook: notices that an extension or a relation is being dropped, however it happens.

use pgrx::pg_sys::{self, ObjectAccessType, Oid};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// Called before an object goes, in the transaction in which it does.
#[derive(Clone, Copy)]
pub struct Drops {
    pub extension: fn(Oid),
    pub relation: fn(Oid),
}

static DROPS: OnceLock<Drops> = OnceLock::new();
static NEXT: OnceLock<pg_sys::object_access_hook_type> = OnceLock::new();

/// Puts the hook in place, once per process.
pub fn install(drops: Drops) {
    if DROPS.set(drops).is_err() {
        return;
    }
    // SAFETY: hook variables are plain globals, set at library load by the only thread.
    unsafe {
        let _ = NEXT.set(pg_sys::object_access_hook);
        pg_sys::object_access_hook = Some(object_access);
    }
}

/// Unguarded: what it calls of ours is guarded.
///
/// # Safety
/// For PostgreSQL to call, as this hook.
unsafe extern "C-unwind" fn object_access(
    access: ObjectAccessType::Type,
    class: Oid,
    object: Oid,
    sub_object: c_int,
    arg: *mut c_void,
) {
    // SAFETY: PostgreSQL's arguments are handed on; this frame has no destructors.
    unsafe {
        if let Some(next) = NEXT.get().copied().flatten() {
            next(access, class, object, sub_object, arg);
        }
        // A column has a number of its own below that of its relation.
        if access == ObjectAccessType::OAT_DROP && sub_object == 0 {
            dropped(class, object);
        }
    }
}

/// # Safety
/// The arguments of the hook.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn dropped(class: Oid, object: Oid) {
    let Some(drops) = DROPS.get() else { return };
    match class {
        pg_sys::ExtensionRelationId => (drops.extension)(object),
        pg_sys::RelationRelationId => (drops.relation)(object),
        _ => {}
    }
}
