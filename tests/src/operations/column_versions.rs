//! Minor releases from 15.20 and 17.12 on note a version with each column, and their dumps carry it; a server of another line that is
//! older than they are refuses these dumps, whatever is in them (`unrecognized parameter "pg_attver"`). So that the way to such a
//! server can be gone at all, the notes are taken away before.

use anyhow::Result;
use harness::cluster::Cluster;

use super::views::DATABASE;

const NOTED: &str =
    "SELECT EXISTS (SELECT FROM pg_attribute WHERE attoptions::text LIKE '%pg_attver=%')";

const FORGET: &str = "
    SET allow_system_table_mods = on;
    UPDATE pg_attribute SET attoptions = NULLIF(ARRAY(
        SELECT o FROM unnest(attoptions) o WHERE o NOT LIKE 'pg_attver=%'), '{}')
    WHERE attoptions::text LIKE '%pg_attver=%'";

/// Takes them away from what is to be moved, if the new server would refuse them. Both run.
pub fn forget(old: &Cluster, new: &Cluster) -> Result<()> {
    let notes = |cluster: &Cluster| -> Result<bool> {
        Ok(cluster.connect("postgres")?.query_one(NOTED, &[])?.get(0))
    };
    if notes(old)? && !notes(new)? {
        println!(
            "PostgreSQL {} knows no versions of columns, which those of {} have: they are taken away before",
            new.installation().major,
            old.installation().major
        );
        old.connect(DATABASE)?.batch_execute(FORGET)?;
    }
    Ok(())
}
