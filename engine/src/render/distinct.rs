//! One copy of each row that is there at all.

use super::keyed::{Keyed, Slot};
use super::ordered::InOrder;
use super::{Bundle, Collection, Renderer};
use crate::diff::Mult;
use crate::stamp::Stamp;
use differential_dataflow::difference::{IsZero, Semigroup};
use differential_dataflow::hashable::Hashable;
use differential_dataflow::trace::implementations::{KeyBuilder, KeySpine};
use differential_dataflow::ExchangeData;
use planner::plan::Plan;
use planner::row::Row;

impl<'s, const LOOPS: usize> Renderer<'s, LOOPS> {
    pub(super) fn render_distinct(&mut self, input: &Plan) -> Bundle<'s, LOOPS> {
        let input = self.render(input);
        Bundle { oks: self.distinct_rows(input.oks), errs: input.errs }
    }

    /// One copy of each row with a positive multiplicity.
    pub(super) fn distinct_rows(
        &mut self,
        input: Collection<'s, Row, LOOPS>,
    ) -> Collection<'s, Row, LOOPS> {
        if self.times_are_ordered() {
            self.in_order(input, "Distinct", |row| row.hashed(), DistinctInOrder::default())
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
        D: ExchangeData + Hashable,
    {
        let arranged = input.arrange_by_self_named("Arrange distinct");
        self.meter.add(&arranged, size_of::<(D, Stamp<LOOPS>, Mult)>());
        let distinct = arranged
            .reduce_abelian::<_, KeyBuilder<D, Stamp<LOOPS>, Mult>, KeySpine<D, Stamp<LOOPS>, Mult>, _, _>(
                "Distinct",
                |_, input, output| {
                    if input[0].1 > Mult(0) {
                        output.push(((), Mult(1)));
                    }
                },
                |chunk, key, updates| {
                    chunk.clear();
                    chunk.extend(updates.drain(..).map(|(v, t, r)| ((key.clone(), v), t, r)));
                },
            );
        self.meter.add(&distinct, size_of::<(D, Stamp<LOOPS>, Mult)>());
        distinct.as_collection(|key, _| key.clone())
    }
}

/// Multiplicities of rows, outside of loops.
#[derive(Default)]
struct DistinctInOrder {
    rows: Keyed<Copies>,
    /// Rows with updates at the time at hand.
    touched: Vec<Slot>,
}

#[derive(Default)]
struct Copies {
    now: Mult,
    /// If touched at the time at hand: whether the row was there before.
    before: Option<bool>,
}

impl InOrder for DistinctInOrder {
    type Output = Row;

    fn update(&mut self, row: Row, diff: Mult) {
        let slot = self.rows.slot(row, Copies::default);
        let (_, copies) = self.rows.get_mut(slot);
        if copies.before.is_none() {
            copies.before = Some(copies.now > Mult(0));
            self.touched.push(slot);
        }
        copies.now.plus_equals(&diff);
    }

    fn finish(&mut self, mut emit: impl FnMut(Row, Mult)) {
        for slot in self.touched.drain(..) {
            let (row, copies) = self.rows.get_mut(slot);
            match (copies.before.take(), copies.now > Mult(0)) {
                (Some(false), true) => emit(row.clone(), Mult(1)),
                (Some(true), false) => emit(row.clone(), Mult(-1)),
                _ => {}
            }
            if copies.now.is_zero() {
                self.rows.remove(slot);
            }
        }
    }

    fn bytes(&self) -> usize {
        self.rows.bytes()
    }
}
