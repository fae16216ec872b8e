//! Table locks: held until the end of the transaction, and who waits for whom.

use pgrx::pg_sys::{self, Oid};

/// Keeps others from writing a table; waits for those who do.
pub fn against_writes(table: Oid) {
    // SAFETY: waits for a lock; errs on deadlock or timeout.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::ShareLock as i32) }
}

/// Whether a worker cannot go on before this session gives a lock back: the session holds one that
/// keeps it from reading the tables `read` or from writing the relations `written`, or others
/// that hold or wait for such a lock wait for this session. PostgreSQL finds no such deadlock, as
/// what this session waits for is not a lock.
pub fn blocked_by_me(worker: i32, read: &[u32], written: &[u32]) -> bool {
    let list = |oids: &[u32]| oids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let query = format!(
        "WITH RECURSIVE stuck(pid) AS (
             (SELECT {worker}
             UNION
             SELECT l.pid FROM pg_catalog.pg_locks l
             WHERE l.database OPERATOR(pg_catalog.=) {database}
             AND l.locktype OPERATOR(pg_catalog.=) 'relation'
             AND ((l.relation OPERATOR(pg_catalog.=) ANY ('{{{read}}}'::pg_catalog.oid[])
                 AND l.mode OPERATOR(pg_catalog.=) 'AccessExclusiveLock')
             OR (l.relation OPERATOR(pg_catalog.=) ANY ('{{{written}}}'::pg_catalog.oid[])
                 AND l.mode OPERATOR(pg_catalog.=) ANY ('{{ShareLock,ShareRowExclusiveLock,\
             ExclusiveLock,AccessExclusiveLock}}'::pg_catalog.text[]))))
             UNION
             SELECT pg_catalog.unnest(pg_catalog.pg_blocking_pids(s.pid)) FROM stuck s
         )
         SELECT true FROM stuck WHERE pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()",
        database = super::process::database(),
        read = list(read),
        written = list(written),
    );
    let found =
        pgrx::Spi::connect(|client| client.select(&query, None, &[]).map(|rows| rows.len()));
    found.is_ok_and(|rows| rows > 0)
}
