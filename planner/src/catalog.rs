//! What the binder must know about tables; implemented over PostgreSQL's catalogs by the extension
//! and over CREATE TABLE statements in tests.

use crate::types::Column;
use serde::{Deserialize, Serialize};

/// A qualified table name as canonical SQL spells it, unquoted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TableName {
    /// Schema; canonical SQL leaves it out for `pg_catalog` only.
    pub schema: Option<String>,
    /// Relation name.
    pub name: String,
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// A relation a query may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// A base table.
    Table(Table),
    /// An incremental view: bound as if its canonical query stood in a subquery.
    View { query: String, columns: Vec<Column> },
}

/// A base table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its columns in definition order, without dropped ones.
    pub columns: Vec<Column>,
    /// Sets of columns (positions in `columns`) that are unique and not null: primary key first.
    pub unique: Vec<Vec<usize>>,
}

/// Source of table definitions.
pub trait Catalog {
    /// The relation of that name, `None` if there is none.
    fn relation(&self, name: &TableName) -> Option<Relation>;
}
