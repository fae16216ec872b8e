//! The errors of the front end, all worded the same way.

use crate::error::{PlanError, PlanErrorKind};

/// Refuses a construct that is valid SQL but not supported.
pub(crate) fn unsupported(construct: impl std::fmt::Display) -> PlanError {
    PlanError {
        kind: PlanErrorKind::Unsupported,
        message: format!("{construct} not supported in an incremental view"),
        hint: None,
        relation: None,
    }
}

/// The same with advice, a full sentence.
pub(crate) fn unsupported_hint(construct: impl std::fmt::Display, hint: &str) -> PlanError {
    PlanError { hint: Some(hint.to_owned()), ..unsupported(construct) }
}

/// The text is not what canonical SQL can be: a bug of the caller or of this crate.
pub(crate) fn invalid(message: impl Into<String>) -> PlanError {
    let kind = PlanErrorKind::Invalid;
    PlanError { kind, message: message.into(), hint: None, relation: None }
}

/// There is more of something, one within the other, than can be walked down.
pub(crate) fn too_deep(what: &str, limit: usize) -> PlanError {
    let hint = "Test against many values with = ANY (ARRAY[...]), and split the query into views.";
    PlanError {
        kind: PlanErrorKind::TooComplex,
        message: format!("query has more than {limit} {what}"),
        hint: Some(hint.to_owned()),
        relation: None,
    }
}
