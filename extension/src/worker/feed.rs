//! Feeding: what was captured goes into the dataflows that have nothing to do.
//!
//! Of large transactions there is a lot: a view gets it portion by portion, in each step for a moment only, and while memory is
//! short no faster than its dataflow takes it. As long as that lasts the view is at work, and the others are written
//! without it.

use super::capture::Portion;
use super::main_loop::Worker;
use super::naming::relid_of;
use super::view::{Phase, View};
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::ids::ViewId;
use crate::pg::markers::{self, AtWork, Work};
use engine::DataflowId;
use std::io;
use std::time::{Duration, Instant};

/// How long all views together are fed with what is large before the others are looked after.
const SLICE: Duration = Duration::from_millis(20);

/// How long one view is fed with it at least.
const LEAST_SLICE: Duration = Duration::from_millis(1);

impl Worker {
    /// Feeds the dataflows that have nothing to do, and those that are not through with what they are being fed.
    pub(super) fn feed(&mut self) {
        self.begin_index_batches();
        self.feed_each(self.being_fed(|dataflow| !self.dataflows.contains_key(&dataflow)));
        self.feed_stack();
        self.begin_batches();
        self.feed_each(self.being_fed(|dataflow| self.dataflows.contains_key(&dataflow)));
        self.engine.flush();
    }

    fn being_fed(&self, is_wanted: impl Fn(DataflowId) -> bool) -> Vec<DataflowId> {
        self.capture.being_fed().into_iter().filter(|dataflow| is_wanted(*dataflow)).collect()
    }

    /// Feeds these for a moment.
    fn feed_each(&mut self, dataflows: Vec<DataflowId>) {
        let slice =
            (SLICE / u32::try_from(dataflows.len()).unwrap_or(u32::MAX).max(1)).max(LEAST_SLICE);
        for dataflow in dataflows {
            if let Err(error) = self.feed_dataflow(dataflow, Instant::now() + slice) {
                for relid in self.concerned(dataflow) {
                    let name = self.views.get(&relid).map_or("", |view| &view.name);
                    pgrx::log!("pg_eddy: view {name} is attached again, its changes could not be read back: {error}");
                    self.set_phase(relid, Phase::waiting());
                }
            }
        }
    }

    /// What a view is told of must be in its indexes before.
    fn begin_batches(&mut self) {
        let views = self.views.values().filter(|view| !self.stack.waits(view.relid));
        let ready = views.flat_map(View::attachments).filter(|a| self.has_unfed(a));
        let ready: Vec<DataflowId> = ready.map(|attachment| attachment.dataflow).collect();
        for dataflow in ready {
            self.begin_batch(dataflow);
        }
    }

    /// Begins to feed a view's dataflow what was captured for it, unless it is at work or an index lacks some of that.
    fn begin_batch(&mut self, dataflow: DataflowId) {
        if self.is_index_unfed(dataflow) {
            return;
        }
        let upper = self.capture.upper();
        let attachment = self.attachment_of(dataflow);
        if let Some(attachment) = attachment.filter(|a| !a.is_at_work() && a.start < upper) {
            attachment.begin_batch(upper);
            self.capture.begin_feeding(dataflow);
            markers::begin(relid_of(dataflow), Work::Batch);
        }
    }

    /// Feeds a view what there is for it; answers whether that was all.
    pub(super) fn feed_view(&mut self, relid: ViewId) -> bool {
        // What stands in a stack has no former definition that serves.
        let attachment = |worker: &Worker| {
            let attachment = worker.views.get(&relid).and_then(View::served)?;
            Some((attachment.dataflow, worker.has_unfed(attachment)))
        };
        let Some((dataflow, has_unfed)) = attachment(self) else { return true };
        if has_unfed {
            self.begin_batch(dataflow);
        }
        if self.capture.is_feeding(dataflow) {
            self.feed_each(vec![dataflow]);
        }
        let has_unfed = attachment(self).is_some_and(|(_, has_unfed)| has_unfed);
        !self.capture.is_feeding(dataflow) && !has_unfed
    }

    /// Feeds one dataflow, with what is large until then.
    fn feed_dataflow(&mut self, dataflow: DataflowId, until: Instant) -> io::Result<()> {
        let relid = self.answers_for(dataflow).unwrap_or_else(|| relid_of(dataflow));
        let Some(engine) = self.engine.get_mut() else { return Ok(()) };
        let _at_work = AtWork::begin(relid, Work::Feed);
        if let Some(view) = self.views.get(&relid) {
            crash_point::reach_for(CrashPoint::Batch, &view.name);
        }
        loop {
            let is_large = self.capture.is_next_large(dataflow);
            if is_large && !engine.wait_for_room(dataflow, Duration::ZERO) {
                return Ok(());
            }
            match self.capture.next_portion(dataflow)? {
                Some(Portion::Update(source, updates)) => engine.update(dataflow, source, updates),
                Some(Portion::Truncate(source, time)) => engine.truncate(dataflow, source, time),
                None => {
                    let upper = self.capture.end_feeding(dataflow);
                    if self.indexes.is_told_at_once(dataflow) {
                        engine.advance_dataflow(dataflow, upper);
                    }
                    return Ok(());
                }
            }
            if is_large && Instant::now() >= until {
                return Ok(());
            }
        }
    }
}
