//! From a dataflow's root to the engine: updates leave when their time is complete, consolidated.

use super::renderer::Bundle;
use crate::core::collection::Collection;
use crate::core::config::OutputForm;
use crate::core::diff::Mult;
use crate::core::monitor::{look, make_room, room_for, Guard};
use crate::core::readers;
use crate::core::report::Report;
use crate::core::stamp::Stamp;
use crate::core::updates::{move_to_last, Time, Updates, CLOSED};
use crate::layout::{sort_by_data, Layout, Tuple};
use differential_dataflow::difference::{IsZero, Semigroup};
use differential_dataflow::{AsCollection, ExchangeData, Hashable};
use plan::error::DataError;
use std::hash::Hash;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::Exchange;
use timely::progress::frontier::AntichainRef;

/// Updates waiting for their time to be complete.
struct Pending<D> {
    updates: Vec<(D, Time, Mult)>,
    /// Length at which it is worth consolidating, so that cancelled updates do not pile up.
    consolidate_at: usize,
    /// Sorts updates of one time.
    sort: fn(&mut [(D, Time, Mult)]),
    /// Whether all of them are insertions of one copy.
    are_insertions: bool,
    /// Whether the collection never has two copies of anything, so that insertions alone are consolidated as they come.
    is_set: bool,
}

impl<D: Ord + Clone> Pending<D> {
    fn new(sort: fn(&mut [(D, Time, Mult)])) -> Self {
        let (updates, consolidate_at) = (Vec::new(), 1 << 16);
        Pending { updates, consolidate_at, sort, are_insertions: true, is_set: false }
    }

    /// Whether there is nothing to be added up.
    fn are_consolidated(&self) -> bool {
        self.is_set && self.are_insertions
    }

    fn extend<const LOOPS: usize>(
        &mut self,
        updates: impl ExactSizeIterator<Item = (D, Stamp<LOOPS>, Mult)>,
    ) {
        make_room(&mut self.updates, updates.len());
        let mut are_insertions = self.are_insertions;
        self.updates.extend(updates.map(|(data, stamp, mult)| {
            are_insertions &= mult == Mult(1);
            (data, stamp.time, mult)
        }));
        self.are_insertions = are_insertions;
        if self.updates.len() >= self.consolidate_at && !self.are_consolidated() {
            let before = self.updates.len();
            consolidate_by_time(&mut self.updates, self.sort);
            // Where next to nothing cancels it is not worth it soon again.
            let left = self.updates.len();
            let growth = if left > before / 4 * 3 { 4 } else { 2 };
            self.consolidate_at = (growth * left).max(1 << 16);
        }
    }

    /// Takes the updates with times before `frontier`, consolidated and in the order of their times.
    fn take_before(&mut self, frontier: Time) -> Vec<(D, Time, Mult)> {
        if self.updates.is_empty() {
            return Vec::new();
        }
        let mut ready = std::mem::take(&mut self.updates);
        self.updates = ready.extract_if(.., |(_, time, _)| *time >= frontier).collect();
        match self.are_consolidated() {
            true => sort_by_time(&mut ready),
            false => consolidate_by_time(&mut ready, self.sort),
        }
        self.are_insertions |= self.updates.is_empty();
        ready
    }
}

/// The different times of updates that are in the order of their times.
fn times_of<D>(updates: &[(D, Time, Mult)]) -> Vec<Time> {
    updates.chunk_by(|(_, a, _), (_, b, _)| a == b).map(|same| same[0].1).collect()
}

fn finish<D, T>(updates: Vec<(D, Time, Mult)>, finish: impl Fn(D) -> T) -> Updates<T> {
    room_for(updates.len() * size_of::<(T, Time, i64)>());
    let finish = |(data, time, mult): (D, Time, Mult)| {
        look(1);
        (finish(data), time, mult.0)
    };
    updates.into_iter().map(finish).collect()
}

/// Mostly they come so; else it takes memory.
fn sort_by_time<D>(updates: &mut [(D, Time, Mult)]) {
    if !updates.is_sorted_by_key(|(_, time, _)| *time) {
        updates.sort_by_key(|(_, time, _)| *time);
    }
}

