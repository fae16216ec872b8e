//! What the binder must know about tables; implemented over PostgreSQL's catalogs by the extension
//! and over CREATE TABLE statements in tests.

use plan::types::{Column, TableName, Type};
use plan::Zone;
use serde::{Deserialize, Serialize};

/// What a query may name: a base table, or an incremental view.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its columns in definition order, without dropped ones.
    pub columns: Vec<Column>,
    /// Sets of columns (positions in `columns`) that are unique and not null: primary key first.
    pub unique: Vec<Vec<usize>>,
    /// Columns that it has besides, which nothing shows but their names: those of [`SYSTEM_COLUMNS`].
    pub system: Vec<Column>,
    /// What is known of its rows; `None` if nothing is.
    pub statistics: Option<Statistics>,
}

/// How many rows a table has, and how different they are. No values of users are in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    pub rows: f64,
    /// Parallel to the table's columns; `None` for a column of which nothing is known.
    pub columns: Vec<Option<ColumnStatistics>>,
}

/// How different the values of a column are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnStatistics {
    /// How many there are, NULL aside.
    pub distinct: f64,
    /// Share of the rows that have NULL.
    pub nulls: f64,
    /// How probable it is that two rows that are not NULL have the same value: 1 by `distinct` if all are equally frequent, more
    /// if some are more frequent than others.
    pub repeats: f64,
    /// Average bytes of a value.
    pub width: f64,
}

/// The names of columns that are none of those a table is defined with, and no table can have otherwise.
pub const SYSTEM_COLUMNS: [&str; 1] = ["tableoid"];

/// An expression that the host evaluates, standing in canonical SQL as `eddy.host_call(number, arguments)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostExpression {
    /// As people read it; the arguments are `$1`, `$2` …
    pub text: String,
    /// As the host reads it.
    pub code: String,
    /// The host's number of the user as whom it is evaluated.
    pub caller: u32,
    /// Whether it calls no functions but the host's own.
    pub is_builtin: bool,
    /// Type of its value.
    pub ty: Type,
    /// Type modifier of its value.
    pub typmod: i32,
    /// Of a condition of two operands that is true of such only that have places in common: where these are, by
    /// dimension. Nothing, if it is no such condition.
    pub extents: Vec<[HostExtent; 2]>,
}

/// Where an operand of a condition is in a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostExtent {
    /// At the value that is an argument of the condition, by position.
    Argument(usize),
    /// At a value.
    Value(HostPart),
    /// From the first to the second, where NULL is no end.
    Between(HostPart, HostPart),
}

/// Where the operands of a condition are that the host evaluates, by its code.
pub type Extents<'a> = &'a dyn Fn(&str) -> Vec<[HostExtent; 2]>;

/// An expression over some of the arguments of another, in the same numbering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPart {
    pub expression: HostExpression,
    /// Positions of the arguments that it reads.
    pub args: Vec<usize>,
}

/// Source of table definitions.
pub trait Catalog {
    /// The table of that name, `None` if there is none.
    fn table(&self, name: &TableName) -> Option<Table>;

    /// The expression behind `eddy.host_call(number, …)`; `None` if there is none.
    fn host_expression(&self, number: u64) -> Option<HostExpression> {
        let _ = number;
        None
    }

    /// Where the operands of the condition with that code are: the extents of its expression.
    fn host_extents(&self, code: &str) -> Vec<[HostExtent; 2]> {
        let _ = code;
        Vec::new()
    }

    /// The time zone in which the query is; `None` if it cannot be told, and then the query has nothing native that depends on
    /// it.
    fn zone(&self) -> Option<Zone> {
        None
    }

    /// The time zone that a query names.
    fn zone_named(&self, name: &str) -> Option<Zone> {
        let _ = name;
        None
    }

    /// Called again and again while a query is planned, which may take long. May unwind.
    fn check_interrupts(&self) {}
}
