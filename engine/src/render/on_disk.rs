//! State on disk, while memory is short: the arrangements of [`crate::spill`].

use super::errors::Outcome;
use super::keep::{Keep, Key};
use super::share::InMemory;
use super::storage::{Names, Storage};
use super::sums::Sums;
use crate::core::collection::Collection;
use crate::core::diff::Mult;
use crate::core::monitor::look;
use crate::core::stamp::Stamp;
use crate::spill::{self, Counts, Stored};
use differential_dataflow::{Data, VecCollection};
use plan::row::Row;
use std::hash::Hash;

/// State is in arrangements alone, which may be on disk.
pub(super) struct Disk;

type OnDisk<'s, K, V, const LOOPS: usize> = spill::Arrangement<'s, K, V, Stamp<LOOPS>, Mult>;

impl Storage for Disk {
    const HAS_TABLES: bool = false;
    type Arrangement<'s, K: Keep, V: Keep, const LOOPS: usize> = OnDisk<'s, K, V, LOOPS>;
    type Counted<R: Stored + Hash> = Counts<R>;

    fn arrange<'s, K: Key, V: Keep, const LOOPS: usize>(
        rows: Collection<'s, (K, V), LOOPS>,
        name: &str,
    ) -> OnDisk<'s, K, V, LOOPS> {
        spill::arrange(rows, name)
    }

    fn reduce<'s, K: Key, V: Keep, V2: Keep, const LOOPS: usize>(
        rows: Collection<'s, (K, V), LOOPS>,
        names: &Names,
        mut logic: impl FnMut(&K, &[(&V, Mult)], &mut Vec<(V2, Mult)>) + 'static,
    ) -> OnDisk<'s, K, V2, LOOPS> {
        let arranged = spill::arrange(rows, names.arrange);
        let watched = move |key: &K, values: &[(&V, Mult)], results: &mut Vec<(V2, Mult)>| {
            look(values.len());
            logic(key, values, results);
        };
        spill::reduce(arranged, names.reduce, watched)
    }

    fn finish_sums<'s, const LOOPS: usize>(
        sums: VecCollection<'s, Stamp<LOOPS>, (Row, ()), Sums>,
        finish: impl Fn(&Sums) -> Option<Outcome<Row>> + 'static,
    ) -> OnDisk<'s, Row, Outcome<Row>, LOOPS> {
        let arranged = spill::arrange(sums, "Arrange sums");
        spill::reduce(arranged, "Sums", move |_, input, output| {
            look(1);
            output.extend(finish(&input[0].1).map(|outcome| (outcome, Mult(1))));
        })
    }

    fn as_collection<'s, K: Keep, V: Keep, D: Data, const LOOPS: usize>(
        arranged: Self::Arrangement<'s, K, V, LOOPS>,
        logic: impl FnMut(&K, &V) -> D + 'static,
    ) -> Collection<'s, D, LOOPS> {
        spill::as_collection(arranged, logic)
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
        spill::join(left, right, logic)
    }

    fn consolidate<'s, D: Key, const LOOPS: usize>(
        data: Collection<'s, D, LOOPS>,
    ) -> Collection<'s, D, LOOPS> {
        spill::consolidate(data)
    }

    fn distinct<'s, D: Key, const LOOPS: usize>(
        data: Collection<'s, D, LOOPS>,
    ) -> Collection<'s, D, LOOPS> {
        let names = Names { arrange: "Arrange distinct", reduce: "Distinct" };
        let rows = data.map(|datum| (datum, ()));
        let distinct: OnDisk<'s, D, (), LOOPS> = Self::reduce(rows, &names, |_, input, output| {
            if input[0].1 > Mult(0) {
                output.push(((), Mult(1)));
            }
        });
        spill::as_collection(distinct, |datum, ()| datum.clone())
    }

    fn of_memory<K: Keep, V: Keep, const LOOPS: usize>(
        _arranged: InMemory<'_, K, V, LOOPS>,
    ) -> Option<Self::Arrangement<'_, K, V, LOOPS>> {
        None
    }

    fn in_memory<'a, 's, K: Keep, V: Keep, const LOOPS: usize>(
        _arranged: &'a Self::Arrangement<'s, K, V, LOOPS>,
    ) -> Option<&'a InMemory<'s, K, V, LOOPS>> {
        None
    }
}
