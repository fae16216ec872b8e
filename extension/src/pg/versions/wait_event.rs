//! The name that `pg_stat_activity` shows of a session that waits for a worker: for views to be fresh. From 17 on an extension has
//! events of its own; 15 and 16 know the names of its locks only.

use pgrx::pg_sys;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, Ordering};

/// The name of the event.
const NAME: &CStr = c"EddyWorker";

/// The event as this process, or the postmaster it was forked from, has learned it.
static EVENT: AtomicU32 = AtomicU32::new(0);

/// Asks for the name. Only when shared memory is requested.
pub fn request() {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    // SAFETY: called by the postmaster at the moment meant for requests.
    unsafe {
        pg_sys::RequestNamedLWLockTranche(NAME.as_ptr(), 1);
    }
}

/// Learns what was asked for. Only when shared memory is set up.
pub fn learn() {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    // SAFETY: the tranche was requested; its lock is there, and nobody ever takes it.
    unsafe {
        let lock = &raw const (*pg_sys::GetNamedLWLockTranche(NAME.as_ptr())).lock;
        let event = pg_sys::PG_WAIT_LWLOCK | u32::from((*lock).tranche);
        EVENT.store(event, Ordering::Relaxed);
    }
}

/// The event of waiting for a worker.
pub fn worker() -> u32 {
    let known = EVENT.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    let event = pg_sys::PG_WAIT_EXTENSION;
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    // SAFETY: takes a lock of its own for a moment. The same name has the same number in all processes.
    let event = unsafe { pg_sys::WaitEventExtensionNew(NAME.as_ptr()) };
    EVENT.store(event, Ordering::Relaxed);
    event
}
