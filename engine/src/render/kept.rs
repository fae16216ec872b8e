//! Arrangements whose state is in memory or, in a dataflow that spills, on disk.

use super::watched::{Batcher, KeyBuilder, Keys, ValBuilder, Vals};
use super::{matches, Collection, Context};
use crate::diff::Mult;
use crate::monitor::look;
use crate::spill::{self, Stored};
use crate::stamp::Stamp;
use differential_dataflow::hashable::Hashable;
use differential_dataflow::operators::arrange::{Arrange, Arranged, TraceAgent};
use differential_dataflow::{Data, ExchangeData};

/// Number of coordinates that stamps of dataflows have that spill, and only they: so the compiler
/// makes each kind of operator for the dataflows that use it. Loops may be nested as deep in those.
pub(crate) const SPILLING_LOOPS: usize = 2;

/// Whether the state of dataflows with such stamps may be on disk.
const fn spills(loops: usize) -> bool {
    loops == SPILLING_LOOPS
}

/// What keys and values of arrangements are.
pub(super) trait Keep: ExchangeData + Stored {}
impl<D: ExchangeData + Stored> Keep for D {}

/// An arrangement of values by key.
#[derive(Clone)]
pub(super) enum Kept<'s, K: Keep, V: Keep, const LOOPS: usize> {
    Memory(InMemory<'s, K, V, LOOPS>),
    Disk(OnDisk<'s, K, V, LOOPS>),
}

pub(super) type InMemory<'s, K, V, const LOOPS: usize> =
    Arranged<'s, TraceAgent<Vals<K, V, Stamp<LOOPS>>>>;
type OnDisk<'s, K, V, const LOOPS: usize> = spill::Arrangement<'s, K, V, Stamp<LOOPS>, Mult>;

impl<'s, K: Keep, V: Keep, const LOOPS: usize> Kept<'s, K, V, LOOPS> {
    /// The updates, made into something else.
    pub(super) fn into_collection<D: Data>(
        self,
        mut logic: impl FnMut(&K, &V) -> D + 'static,
    ) -> Collection<'s, D, LOOPS> {
        if const { spills(LOOPS) } {
            spill::as_collection(self.on_disk(), logic)
        } else {
            self.in_memory().as_collection(move |key, value| logic(key, value))
        }
    }

    /// Joins by key. Both sides are of one dataflow, so both are in memory or both are not.
    pub(super) fn join<V2: Keep, D: Data, I: IntoIterator<Item = D>>(
        self,
        other: Kept<'s, K, V2, LOOPS>,
        logic: impl FnMut(&K, &V, &V2) -> I + 'static,
    ) -> Collection<'s, D, LOOPS> {
        if const { spills(LOOPS) } {
            spill::join(self.on_disk(), other.on_disk(), logic)
        } else {
            matches::join(self.in_memory(), other.in_memory(), logic)
        }
    }

    fn in_memory(self) -> InMemory<'s, K, V, LOOPS> {
        match self {
            Kept::Memory(arranged) => arranged,
            Kept::Disk(_) => unreachable!("a dataflow spills as a whole or not at all"),
        }
    }

    fn on_disk(self) -> OnDisk<'s, K, V, LOOPS> {
        match self {
            Kept::Memory(_) => unreachable!("a dataflow spills as a whole or not at all"),
            Kept::Disk(arranged) => arranged,
        }
    }
}

/// The names of the two operators of a grouping.
pub(super) struct Names {
    pub(super) arrange: &'static str,
    pub(super) reduce: &'static str,
}

impl<'s, const LOOPS: usize> Context<'s, LOOPS> {
    /// Whether state may be on disk.
    pub(super) const SPILLS: bool = spills(LOOPS);

    /// Arranges values by key.
    pub(super) fn keep<K: Keep + Hashable<Output = u64>, V: Keep>(
        &mut self,
        rows: Collection<'s, (K, V), LOOPS>,
        name: &str,
    ) -> Kept<'s, K, V, LOOPS> {
        if Self::SPILLS {
            let arranged = spill::arrange(rows, name);
            return Kept::Disk(arranged);
        }
        let arranged =
            rows.arrange_named::<Batcher<_, _, _, _>, ValBuilder<_, _, _, _>, Vals<_, _, _>>(name);
        Kept::Memory(arranged)
    }

    /// Per key the results of `logic`, which is given all values with their multiplicities.
    pub(super) fn reduce_kept<K: Keep + Hashable<Output = u64>, V: Keep, V2: Keep>(
        &mut self,
        rows: Collection<'s, (K, V), LOOPS>,
        names: &Names,
        mut logic: impl FnMut(&K, &[(&V, Mult)], &mut Vec<(V2, Mult)>) + 'static,
    ) -> Kept<'s, K, V2, LOOPS> {
        let arranged = self.keep(rows, names.arrange);
        let watched = move |key: &K, values: &[(&V, Mult)], results: &mut Vec<(V2, Mult)>| {
            look(values.len());
            logic(key, values, results);
        };
        if Self::SPILLS {
            let reduced = spill::reduce(arranged.on_disk(), names.reduce, watched);
            return Kept::Disk(reduced);
        }
        let reduced = arranged
            .in_memory()
            .reduce_abelian::<_, ValBuilder<K, V2, Stamp<LOOPS>, Mult>, Vals<K, V2, Stamp<LOOPS>>, _, _>(
                names.reduce,
                watched,
                |chunk, key, updates| {
                    chunk.clear();
                    chunk.extend(updates.drain(..).map(|(v, t, r)| ((key.clone(), v), t, r)));
                },
            );
        Kept::Memory(reduced)
    }

    /// Adds up the multiplicities of each datum.
    pub(super) fn consolidate<D: Keep + Hashable<Output = u64>>(
        &self,
        data: Collection<'s, D, LOOPS>,
    ) -> Collection<'s, D, LOOPS> {
        if Self::SPILLS {
            spill::consolidate(data)
        } else {
            data.consolidate_named::<Batcher<D, (), Stamp<LOOPS>, Mult>, KeyBuilder<D, Stamp<LOOPS>, Mult>, Keys<D, Stamp<LOOPS>, Mult>, _>(
                "Consolidate",
                |data, _| data.clone(),
            )
        }
    }
}
