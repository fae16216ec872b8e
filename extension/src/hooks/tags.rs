//! Command tags that say INCREMENTAL where the server would say MATERIALIZED.
//!
//! Tags come from a fixed table inside the server. So for one message the table of communication
//! functions is replaced by a copy whose `putmessage` rewrites the completion message and puts the
//! server's table back. An error or the end of the query puts it back too.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::atomic::{AtomicPtr, Ordering};

#[repr(C)]
#[derive(Clone, Copy)]
struct CommMethods {
    comm_reset: *const c_void,
    flush: *const c_void,
    flush_if_writable: *const c_void,
    is_send_pending: *const c_void,
    putmessage: unsafe extern "C-unwind" fn(c_char, *const c_char, usize) -> c_int,
    putmessage_noblock: *const c_void,
}

extern "C" {
    static mut PqCommMethods: *const CommMethods;
}

/// The server's table while ours is in place, else null.
static STOCK: AtomicPtr<CommMethods> = AtomicPtr::new(std::ptr::null_mut());

/// The stock tags and what they become.
const TAGS: [(&CStr, &CStr); 4] = [
    (c"CREATE MATERIALIZED VIEW", c"CREATE INCREMENTAL VIEW"),
    (c"DROP MATERIALIZED VIEW", c"DROP INCREMENTAL VIEW"),
    (c"ALTER MATERIALIZED VIEW", c"ALTER INCREMENTAL VIEW"),
    (c"REFRESH MATERIALIZED VIEW", c"REFRESH INCREMENTAL VIEW"),
];

/// Unguarded: it calls the server alone.
///
/// # Safety
/// For PostgreSQL to call, in place of the function of its table.
unsafe extern "C-unwind" fn put_message(kind: c_char, body: *const c_char, len: usize) -> c_int {
    let stock = STOCK.load(Ordering::Relaxed);
    // SAFETY: `stock` was the server's table when ours was installed, and tables are static data.
    // A completion message's body is a NUL-terminated tag.
    unsafe {
        let put = (*stock).putmessage;
        if matches!(kind as u8, b'C' | b'E' | b'Z') {
            PqCommMethods = stock;
            STOCK.store(std::ptr::null_mut(), Ordering::Relaxed);
        }
        if kind as u8 == b'C' {
            let tag = CStr::from_ptr(body);
            if let Some((_, new)) = TAGS.iter().find(|(old, _)| *old == tag) {
                return put(kind, new.as_ptr(), new.count_bytes() + 1);
            }
        }
        put(kind, body, len)
    }
}

/// Rewrites the tag of the statement being run, which must be one that a client sent: the next
/// completion message is then its own.
pub fn rewrite_next() {
    if !STOCK.load(Ordering::Relaxed).is_null() {
        return;
    }
    static OURS: AtomicPtr<CommMethods> = AtomicPtr::new(std::ptr::null_mut());
    // SAFETY: the server's pointer is valid in a process with a client. Our copy is leaked once per
    // process and only rewritten while it is not in use (checked above).
    unsafe {
        let stock = PqCommMethods;
        let copy = CommMethods { putmessage: put_message, ..*stock };
        let mut ours = OURS.load(Ordering::Relaxed);
        if ours.is_null() {
            ours = Box::leak(Box::new(copy));
            OURS.store(ours, Ordering::Relaxed);
        } else {
            ours.write(copy);
        }
        STOCK.store(stock.cast_mut(), Ordering::Relaxed);
        PqCommMethods = ours;
    }
}
