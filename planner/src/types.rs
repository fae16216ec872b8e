//! The SQL types the planner knows, and the description of a column.
//!
//! Types are named by enums, never by OIDs: translating OIDs is the business of whoever implements
//! [`crate::catalog::Catalog`]. Collations do not appear: the caller admits only text whose collation
//! is deterministic, and only admits ordering of text whose collation orders by bytes.

use serde::{Deserialize, Serialize};

/// A type that is not an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scalar {
    /// `boolean`
    Bool,
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `real`
    Float4,
    /// `double precision`
    Float8,
    /// `numeric`, with or without precision and scale
    Numeric,
    /// `text`
    Text,
    /// `character varying`, with or without length
    Varchar,
    /// `character` (blank-padded; trailing blanks do not count in comparisons)
    Char,
    /// `date`: days since 2000-01-01
    Date,
    /// `timestamp without time zone`: microseconds since 2000-01-01
    Timestamp,
    /// `timestamp with time zone`: microseconds since 2000-01-01 UTC
    Timestamptz,
    /// `uuid`
    Uuid,
    /// `bytea`
    Bytea,
}

/// A type: a scalar or a one-dimensional array of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Type {
    /// A single value.
    Scalar(Scalar),
    /// A one-dimensional array (or the empty array).
    Array(Scalar),
}

/// Name and type of a column of a relation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Column {
    /// The column's name, unquoted.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// PostgreSQL's type modifier (`varchar(10)`, `numeric(8,2)`), -1 for none.
    pub typmod: i32,
    /// Whether the column may hold NULL; `true` when not known.
    pub nullable: bool,
}
