//! Recursions of which only the best row by key is kept: `Xᵢ = best by key (base ∪ step(Xᵢ₋₁))`.
//!
//! Shortest distances are such, and the loop is what one would write by hand: candidates arranged by
//! key, one reduction that picks the best. It consolidates the cycle, too.

use super::{Bundle, Collection, Renderer};
use crate::diff::Mult;
use crate::monitor::Guard;
use crate::stamp::Stamp;
use differential_dataflow::operators::arrange::Arrange;
use differential_dataflow::operators::iterate::VecVariable;
use differential_dataflow::trace::implementations::{ValBatcher, ValBuilder, ValSpine};
use differential_dataflow::AsCollection;
use planner::plan::{LocalId, Plan, Preference};
use planner::row::Row;
use planner::value::Datum;
use std::cmp::Ordering;
use std::collections::HashSet;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;

/// Which columns of a recursion's rows are the key, which is the value, and what values are preferred.
pub(super) struct Best<'p> {
    pub(super) key: &'p [usize],
    pub(super) value: usize,
    pub(super) preference: Preference,
    /// Whether the step does nothing to values but add to them.
    pub(super) adds: bool,
}

/// Iterations before anybody counts keys: most loops take fewer.
const UNCOUNTED: u64 = 64;

impl<'s, const LOOPS: usize> Renderer<'s, LOOPS> {
    pub(super) fn fixpoint_extreme(
        &mut self,
        id: LocalId,
        base: Bundle<'s, LOOPS>,
        step: &Plan,
        best: &Best,
    ) -> Bundle<'s, LOOPS> {
        let (variable, previous) = VecVariable::new(self.scope, self.summary());
        let all = self.best_by_key(base.oks.concat(previous), best);
        let all = super::recursion::watch(all, self.depth, self.guard.clone());
        let all = match best.adds {
            true => watch_keys(all, best.key.to_vec(), self.depth, self.guard.clone()),
            false => all,
        };
        // As in other fixpoints, errors need not circulate.
        self.bind(id, Bundle { oks: all.clone(), errs: self.empty() });
        let next = self.render(step);
        variable.set(next.oks);
        Bundle { oks: all, errs: base.errs.concat(next.errs) }
    }

    /// Of each key the row with the preferred value.
    fn best_by_key(
        &mut self,
        rows: Collection<'s, Row, LOOPS>,
        best: &Best,
    ) -> Collection<'s, Row, LOOPS> {
        let (key, value, preference) = (best.key.to_vec(), best.value, best.preference);
        // Where a row's columns are in its key followed by its value.
        let places: Vec<usize> = (0..=key.len())
            .map(|column| key.iter().position(|k| *k == column).unwrap_or(key.len()))
            .collect();
        let keyed =
            rows.map(move |row| (Row::project(&[&row], &key), Row::project(&[&row], &[value])));
        let arranged = keyed
            .arrange_named::<ValBatcher<_, _, _, _>, ValBuilder<_, _, _, _>, ValSpine<_, _, _, _>>(
                "Arrange candidates",
            );
        self.meter.add(&arranged, size_of::<(Row, Row, Stamp<LOOPS>, Mult)>());
        let best = arranged
            .reduce_abelian::<_, ValBuilder<Row, Row, Stamp<LOOPS>, Mult>, ValSpine<Row, Row, Stamp<LOOPS>, Mult>, _, _>(
                "Best by key",
                move |_, input, output| {
                    if let Some(best) = pick(input, preference) {
                        output.push((best.clone(), Mult(1)));
                    }
                },
                |chunk, key, updates| {
                    chunk.clear();
                    chunk.extend(updates.drain(..).map(|(v, t, r)| ((key.clone(), v), t, r)));
                },
            );
        self.meter.add(&best, size_of::<(Row, Row, Stamp<LOOPS>, Mult)>());
        best.as_collection(move |key, value| Row::project(&[key, value], &places))
    }
}

/// Passes on a loop's rows unless there have been more iterations in which values became better than
/// there are keys: where values are only added to, that goes on for ever (see the planner's
/// `push_extremes`).
///
/// Counted are the keys of which a value changed in a late iteration. Before a worker sees iteration i all workers
/// have counted those of iteration i - 1. Keys that are gone stay counted, which delays the end.
fn watch_keys<'s, const LOOPS: usize>(
    rows: Collection<'s, Row, LOOPS>,
    key: Vec<usize>,
    level: usize,
    guard: Guard,
) -> Collection<'s, Row, LOOPS> {
    let mut keys: HashSet<Row> = HashSet::new();
    rows.inner
        .unary(Pipeline, "Watch keys", move |_, _| {
            move |input, output| {
                input.for_each(|capability, data: &mut Vec<(Row, Stamp<LOOPS>, Mult)>| {
                    let (mut latest, known) = (0, keys.len());
                    for (row, stamp, _) in data.iter() {
                        let iteration = u64::from(stamp.iterations[level - 1]);
                        if iteration > UNCOUNTED {
                            latest = iteration.max(latest);
                            keys.insert(Row::project(&[row], &key));
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

/// The preferred one of the values that are there.
fn pick<'v>(values: &[(&'v Row, Mult)], preference: Preference) -> Option<&'v Row> {
    let mut there = values.iter().filter(|(_, copies)| *copies > Mult(0)).map(|(row, _)| *row);
    let first = there.next()?;
    let mut best: (&Row, Option<Datum>) = (first, None);
    for row in there {
        let known = best.1.get_or_insert_with(|| best.0.column(0));
        let value = row.column(0);
        if preference.compare(&value, known) == Ordering::Less {
            best = (row, Some(value));
        }
    }
    Some(best.0)
}
