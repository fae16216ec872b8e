//! Views that read views: what one puts out goes to those above it.
//!
//! A view above begins with the rows that the heap of the one beneath holds, which are those that were put out and written, and
//! with what was put out and not written yet. From then on the dataflow of the one beneath hands it what it puts out, with its
//! times ([`engine::Engine::connect`]). It is fed when those that it reads have been, so views come to one point of commit
//! order, however high they stand. When the dataflow of one ends, so do those above it.

use super::apply::add;
use super::main_loop::Worker;
use super::stack::view_of;
use super::view::{Phase, View};
use crate::pg::ids::{RelationId, ViewId};
use engine::{DataflowId, Time, Updates};
use plan::error::DataError;
use plan::types::Type;
use plan::{Diff, SourceId};
use std::collections::BTreeMap;

impl Worker {
    /// Feeds the views that read others or are read, each when all is fed to those that it reads.
    pub(super) fn feed_stack(&mut self) {
        self.stack.behind.clear();
        for relid in self.stack.order.clone() {
            if self.stack.waits(relid) || !self.feed_view(relid) {
                self.stack.behind.insert(relid);
            }
        }
    }

    /// Whether a view that a view reads has been fed further.
    pub(super) fn is_view_ahead(&self, relid: ViewId, fed: Time) -> bool {
        self.stack.beneath(relid).any(|lower| {
            match self.views.get(&lower).map(|view| &view.phase) {
                Some(Phase::Attached(lower)) => lower.fed > fed,
                _ => false,
            }
        })
    }

    /// Errors of a view are errors of those that read it.
    pub(super) fn pass_on_errors(&mut self, relid: ViewId, errs: &Updates<DataError>) {
        for above in self.stack.all_above(relid) {
            if let Some(above) = self.views.get_mut(&above).and_then(View::attachment) {
                errs.iter().for_each(|(error, _, diff)| add(&mut above.errs_beneath, error, *diff));
            }
        }
    }

    /// The errors of the views that a view reads.
    pub(super) fn errors_beneath(&self, relid: ViewId) -> BTreeMap<DataError, Diff> {
        let mut errors = BTreeMap::new();
        for lower in self.stack.all_beneath(relid) {
            if let Some(Phase::Attached(lower)) = self.views.get(&lower).map(|view| &view.phase) {
                lower.errs.iter().for_each(|(error, count)| add(&mut errors, error, *count));
            }
        }
        errors
    }

    /// What a view puts out goes to an input, which takes these columns of it. What is not in its heap yet does so, too.
    pub(super) fn connect(
        &mut self,
        beneath: RelationId,
        input: (DataflowId, SourceId),
        columns: &[(i16, Type)],
    ) {
        let Some(engine) = &mut self.engine else { return };
        let beneath = self.views.get(&view_of(beneath)).map(|view| &view.phase);
        if let Some(Phase::Attached(beneath)) = beneath {
            // A view loses no columns, so their numbers are their places.
            let place = |(number, _): &(i16, Type)| usize::try_from(number - 1).unwrap_or(0);
            let places = columns.iter().map(place).collect();
            engine.connect(beneath.dataflow, input, places, beneath.output.updates());
        }
    }

    /// Views that wait until they can read this one have no longer to.
    pub(super) fn wake_above(&mut self, relid: ViewId) {
        self.views.values_mut().for_each(|view| view.go_on_above(relid));
    }
}
