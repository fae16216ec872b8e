//! Processes: signals, their ends, their entries in shared memory. 17 numbers processes where 15 and 16 numbered backends.

use pgrx::pg_sys;
use std::ffi::c_int;

/// Sets what a signal does in this process.
///
/// # Safety
/// The handler must do only what handlers of signals may.
pub unsafe fn on_signal(signal: c_int, handler: unsafe extern "C-unwind" fn(c_int)) {
    // SAFETY: per contract.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::pqsignal(signal, Some(handler));
        #[cfg(feature = "pg18")]
        pg_sys::pqsignal_be(signal, Some(handler));
    }
}

/// Ends this process in good order.
pub fn exit(code: c_int) -> ! {
    // SAFETY: proc_exit runs the exit callbacks and does not return.
    unsafe { pg_sys::proc_exit(code) };
    #[cfg(feature = "pg18")]
    std::process::abort()
}

/// Whether an entry is that of a process that serves no client.
pub fn serves_no_client(entry: &pg_sys::PGPROC) -> bool {
    #[cfg(not(feature = "pg18"))]
    return entry.isBackgroundWorker;
    #[cfg(feature = "pg18")]
    return !entry.isRegularBackend;
}

/// Number of this session's top-level transaction among those of its session.
pub fn local_transaction_id() -> u32 {
    // SAFETY: every process with a database has an entry of its own.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return (*pg_sys::MyProc).lxid;
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        return (*pg_sys::MyProc).vxid.lxid;
    }
}

/// Who holds a lock.
pub enum Holder {
    /// A prepared transaction, by its number.
    Prepared(u32),
    /// A process, by its entry, which may be another's by now.
    Process(*mut pg_sys::PGPROC),
    /// A process that has ended.
    Gone,
}

/// The holder of a lock that goes by the number of a transaction in its session.
pub fn holder(id: &pg_sys::VirtualTransactionId) -> Holder {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    let (process, none) = (id.backendId, pg_sys::InvalidBackendId);
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    let (process, none) = (id.procNumber, pg_sys::INVALID_PROC_NUMBER);
    if process == none {
        return Holder::Prepared(id.localTransactionId);
    }
    // SAFETY: a look-up, which answers null for who has ended.
    let entry = unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| entry_of(process)) };
    if entry.is_null() {
        Holder::Gone
    } else {
        Holder::Process(entry)
    }
}

unsafe extern "C-unwind" {
    #[cfg_attr(any(feature = "pg15", feature = "pg16"), link_name = "BackendIdGetProc")]
    #[cfg_attr(not(any(feature = "pg15", feature = "pg16")), link_name = "ProcNumberGetProc")]
    fn entry_of(process: c_int) -> *mut pg_sys::PGPROC;
}
