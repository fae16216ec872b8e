//! `NOTIFY`, as far as it can fail nobody else.

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

/// Notifies who listens on a channel when the transaction commits; false if the queue is too full for that. A long name is cut, as
/// LISTEN does.
pub fn notify(channel: &str, payload: &str) -> bool {
    let channel = &channel[..channel.floor_char_boundary(NAME_BYTES)];
    let (Ok(channel), Ok(payload)) = (CString::new(channel), CString::new(payload)) else {
        return false;
    };
    // SAFETY: a function without arguments, which answers a float8; texts are copied.
    unsafe {
        let usage = pgrx::direct_function_call::<f64>(pg_sys::pg_notification_queue_usage, &[]);
        let has_room = usage.is_some_and(|usage| usage < FULL);
        if has_room {
            pg_sys::ffi::pg_guard_ffi_boundary(|| raw_notify(channel.as_ptr(), payload.as_ptr()));
        }
        has_room
    }
}
