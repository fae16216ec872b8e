//! The native functions and operators, each bit-exact with PostgreSQL's, errors included.

use serde::{Deserialize, Serialize};

/// A function or operator with a native kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Func {
    /// Normal form whose bytes are equal iff the values are equal in SQL (numeric scale, -0.0, NaN,
    /// trailing blanks of `char`); NULL stays NULL. The argument's type decides the work.
    KeyForm(crate::types::Type),
}
