//! Compute: what was captured goes through the dataflows, each at its own speed.
//!
//! A dataflow is fed when it has put out all that it was fed before; what is captured meanwhile waits for it. So a
//! slow one takes ever larger batches and catches up if it can at all. The others do not wait for it: who is not
//! through within [`GRACE`] is set aside, and written again together with the others once it has come to their point.

use super::main_loop::Worker;
use super::naming::{dataflow_of, relid_of};
use super::view::{Attachment, Heals, Phase, View, Why};
use crate::errors::Error;
use crate::pg::ids::ViewId;
use crate::pg::markers::{self, Work};
use crate::pg::process;
use crate::settings;
use engine::{DataflowId, DataflowStats, Engine, Response, StopReason};
use std::time::{Duration, Instant};

/// How long the other views wait for one.
pub(super) const GRACE: Duration = Duration::from_millis(100);

/// A view that is behind is waited for again when its last batch took no longer than this.
const NEARLY_THERE: Duration = Duration::from_millis(50);

impl Worker {
    /// Feeds what was captured.
    pub(super) fn begin_computing(&mut self) {
        if self.clock_is_due_in().is_some_and(|due| due.is_zero()) {
            let time = self.capture.take_time();
            let (before, now) = self.clock.go_on();
            let position = self.position();
            self.capture.tell_clocks((before, now), time, position);
        }
        self.feed();
    }

