//! Why a statement cannot be shown the rows stored in views.

use super::beneath::Change;
use super::errors;
use crate::errors::Error;
use crate::pg::ids::ViewId;
use std::ffi::CStr;

/// Why the stored rows are not what a statement has to see.
pub enum Unfit {
    /// Its transaction has changed something beneath them.
    OwnChanges(Change),
    /// Its transaction has labelled a view.
    LabelledNow(ViewId),
    /// The snapshot of its transaction is older than they are.
    ReadLate,
    /// Its transaction's snapshot was taken while one view was away.
    NotTogether,
    /// They never were where the snapshot is.
    NeverExact,
    /// It cannot wait for them where it is, for this reason.
    Stuck(Error),
    /// They are not current, and the session does not wait for them.
    NotCurrent(Error),
    /// They have not become current in time.
    TooLate(Error),
}

impl Unfit {
    /// As EXPLAIN tells it. `None` if the session wants to be told that they are not current.
    pub fn reason(&self) -> Option<&'static CStr> {
        match self {
            Unfit::OwnChanges(_) => Some(c"own changes"),
            Unfit::LabelledNow(_) => Some(c"not maintained yet"),
            Unfit::ReadLate => Some(c"older snapshot"),
            Unfit::NotTogether => Some(c"set aside at the snapshot"),
            Unfit::NeverExact => Some(c"not at the snapshot"),
            Unfit::Stuck(_) => Some(c"no way to wait"),
            Unfit::NotCurrent(_) => Some(c"not current"),
            Unfit::TooLate(_) => None,
        }
    }

    /// What a statement raises that is shown nothing.
    pub fn error(self, views: &[ViewId]) -> Error {
        match self {
            Unfit::OwnChanges(change) => errors::own_changes(views, change),
            Unfit::LabelledNow(view) => errors::labelled_now(view),
            Unfit::ReadLate => errors::read_late(views),
            Unfit::NotTogether => errors::not_together(views),
            Unfit::NeverExact => errors::never_exact(views),
            Unfit::Stuck(error) | Unfit::NotCurrent(error) | Unfit::TooLate(error) => error,
        }
    }
}
