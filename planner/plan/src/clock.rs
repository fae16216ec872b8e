//! The present time as a plan's input: a source that no catalog has, of one row with the present time.
//!
//! Whoever feeds a plan retracts the row and inserts the next one at the same time. The present is finite and never
//! goes back. Before the first row nothing is valid.

use crate::nodes::Source;
use crate::types::{Column, Scalar, TableName, Type};
use serde::Serialize;

/// The type of the present time and of what is compared with it.
pub const TIME: Type = Type::Scalar(Scalar::Timestamptz);

/// The name that stands for the clock among a plan's sources.
pub fn table() -> TableName {
    TableName { schema: Some("eddy".to_owned()), name: "clock".to_owned(), only: false }
}

/// The clock as a plan's source.
pub fn source() -> Source {
    let column = Column { name: "now".to_owned(), ty: TIME, typmod: -1, nullable: false };
    Source { table: table(), columns: vec![0], schema: vec![column] }
}

impl Source {
    /// Whether the rows are the present time and not those of a table.
    pub fn is_clock(&self) -> bool {
        self.table == table()
    }
}

/// The ends of the time for which a row is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum End {
    /// `now() >= at`
    From,
    /// `now() < at`
    Until,
}

impl End {
    /// The condition as text.
    pub fn condition(self, at: &str) -> String {
        match self {
            End::From => format!("now() >= {at}"),
            End::Until => format!("now() < {at}"),
        }
    }
}
