//! A view over a view (`worker/stack`, `worker/passing`).

use super::state::*;
use super::worker::{Phase, Worker};
use super::Protocol;

/// The view that may be read by the other one, and that one.
const LOWER: usize = 0;
const UPPER: usize = 1;

impl Protocol {
    /// The view that a view reads.
    pub fn beneath(&self, view: usize) -> Option<usize> {
        (self.stacked && view == UPPER).then_some(LOWER)
    }

    /// Some views, and those that read them.
    pub fn with_above(&self, views: Views) -> Views {
        let is_above = self.stacked && has(views, LOWER);
        views | u8::from(is_above) << UPPER
    }

    /// Whether a view can begin: what the one beneath holds is known, and nobody is writing it (`stack::require_readable`).
    pub fn can_read_beneath(&self, state: &State, worker: &Worker, view: usize) -> bool {
        let Some(lower) = self.beneath(view) else { return true };
        let Phase::Attached(beneath) = &worker.views[lower] else { return false };
        let is_known = beneath.stored == Some(state.heaps.file[lower]);
        let is_free = !has(state.refresh.locks(), lower);
        is_free && (is_known && beneath.lent == Default::default() || !self.rules.readable_beneath)
    }

    /// What a view begins with that reads another one: what that one's heap holds, and what it has put out and nobody has written yet
    /// (`Worker::connect`).
    pub fn rows_beneath(&self, state: &State, worker: &Worker, lower: usize) -> Rows {
        let mut rows = state.heaps.rows[lower];
        if let (Phase::Attached(beneath), true) = (&worker.views[lower], self.rules.take_unwritten)
        {
            rows.add(beneath.delta);
        }
        rows
    }

    /// A view has put something out, which goes to the one that reads it.
    pub fn hand_on(&self, worker: &mut Worker, view: usize, output: Rows) {
        let above = worker.views[UPPER].attachment();
        if let (Some(above), true) = (above, self.stacked && view == LOWER) {
            above.handed.add(output);
        }
    }

    /// Whether a view waits for the one that it reads, which has not been fed all or is at work (`Stack::waits`).
    pub fn waits_beneath(&self, worker: &Worker, view: usize) -> bool {
        let beneath = self.beneath(view).filter(|_| self.rules.wait_beneath);
        beneath.is_some_and(|lower| match &worker.views[lower] {
            Phase::Attached(beneath) => beneath.is_at_work || beneath.steps != 0,
            Phase::Waiting => true,
        })
    }

    /// The dataflow of a view ends, and with it those that read it (`Worker::set_phase`).
    pub fn detach(&self, worker: &mut Worker, view: usize) {
        worker.views[view] = Phase::Waiting;
        if self.stacked && view == LOWER && self.rules.end_with_beneath {
            worker.views[UPPER] = Phase::Waiting;
        }
    }
}
