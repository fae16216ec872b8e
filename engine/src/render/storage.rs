//! Where a dataflow keeps its state: in memory ([`super::in_memory`]) or, while memory is short, on disk
//! ([`super::on_disk`]).
//!
//! A storage is a type, chosen when a view is rendered: the compiler makes each operator for the dataflows that use it,
//! and no dataflow can have arrangements of both kinds.

use super::contents::Counted;
use super::errors::Outcome;
use super::keep::{Keep, Key};
use super::share::InMemory;
use super::sums::Sums;
use crate::core::collection::Collection;
use crate::core::diff::Mult;
use crate::core::stamp::Stamp;
use crate::spill::Stored;
use differential_dataflow::hashable::Hashable;
use differential_dataflow::{Data, VecCollection};
use plan::row::Row;
use std::hash::Hash;

/// The names of the two operators of a grouping.
pub(super) struct Names {
    pub(super) arrange: &'static str,
    pub(super) reduce: &'static str,
}

/// A way to keep the state of a dataflow.
pub(super) trait Storage: 'static {
    /// Whether operators may keep what is present in tables, which are in memory.
    const HAS_TABLES: bool;

    /// An arrangement of values by key.
    type Arrangement<'s, K: Keep, V: Keep, const LOOPS: usize>: Clone;

    /// What an input remembers of what it was fed.
    type Counted<R: Stored + Hash>: Counted<Row = R>;

    /// Arranges values by key.
    fn arrange<'s, K: Key, V: Keep, const LOOPS: usize>(
        rows: Collection<'s, (K, V), LOOPS>,
        name: &str,
    ) -> Self::Arrangement<'s, K, V, LOOPS>;

    /// Per key the results of `logic`, which is given all values with their multiplicities.
    fn reduce<'s, K: Key, V: Keep, V2: Keep, const LOOPS: usize>(
        rows: Collection<'s, (K, V), LOOPS>,
        names: &Names,
        logic: impl FnMut(&K, &[(&V, Mult)], &mut Vec<(V2, Mult)>) + 'static,
    ) -> Self::Arrangement<'s, K, V2, LOOPS>;

    /// Per group what `finish` makes of all that has added up.
    fn finish_sums<'s, const LOOPS: usize>(
        sums: VecCollection<'s, Stamp<LOOPS>, (Row, ()), Sums>,
        finish: impl Fn(&Sums) -> Option<Outcome<Row>> + 'static,
    ) -> Self::Arrangement<'s, Row, Outcome<Row>, LOOPS>;

    /// The updates of an arrangement, made into something else.
    fn as_collection<'s, K: Keep, V: Keep, D: Data, const LOOPS: usize>(
        arranged: Self::Arrangement<'s, K, V, LOOPS>,
        logic: impl FnMut(&K, &V) -> D + 'static,
    ) -> Collection<'s, D, LOOPS>;

    /// Joins two arrangements by key.
    fn join<
        's,
        K: Keep,
        V1: Keep,
        V2: Keep,
        D: Data,
        I: IntoIterator<Item = D>,
        const LOOPS: usize,
    >(
        left: Self::Arrangement<'s, K, V1, LOOPS>,
        right: Self::Arrangement<'s, K, V2, LOOPS>,
        logic: impl FnMut(&K, &V1, &V2) -> I + 'static,
    ) -> Collection<'s, D, LOOPS>;

    /// Adds up the multiplicities of each datum.
    fn consolidate<'s, D: Key, const LOOPS: usize>(
        data: Collection<'s, D, LOOPS>,
    ) -> Collection<'s, D, LOOPS>;

    /// One copy of each datum with a positive multiplicity, at any times.
    fn distinct<'s, D: Key, const LOOPS: usize>(
        data: Collection<'s, D, LOOPS>,
    ) -> Collection<'s, D, LOOPS>;

    /// An arrangement in memory as one of this storage, if it can be.
    fn of_memory<K: Keep, V: Keep, const LOOPS: usize>(
        arranged: InMemory<'_, K, V, LOOPS>,
    ) -> Option<Self::Arrangement<'_, K, V, LOOPS>>;

    /// The arrangement, if all of it is in memory.
    fn in_memory<'a, 's, K: Keep, V: Keep, const LOOPS: usize>(
        arranged: &'a Self::Arrangement<'s, K, V, LOOPS>,
    ) -> Option<&'a InMemory<'s, K, V, LOOPS>>;
}

/// An arrangement of values by key, wherever it is kept.
pub(super) struct Kept<'s, S: Storage, K: Keep, V: Keep, const LOOPS: usize>(
    S::Arrangement<'s, K, V, LOOPS>,
);

impl<S: Storage, K: Keep, V: Keep, const LOOPS: usize> Clone for Kept<'_, S, K, V, LOOPS> {
    fn clone(&self) -> Self {
        Kept(self.0.clone())
    }
}

impl<'s, S: Storage, K: Keep, V: Keep, const LOOPS: usize> Kept<'s, S, K, V, LOOPS> {
    /// See [`Storage::arrange`].
    pub(super) fn arrange(rows: Collection<'s, (K, V), LOOPS>, name: &str) -> Self
    where
        K: Hashable<Output = u64>,
    {
        Kept(S::arrange(rows, name))
    }

    /// See [`Storage::reduce`].
    pub(super) fn reduce<V1: Keep>(
        rows: Collection<'s, (K, V1), LOOPS>,
        names: &Names,
        logic: impl FnMut(&K, &[(&V1, Mult)], &mut Vec<(V, Mult)>) + 'static,
    ) -> Self
    where
        K: Hashable<Output = u64>,
    {
        Kept(S::reduce(rows, names, logic))
    }

    /// See [`Storage::as_collection`].
    pub(super) fn into_collection<D: Data>(
        self,
        logic: impl FnMut(&K, &V) -> D + 'static,
    ) -> Collection<'s, D, LOOPS> {
        S::as_collection(self.0, logic)
    }

    /// See [`Storage::join`].
    pub(super) fn join<V2: Keep, D: Data, I: IntoIterator<Item = D>>(
        self,
        other: Kept<'s, S, K, V2, LOOPS>,
        logic: impl FnMut(&K, &V, &V2) -> I + 'static,
    ) -> Collection<'s, D, LOOPS> {
        S::join(self.0, other.0, logic)
    }

    /// See [`Storage::of_memory`].
    pub(super) fn of_memory(arranged: InMemory<'s, K, V, LOOPS>) -> Option<Self> {
        S::of_memory(arranged).map(Kept)
    }

    /// See [`Storage::in_memory`].
    pub(super) fn in_memory(&self) -> Option<&InMemory<'s, K, V, LOOPS>> {
        S::in_memory(&self.0)
    }
}

impl<'s, S: Storage, const LOOPS: usize> Kept<'s, S, Row, Outcome<Row>, LOOPS> {
    /// See [`Storage::finish_sums`].
    pub(super) fn finish_sums(
        sums: VecCollection<'s, Stamp<LOOPS>, (Row, ()), Sums>,
        finish: impl Fn(&Sums) -> Option<Outcome<Row>> + 'static,
    ) -> Self {
        Kept(S::finish_sums(sums, finish))
    }
}
