//! The WAL that workers hold back is bounded. A worker lets go of WAL as it goes on; one that cannot, or does not get
//! as far because a transaction stays open, would fill the disk, and a server without space for WAL stops for
//! everybody. The launcher looks, as a worker that is stuck does not.

use crate::pg::shmem::Database;
use crate::pg::{process, slots, wal};
use crate::settings;
use crate::shared::Ending;

/// Ends a worker that holds back more than `eddy.max_retained_wal`, or than PostgreSQL leaves to a slot. The WAL is let
/// go at once, whatever the process does.
pub fn enforce_limit(database: &Database, pid: i32) {
    let Some(start) = slots::held_from(pid) else { return };
    let held = wal::insert_lsn().saturating_sub(start);
    let own = settings::max_retained_wal(|| wal::free_space().saturating_add(held));
    let limit = slots::server_limit().map_or(own, |limit| limit.min(own));
    if held <= limit {
        return;
    }
    let name = match limit == own {
        true => "eddy.max_retained_wal",
        false => "max_slot_wal_keep_size",
    };
    let complaint = format!(
        "The worker of this database held back {} MB of WAL, beyond {name}; its views start afresh.",
        held >> 20
    );
    pgrx::log!(
        "pg_eddy: ending worker {pid}, which holds back {} MB of WAL, beyond {name}",
        held >> 20
    );
    database.set_ending(Ending::Wal, &complaint);
    process::terminate(pid);
    slots::let_go(pid);
}
