//! Which errors are in the way of a collection.
//!
//! An error that was raised below a collection is in its way, whatever is done with the rows on the way up. So errors
//! do not travel with the rows: each stream of them goes from the operator that raises it straight to the sink, once,
//! and a collection only knows which streams are its own, as a set. A collection that is used many times has the same
//! streams in each place, so its errors are counted once, however often what is made of it meets again.

use crate::core::collection::Collection;
use crate::core::stamp::Stamp;
use differential_dataflow::collection::concatenate;
use plan::error::DataError;
use timely::dataflow::operators::generic::operator::empty;
use timely::dataflow::Scope;

/// Data, or the error that stands in its place.
pub(super) type Outcome<D> = Result<D, DataError>;

/// A set of streams of errors, a bit for each by its number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Errs(Vec<u64>);

impl Errs {
    fn of(number: usize) -> Errs {
        let mut words = vec![0; number / 64 + 1];
        words[number / 64] = 1 << (number % 64);
        Errs(words)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The streams of either.
    pub(super) fn union(mut self, other: &Errs) -> Errs {
        let length = self.0.len().max(other.0.len());
        self.0.resize(length, 0);
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
        self
    }

    fn numbers(&self) -> impl Iterator<Item = usize> + '_ {
        let words = self.0.iter().enumerate();
        words.flat_map(|(at, word)| {
            (0..64).filter(move |n| word >> n & 1 == 1).map(move |n| at * 64 + n)
        })
    }
}

/// All streams of errors of a dataflow, in the order of their numbers, each with the number of loops around the
/// operator that raises it.
pub(super) struct Raised<'s, const LOOPS: usize>(Vec<(usize, Collection<'s, DataError, LOOPS>)>);

impl<const LOOPS: usize> Default for Raised<'_, LOOPS> {
    fn default() -> Self {
        Raised(Vec::new())
    }
}

impl<'s, const LOOPS: usize> Raised<'s, LOOPS> {
    /// Adds the errors of an operator with so many loops around it.
    pub(super) fn add(&mut self, depth: usize, errors: Collection<'s, DataError, LOOPS>) -> Errs {
        self.0.push((depth, errors));
        Errs::of(self.0.len() - 1)
    }

    /// The errors of a set of streams.
    pub(super) fn collect(
        &self,
        scope: Scope<'s, Stamp<LOOPS>>,
        errs: &Errs,
    ) -> Collection<'s, DataError, LOOPS> {
        let mut streams: Vec<_> = errs.numbers().map(|number| self.0[number].1.clone()).collect();
        match streams.len() {
            0 => Collection::new(empty(scope)),
            1 => streams.remove(0),
            _ => concatenate(scope, streams),
        }
    }

    /// Of a set of streams those with at least so many loops around them, and the others.
    pub(super) fn split(&self, errs: &Errs, depth: usize) -> (Errs, Errs) {
        let (inner, outer): (Vec<_>, Vec<_>) =
            errs.numbers().partition(|number| self.0[*number].0 >= depth);
        let all = |numbers: Vec<usize>| {
            numbers.into_iter().fold(Errs::default(), |all, number| all.union(&Errs::of(number)))
        };
        (all(inner), all(outer))
    }
}
