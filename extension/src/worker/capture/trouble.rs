//! What is wrong with an input, found while decoding.

use crate::errors::Error;
use crate::worker::problem::Problem;
use plan::error::DataError;

/// Why a view must be attached again or fails, found while decoding.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// The tables are not what they were: attach again.
    Changed,
    /// The view cannot be maintained.
    Problem(Problem),
}

impl From<DataError> for Trouble {
    fn from(error: DataError) -> Trouble {
        Trouble::Problem(error.into())
    }
}

/// Old rows of a table do not carry the columns that a view needs.
pub fn no_identity(table: &str) -> Problem {
    Error::replica_identity(table, table, ", then REFRESH the view.").into()
}
