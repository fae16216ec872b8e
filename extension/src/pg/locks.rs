//! Table locks held until the end of the transaction.

use pgrx::pg_sys::{self, Oid};

/// Keeps others from writing a table; waits for those who do.
pub fn against_writes(table: Oid) {
    // SAFETY: waits for a lock; errs on deadlock or timeout.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::ShareLock as i32) }
}
