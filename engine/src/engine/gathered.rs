//! What the threads of a dataflow have put out, each for itself, until it is complete.

use crate::core::response::Response;
use crate::core::updates::{move_to_last, DataflowId, Time, Updates, CLOSED};
use differential_dataflow::consolidation::consolidate_updates;
use plan::error::DataError;
use plan::row::Row;

/// Output updates from which it is worth adding up those that wait for a frontier.
const ADD_UP_AT: usize = 1 << 16;

/// What the parts of a dataflow, which are threads or processes, have put out and was not told yet.
pub struct Gathered {
    dataflow: DataflowId,
    /// Per part, the frontier of its output.
    frontiers: Vec<Time>,
    oks: Updates<Row>,
    errs: Updates<DataError>,
    /// When rows changed.
    times: Vec<Time>,
    add_up_at: usize,
    /// The frontier told last.
    told: Time,
}

impl Gathered {
    /// Of so many parts, which put out nothing before `as_of`.
    pub fn new(dataflow: DataflowId, parts: usize, as_of: Time) -> Gathered {
        Gathered {
            dataflow,
            frontiers: vec![as_of; parts],
            oks: Vec::new(),
            errs: Vec::new(),
            times: Vec::new(),
            add_up_at: ADD_UP_AT,
            told: as_of,
        }
    }

    /// Takes what a part has put out, consolidated.
    pub fn receive(&mut self, (oks, errs): (Updates<Row>, Updates<DataError>), times: Vec<Time>) {
        let is_first = self.oks.is_empty();
        append(&mut self.oks, oks);
        append(&mut self.errs, errs);
        self.times.extend(times);
        // A dataflow that is long behind must not gather what cancels out.
        if !is_first && self.oks.len() >= self.add_up_at {
            consolidate_updates(&mut self.oks);
            self.add_up_at = (2 * self.oks.len()).max(ADD_UP_AT);
        }
    }

    /// A part puts out nothing more before a time.
    pub fn reach(&mut self, part: usize, frontier: Time) {
        // An index may have said, for a worker that sleeps, that nothing comes before a later time.
        self.frontiers[part] = frontier.max(self.frontiers[part]);
    }

    /// All parts' output is complete before this time.
    pub fn frontier(&self) -> Time {
        self.frontiers.iter().copied().min().unwrap_or(CLOSED)
    }

    /// The frontier told last.
    pub fn told(&self) -> Time {
        self.told
    }

    /// What has been put out and not been told yet.
    pub fn untold(&self) -> &Updates<Row> {
        &self.oks
    }

    /// Tells what was put out before `frontier`, which is complete, all at the last of its times if it `is_net`; nothing if that was told.
    pub fn tell(&mut self, frontier: Time, is_net: bool) -> Vec<Response> {
        if frontier <= self.told {
            return Vec::new();
        }
        self.told = frontier;
        let dataflow = self.dataflow;
        let times = self.take_times(frontier);
        let mut oks = take_before(&mut self.oks, frontier);
        let mut errs = take_before(&mut self.errs, frontier);
        // Reports are consolidated each for itself; parts report apart, and as times complete.
        let mut is_mixed = self.frontiers.len() > 1;
        if is_net {
            is_mixed |= move_to_last(&mut oks, &times);
        }
        if is_mixed {
            consolidate_updates(&mut oks);
            consolidate_updates(&mut errs);
        }
        let mut responses = Vec::new();
        if !oks.is_empty() || !errs.is_empty() || !times.is_empty() {
            responses.push(Response::Deltas { dataflow, oks, errs, times });
        }
        responses.push(Response::Frontier { dataflow, time: frontier });
        responses
    }

    /// The different times before `frontier` at which rows changed, in whichever part.
    fn take_times(&mut self, frontier: Time) -> Vec<Time> {
        self.times.sort_unstable();
        self.times.dedup();
        let later = self.times.partition_point(|time| *time < frontier);
        let rest = self.times.split_off(later);
        std::mem::replace(&mut self.times, rest)
    }
}

fn append<D>(all: &mut Updates<D>, mut more: Updates<D>) {
    if all.is_empty() {
        *all = more;
    } else {
        all.append(&mut more);
    }
}

/// Takes updates with times before `frontier`.
fn take_before<D>(all: &mut Updates<D>, frontier: Time) -> Updates<D> {
    if all.iter().all(|(_, time, _)| *time < frontier) {
        std::mem::take(all)
    } else {
        let (ready, later) =
            std::mem::take(all).into_iter().partition(|(_, time, _)| *time < frontier);
        *all = later;
        ready
    }
}
