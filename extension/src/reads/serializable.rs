//! What serializable transactions must tell PostgreSQL about the views they read.
//!
//! PostgreSQL finds out about transactions that cannot have run one after the other by what each of them
//! has read and what others, running at the same time, wrote there. The worker's writes are nobody's
//! transaction in this sense. So whoever reads a view counts as having read the whole of each of its base tables:
//! - From the moment of the read on, whoever writes a base table finds this transaction's lock on the whole of it.
//! - Whoever wrote one before, and is not seen by the snapshot, had its number by then, and has a lock on the
//!   table as long as it runs. Of those that have ended since the snapshot, only that they wrote something is
//!   known, so each of them counts that is serializable.
//!
//! Both are more than the view's query would report, never less, because the view shows exactly what the base tables do at the
//! snapshot (`single`). What the query would see beyond that are the transaction's own changes: whoever has changed a base table
//! runs it (`beneath`), and PostgreSQL notes by itself what that reads.

use super::beneath::tables_beneath;
use crate::pg::ids::ViewId;
use crate::pg::predicate;
use crate::pg::read::Read;

/// A statement is about to read the rows stored in views.
pub fn note_read(read: &Read, views: &[ViewId]) {
    predicate::note_read_of(&tables_beneath(views), read);
}
