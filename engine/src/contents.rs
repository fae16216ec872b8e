//! What an input has passed on, for TRUNCATE to retract.
//!
//! A time is in the past as soon as the host says so, therefore no history is needed here. Most rows are
//! in the state of some operator anyway: a [`Holder`] spares the input to remember them once more.

use crate::diff::Mult;
use crate::Time;
use hashbrown::hash_map::{Entry, HashMap};
use planner::plan::Diff;
use std::hash::Hash;

/// An operator that has, or can do without, the rows of an input.
pub(crate) trait Holder<R> {
    /// Whether such a row is not among those it holds.
    fn leaves_out(&self, row: &R) -> bool;

    /// What there is to retract at `time`: the rows it holds, all of which have earlier times. `None`
    /// while not all of them have arrived. An operator that clears itself has nothing to retract.
    fn retract(&mut self, time: Time) -> Option<Vec<(R, Mult)>>;

    /// No row before `time` will come any more, nor will be asked for.
    fn advance(&mut self, time: Time);
}

/// The rows an input remembers itself.
pub(crate) struct Contents<R> {
    /// As of the last `advance`.
    rows: HashMap<R, Diff>,
    /// Updates since, in the order they came.
    recent: Vec<(R, Time, Diff)>,
    /// Times of truncations since.
    truncations: Vec<Time>,
}

impl<R> Default for Contents<R> {
    fn default() -> Self {
        Contents { rows: HashMap::new(), recent: Vec::new(), truncations: Vec::new() }
    }
}

impl<R: Clone + Hash + Eq> Contents<R> {
    /// Notes an update. If a truncation at a later time has been fed already, the update is void
    /// from that time on, which is returned.
    pub(crate) fn record(&mut self, row: &R, time: Time, diff: Diff) -> Option<Time> {
        let truncated = self.truncations.iter().copied().filter(|t| *t > time).min();
        if truncated.is_none() {
            self.recent.push((row.clone(), time, diff));
        }
        truncated
    }

    /// Forgets what was fed with times up to `time`, and returns it.
    pub(crate) fn truncate(&mut self, time: Time) -> Vec<(R, Diff)> {
        self.truncations.push(time);
        let recent = std::mem::take(&mut self.recent);
        for (row, at, diff) in recent {
            if at <= time {
                add(&mut self.rows, row, diff);
            } else {
                self.recent.push((row, at, diff));
            }
        }
        std::mem::take(&mut self.rows).into_iter().collect()
    }

    /// No update before `time` will come any more.
    pub(crate) fn advance(&mut self, time: Time) {
        let recent = std::mem::take(&mut self.recent);
        for (row, at, diff) in recent {
            if at < time {
                add(&mut self.rows, row, diff);
            } else {
                self.recent.push((row, at, diff));
            }
        }
        self.truncations.retain(|t| *t >= time);
    }
}

fn add<R: Hash + Eq>(rows: &mut HashMap<R, Diff>, row: R, diff: Diff) {
    match rows.entry(row) {
        Entry::Vacant(entry) => {
            entry.insert(diff);
        }
        Entry::Occupied(mut entry) => {
            let sum = entry.get().saturating_add(diff);
            if sum == 0 {
                entry.remove();
            } else {
                entry.insert(sum);
            }
        }
    }
}
