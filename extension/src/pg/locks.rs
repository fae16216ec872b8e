//! Table locks: held until the end of the transaction, and who waits for whom.

use super::ids::{RelationId, ViewId};
use super::quiet;
use pgrx::pg_sys::{self, Oid};

/// Keeps others from writing a table; waits for those who do.
pub fn against_writes(table: Oid) {
    // SAFETY: waits for a lock; errs on deadlock or timeout.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::ShareLock as i32) }
}

/// Keeps others from altering a relation, not from reading and writing it; waits for those who do.
pub fn against_changes(relation: Oid) {
    // SAFETY: as above.
    unsafe { pg_sys::LockRelationOid(relation, pg_sys::ShareUpdateExclusiveLock as i32) }
}

/// Waits until nobody reads or writes a relation, and keeps everybody from it until the end of the transaction.
pub fn against_all(relation: Oid) {
    // SAFETY: as above.
    unsafe { pg_sys::LockRelationOid(relation, pg_sys::AccessExclusiveLock as i32) }
}

/// Lets go of what [`against_all`] took.
pub fn let_go(relation: Oid) {
    // SAFETY: a lock that this process has.
    unsafe { pg_sys::UnlockRelationOid(relation, pg_sys::AccessExclusiveLock as i32) }
}

/// Whether a worker cannot go on before this session gives a lock back: the session holds one that
/// keeps it from reading the tables `read` or from writing the relations `written`, or others
/// that hold or wait for such a lock wait for this session. PostgreSQL finds no such deadlock, as
/// what this session waits for is not a lock.
pub fn blocked_by_me(worker: i32, read: &[RelationId], written: &[ViewId]) -> bool {
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
    let found = quiet::look_up(|| {
        pgrx::Spi::connect(|client| client.select(&query, None, &[]).map(|rows| rows.len()))
    });
    found.is_ok_and(|rows| rows > 0)
}

fn list<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// The transaction whose end a process waits for, in words: its session, or its name if it is prepared.
pub fn transaction_waited_for(process: i32) -> Option<String> {
    let query = format!(
        "SELECT w.transactionid::pg_catalog.text, h.pid, p.gid,
             coalesce(p.database, a.datname)::pg_catalog.text
         FROM pg_catalog.pg_locks w
         LEFT JOIN pg_catalog.pg_locks h ON h.granted
             AND h.locktype OPERATOR(pg_catalog.=) 'transactionid'
             AND h.transactionid OPERATOR(pg_catalog.=) w.transactionid
         LEFT JOIN pg_catalog.pg_prepared_xacts p
             ON p.transaction OPERATOR(pg_catalog.=) w.transactionid
         LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) h.pid
         WHERE NOT w.granted AND w.pid OPERATOR(pg_catalog.=) {process}
         AND w.locktype OPERATOR(pg_catalog.=) 'transactionid' LIMIT 1"
    );
    let found = quiet::look_up(|| {
        pgrx::Spi::connect(|client| {
            let rows = client.select(&query, Some(1), &[])?.first();
            let xid: Option<String> = rows.get(1)?;
            let (pid, gid): (Option<i32>, Option<String>) = (rows.get(2)?, rows.get(3)?);
            let database: Option<String> = rows.get(4)?;
            Ok::<_, pgrx::spi::Error>(xid.map(|xid| describe(&xid, pid, gid, database)))
        })
    });
    found.ok().flatten()
}

fn describe(xid: &str, pid: Option<i32>, gid: Option<String>, database: Option<String>) -> String {
    let place = database.map_or(String::new(), |name| format!(" in database \"{name}\""));
    match (gid, pid) {
        (Some(gid), _) => format!("prepared transaction \"{gid}\"{place}"),
        (None, Some(pid)) => format!("transaction {xid} of process {pid}{place}"),
        (None, None) => format!("transaction {xid}"),
    }
}
