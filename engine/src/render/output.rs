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
use crate::layout::{Layout, Tuple};
use differential_dataflow::consolidation::{consolidate_updates, consolidate_updates_slice};
use plan::error::DataError;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::progress::frontier::AntichainRef;

/// Updates waiting for their time to be complete.
struct Pending<D> {
    updates: Vec<(D, Time, Mult)>,
    /// Length at which it is worth consolidating, so that cancelled updates do not pile up.
    consolidate_at: usize,
}

impl<D: Ord + Clone> Pending<D> {
    fn new() -> Self {
        Pending { updates: Vec::new(), consolidate_at: 1 << 16 }
    }

    fn extend<const LOOPS: usize>(
        &mut self,
        updates: impl ExactSizeIterator<Item = (D, Stamp<LOOPS>, Mult)>,
    ) {
        make_room(&mut self.updates, updates.len());
        self.updates.extend(updates.map(|(data, stamp, mult)| (data, stamp.time, mult)));
        if self.updates.len() >= self.consolidate_at {
            consolidate_by_time(&mut self.updates);
            self.consolidate_at = (2 * self.updates.len()).max(1 << 16);
        }
    }

    /// Takes the updates with times before `frontier`, consolidated and in the order of their times.
    fn take_before(&mut self, frontier: Time) -> Vec<(D, Time, Mult)> {
        if self.updates.is_empty() {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.updates);
        let (mut ready, later): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, time, _)| *time < frontier);
        self.updates = later;
        consolidate_by_time(&mut ready);
        ready
    }
}

/// The different times of updates that are in the order of their times.
fn times_of<D>(updates: &[(D, Time, Mult)]) -> Vec<Time> {
    let mut times: Vec<Time> = updates.iter().map(|(_, time, _)| *time).collect();
    times.dedup();
    times
}

fn finish<D, T>(updates: Vec<(D, Time, Mult)>, finish: impl Fn(D) -> T) -> Updates<T> {
    room_for(updates.len() * size_of::<(T, Time, i64)>());
    let finish = |(data, time, mult): (D, Time, Mult)| {
        look(1);
        (finish(data), time, mult.0)
    };
    updates.into_iter().map(finish).collect()
}

/// Consolidates updates, which mostly come in the order of their times.
fn consolidate_by_time<D: Ord>(updates: &mut Vec<(D, Time, Mult)>) {
    updates.sort_by_key(|(_, time, _)| *time);
    let (mut kept, mut start) = (0, 0);
    while start < updates.len() {
        let time = updates[start].1;
        let end = updates[start..].iter().position(|(_, t, _)| *t != time);
        let end = end.map_or(updates.len(), |count| start + count);
        let left = consolidate_updates_slice(&mut updates[start..end]);
        (start..start + left).for_each(|from| {
            updates.swap(kept, from);
            kept += 1;
        });
        start = end;
    }
    updates.truncate(kept);
}

/// The time before which a sink's inputs are complete. Stamps at the root have no iterations, so
/// that each frontier has at most one element.
fn completed<const LOOPS: usize>(
    a: AntichainRef<'_, Stamp<LOOPS>>,
    b: AntichainRef<'_, Stamp<LOOPS>>,
) -> Time {
    a.iter().chain(b.iter()).map(|stamp| stamp.time).min().unwrap_or(CLOSED)
}

/// Sends a collection's updates to the engine, each time's when it is complete.
pub(crate) fn render_sink<'s, L: Layout, const LOOPS: usize>(
    bundle: Bundle<'s, L, LOOPS>,
    errors: Collection<'s, DataError, LOOPS>,
    as_of: Time,
    guard: Guard,
) {
    let worker = bundle.oks.scope().index();
    let shape = L::shape(&bundle.columns);
    let (mut oks, mut errs) = (Pending::new(), Pending::new());
    let mut reported = as_of;
    bundle
        .oks
        .inner
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
                    input_errs.for_each(|_, data| errs.extend(data.drain(..)));
                    let frontier = completed(frontier_oks.frontier(), frontier_errs.frontier());
                    if frontier > reported && !guard.dataflow.is_stopped() {
                        reported = frontier;
                        let mut rows = oks.take_before(frontier);
                        let times = times_of(&rows);
                        let is_net = guard.shared.output == OutputForm::Net;
                        if is_net && move_to_last(&mut rows, &times) {
                            consolidate_updates(&mut rows);
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
                    }
                }
            },
        );
}
