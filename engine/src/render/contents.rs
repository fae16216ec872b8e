//! What an input has passed on, for TRUNCATE to retract.
//!
//! A time is in the past as soon as the caller says so, therefore no history is needed here. Most rows are
//! in the state of some operator anyway: a [`Holder`] spares the input to remember them once more.

use crate::core::diff::Mult;
use crate::core::updates::Time;
use crate::spill::{Counts, Stored};
use hashbrown::hash_map::{Entry, HashMap};
use plan::Diff;
use std::hash::Hash;

/// An operator that has, or can do without, the rows of an input.
pub(super) trait Holder<R> {
    /// Whether such a row is not among those it holds.
    fn leaves_out(&self, row: &R) -> bool;

    /// What there is to retract at `time`: the rows it holds, all of which have earlier times. `None`
    /// while not all of them have arrived. An operator that clears itself has nothing to retract.
    fn retract(&mut self, time: Time) -> Option<Vec<(R, Mult)>>;

    /// No row before `time` will come any more, nor will be asked for.
    fn advance(&mut self, time: Time);
}

/// Rows an input has remembered, with their multiplicities, to be retracted.
pub(super) type Taken<R> = Box<dyn Iterator<Item = (R, Mult)>>;

/// How often each row was fed, with times as long as they count.
pub(super) trait Counted: 'static {
    type Row: Clone;

    fn new() -> Self;

    fn add(&mut self, row: Self::Row, time: Time, copies: Mult);

    /// No update before `time` will come any more.
    fn complete_before(&mut self, time: Time);

    /// Forgets what was fed with times before `time`, and returns it.
    fn take_before(&mut self, time: Time) -> Taken<Self::Row>;

    /// All rows, where no update is of a time that is not complete; none if they are not in memory.
    fn rows(&self) -> Box<dyn Iterator<Item = (Self::Row, Mult)> + '_> {
        Box::new(std::iter::empty())
    }
}

/// The rows an input remembers itself.
pub(super) struct Contents<C: Counted> {
    rows: C,
    /// Times of truncations since the last `advance`.
    truncations: Vec<Time>,
}

impl<C: Counted> Contents<C> {
    pub(super) fn new() -> Self {
        Contents { rows: C::new(), truncations: Vec::new() }
    }

    /// Notes an update. If a truncation at a later time has been fed already, the update is void
    /// from that time on, which is returned.
    pub(super) fn record(&mut self, row: &C::Row, time: Time, diff: Diff) -> Option<Time> {
        let truncated = self.truncations.iter().copied().filter(|t| *t > time).min();
        if truncated.is_none() {
            self.rows.add(row.clone(), time, Mult(diff));
        }
        truncated
    }

    /// Forgets what was fed with times up to `time`, and returns it.
    pub(super) fn truncate(&mut self, time: Time) -> Taken<C::Row> {
        self.truncations.push(time);
        self.rows.take_before(time.saturating_add(1))
    }

    /// Begins with rows that were there before `as_of`.
    pub(super) fn begin_with(&mut self, rows: impl Iterator<Item = (C::Row, Mult)>, as_of: Time) {
        rows.for_each(|(row, copies)| self.rows.add(row, 0, copies));
        self.rows.complete_before(as_of);
    }

    /// All rows, where no update is of a time that is not complete.
    pub(super) fn rows(&self) -> Box<dyn Iterator<Item = (C::Row, Mult)> + '_> {
        self.rows.rows()
    }

    /// No update before `time` will come any more.
    pub(super) fn advance(&mut self, time: Time) {
        self.rows.complete_before(time);
        self.truncations.retain(|t| *t >= time);
    }
}

/// What a dataflow that spills remembers is kept by its pager.
impl<R: Stored> Counted for Counts<R> {
    type Row = R;

    fn new() -> Self {
        Counts::new()
    }

    fn add(&mut self, row: R, time: Time, copies: Mult) {
        Counts::add(self, row, time, copies);
    }

    fn complete_before(&mut self, time: Time) {
        Counts::complete_before(self, time);
    }

    fn take_before(&mut self, time: Time) -> Taken<R> {
        Box::new(Counts::take_before(self, time))
    }
}

/// Rows in memory.
pub(super) struct Table<R> {
    /// As of the last `advance`.
    rows: HashMap<R, Diff>,
    /// Updates since, in the order they came.
    recent: Vec<(R, Time, Diff)>,
}

impl<R: Clone + Hash + Eq + 'static> Counted for Table<R> {
    type Row = R;

    fn new() -> Self {
        Table { rows: HashMap::new(), recent: Vec::new() }
    }

    fn add(&mut self, row: R, time: Time, Mult(diff): Mult) {
        self.recent.push((row, time, diff));
    }

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

    fn take_before(&mut self, time: Time) -> Taken<R> {
        self.complete_before(time);
        let rows = std::mem::take(&mut self.rows).into_iter();
        Box::new(rows.map(|(row, diff)| (row, Mult(diff))))
    }

    fn rows(&self) -> Box<dyn Iterator<Item = (R, Mult)> + '_> {
        Box::new(self.rows.iter().map(|(row, diff)| (row.clone(), Mult(*diff))))
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
