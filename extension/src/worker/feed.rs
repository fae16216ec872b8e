//! Feeding: what was captured goes into the dataflows that have nothing to do.
//!
//! Of large transactions there is a lot: a view gets it portion by portion, in each step for a moment only, and while memory is
//! short no faster than its dataflow takes it. As long as that lasts the view is at work, and the others are written
//! without it.

use super::capture::Portion;
use super::main_loop::Worker;
use super::view::Phase;
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::ids::ViewId;
use crate::pg::markers::{self, AtWork, Work};
use std::io;
use std::time::{Duration, Instant};

/// How long all views together are fed with what is large before the others are looked after.
const SLICE: Duration = Duration::from_millis(20);

/// How long one view is fed with it at least.
const LEAST_SLICE: Duration = Duration::from_millis(1);

impl Worker {
    /// Feeds the dataflows that have nothing to do, and those that are not through with what they are being fed.
    pub(super) fn feed(&mut self) {
        self.begin_batches();
        let views = self.capture.being_fed();
        let slice =
            (SLICE / u32::try_from(views.len()).unwrap_or(u32::MAX).max(1)).max(LEAST_SLICE);
        for relid in views {
            if let Err(error) = self.feed_view(relid, Instant::now() + slice) {
                let name = self.views.get(&relid).map_or("", |view| &view.name);
                pgrx::log!("pg_eddy: view {name} is attached again, its changes could not be read back: {error}");
                self.set_phase(relid, Phase::waiting());
            }
        }
    }

    fn begin_batches(&mut self) {
        let upper = self.capture.upper();
        for (relid, view) in &mut self.views {
            let Phase::Attached(attachment) = &mut view.phase else { continue };
            if attachment.is_at_work() || !self.capture.has_steps(*relid) {
                continue;
            }
            self.capture.begin_feeding(*relid);
            attachment.begin_batch(upper);
            markers::begin(*relid, Work::Batch);
        }
    }

    /// Feeds one view, with what is large until then.
    fn feed_view(&mut self, relid: ViewId, until: Instant) -> io::Result<()> {
        let (Some(engine), Some(view)) = (&mut self.engine, self.views.get_mut(&relid)) else {
            return Ok(());
        };
        let Phase::Attached(attachment) = &view.phase else { return Ok(()) };
        let _at_work = AtWork::begin(relid, Work::Feed);
        crash_point::reach_for(CrashPoint::Batch, &view.name);
        let dataflow = attachment.dataflow;
        loop {
            let is_large = self.capture.is_next_large(relid);
            if is_large && !engine.wait_for_room(dataflow, Duration::ZERO) {
                return Ok(());
            }
            match self.capture.next_portion(relid)? {
                Some(Portion::Update(source, updates)) => engine.update(dataflow, source, updates),
                Some(Portion::Truncate(source, time)) => engine.truncate(dataflow, source, time),
                None => {
                    engine.advance_dataflow(dataflow, self.capture.end_feeding(relid));
                    return Ok(());
                }
            }
            if is_large && Instant::now() >= until {
                return Ok(());
            }
        }
    }
}
