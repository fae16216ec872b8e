//! What the input functions of all types have in common.

use crate::error::DataError;
use crate::sqlstate;
use crate::types::Scalar;

/// C's `isspace` in the C locale.
pub fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

/// 22P02 as every input function words it.
pub(crate) fn invalid(ty: Scalar, text: &str) -> DataError {
    let message = format!("invalid input syntax for type {}: \"{text}\"", ty.name());
    DataError::new(sqlstate::INVALID_TEXT_REPRESENTATION, &message)
}
