//! What a view reads from indexes, and what for itself.

use super::sources::Sources;
use engine::{DataflowId, Read};
use plan::SourceId;
use std::collections::BTreeSet;

/// What a view is going to read from indexes.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) reads: Vec<Read>,
    /// Of them those that are new.
    pub(super) new: Vec<(DataflowId, SourceId)>,
    /// The sources whose rows the view needs for itself.
    pub(super) own: BTreeSet<SourceId>,
}

impl Chosen {
    /// Nothing from indexes.
    pub(super) fn none(sources: &Sources) -> Chosen {
        let own = (0..sources.members.len()).map(SourceId).collect();
        Chosen { own, ..Chosen::default() }
    }
}
