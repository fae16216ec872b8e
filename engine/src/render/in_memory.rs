//! State in memory: differential's own arrangements, with looks at the limits ([`super::watched`]).

use super::contents::Table;
use super::errors::Outcome;
use super::keep::{Keep, Key};
use super::matches;
use super::seeded::kept;
use super::share::{InMemory, Trace};
use super::storage::{Names, Storage};
use super::sums::Sums;
use super::watched::{Batcher, KeyBuilder, Keys, Runs, ValBuilder, Vals};
use crate::core::collection::Collection;
use crate::core::diff::Mult;
use crate::core::monitor::look;
use crate::core::stamp::Stamp;
use crate::spill::Stored;
use differential_dataflow::operators::arrange::arrangement::arrange_core;
use differential_dataflow::operators::arrange::{Arrange, Arranged, TraceAgent};
use differential_dataflow::{Data, VecCollection};
use plan::row::Row;
use std::hash::Hash;
use timely::dataflow::channels::pact::Exchange;

/// All state is in memory.
pub(super) struct Memory;

/// An update as batches are built of.
type Update<K, V, const LOOPS: usize> = ((K, V), Stamp<LOOPS>, Mult);

/// An arrangement that the dataflow keeps itself.
fn own<K: Keep, V: Keep, const LOOPS: usize>(
    arranged: Arranged<'_, TraceAgent<Vals<K, V, Stamp<LOOPS>>>>,
) -> InMemory<'_, K, V, LOOPS> {
    let Arranged { stream, trace } = arranged;
    Arranged { stream, trace: Trace::Own(trace) }
}

/// Makes a chunk of the results of one key.
fn fill<K: Clone, V, const LOOPS: usize>(
    chunk: &mut Vec<Update<K, V, LOOPS>>,
    key: &K,
    updates: &mut Vec<(V, Stamp<LOOPS>, Mult)>,
) {
    chunk.clear();
    chunk.extend(updates.drain(..).map(|(value, time, diff)| ((key.clone(), value), time, diff)));
}

impl Storage for Memory {
    const HAS_TABLES: bool = true;
    type Arrangement<'s, K: Keep, V: Keep, const LOOPS: usize> = InMemory<'s, K, V, LOOPS>;
    type Counted<R: Stored + Hash> = Table<R>;

