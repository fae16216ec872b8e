//! How a construct is refused.

use crate::errors::Error;

/// The error "… is not supported in an incremental view".
pub(super) fn unsupported(construct: impl std::fmt::Display, location: i32) -> Error {
    Error::unsupported(format!("{construct} is not supported in an incremental view")).at(location)
}
