//! Statements of our own that define something, run as the current user would run them.

use pgrx::pg_sys;
use std::ffi::CString;

/// Runs a statement; its errors are raised.
pub fn run(statement: &str) {
    let statement = CString::new(statement).unwrap_or_default();
    // SAFETY: connected and finished in pairs; after an error the abort of the transaction finishes.
    unsafe {
        pg_sys::SPI_connect();
        pg_sys::SPI_execute(statement.as_ptr(), false, 0);
        pg_sys::SPI_finish();
    }
}
