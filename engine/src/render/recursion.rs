//! Recursive queries: loops over a coordinate of the timestamp.
//!
//! With X at iteration i written Xᵢ:
//! - fixpoint: `Xᵢ = distinct(base ∪ step(Xᵢ₋₁))`, or `Xᵢ = base + step(Xᵢ₋₁)` under UNION ALL;
//!   the result is X where it no longer changes.
//! - working table: `W₀ = base`, `Wᵢ = step(Wᵢ₋₁)`, running sum `Sᵢ = Sᵢ₋₁ + Wᵢ`; the result is S where
//!   it no longer changes. Under UNION `Sᵢ` has one row per key, an older row before a newer one,
//!   and `Wᵢ = Sᵢ − Sᵢ₋₁`.
//!
//! Leaving a loop drops the coordinate; differences of all iterations then add up to the last one.
//! Every cycle passes an operator that consolidates, or differences that cancel would circulate.

use super::{Bundle, Collection, Renderer, Stamp};
use crate::diff::Mult;
use crate::monitor::Guard;
use crate::scalar::Exprs;
use differential_dataflow::dynamic::feedback_summary;
use differential_dataflow::operators::arrange::Arrange;
use differential_dataflow::operators::iterate::VecVariable;
use differential_dataflow::trace::implementations::{ValBatcher, ValBuilder, ValSpine};
use differential_dataflow::AsCollection;
use planner::error::DataError;
use planner::expr::Expr;
use planner::plan::{LocalId, Plan, Recursion};
use planner::row::Row;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::order::Product;
use timely::progress::Timestamp;

