//! Recursions of which only the best row by key is kept: `Xᵢ = best by key (base ∪ step(Xᵢ₋₁))`.
//!
//! Shortest distances are such, and the loop is what one would write by hand: candidates arranged by
//! key, one reduction that picks the best. It consolidates the cycle, too.

use super::linear::fit;
use super::renderer::{Bundle, Renderer};
use super::storage::{Kept, Names, Storage};
use crate::core::collection::Collection;
use crate::core::diff::Mult;
use crate::core::monitor::Guard;
use crate::core::stamp::Stamp;
use crate::layout::infer::Columns;
use crate::layout::{ColumnType, Layout, Tuple};
use differential_dataflow::operators::iterate::VecVariable;
use differential_dataflow::AsCollection;
use plan::partition::{compare_preferred, SortKey};
use plan::value::Datum;
use plan::{LocalId, Plan};
use std::cmp::Ordering;
use std::collections::HashSet;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;

/// Which columns of a recursion's rows are the key, and in which order of the others the first row is the best.
pub(super) struct Best<'p> {
    pub(super) key: &'p [usize],
    pub(super) order: &'p [SortKey],
    /// Whether the step does nothing to values but add to them.
    pub(super) adds: bool,
}

/// Iterations before anybody counts keys: most loops take fewer.
const UNCOUNTED: u64 = 64;

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    pub(super) fn fixpoint_extreme(
        &mut self,
        id: LocalId,
        base: Bundle<'s, L, LOOPS>,
        step: &Plan,
        best: &Best,
    ) -> Bundle<'s, L, LOOPS> {
        let columns = base.columns;
        let (variable, previous) =
            VecVariable::new(self.context.scope, self.context.next_iteration());
        let all = self.best_by_key(base.oks.concat(previous), &columns, best);
        let all = self.context.watch(all);
        let all = match best.adds {
            true => {
                let shape = L::shape(&columns);
                let (key, _) = part::<L>(&columns, &shape, best.key);
                watch_keys::<L, LOOPS>(all, key, self.context.depth, self.context.guard.clone())
            }
            false => all,
        };
        // As in other fixpoints, errors need not circulate.
        self.bind_loop(id, all.clone(), &columns);
        let next = self.render(step);
        variable.set(fit(&next, &columns));
        Bundle { oks: all, errs: base.errs.union(&next.errs), columns }
    }

    /// Of each key the row with the preferred values.
    fn best_by_key(
        &mut self,
        rows: Collection<'s, L::Row, LOOPS>,
        columns: &Columns,
        best: &Best,
    ) -> Collection<'s, L::Row, LOOPS> {
        let row_shape = L::shape(columns);
        let (to_key, key_shape) = part::<L>(columns, &row_shape, best.key);
        let values: Vec<usize> = best.order.iter().map(|sort| sort.column).collect();
        let (to_val, val_shape) = part::<L>(columns, &row_shape, &values);
        // Where a row's columns are in its key followed by its values.
        let all: Vec<usize> = best.key.iter().copied().chain(values).collect();
        let place = |column| all.iter().position(|c| *c == column).expect("key and order have it");
        let places: Vec<usize> = (0..all.len()).map(place).collect();
        let to_row = L::moves(&[&key_shape, &val_shape], &places, &row_shape);
        let keyed = rows.map(move |row| {
            let row = [row.view()];
            (L::Key::project(&to_key, &row), L::Val::project(&to_val, &row))
        });
        let names = Names { arrange: "Arrange candidates", reduce: "Best by key" };
        let choice = Choice::<L> { shape: val_shape, order: best.order.to_vec() };
        let best = Kept::<S, _, _, LOOPS>::reduce(keyed, &names, move |_, input, output| {
            if let Some(best) = choice.pick(input) {
                output.push((best.clone(), Mult(1)));
            }
        });
        best.into_collection(move |key, value| {
            L::Row::project(&to_row, &[key.view(), value.view()])
        })
    }
}

/// How to get some columns out of a row, and their shape.
fn part<L: Layout>(columns: &Columns, row: &L::Shape, part: &[usize]) -> (L::Moves, L::Shape) {
    let columns: Vec<ColumnType> = part.iter().map(|column| columns[*column]).collect();
    let shape = L::shape(&columns);
    (L::moves(&[row], part, &shape), shape)
}

/// Passes on a loop's rows unless there have been more iterations in which values became better than
/// there are keys: where values are only added to, that goes on for ever (see the planner's
/// `push_extremes`).
///
/// Counted are the keys of which a value changed in a late iteration. Before a worker sees iteration i all workers
/// have counted those of iteration i - 1. Keys that are gone stay counted, which delays the end.
fn watch_keys<'s, L: Layout, const LOOPS: usize>(
    rows: Collection<'s, L::Row, LOOPS>,
    to_key: L::Moves,
    level: usize,
    guard: Guard,
) -> Collection<'s, L::Row, LOOPS> {
    let mut keys: HashSet<L::Key> = HashSet::new();
    rows.inner
        .unary(Pipeline, "Watch keys", move |_, _| {
            move |input, output| {
                input.for_each(|capability, data: &mut Vec<(L::Row, Stamp<LOOPS>, Mult)>| {
                    let (mut latest, known) = (0, keys.len());
                    for (row, stamp, _) in data.iter() {
                        let iteration = u64::from(stamp.iterations[level - 1]);
                        if iteration > UNCOUNTED {
                            latest = iteration.max(latest);
                            keys.insert(L::Key::project(&to_key, &[row.view()]));
                        }
                    }
                    if latest > UNCOUNTED {
                        guard.improve(keys.len() - known, latest, latest - UNCOUNTED - 1);
                    }
                    output.session(&capability).give_container(data);
                });
            }
        })
        .as_collection()
}

/// Which of some values, of as many columns as the order has, is the preferred one.
struct Choice<L: Layout> {
    shape: L::Shape,
    order: Vec<SortKey>,
}

impl<L: Layout> Choice<L> {
    /// The preferred one of the values that are there.
    fn pick<'v>(&self, values: &[(&'v L::Val, Mult)]) -> Option<&'v L::Val> {
        let is_there = |(_, copies): &&(&'v L::Val, Mult)| *copies > Mult(0);
        let mut there = values.iter().filter(is_there).map(|(value, _)| *value);
        let first = there.next()?;
        let mut best = first;
        let (mut known, mut columns): (Vec<Datum>, Vec<Datum>) = (Vec::new(), Vec::new());
        for value in there {
            if known.is_empty() {
                L::unpack_into(best.view(), &self.shape, &mut known);
            }
            columns.clear();
            L::unpack_into(value.view(), &self.shape, &mut columns);
            if compare_preferred(&self.order, &columns, &known) == Ordering::Less {
                best = value;
                std::mem::swap(&mut known, &mut columns);
            }
        }
        Some(best)
    }
}
