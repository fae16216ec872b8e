//! Recursive queries: loops over a coordinate of the timestamp.
//!
//! With X at iteration i written Xᵢ:
//! - fixpoint: `Xᵢ = distinct(base ∪ step(Xᵢ₋₁))`, or `Xᵢ = base + step(Xᵢ₋₁)` under UNION ALL;
//!   the result is X where it no longer changes.
//! - working table: `W₀ = base`, `Wᵢ = step(Wᵢ₋₁)`, running sum `Sᵢ = Sᵢ₋₁ + Wᵢ`; the result is S where
//!   it no longer changes. Under UNION `Sᵢ` has one row per key, an older row before a newer one,
//!   and `Wᵢ = Sᵢ − Sᵢ₋₁`.
//! - of each key the best row only: see [`super::recursion_extreme`].
//!
//! Leaving a loop drops the coordinate; differences of all iterations then add up to the last one.
//! Every cycle passes an operator that consolidates, or differences that cancel would circulate.

use super::errors::Errs;
use super::linear::{fit, split, unpack_collection};
use super::recursion_extreme::Best;
use super::renderer::{Bundle, Context, Renderer};
use super::storage::{Kept, Names, Storage};
use crate::core::collection::Collection;
use crate::core::column::{take, Column};
use crate::core::diff::Mult;
use crate::core::monitor::Guard;
use crate::core::stamp::{Stamp, Summary};
use crate::layout::infer::{expr_columns, Columns};
use crate::layout::row_work::Exprs;
use crate::layout::{Layout, Varying};
use differential_dataflow::operators::iterate::VecVariable;
use differential_dataflow::AsCollection;
use plan::error::DataError;
use plan::expr::Expr;
use plan::row::Row;
use plan::{LocalId, Plan, Recursion};
use std::rc::Rc;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::progress::Antichain;

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    pub(super) fn render_recursion(
        &mut self,
        id: LocalId,
        recursion: &Recursion,
        base: &Plan,
        step: &Plan,
    ) -> Bundle<'s, L, LOOPS> {
        if const { LOOPS == 0 } {
            unreachable!("stamps have a coordinate for every loop of the plan");
        }
        let base = self.render(base);
        let columns = self.types().recursive(id, recursion, Rc::clone(&base.columns), step);
        let base = Bundle { oks: fit(&base, &columns), columns, ..base };
        self.context.depth += 1;
        let inner = match recursion {
            Recursion::FixpointDistinct | Recursion::LeastFixpoint => {
                self.fixpoint(id, base, step, true)
            }
            Recursion::FixpointAll => self.fixpoint(id, base, step, false),
            Recursion::WorkingTableAll => self.working_table_all(id, base, step),
            Recursion::WorkingTableDistinct { key } => {
                self.working_table_distinct(id, base, step, key)
            }
            Recursion::FixpointExtreme { key, order, adds } => {
                self.fixpoint_extreme(id, base, step, &Best { key, order, adds: *adds })
            }
        };
        let level = self.context.depth;
        let (raised, mut errs) = self.context.split_errors(&inner.errs);
        self.context.depth -= 1;
        if let Some(raised) = raised {
            errs = errs.union(&self.context.raise(leave(raised, level)));
        }
        Bundle { oks: leave(inner.oks, level), errs, ..inner }
    }

    fn fixpoint(
        &mut self,
        id: LocalId,
        base: Bundle<'s, L, LOOPS>,
        step: &Plan,
        union: bool,
    ) -> Bundle<'s, L, LOOPS> {
        let columns = base.columns;
        let (variable, previous) =
            VecVariable::new(self.context.scope, self.context.next_iteration());
        let all = base.oks.concat(previous);
        let all = if union { S::distinct(all) } else { S::consolidate(all) };
        let all = self.context.watch(all);
        // Errors of the last iteration are those of the whole: they need not circulate.
        self.bind_loop(id, all.clone(), &columns);
        let next = self.render(step);
        variable.set(fit(&next, &columns));
        Bundle { oks: all, errs: base.errs.union(&next.errs), columns }
    }

    /// Lets `id` stand for the rows of an iteration.
    pub(super) fn bind_loop(
        &mut self,
        id: LocalId,
        oks: Collection<'s, L::Row, LOOPS>,
        columns: &Columns,
    ) {
        self.bind(id, Bundle { oks, errs: Errs::default(), columns: Rc::clone(columns) });
    }

    fn working_table_all(
        &mut self,
        id: LocalId,
        base: Bundle<'s, L, LOOPS>,
        step: &Plan,
    ) -> Bundle<'s, L, LOOPS> {
        let columns = base.columns;
        let (scope, summary) = (self.context.scope, self.context.next_iteration());
        let (variable, table) = VecVariable::new_from(base.oks, summary);
        let table = S::consolidate(table);
        let (sum_variable, sum) = VecVariable::new(scope, summary);
        let sum = S::consolidate(sum.concat(table.clone()));
        let sum = self.context.watch(sum);
        sum_variable.set(sum.clone());
        self.bind_loop(id, table, &columns);
        let next = self.render(step);
        variable.set(fit(&next, &columns));
        let errs = base.errs.union(&self.context.ever(&next.errs));
        Bundle { oks: sum, errs, columns }
    }

    fn working_table_distinct(
        &mut self,
        id: LocalId,
        base: Bundle<'s, L, LOOPS>,
        step: &Plan,
        key: &[Expr],
    ) -> Bundle<'s, L, LOOPS> {
        let columns = base.columns;
        let key = Rc::new(Exprs::<Varying, Row>::new(key, &columns, &expr_columns(&columns, key)));
        let (scope, summary) = (self.context.scope, self.context.next_iteration());
        let (candidates_variable, candidates) = VecVariable::new(scope, summary);
        let (sum_variable, previous) = VecVariable::new(scope, summary);
        // The base is a candidate in every iteration, but new only in the first.
        let base_rows = L::pack_collection(base.oks, &L::shape(&columns));
        let (candidates, key_errs) = keyed(base_rows.concat(candidates), &key, Age::New);
        // Keys of rows that are in already have been computed before: no new errors.
        let (older, _) = keyed(previous.clone(), &key, Age::Old);
        let sum = self.context.first_by_key(older.concat(candidates));
        let sum = self.context.watch(sum);
        sum_variable.set(sum.clone());
        let table = sum.clone().concat(previous.negate());
        let (table, _) = unpack_collection::<L, LOOPS>(table, &columns);
        self.bind_loop(id, table, &columns);
        let next = self.render(step);
        let next_rows = L::pack_collection(fit(&next, &columns), &L::shape(&columns));
        candidates_variable.set(next_rows);
        let errs = next.errs.union(&self.context.raise(key_errs));
        let errs = base.errs.union(&self.context.ever(&errs));
        let (oks, unfit) = unpack_collection::<L, LOOPS>(sum, &columns);
        Bundle { oks, errs: errs.union(&self.context.raise(unfit)), columns }
    }
}