    fn arrange<'s, K: Key, V: Keep, const LOOPS: usize>(
        rows: Collection<'s, (K, V), LOOPS>,
        name: &str,
    ) -> InMemory<'s, K, V, LOOPS> {
        let by_key = Exchange::new(|((key, _), ..): &Update<K, V, LOOPS>| key.hashed());
        own(kept::<_, ValBuilder<_, _, _, _>, _, _, _, LOOPS>(name, || {
            arrange_core::<
                _,
                _,
                Runs<_, _, _>,
                Batcher<_, _, _, _>,
                ValBuilder<_, _, _, _>,
                Vals<_, _, _>,
            >(rows.inner, by_key, name)
        }))
    }

    fn reduce<'s, K: Key, V: Keep, V2: Keep, const LOOPS: usize>(
        rows: Collection<'s, (K, V), LOOPS>,
        names: &Names,
        mut logic: impl FnMut(&K, &[(&V, Mult)], &mut Vec<(V2, Mult)>) + 'static,
    ) -> InMemory<'s, K, V2, LOOPS> {
        let arranged = Self::arrange(rows, names.arrange);
        own(kept::<_, ValBuilder<K, V2, Stamp<LOOPS>, Mult>, _, _, _, LOOPS>(names.reduce, || {
            arranged.reduce_abelian::<_, ValBuilder<K, V2, Stamp<LOOPS>, Mult>, Vals<K, V2, Stamp<LOOPS>>, _, _>(
                names.reduce,
                move |key, values, results| {
                    look(values.len());
                    logic(key, values, results);
                },
                fill,
            )
        }))
    }

    fn finish_sums<'s, const LOOPS: usize>(
        sums: VecCollection<'s, Stamp<LOOPS>, (Row, ()), Sums>,
        finish: impl Fn(&Sums) -> Option<Outcome<Row>> + 'static,
    ) -> InMemory<'s, Row, Outcome<Row>, LOOPS> {
        let names = Names { arrange: "Arrange sums", reduce: "Sums" };
        let sums = kept::<_, KeyBuilder<Row, Stamp<LOOPS>, Sums>, _, _, _, LOOPS>(
            names.arrange,
            || {
                sums.arrange_named::<Batcher<Row, (), Stamp<LOOPS>, Sums>, KeyBuilder<Row, Stamp<LOOPS>, Sums>, Keys<Row, Stamp<LOOPS>, Sums>>(names.arrange)
            },
        );
        own(kept::<_, ValBuilder<Row, Outcome<Row>, Stamp<LOOPS>, Mult>, _, _, _, LOOPS>(
            names.reduce,
            || {
                sums.reduce_abelian::<_, ValBuilder<Row, Outcome<Row>, Stamp<LOOPS>, Mult>, Vals<Row, Outcome<Row>, Stamp<LOOPS>>, _, _>(
                names.reduce,
                move |_, input, output| {
                    look(1);
                    output.extend(finish(&input[0].1).map(|outcome| (outcome, Mult(1))));
                },
                fill,
            )
            },
        ))
    }

    fn as_collection<'s, K: Keep, V: Keep, D: Data, const LOOPS: usize>(
        arranged: Self::Arrangement<'s, K, V, LOOPS>,
        mut logic: impl FnMut(&K, &V) -> D + 'static,
    ) -> Collection<'s, D, LOOPS> {
        arranged.as_collection(move |key, value| logic(key, value))
    }

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
    ) -> Collection<'s, D, LOOPS> {
        matches::join(left, right, logic)
    }

    fn consolidate<'s, D: Key, const LOOPS: usize>(
        data: Collection<'s, D, LOOPS>,
    ) -> Collection<'s, D, LOOPS> {
        data.consolidate_named::<Batcher<D, (), Stamp<LOOPS>, Mult>, KeyBuilder<D, Stamp<LOOPS>, Mult>, Keys<D, Stamp<LOOPS>, Mult>, _>(
            "Consolidate",
            |data, _| data.clone(),
        )
    }

    fn distinct<'s, D: Key, const LOOPS: usize>(
        data: Collection<'s, D, LOOPS>,
    ) -> Collection<'s, D, LOOPS> {
        let names = Names { arrange: "Arrange distinct", reduce: "Distinct" };
        let data = kept::<_, KeyBuilder<D, Stamp<LOOPS>, Mult>, _, _, _, LOOPS>(
            names.arrange,
            || {
                data.map(|datum| (datum, ()))
                .arrange_named::<Batcher<D, (), Stamp<LOOPS>, Mult>, KeyBuilder<D, Stamp<LOOPS>, Mult>, Keys<D, Stamp<LOOPS>, Mult>>(names.arrange)
            },
        );
        let distinct = kept::<_, KeyBuilder<D, Stamp<LOOPS>, Mult>, _, _, _, LOOPS>(
            names.reduce,
            || {
                data.reduce_abelian::<_, KeyBuilder<D, Stamp<LOOPS>, Mult>, Keys<D, Stamp<LOOPS>, Mult>, _, _>(
                names.reduce,
                move |_, input, output| {
                    look(1);
                    if input[0].1 > Mult(0) {
                        output.push(((), Mult(1)));
                    }
                },
                fill,
            )
            },
        );
        distinct.as_collection(|datum, ()| datum.clone())
    }

    fn of_memory<K: Keep, V: Keep, const LOOPS: usize>(
        arranged: InMemory<'_, K, V, LOOPS>,
    ) -> Option<InMemory<'_, K, V, LOOPS>> {
        Some(arranged)
    }

    fn in_memory<'a, 's, K: Keep, V: Keep, const LOOPS: usize>(
        arranged: &'a Self::Arrangement<'s, K, V, LOOPS>,
    ) -> Option<&'a InMemory<'s, K, V, LOOPS>> {
        Some(arranged)
    }
}
