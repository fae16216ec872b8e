//! What a number of a catalog's row stands for.
//!
//! PostgreSQL has one type for the numbers of all objects. Here an incremental view is told apart from other relations, so
//! that neither is taken for the other, nor for a file, a transaction or a user.

use pgrx::pg_sys::Oid;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A relation: a table, a view, an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RelationId(u32);

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct ViewId(u32);

impl RelationId {
    /// The number that no relation has.
    pub const NONE: RelationId = RelationId(0);

    /// The relation with a number.
    pub const fn new(number: u32) -> RelationId {
        RelationId(number)
    }

    /// As PostgreSQL's shared structures have it.
    pub const fn to_u32(self) -> u32 {
        self.0
    }
}

impl ViewId {
    /// The view with a number.
    pub const fn new(number: u32) -> ViewId {
        ViewId(number)
    }

    /// As files and shared memory have it.
    pub const fn to_u32(self) -> u32 {
        self.0
    }
}

impl From<Oid> for RelationId {
    fn from(oid: Oid) -> RelationId {
        RelationId(oid.to_u32())
    }
}

impl From<ViewId> for RelationId {
    fn from(view: ViewId) -> RelationId {
        RelationId(view.0)
    }
}

impl From<RelationId> for Oid {
    fn from(id: RelationId) -> Oid {
        Oid::from(id.0)
    }
}

impl From<Oid> for ViewId {
    fn from(oid: Oid) -> ViewId {
        ViewId(oid.to_u32())
    }
}

impl From<ViewId> for Oid {
    fn from(view: ViewId) -> Oid {
        Oid::from(view.0)
    }
}

impl fmt::Display for RelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ViewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
