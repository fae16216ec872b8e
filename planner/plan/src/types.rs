//! The SQL types the planner knows, and the description of a column.
//!
//! Types are named by enums, never by OIDs: translating OIDs is the business of whoever implements
//! the planner's `Catalog`. Collations do not appear but as numbers of the host's: text under a collation that is
//! not deterministic is a type of the host, and where text is sorted otherwise than by bytes, the host sorts it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

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
    /// A type that only the host knows.
    Host(HostType),
}

/// A type that only the host knows. Values are its bytes ([`Datum::Bytea`](crate::value::Datum)), which the planner
/// hands on without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostType {
    /// The host's number of the type.
    pub id: u32,
    /// The host's number of the collation that decides what is equal, 0 for the type's own.
    pub collation: u32,
    /// Whether values are equal if and only if their bytes are.
    pub is_exact: bool,
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
    pub ty: Type,
    /// PostgreSQL's type modifier (`varchar(10)`, `numeric(8,2)`), -1 for none.
    pub typmod: i32,
    /// Whether the column may hold NULL; `true` when not known.
    pub nullable: bool,
}

impl Scalar {
    /// Whether values that are equal in SQL have equal bytes, so that no key form is needed.
    pub fn is_canonical(self) -> bool {
        match self {
            Scalar::Float4 | Scalar::Float8 | Scalar::Numeric | Scalar::Char => false,
            Scalar::Host(ty) => ty.is_exact,
            _ => true,
        }
    }

    /// The name as `format_type` gives it.
    pub fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "boolean",
            Scalar::Int2 => "smallint",
            Scalar::Int4 => "integer",
            Scalar::Int8 => "bigint",
            Scalar::Float4 => "real",
            Scalar::Float8 => "double precision",
            Scalar::Numeric => "numeric",
            Scalar::Text => "text",
            Scalar::Varchar => "character varying",
            Scalar::Char => "character",
            Scalar::Date => "date",
            Scalar::Timestamp => "timestamp without time zone",
            Scalar::Timestamptz => "timestamp with time zone",
            Scalar::Uuid => "uuid",
            Scalar::Bytea => "bytea",
            Scalar::Host(ty) => ty.name(),
        }
    }

    /// `text`, `character varying` or `character`.
    pub fn is_string(self) -> bool {
        matches!(self, Scalar::Text | Scalar::Varchar | Scalar::Char)
    }

    /// `smallint`, `integer` or `bigint`.
    pub fn is_integer(self) -> bool {
        matches!(self, Scalar::Int2 | Scalar::Int4 | Scalar::Int8)
    }

    /// `real` or `double precision`.
    pub fn is_float(self) -> bool {
        matches!(self, Scalar::Float4 | Scalar::Float8)
    }
}

/// Names of types of the host, for people. They are few, and live as long as the process.
static HOST_NAMES: RwLock<BTreeMap<u32, &'static str>> = RwLock::new(BTreeMap::new());

impl HostType {
    /// The same, after telling what the host calls it.
    pub fn named(self, name: &str) -> HostType {
        if self.name() != name {
            let mut names = HOST_NAMES.write().unwrap_or_else(PoisonError::into_inner);
            names.insert(self.id, name.to_owned().leak());
        }
        self
    }

    /// What the host calls it.
    fn name(self) -> &'static str {
        let names = HOST_NAMES.read().unwrap_or_else(PoisonError::into_inner);
        names.get(&self.id).copied().unwrap_or("type of the host")
    }
}

impl Type {
    /// Whether values that are equal in SQL have equal bytes, so that no key form is needed.
    pub fn is_canonical(self) -> bool {
        self.base().is_canonical()
    }

    /// The type itself, or the type of the array's elements.
    pub fn base(self) -> Scalar {
        match self {
            Type::Scalar(scalar) | Type::Array(scalar) => scalar,
        }
    }

    /// A type of the host as one whose values are equal if and only if their bytes are; any other type as it is.
    pub fn by_image(self) -> Type {
        let exact = |scalar| match scalar {
            Scalar::Host(ty) => Scalar::Host(HostType { is_exact: true, ..ty }),
            other => other,
        };
        match self {
            Type::Scalar(scalar) => Type::Scalar(exact(scalar)),
            Type::Array(element) => Type::Array(exact(element)),
        }
    }

    /// Whether only the host knows the type, or that of the array's elements.
    pub fn is_host(self) -> bool {
        matches!(self.base(), Scalar::Host(_))
    }

    /// The element type of an array.
    pub fn element(self) -> Option<Scalar> {
        match self {
            Type::Scalar(_) => None,
            Type::Array(element) => Some(element),
        }
    }

    /// The type if it is not an array.
    pub fn scalar(self) -> Option<Scalar> {
        match self {
            Type::Scalar(scalar) => Some(scalar),
            Type::Array(_) => None,
        }
    }
}

impl From<Scalar> for Type {
    fn from(scalar: Scalar) -> Type {
        Type::Scalar(scalar)
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Type::Scalar(scalar) => f.write_str(scalar.name()),
            Type::Array(element) => write!(f, "{}[]", element.name()),
        }
    }
}

/// A qualified table name as canonical SQL spells it, unquoted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TableName {
    /// Schema; canonical SQL leaves it out for `pg_catalog` only.
    pub schema: Option<String>,
    pub name: String,
    /// Whether it stands for the table's own rows, without those of its children: `ONLY`.
    pub only: bool,
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let only = if self.only { "ONLY " } else { "" };
        match &self.schema {
            Some(schema) => write!(f, "{only}{schema}.{}", self.name),
            None => write!(f, "{only}{}", self.name),
        }
    }
}