impl<'s, S: Storage, const LOOPS: usize> Context<'s, S, LOOPS> {
    /// Advances the iteration of the innermost loop by one.
    pub(super) fn next_iteration(&self) -> Summary<LOOPS> {
        Summary::next_iteration(self.depth)
    }

    /// Per key the oldest row, of equally old ones the least.
    fn first_by_key(
        &mut self,
        rows: Collection<'s, (Row, (Age, Row)), LOOPS>,
    ) -> Collection<'s, Row, LOOPS> {
        let names = Names { arrange: "Arrange candidates", reduce: "First by key" };
        let first = Kept::<S, _, _, LOOPS>::reduce(rows, &names, |_, input, output| {
            if let Some(((_, row), _)) = input.iter().find(|(_, diff)| *diff > Mult(0)) {
                output.push((row.clone(), Mult(1)));
            }
        });
        first.into_collection(|_, row| row.clone())
    }

    /// Errors that any iteration raised: distinct, or they would add up without end.
    fn ever(&mut self, errs: &Errs) -> Errs {
        let (raised, outer) = self.split_errors(errs);
        let Some(raised) = raised else { return outer };
        let (variable, previous) = VecVariable::new(self.scope, self.next_iteration());
        let all = S::distinct(raised.concat(previous));
        variable.set(all.clone());
        outer.union(&self.raise(all))
    }

    /// Passes on the rows of the innermost loop while it is within its limits.
    pub(super) fn watch<D: Clone + 'static>(
        &self,
        rows: Collection<'s, D, LOOPS>,
    ) -> Collection<'s, D, LOOPS> {
        watch(rows, self.depth, self.guard.clone())
    }
}

