//! What a number of a catalog's row stands for.
//!
//! PostgreSQL has one type for the numbers of all objects. Here a relation and an incremental view are told apart, so that
//! neither is taken for the other, nor for a file, a transaction or a user.

use pgrx::pg_sys::Oid;

/// A relation: a table, a view, an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RelationId(u32);

impl From<Oid> for RelationId {
    fn from(oid: Oid) -> RelationId {
        RelationId(oid.to_u32())
    }
}

impl From<u32> for RelationId {
    fn from(number: u32) -> RelationId {
        RelationId(number)
    }
}

impl From<RelationId> for Oid {
    fn from(id: RelationId) -> Oid {
        Oid::from(id.0)
    }
}
