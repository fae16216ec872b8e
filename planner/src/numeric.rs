//! Exact decimal numbers with PostgreSQL semantics.
use serde::{Deserialize, Serialize};

/// A `numeric` value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Numeric {
    /// not a number
    NaN,
}