/// Consolidates updates.
fn consolidate_by_time<D: Ord>(
    updates: &mut Vec<(D, Time, Mult)>,
    sort: fn(&mut [(D, Time, Mult)]),
) {
    sort_by_time(updates);
    updates.chunk_by_mut(|(_, a, _), (_, b, _)| a == b).for_each(sort);
    updates.dedup_by(|(data, time, diff), (kept, at, sum)| {
        let is_same = time == at && data == kept;
        if is_same {
            sum.plus_equals(diff);
        }
        is_same
    });
    updates.retain(|(_, _, diff)| !diff.is_zero());
}

/// The time before which a sink's inputs are complete. Stamps at the root have no iterations, so
/// that each frontier has at most one element.
fn completed<const LOOPS: usize>(
    a: AntichainRef<'_, Stamp<LOOPS>>,
    b: AntichainRef<'_, Stamp<LOOPS>>,
) -> Time {
    a.iter().chain(b.iter()).map(|stamp| stamp.time).min().unwrap_or(CLOSED)
}

/// Of several workers one may put out what another one takes back at the same time: equal data come to the same worker, so that what
/// reads a view never sees a row that was not there.
fn meeting<'s, D: ExchangeData + Hash, const LOOPS: usize>(
    collection: Collection<'s, D, LOOPS>,
) -> Collection<'s, D, LOOPS> {
    match collection.scope().peers() {
        1 => collection,
        _ => collection.inner.exchange(|(data, _, _)| data.hashed()).as_collection(),
    }
}

/// Sends a collection's updates to the engine, each time's when it is complete, and then tells that time to `put_out`. A set
/// has no two equal rows at any time.
pub(crate) fn render_sink<'s, L: Layout, const LOOPS: usize>(
    bundle: Bundle<'s, L, LOOPS>,
    errors: Collection<'s, DataError, LOOPS>,
    (as_of, put_out): (Time, impl Fn(Time) + 'static),
    is_set: bool,
    guard: Guard,
) {
    let worker = guard.dataflow.thread(bundle.oks.scope().index());
    let (rows, errors) = (meeting(bundle.oks), meeting(errors));
    let shape = L::shape(&bundle.columns);
    let (mut oks, mut errs) = (Pending::new(L::Row::sort), Pending::new(sort_by_data));
    oks.is_set = is_set;
    let mut reported = as_of;
    rows.inner
        .binary_frontier::<_, timely::container::CapacityContainerBuilder<Vec<()>>, _, _, _, _>(
            errors.inner,
            Pipeline,
            Pipeline,
            "Output",
            move |_capability, _info| {
                move |(input_oks, frontier_oks), (input_errs, frontier_errs), _output| {
                    input_oks.for_each(|_, data| {
                        guard.proceed(data.len());
                        oks.extend(data.drain(..));
                    });
                    input_errs.for_each(|_, data| {
                        // What is in error may lack what it is said to have.
                        oks.is_set = false;
                        errs.extend(data.drain(..));
                    });
                    let frontier = completed(frontier_oks.frontier(), frontier_errs.frontier());
                    if frontier > reported && !guard.dataflow.is_stopped() {
                        reported = frontier;
                        let are_consolidated = oks.are_consolidated();
                        let mut rows = oks.take_before(frontier);
                        let times = times_of(&rows);
                        let is_net =
                            guard.shared.output == OutputForm::Net && !guard.dataflow.keeps_times();
                        if is_net && move_to_last(&mut rows, &times) && !are_consolidated {
                            consolidate_by_time(&mut rows, L::Row::sort);
                        }
                        let oks = finish(rows, |row: L::Row| row.to_row(&shape));
                        readers::pass_on(&oks, frontier);
                        let report = Report::Output {
                            instance: guard.dataflow.instance,
                            worker,
                            oks,
                            errs: finish(errs.take_before(frontier), |error| error),
                            times,
                            frontier,
                        };
                        guard.dataflow.set_done_to(worker, frontier);
                        guard.shared.report(report);
                        put_out(frontier);
                    }
                }
            },
        );
}