/// Whether a row was there in an earlier iteration.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
enum Age {
    Old,
    New,
}

type KeyedRows<'s, const LOOPS: usize> = Collection<'s, (Row, (Age, Row)), LOOPS>;

fn keyed<'s, const LOOPS: usize>(
    rows: Collection<'s, Row, LOOPS>,
    key: &Rc<Exprs<Varying, Row>>,
    age: Age,
) -> (KeyedRows<'s, LOOPS>, Collection<'s, DataError, LOOPS>) {
    let key = Rc::clone(key);
    split(rows.map(move |row| key.eval(&row).map(|key| (key, (age, row)))))
}

impl Column for Age {
    fn write<'a>(values: impl Iterator<Item = &'a Self> + Clone, out: &mut Vec<u8>) {
        out.extend(values.map(|age| *age as u8));
    }

    fn read(count: usize, input: &mut &[u8]) -> Option<Vec<Self>> {
        let ages = take(count, input)?.iter();
        Some(ages.map(|age| if *age == Age::Old as u8 { Age::Old } else { Age::New }).collect())
    }
}

/// Takes a collection out of the loop of a level.
fn leave<'s, D: Clone + 'static, const LOOPS: usize>(
    inner: Collection<'s, D, LOOPS>,
    level: usize,
) -> Collection<'s, D, LOOPS> {
    let mut builder = OperatorBuilder::new("Leave".to_owned(), inner.scope());
    let (output, outer) = builder.new_output();
    let mut output = OutputBuilder::from(output);
    let path = [(0, Antichain::from_elem(Summary::leave(level)))];
    let mut input = builder.new_input_connection(inner.inner, Pipeline, path);
    builder.build(move |_| {
        move |_frontiers| {
            let mut output = output.activate();
            input.for_each(|capability, data: &mut Vec<(D, Stamp<LOOPS>, Mult)>| {
                let capability = capability.delayed(&capability.time().leave(level), 0);
                data.iter_mut().for_each(|(_, stamp, _)| *stamp = stamp.leave(level));
                output.session(&capability).give_container(data);
            });
        }
    });
    outer.as_collection()
}

/// Passes on a loop's rows while it is within its limits.
fn watch<'s, D: Clone + 'static, const LOOPS: usize>(
    rows: Collection<'s, D, LOOPS>,
    level: usize,
    guard: Guard,
) -> Collection<'s, D, LOOPS> {
    rows.inner
        .unary(Pipeline, "Watch", move |_, _| {
            move |input, output| {
                input.for_each(|capability, data: &mut Vec<(D, Stamp<LOOPS>, Mult)>| {
                    let mut iteration = 0;
                    let mut largest = 0;
                    for (_, stamp, diff) in data.iter() {
                        iteration = iteration.max(stamp.iterations[level - 1].into());
                        largest = largest.max(diff.0.unsigned_abs());
                    }
                    guard.reach(iteration, largest);
                    guard.proceed(data.len());
                    output.session(&capability).give_container(data);
                });
            }
        })
        .as_collection()
}
