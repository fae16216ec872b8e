//! Views that read views: what one puts out goes to those above it.
//!
//! A view above begins with the rows that the heap of the one beneath holds, which are those that were put out and written, and
//! with what was put out and not written yet. From then on the dataflow of the one beneath hands it what it puts out, with its
//! times ([`engine::Engine::connect`]). It is fed when those that it reads have been, so views come to one point of commit
//! order, however high they stand. When the dataflow of one ends, so do those above it.

use super::main_loop::Worker;
use super::problem::Problem;
use super::sources::Refusal;
use super::stack::{require_readable, view_of};
use super::view::{Heals, Phase, View};
use crate::errors::{Error, ErrorKind};
use crate::pg::ids::{RelationId, ViewId};
use engine::{DataflowId, Time, Updates};
use plan::types::Type;
use plan::SourceId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A view that waits for another one is tried again after this long, and before that when the other one can be read.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

impl Worker {
    /// Whether a view need not wait for another one any more, which is looked at before it is compiled.
    pub(super) fn may_read_awaited(&mut self, relid: ViewId) -> bool {
        let Some(view) = self.views.get(&relid) else { return false };
        let awaited = view.awaits.filter(|awaited| self.views.contains_key(awaited));
        let readable = awaited.map(|awaited| require_readable(&self.views, [awaited]));
        let Some(Err(Refusal::Until(awaited))) = readable else {
            self.views.get_mut(&relid).into_iter().for_each(|view| view.awaits = None);
            return true;
        };
        self.await_view(relid, awaited);
        false
    }

    /// A view is attached when it can read another one.
    pub(super) fn await_view(&mut self, relid: ViewId, awaited: ViewId) {
        if self.is_circle(relid, awaited) {
            return self.fail_as_circle(relid, awaited);
        }
        let not_before = Instant::now() + LOOK_AGAIN;
        self.set_phase(relid, Phase::Waiting { not_before, attempts: 1 });
        if let Some(view) = self.views.get_mut(&relid) {
            view.awaits = Some(awaited);
        }
    }

    /// A view is in error as long as another one that it reads is.
    pub(super) fn fail_with(&mut self, relid: ViewId, beneath: ViewId, problem: Problem) {
        match self.is_circle(relid, beneath) {
            true => self.fail_as_circle(relid, beneath),
            false => self.fail(relid, problem, Heals::WithView { view: beneath }),
        }
    }

    fn fail_as_circle(&mut self, relid: ViewId, beneath: ViewId) {
        let name = self.views.get(&relid).map_or("", |view| &view.name);
        let message = format!("incremental view \"{name}\" reads itself");
        let problem = Error::new(ErrorKind::NotInPrerequisiteState, message);
        let problem = problem.hint("Replace the plain view between them.");
        self.fail(relid, problem.into(), Heals::WithView { view: beneath });
    }

    /// Whether a view would wait for itself, or be in error because it is.
    fn is_circle(&self, relid: ViewId, awaited: ViewId) -> bool {
        let next = |view: &ViewId| self.views.get(view).and_then(View::awaited);
        let mut awaited = std::iter::successors(Some(awaited), next).take(self.views.len() + 1);
        awaited.any(|view| view == relid)
    }

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

    /// An error of a view is one of those that read it. These are told which view is in error; the reason may quote values.
    pub(super) fn pass_on_errors(&mut self, relid: ViewId) {
        let problem = self.views.get(&relid).and_then(View::own_error);
        for above in self.stack.all_above(relid) {
            let above = self.views.get_mut(&above).and_then(View::attachment);
            match (above, &problem) {
                (Some(above), Some(problem)) => drop(above.troubled.insert(relid, problem.clone())),
                (Some(above), None) => drop(above.troubled.remove(&relid)),
                (None, _) => {}
            }
        }
    }

    /// What is said of the views beneath a view whose queries raise errors.
    pub(super) fn troubled_beneath(&self, relid: ViewId) -> BTreeMap<ViewId, Problem> {
        let beneath = self.stack.all_beneath(relid).into_iter();
        beneath.filter_map(|lower| Some((lower, self.views.get(&lower)?.own_error()?))).collect()
    }

    /// A view has put out something: the views above had to wait for that, which is not their time.
    pub(super) fn note_reached(&mut self, relid: ViewId) {
        for above in self.stack.above(relid).collect::<Vec<_>>() {
            if let Some(above) = self.views.get_mut(&above).and_then(View::attachment) {
                above.began = Instant::now();
            }
        }
    }

    /// What a view puts out goes to an input, which takes these columns of it. What is not in its heap yet does so, too.
    pub(super) fn connect(
        &mut self,
        beneath: RelationId,
        input: (DataflowId, SourceId),
        columns: &[(i16, Type)],
    ) {
        let Some(engine) = self.engine.get_mut() else { return };
        // Of one that goes on all that it has put out is there, if it was saved with this one.
        let nothing = Updates::new();
        let (dataflow, unfed) = match self.views.get(&view_of(beneath)).map(|view| &view.phase) {
            Some(Phase::Attached(beneath)) => (beneath.dataflow, beneath.output.updates()),
            Some(Phase::Reading(beneath)) if beneath.goes_on.is_some() => {
                (beneath.dataflow, &nothing)
            }
            _ => return,
        };
        // A view loses no columns, so their numbers are their places.
        let place = |(number, _): &(i16, Type)| usize::try_from(number - 1).unwrap_or(0);
        engine.connect(dataflow, input, columns.iter().map(place).collect(), unfed);
    }

    /// A view can be read, or cannot be maintained: views that wait for that have no longer to.
    pub(super) fn wake_above(&mut self, relid: ViewId) {
        let is_readable = require_readable(&self.views, [relid]).is_ok();
        self.views.values_mut().for_each(|view| view.go_on_above(relid, is_readable));
    }
}