    /// Waits until what was fed has gone through the dataflows that keep up.
    pub(super) fn end_computing(&mut self) {
        let deadline = Instant::now() + GRACE;
        self.receive();
        self.feed_waiting();
        while let Some(awaited) = self.awaited() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            process::report_view("computing", &awaited.name);
            process::wait_for_latch(left);
            self.receive();
            self.feed_waiting();
        }
        let limit = settings::computation_timeout();
        for dataflow in self.views_behind() {
            let Some(attachment) = self.attachment_of(dataflow) else { continue };
            attachment.set_aside(Why::Computing);
            let took = attachment.is_at_work().then(|| attachment.began.elapsed());
            if limit.zip(took).is_some_and(|(limit, took)| took > limit) {
                let relid = relid_of(dataflow);
                let file = super::sources::file_of(relid).unwrap_or(0);
                let problem = Error::computation_timeout().into();
                self.fail(relid, problem, Heals::OnRefresh { file });
            }
        }
    }

    /// Feeds views that waited for an index or were at work.
    fn feed_waiting(&mut self) {
        if std::mem::take(&mut self.more_is_due) {
            self.feed();
        }
    }

    /// A view at work, or whose index is, for which the others wait. One that has not even got all its changes is none.
    fn awaited(&self) -> Option<&View> {
        let may_wait = self.is_any_index_at_work();
        let is_awaited = |attachment: &Attachment| {
            let may_be_quick =
                attachment.last_batch <= NEARLY_THERE && attachment.began.elapsed() <= GRACE;
            (attachment.is_at_work() || may_wait && self.waits_for_index(attachment))
                && (attachment.is_together() || may_be_quick)
                && !self.assistants.evaluates(relid_of(attachment.dataflow))
                && !self.capture.is_feeding(attachment.dataflow)
        };
        self.views.values().find(|view| view.served().is_some_and(is_awaited))
    }

    /// Dataflows of views that have not put out all that they were fed, or that were not fed all there is because an index is not
    /// through with it.
    fn views_behind(&self) -> Vec<DataflowId> {
        let is_behind = |a: &&Attachment| a.is_at_work() || (a.is_together() && self.is_unfed(a));
        let behind = self.views.values().flat_map(View::attachments).filter(is_behind);
        behind.map(|attachment| attachment.dataflow).collect()
    }

    pub(super) fn receive(&mut self) {
        let responses = self.engine.get_mut().map(Engine::poll).unwrap_or_default();
        for response in responses {
            match response {
                Response::Deltas { dataflow, oks, errs, times } => {
                    let is_about_errors = !errs.is_empty();
                    let Some(attachment) = self.attachment_of(dataflow) else { continue };
                    attachment.receive(oks, errs, times);
                    if is_about_errors {
                        self.pass_on_errors(relid_of(dataflow));
                    }
                }
                Response::Frontier { dataflow, time } => {
                    self.more_is_due |= self.indexes.reach(dataflow, time);
                    if let Some(attachment) = self.attachment_of(dataflow) {
                        attachment.reach(time);
                    }
                    if let Some(relid) = self.dataflows.get(&dataflow).copied() {
                        markers::end(relid, Work::Batch);
                        let attachment = self.views.get(&relid).and_then(|v| v.attached(dataflow));
                        self.more_is_due |= attachment.is_some_and(|a| self.has_unfed(a));
                        self.note_reached(relid);
                    }
                }
                Response::Stopped { dataflow, reason } => {
                    // Those that read an index are stopped with it, each for itself.
                    match self.dataflows.get(&dataflow).copied() {
                        Some(_) if self.end_former_of(dataflow) => {}
                        Some(relid) => self.note_stopped(relid, dataflow, reason),
                        None => self.forget_index(dataflow),
                    }
                }
                Response::Saved { dataflow, outcome } => self.note_saved(dataflow, outcome),
                Response::Evaluate(evaluation) => self.evaluate(evaluation),
                Response::Ended { reason } => self.note_engine_ended(&reason),
            }
        }
        self.tend_assistants();
    }

    /// The view's side of a dataflow of it.
    pub(super) fn attachment_of(&mut self, dataflow: DataflowId) -> Option<&mut Attachment> {
        self.views.get_mut(self.dataflows.get(&dataflow)?)?.attached_mut(dataflow)
    }

    fn note_stopped(&mut self, relid: ViewId, dataflow: DataflowId, reason: StopReason) {
        let error = match reason {
            StopReason::RecursionLimit { iteration } => Error::recursion_limit(iteration),
            StopReason::Endless { iteration } => Error::endless(iteration),
            StopReason::MemoryLimit { iteration, bytes } => Error::memory_limit(iteration, bytes),
            StopReason::OutgrewMemory { bytes } => return self.start_spilling(relid, bytes),
            StopReason::SpillLimit { bytes } => Error::spill_limit(bytes),
            StopReason::SpillFailed { message } => {
                // Where that is, is not for everyone who reads the view.
                if let Some(directory) = &self.settings.spill_directory {
                    pgrx::log!("pg_eddy: in \"{}\": {message}", directory.display());
                }
                Error::spill_failed(message)
            }
            StopReason::TooManyCopies { iteration, copies } => {
                Error::too_many_copies(iteration, copies)
            }
            StopReason::Failed { message } => Error::engine_failed(&message),
            // The table was altered and its rows came sooner than the news: a new plan is needed. Or it was to read an index while the
            // engine, which is another process, had not told yet that it was stopped.
            StopReason::UnexpectedRow(_) | StopReason::IndexGone => {
                return self.set_phase(relid, Phase::waiting())
            }
            StopReason::NotRestored { message } => {
                return self.note_not_restored(relid, &message);
            }
            StopReason::NotConnected { message } => return self.note_engine_ended(&message),
            // It is its own error, if it has it still when it computes all for itself.
            StopReason::Raised(_) => {
                self.indexes.note_raised(dataflow);
                return self.set_phase(relid, Phase::waiting());
            }
        };
        let file = super::sources::file_of(relid).unwrap_or(0);
        self.fail(relid, error.into(), Heals::OnRefresh { file });
    }

    /// Attaches a view again, with a dataflow whose state goes to disk.
    fn start_spilling(&mut self, relid: ViewId, bytes: usize) {
        if let Some(view) = self.views.get_mut(&relid) {
            view.spills = true;
            pgrx::log!(
                "pg_eddy: at {bytes} bytes, beyond eddy.memory_limit, view {} starts afresh with its state on disk",
                view.name
            );
        }
        self.set_phase(relid, Phase::waiting());
    }

    /// Bytes the views may take, 0 for no limit.
    pub(super) fn memory_limit(&self) -> usize {
        self.settings.memory_limit
    }

    /// A name for a new dataflow of a view.
    pub(super) fn new_dataflow(&mut self, relid: ViewId) -> DataflowId {
        let id = dataflow_of(relid, &mut self.next_dataflow);
        self.dataflows.insert(id, relid);
        id
    }

    /// Figures of a view's dataflow.
    pub(super) fn stats(&self, view: &View) -> DataflowStats {
        let Some((engine, served)) = self.engine.get().zip(view.served()) else {
            return DataflowStats::default();
        };
        let mut stats = engine.stats(served.dataflow);
        for Attachment { dataflow, .. } in view.attachments() {
            if *dataflow != served.dataflow {
                let other = engine.stats(*dataflow);
                stats.state_bytes += other.state_bytes;
                stats.spilled_bytes += other.spilled_bytes;
            }
            stats.state_bytes += self.bytes_of_sort_keys(*dataflow);
            stats.state_bytes += self.bytes_of_indexes(*dataflow);
        }
        stats
    }
}
