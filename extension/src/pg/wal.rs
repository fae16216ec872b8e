//! Positions in the write-ahead log.

use pgrx::pg_sys;

/// End of what has been inserted so far, in the form in which readers of WAL see ends of records.
pub fn insert_lsn() -> u64 {
    // SAFETY: needs shared memory only.
    normalize(unsafe { pg_sys::GetXLogInsertRecPtr() })
}

/// The insert position after a page's header is the end of the record before that page.
fn normalize(lsn: u64) -> u64 {
    const SHORT_HEADER: u64 = 24;
    const LONG_HEADER: u64 = 40;
    match lsn % u64::from(pg_sys::XLOG_BLCKSZ) {
        offset @ (SHORT_HEADER | LONG_HEADER) => lsn - offset,
        _ => lsn,
    }
}

/// End of what is on disk.
pub fn flush_lsn() -> u64 {
    // SAFETY: the timeline may be left out.
    unsafe { pg_sys::GetFlushRecPtr(std::ptr::null_mut()) }
}

/// Writes everything before `lsn` to disk, if it is not yet there.
pub fn flush_to(lsn: u64) {
    if lsn > flush_lsn() {
        // SAFETY: positions come from this server's own inserts.
        unsafe { pg_sys::XLogFlush(lsn) }
    }
}

/// End of the commit record this session wrote last.
pub fn last_commit_end() -> u64 {
    // SAFETY: a plain global.
    unsafe { pg_sys::XactLastCommitEnd }
}

/// Whether `wal_level` allows logical decoding.
pub fn level_is_logical() -> bool {
    // SAFETY: a plain global.
    unsafe { pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_LOGICAL as i32 }
}

/// Bytes free in the file system of the WAL.
pub fn free_space() -> u64 {
    super::process::free_space(Some(std::path::Path::new("pg_wal")))
}

/// Capacity for replication slots.
pub fn max_replication_slots() -> i32 {
    // SAFETY: a plain global.
    unsafe { pg_sys::max_replication_slots }
}

/// Size of a page of WAL.
pub const PAGE: u64 = pg_sys::XLOG_BLCKSZ as u64;

/// Whether this server is a standby.
pub fn in_recovery() -> bool {
    // SAFETY: needs shared memory only.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// The usual spelling of an LSN.
pub fn display(lsn: u64) -> String {
    format!("{:X}/{:X}", lsn >> 32, lsn as u32)
}

/// The LSN that is spelled so.
pub fn parse(lsn: &str) -> Option<u64> {
    let (high, low) = lsn.split_once('/')?;
    let part = |digits| u32::from_str_radix(digits, 16).ok().map(u64::from);
    Some(part(high)? << 32 | part(low)?)
}
