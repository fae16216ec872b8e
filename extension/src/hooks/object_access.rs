//! The object-access hook: notices that an extension is being dropped, however it happens.

use pgrx::pg_sys::{self, ObjectAccessType, Oid};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// Called before an extension goes.
pub type Dropped = fn(Oid);

static DROPPED: OnceLock<Dropped> = OnceLock::new();
static NEXT: OnceLock<pg_sys::object_access_hook_type> = OnceLock::new();

/// Puts the hook in place, once per process.
pub fn install(dropped: Dropped) {
    if DROPPED.set(dropped).is_err() {
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
        if access == ObjectAccessType::OAT_DROP
            && class == pg_sys::ExtensionRelationId
            && sub_object == 0
        {
            extension_dropped(object);
        }
    }
}

/// # Safety
/// The arguments of the hook.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn extension_dropped(extension: Oid) {
    if let Some(dropped) = DROPPED.get() {
        dropped(extension);
    }
}