impl<'s> Renderer<'s> {
    pub(super) fn render_recursion(
        &mut self,
        id: LocalId,
        recursion: &Recursion,
        base: &Plan,
        step: &Plan,
    ) -> Bundle<'s> {
        let base = self.render(base);
        self.depth += 1;
        let inner = match recursion {
            Recursion::FixpointDistinct => self.fixpoint(id, base, step, true),
            Recursion::FixpointAll => self.fixpoint(id, base, step, false),
            Recursion::WorkingTableAll => self.working_table_all(id, base, step),
            Recursion::WorkingTableDistinct { key } => {
                self.working_table_distinct(id, base, step, key)
            }
        };
        let level = self.depth;
        self.depth -= 1;
        Bundle { oks: inner.oks.leave_dynamic(level), errs: inner.errs.leave_dynamic(level) }
    }

    /// Advances the iteration of the innermost loop by one.
    fn summary(&self) -> <Stamp as Timestamp>::Summary {
        Product::new(Default::default(), feedback_summary::<u64>(self.depth, 1))
    }

    fn fixpoint(&mut self, id: LocalId, base: Bundle<'s>, step: &Plan, union: bool) -> Bundle<'s> {
        let (variable, previous) = VecVariable::new(self.scope, self.summary());
        let all = base.oks.concat(previous);
        let all = if union { self.distinct(all) } else { all.consolidate() };
        let all = watch(all, self.depth, self.guard.clone());
        // Errors of the last iteration are those of the whole: they need not circulate.
        self.bind(id, Bundle { oks: all.clone(), errs: self.empty() });
        let next = self.render(step);
        variable.set(next.oks);
        Bundle { oks: all, errs: base.errs.concat(next.errs) }
    }

    fn working_table_all(&mut self, id: LocalId, base: Bundle<'s>, step: &Plan) -> Bundle<'s> {
        let (variable, table) = VecVariable::new_from(base.oks, self.summary());
        let table = table.consolidate();
        let (sum_variable, sum) = VecVariable::new(self.scope, self.summary());
        let sum = watch(sum.concat(table.clone()).consolidate(), self.depth, self.guard.clone());
        sum_variable.set(sum.clone());
        self.bind(id, Bundle { oks: table, errs: self.empty() });
        let next = self.render(step);
        variable.set(next.oks);
        Bundle { oks: sum, errs: base.errs.concat(self.ever(next.errs)) }
    }

    fn working_table_distinct(
        &mut self,
        id: LocalId,
        base: Bundle<'s>,
        step: &Plan,
        key: &[Expr],
    ) -> Bundle<'s> {
        let (candidates_variable, candidates) = VecVariable::new(self.scope, self.summary());
        let (sum_variable, previous) = VecVariable::new(self.scope, self.summary());
        // The base is a candidate in every iteration, but new only in the first.
        let (candidates, key_errs) = keyed(base.oks.concat(candidates), key, Age::New);
        // Keys of rows that are in already have been computed before: no new errors.
        let (older, _) = keyed(previous.clone(), key, Age::Old);
        let sum = self.first_by_key(older.concat(candidates));
        let sum = watch(sum, self.depth, self.guard.clone());
        sum_variable.set(sum.clone());
        let table = sum.clone().concat(previous.negate());
        self.bind(id, Bundle { oks: table, errs: self.empty() });
        let next = self.render(step);
        candidates_variable.set(next.oks);
        let errs = self.ever(next.errs.concat(key_errs));
        Bundle { oks: sum, errs: base.errs.concat(errs) }
    }

    /// Per key the oldest row, of equally old ones the least.
    fn first_by_key(&mut self, rows: Collection<'s, (Row, (Age, Row))>) -> Collection<'s, Row> {
        let arranged = rows
            .arrange_named::<ValBatcher<_, _, _, _>, ValBuilder<_, _, _, _>, ValSpine<_, _, _, _>>(
                "Arrange candidates",
            );
        self.meter.add(&arranged, size_of::<(Row, (Age, Row), Stamp, Mult)>());
        let first = arranged
            .reduce_abelian::<_, ValBuilder<Row, Row, Stamp, Mult>, ValSpine<Row, Row, Stamp, Mult>, _, _>(
                "First by key",
                |_, input, output| {
                    if let Some(((_, row), _)) = input.iter().find(|(_, diff)| *diff > Mult(0)) {
                        output.push((row.clone(), Mult(1)));
                    }
                },
                |chunk, key, updates| {
                    chunk.clear();
                    chunk.extend(updates.drain(..).map(|(v, t, r)| ((key.clone(), v), t, r)));
                },
            );
        self.meter.add(&first, size_of::<(Row, Row, Stamp, Mult)>());
        first.as_collection(|_, row| row.clone())
    }

    /// Errors that any iteration raised: distinct, or they would add up without end.
    fn ever(&mut self, errs: Collection<'s, DataError>) -> Collection<'s, DataError> {
        let (variable, previous) = VecVariable::new(self.scope, self.summary());
        let all = self.distinct(errs.concat(previous));
        variable.set(all.clone());
        all
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

type KeyedRows<'s> = Collection<'s, (Row, (Age, Row))>;

fn keyed<'s>(
    rows: Collection<'s, Row>,
    key: &[Expr],
    age: Age,
) -> (KeyedRows<'s>, Collection<'s, DataError>) {
    let key = Exprs::new(key);
    super::linear::split(rows.map(move |row| key.eval(&row).map(|key| (key, (age, row)))))
}

/// Passes on a loop's rows while it is within its limits.
fn watch<'s>(rows: Collection<'s, Row>, level: usize, guard: Guard) -> Collection<'s, Row> {
    rows.inner
        .unary(Pipeline, "Watch", move |_, _| {
            move |input, output| {
                input.for_each(|capability, data: &mut Vec<(Row, Stamp, Mult)>| {
                    let mut iteration = 0;
                    let mut largest = 0;
                    for (_, stamp, diff) in data.iter() {
                        iteration = iteration.max(stamp.inner.get(level - 1).copied().unwrap_or(0));
                        largest = largest.max(diff.0.unsigned_abs());
                    }
                    guard.reach(iteration, largest);
                    if guard.proceed(data.len()) {
                        output.session(&capability).give_container(data);
                    }
                });
            }
        })
        .as_collection()
}
