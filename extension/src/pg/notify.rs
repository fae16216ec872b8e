//! `NOTIFY`, as far as nobody has to wait for it.

use pgrx::pg_sys;
use std::ffi::{c_char, CString};

extern "C-unwind" {
    /// Exported by the server, missing in the bindings.
    #[link_name = "Async_Notify"]
    fn raw_notify(channel: *const c_char, payload: *const c_char);
}

/// What of the server's queue may be full. Somebody who listens and does not end his transaction lets it grow, and if it is full
/// no transaction can commit that has notified anybody.
const FULL: f64 = 0.5;

/// Bytes of a channel's name, as of all names.
const NAME_BYTES: usize = pg_sys::NAMEDATALEN as usize - 1;

/// Whether this transaction can notify whom it wants and commit without waiting: who has notified somebody and commits has a lock
/// until that is over, however long it waits for a standby. This transaction has it then.
pub fn is_possible() -> bool {
    let tag = pg_sys::LOCKTAG {
        locktag_field1: 0,
        locktag_field2: pg_sys::DatabaseRelationId.to_u32(),
        locktag_field3: 0,
        locktag_field4: 0,
        locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
        locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
    };
    let mode = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: the lock that the server itself takes, without waiting; a function without arguments, which answers a float8.
    unsafe {
        let result = pg_sys::LockAcquire(&tag, mode, false, true);
        let usage = || pgrx::direct_function_call::<f64>(pg_sys::pg_notification_queue_usage, &[]);
        result != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL
            && usage().is_some_and(|usage| usage < FULL)
    }
}

/// Notifies who listens on a channel when the transaction commits. A long name is cut, as LISTEN does.
pub fn notify(channel: &str, payload: &str) {
    let channel = &channel[..channel.floor_char_boundary(NAME_BYTES)];
    let (Ok(channel), Ok(payload)) = (CString::new(channel), CString::new(payload)) else { return };
    // SAFETY: texts are copied.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| raw_notify(channel.as_ptr(), payload.as_ptr()));
    }
}
