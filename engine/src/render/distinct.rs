//! One copy of each row that is there at all.

use super::keep::Key;
use super::keyed::{Keyed, Slot, MANY_SLOTS};
use super::ordered::{Clears, InOrder, Pieces};
use super::renderer::{Bundle, Context, Renderer};
use super::storage::Storage;
use crate::core::collection::Collection;
use crate::core::column::Column;
use crate::core::diff::Mult;
use crate::layout::Layout;
use differential_dataflow::difference::{IsZero, Semigroup};
use differential_dataflow::ExchangeData;
use plan::Plan;
use std::hash::Hash;

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    pub(super) fn render_distinct(&mut self, plan: &Plan) -> Bundle<'s, L, LOOPS> {
        let input = self.render(plan);
        let clears = self.clears_of(plan);
        Bundle { oks: self.context.distinct_rows(input.oks, clears), ..input }
    }
}

impl<'s, S: Storage, const LOOPS: usize> Context<'s, S, LOOPS> {
    /// One copy of each row with a positive multiplicity.
    pub(super) fn distinct_rows<R>(
        &mut self,
        input: Collection<'s, R, LOOPS>,
        clears: Option<Clears>,
    ) -> Collection<'s, R, LOOPS>
    where
        R: Key + Hash + Default,
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
            S::distinct(input)
        }
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

impl<R: ExchangeData + Column + Hash + Default> InOrder for DistinctInOrder<R> {
    type Input = R;
    type Output = R;
    type Work = Slot;

    fn look_up(&mut self, row: R) -> Slot {
        self.rows.slot(row, || Mult(0))
    }

    fn update(&mut self, slot: Slot, diff: Mult) {
        self.touch(slot).plus_equals(&diff);
    }

    type Key = R;
    type Known = Mult;

    fn pieces(&self) -> Option<Pieces<'_, R, Mult>> {
        Some(Box::new(self.rows.iter().cloned()))
    }

    fn restore(&mut self, row: R, copies: Mult) -> bool {
        self.rows.slot(row, || copies);
        true
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
