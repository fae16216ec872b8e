//! The timestamp of a view's dataflow: a source transaction's time and an iteration per enclosing loop.
//!
//! All of a view is rendered in one timely scope; how many loops enclose a collection is known when
//! it is rendered, not to the type system. A stamp therefore has a coordinate for every level of
//! nesting a plan has: entering a loop is free (its coordinate is zero), a feedback edge adds one to
//! a coordinate, leaving a loop sets its coordinate back to zero.

use crate::core::updates::Time;
use differential_dataflow::lattice::Lattice;
use serde::{Deserialize, Serialize};
use timely::order::PartialOrder;
use timely::progress::timestamp::Refines;
use timely::progress::{PathSummary, Timestamp};

/// A time, and iterations of up to `LOOPS` nested loops, the outermost first. The order among
/// operators is by coordinate; the total order is good for sorting only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "(Time, Vec<u32>)", into = "(Time, Vec<u32>)")]
pub(crate) struct Stamp<const LOOPS: usize> {
    pub(crate) time: Time,
    pub(crate) iterations: [u32; LOOPS],
}

impl<const LOOPS: usize> Stamp<LOOPS> {
    /// The stamp of a time outside of all loops.
    #[inline]
    pub(crate) fn of(time: Time) -> Self {
        Stamp { time, iterations: [0; LOOPS] }
    }

    /// The stamp outside of the loops from `level` on (the outermost loop has level 1).
    #[inline]
    pub(crate) fn leave(mut self, level: usize) -> Self {
        self.iterations[level - 1..].fill(0);
        self
    }

    fn zip(&self, other: &Self, combine: impl Fn(u32, u32) -> u32) -> [u32; LOOPS] {
        std::array::from_fn(|i| combine(self.iterations[i], other.iterations[i]))
    }
}

impl<const LOOPS: usize> From<Stamp<LOOPS>> for (Time, Vec<u32>) {
    fn from(stamp: Stamp<LOOPS>) -> Self {
        (stamp.time, stamp.iterations.to_vec())
    }
}

impl<const LOOPS: usize> TryFrom<(Time, Vec<u32>)> for Stamp<LOOPS> {
    type Error = &'static str;
    fn try_from((time, iterations): (Time, Vec<u32>)) -> Result<Self, Self::Error> {
        let iterations = iterations.try_into().map_err(|_| "a stamp of another plan")?;
        Ok(Stamp { time, iterations })
    }
}

impl<const LOOPS: usize> PartialOrder for Stamp<LOOPS> {
    #[inline]
    fn less_equal(&self, other: &Self) -> bool {
        self.time <= other.time && (0..LOOPS).all(|i| self.iterations[i] <= other.iterations[i])
    }
}

impl<const LOOPS: usize> Lattice for Stamp<LOOPS> {
    #[inline]
    fn join(&self, other: &Self) -> Self {
        Stamp { time: self.time.max(other.time), iterations: self.zip(other, u32::max) }
    }
    #[inline]
    fn meet(&self, other: &Self) -> Self {
        Stamp { time: self.time.min(other.time), iterations: self.zip(other, u32::min) }
    }
}

impl<const LOOPS: usize> Timestamp for Stamp<LOOPS> {
    type Summary = Summary<LOOPS>;
    fn minimum() -> Self {
        Stamp::of(Time::MIN)
    }
}

impl<const LOOPS: usize> Refines<()> for Stamp<LOOPS> {
    fn to_inner(_: ()) -> Self {
        Stamp::minimum()
    }
    fn to_outer(self) {}
    fn summarize(_: Summary<LOOPS>) {}
}

/// What happens to stamps on a path through the dataflow: iterations of loops that were left are set
/// back to zero, then iterations are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary<const LOOPS: usize> {
    /// Number of outermost loops that the path does not leave.
    retain: usize,
    advance: [u32; LOOPS],
}

impl<const LOOPS: usize> Summary<LOOPS> {
    /// One more iteration of the loop of this level, from 1 for the outermost.
    pub(crate) fn next_iteration(level: usize) -> Self {
        let mut summary = Summary::default();
        summary.advance[level - 1] = 1;
        summary
    }

    /// Out of the loops from `level` on.
    pub(crate) fn leave(level: usize) -> Self {
        Summary { retain: level - 1, ..Summary::default() }
    }
}

impl<const LOOPS: usize> Default for Summary<LOOPS> {
    fn default() -> Self {
        Summary { retain: LOOPS, advance: [0; LOOPS] }
    }
}

impl<const LOOPS: usize> PartialOrder for Summary<LOOPS> {
    /// Whether this path takes no stamp further than the other one does.
    fn less_equal(&self, other: &Self) -> bool {
        self.retain <= other.retain && (0..LOOPS).all(|i| self.advance[i] <= other.advance[i])
    }
}

impl<const LOOPS: usize> PathSummary<Stamp<LOOPS>> for Summary<LOOPS> {
    fn results_in(&self, stamp: &Stamp<LOOPS>) -> Option<Stamp<LOOPS>> {
        let mut iterations = self.advance;
        for (iteration, old) in iterations.iter_mut().zip(stamp.iterations).take(self.retain) {
            *iteration = iteration.checked_add(old)?;
        }
        Some(Stamp { time: stamp.time, iterations })
    }

    fn followed_by(&self, other: &Self) -> Option<Self> {
        let mut advance = other.advance;
        for (sum, first) in advance.iter_mut().zip(self.advance).take(other.retain) {
            *sum = sum.checked_add(first)?;
        }
        Some(Summary { retain: self.retain.min(other.retain), advance })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_stamps() -> impl Iterator<Item = Stamp<2>> {
        let iterations = (0..3).flat_map(|a| (0..3).map(move |b| [a, b]));
        iterations.map(|iterations| Stamp { time: 7, iterations })
    }

    fn some_paths() -> impl Iterator<Item = Summary<2>> {
        let retains =
            (0..=2).flat_map(|r| (0..2).flat_map(move |a| (0..2).map(move |b| (r, a, b))));
        retains.map(|(retain, a, b)| Summary { retain, advance: [a, b] })
    }

    #[test]
    fn a_path_of_two_parts_does_what_the_parts_do() {
        for first in some_paths() {
            for second in some_paths() {
                let both = first.followed_by(&second).unwrap();
                for stamp in some_stamps() {
                    let step = first.results_in(&stamp).unwrap();
                    assert_eq!(both.results_in(&stamp), second.results_in(&step));
                }
            }
        }
    }

    #[test]
    fn a_lesser_path_takes_no_stamp_further() {
        for a in some_paths() {
            for b in some_paths().filter(|b| a.less_equal(b)) {
                for stamp in some_stamps() {
                    let (a, b) = (a.results_in(&stamp).unwrap(), b.results_in(&stamp).unwrap());
                    assert!(a.less_equal(&b));
                }
            }
        }
    }

    #[test]
    fn leaving_a_loop_forgets_its_iterations() {
        let stamp = Stamp { time: 7, iterations: [3, 4] };
        assert_eq!(stamp.leave(2), Stamp { time: 7, iterations: [3, 0] });
        assert_eq!(stamp.leave(1), Stamp::of(7));
        assert_eq!(Summary::leave(2).results_in(&stamp), Some(stamp.leave(2)));
        let next = Summary::next_iteration(2).results_in(&stamp);
        assert_eq!(next, Some(Stamp { time: 7, iterations: [3, 5] }));
    }
}
