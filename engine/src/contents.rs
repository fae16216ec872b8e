//! What an input has passed on, for TRUNCATE to retract.
//!
//! A time is in the past as soon as the host says so, therefore no history is needed here. Most rows are
//! in the state of some operator anyway: a [`Holder`] spares the input to remember them once more.

use crate::diff::Mult;
use crate::spill::{Counts, Stored};
use crate::Time;
use hashbrown::hash_map::{Entry, HashMap};
use plan::Diff;
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

/// Rows an input has remembered, with their multiplicities, to be retracted.
pub(crate) type Taken<R> = Box<dyn Iterator<Item = (R, Mult)>>;

/// The rows an input remembers itself.
pub(crate) struct Contents<R: Stored> {
    rows: Rows<R>,
    /// Times of truncations since the last `advance`.
    truncations: Vec<Time>,
}

impl<R: Stored + Hash> Contents<R> {
    /// Nothing. What a dataflow that spills has to remember is kept by its pager.
    pub(crate) fn new(spills: bool) -> Self {
        let rows = match spills {
            true => Rows::Disk(Counts::new()),
            false => Rows::Memory(InMemory { rows: HashMap::new(), recent: Vec::new() }),
        };
        Contents { rows, truncations: Vec::new() }
    }

    /// Notes an update. If a truncation at a later time has been fed already, the update is void
    /// from that time on, which is returned.
    pub(crate) fn record(&mut self, row: &R, time: Time, diff: Diff) -> Option<Time> {
        let truncated = self.truncations.iter().copied().filter(|t| *t > time).min();
        if truncated.is_none() {
            match &mut self.rows {
                Rows::Memory(rows) => rows.recent.push((row.clone(), time, diff)),
                Rows::Disk(rows) => rows.add(row.clone(), time, Mult(diff)),
            }
        }
        truncated
    }

    /// Forgets what was fed with times up to `time`, and returns it.
    pub(crate) fn truncate(&mut self, time: Time) -> Taken<R> {
        self.truncations.push(time);
        let later = time.saturating_add(1);
        match &mut self.rows {
            Rows::Memory(rows) => Box::new(rows.take_before(later)),
            Rows::Disk(rows) => Box::new(rows.take_before(later)),
        }
    }

    /// No update before `time` will come any more.
    pub(crate) fn advance(&mut self, time: Time) {
        match &mut self.rows {
            Rows::Memory(rows) => rows.complete_before(time),
            Rows::Disk(rows) => rows.complete_before(time),
        }
        self.truncations.retain(|t| *t >= time);
    }
}

/// How often each row is there.
enum Rows<R: Stored> {
    Memory(InMemory<R>),
    Disk(Counts<R>),
}

struct InMemory<R> {
    /// As of the last `advance`.
    rows: HashMap<R, Diff>,
    /// Updates since, in the order they came.
    recent: Vec<(R, Time, Diff)>,
}

impl<R: Hash + Eq + 'static> InMemory<R> {
    fn complete_before(&mut self, time: Time) {
        let recent = std::mem::take(&mut self.recent);
        for (row, at, diff) in recent {
            if at < time {
                add(&mut self.rows, row, diff);
            } else {
                self.recent.push((row, at, diff));
            }
        }
    }

    fn take_before(&mut self, time: Time) -> impl Iterator<Item = (R, Mult)> + use<R> {
        self.complete_before(time);
        std::mem::take(&mut self.rows).into_iter().map(|(row, diff)| (row, Mult(diff)))
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
