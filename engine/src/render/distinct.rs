//! One copy of each row that is there at all.

use super::kept::{Keep, Names};
use super::keyed::{Keyed, Slot, MANY_SLOTS};
use super::ordered::{Clears, InOrder};
use super::watched::{Batcher, KeyBuilder, Keys};
use super::{Bundle, Collection, Context, Renderer};
use crate::diff::Mult;
use crate::layout::Layout;
use crate::monitor::look;
use crate::stamp::Stamp;
use differential_dataflow::difference::{IsZero, Semigroup};
use differential_dataflow::hashable::Hashable;
use differential_dataflow::operators::arrange::Arrange;
use differential_dataflow::ExchangeData;
use plan::Plan;
use std::hash::Hash;

impl<'s, L: Layout, const LOOPS: usize> Renderer<'s, L, LOOPS> {
    pub(super) fn render_distinct(&mut self, plan: &Plan) -> Bundle<'s, L, LOOPS> {
        let input = self.render(plan);
        let clears = self.clears_of(plan);
        Bundle { oks: self.context.distinct_rows(input.oks, clears), ..input }
    }
}

impl<'s, const LOOPS: usize> Context<'s, LOOPS> {
    /// One copy of each row with a positive multiplicity.
    pub(super) fn distinct_rows<R>(
        &mut self,
        input: Collection<'s, R, LOOPS>,
        clears: Option<Clears>,
    ) -> Collection<'s, R, LOOPS>
    where
        R: Keep + Hashable<Output = u64> + Hash + Default,
    {
        if const { LOOPS == 0 } || self.times_are_ordered() {
            self.in_order(
                input,
                "Distinct",
                |row: &R| row.hashed(),
                DistinctInOrder::default(),
                clears,
            )
        } else {
            self.distinct(input)
        }
    }

    /// One copy of each datum with a positive multiplicity, at any times.
    pub(super) fn distinct<D>(
        &mut self,
        input: Collection<'s, D, LOOPS>,
    ) -> Collection<'s, D, LOOPS>
    where
        D: Keep + Hashable<Output = u64>,
    {
        let is_there = |diff: &Mult| *diff > Mult(0);
        if Self::SPILLS {
            let names = Names { arrange: "Arrange distinct", reduce: "Distinct" };
            let rows = input.map(|datum| (datum, ()));
            let distinct = self.reduce_kept(rows, &names, move |_, input, output| {
                if is_there(&input[0].1) {
                    output.push(((), Mult(1)));
                }
            });
            return distinct.into_collection(|datum, ()| datum.clone());
        }
        let arranged = input
            .map(|datum| (datum, ()))
            .arrange_named::<Batcher<D, (), Stamp<LOOPS>, Mult>, KeyBuilder<D, Stamp<LOOPS>, Mult>, Keys<D, Stamp<LOOPS>, Mult>>(
                "Arrange distinct",
            );
        let distinct = arranged
            .reduce_abelian::<_, KeyBuilder<D, Stamp<LOOPS>, Mult>, Keys<D, Stamp<LOOPS>, Mult>, _, _>(
                "Distinct",
                move |_, input, output| {
                    look(1);
                    if is_there(&input[0].1) {
                        output.push(((), Mult(1)));
                    }
                },
                |chunk, key, updates| {
                    chunk.clear();
                    chunk.extend(updates.drain(..).map(|(v, t, r)| ((key.clone(), v), t, r)));
                },
            );
        distinct.as_collection(|key, _| key.clone())
    }
}

/// Multiplicities of rows, outside of loops.
struct DistinctInOrder<R> {
    rows: Keyed<R, Mult>,
    /// Rows with updates at the time at hand, and whether they were there before.
    touched: Vec<(Slot, bool)>,
    /// Rows of which there was none left at some time.
    gone: Vec<Slot>,
}

impl<R: Clone + Default + Hash + Eq> Default for DistinctInOrder<R> {
    fn default() -> Self {
        DistinctInOrder { rows: Keyed::default(), touched: Vec::new(), gone: Vec::new() }
    }
}

impl<R: Clone + Default + Hash + Eq> DistinctInOrder<R> {
    /// The copies of a row, about to change.
    fn touch(&mut self, slot: Slot) -> &mut Mult {
        let is_new = self.rows.mark(slot);
        let (_, copies) = self.rows.get_mut(slot);
        if is_new {
            self.touched.push((slot, *copies > Mult(0)));
        }
        copies
    }
}

impl<R: ExchangeData + Hash + Default> InOrder for DistinctInOrder<R> {
    type Input = R;
    type Output = R;
    type Work = Slot;

    fn look_up(&mut self, row: R) -> Slot {
        self.rows.slot(row, || Mult(0))
    }

    fn update(&mut self, slot: Slot, diff: Mult) {
        self.touch(slot).plus_equals(&diff);
    }

    fn clear(&mut self) {
        for slot in self.rows.all() {
            *self.touch(slot) = Mult(0);
        }
    }

    fn finish(&mut self, mut emit: impl FnMut(R, Mult)) {
        for (slot, was_there) in self.touched.drain(..) {
            self.rows.unmark(slot);
            let (row, copies) = self.rows.get_mut(slot);
            match (was_there, *copies > Mult(0)) {
                (false, true) => emit(row.clone(), Mult(1)),
                (true, false) => emit(row.clone(), Mult(-1)),
                _ => {}
            }
            if copies.is_zero() {
                self.gone.push(slot);
            }
        }
        self.touched.shrink_to(MANY_SLOTS);
    }

    fn sweep(&mut self) {
        self.rows.sweep(&mut self.gone, |copies| copies.is_zero());
    }
}
