//! Operators for collections outside of all loops, where times are totally ordered.
//!
//! There a time is complete before the next one is looked at, whatever the size of the batch, so an
//! operator needs the present state of each key and no history: one lookup per update instead of
//! traces that merge, compact, and replay a key's past for every time at which it changes. Inside a
//! loop times are only partially ordered; operators there work on differential's arrangements.

use super::{Collection, Renderer};
use crate::diff::Mult;
use crate::output::CLOSED;
use crate::stamp::Stamp;
use crate::Time;
use differential_dataflow::AsCollection;
use planner::row::Row;
use std::cell::Cell;
use std::rc::Rc;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::{Capability, InputCapability};

/// What an operator does with updates that come one time after the other.
pub(super) trait InOrder: 'static {
    /// What it puts out.
    type Output: Clone + 'static;

    /// Takes an update of the time at hand; those of one time come in any order.
    fn update(&mut self, row: Row, diff: Mult);

    /// The time at hand is complete: puts out what has changed with it. Called once before any update,
    /// for what is there without any.
    fn finish(&mut self, emit: impl FnMut(Self::Output, Mult));

    /// Estimated bytes of the state.
    fn bytes(&self) -> usize;
}

/// Updates whose time is not complete yet.
struct Waiting<const LOOPS: usize> {
    updates: Vec<(Row, Time, Mult)>,
    /// For putting out at the times of `updates`; present exactly if there are any.
    capability: Option<Capability<Stamp<LOOPS>>>,
    /// Everything before this time has been taken.
    complete_to: Time,
}

impl<const LOOPS: usize> Waiting<LOOPS> {
    /// Adds updates whose times are those of `capability` or later.
    fn extend(
        &mut self,
        capability: &InputCapability<Stamp<LOOPS>>,
        updates: impl Iterator<Item = (Row, Stamp<LOOPS>, Mult)>,
    ) {
        if self.capability.as_ref().is_none_or(|held| capability.time() < held.time()) {
            self.capability = Some(capability.retain(0));
        }
        self.updates.extend(updates.map(|(row, stamp, diff)| (row, stamp.time, diff)));
    }

    /// Takes the updates before `upper`, in the order of their times.
    fn take_before(&mut self, upper: Time) -> Vec<(Row, Time, Mult)> {
        self.complete_to = upper;
        let mut ready = std::mem::take(&mut self.updates);
        ready.sort_by_key(|(_, time, _)| *time);
        self.updates = ready.split_off(ready.partition_point(|(_, time, _)| *time < upper));
        ready
    }

    /// Lets go of times before those of the updates left by `take_before`.
    fn downgrade(&mut self) {
        match (&mut self.capability, self.updates.first()) {
            (Some(capability), Some((_, first, _))) => capability.downgrade(&Stamp::of(*first)),
            (capability, _) => *capability = None,
        }
    }
}

/// Gives `logic` the updates, time by time.
fn play<L: InOrder, const LOOPS: usize>(
    updates: Vec<(Row, Time, Mult)>,
    logic: &mut L,
    mut give: impl FnMut((L::Output, Stamp<LOOPS>, Mult)),
) {
    let mut updates = updates.into_iter().peekable();
    while let Some((row, time, diff)) = updates.next() {
        logic.update(row, diff);
        if updates.peek().is_none_or(|(_, next, _)| *next != time) {
            logic.finish(|data, diff| give((data, Stamp::of(time), diff)));
        }
    }
}

impl<'s, const LOOPS: usize> Renderer<'s, LOOPS> {
    /// Whether what is rendered now is outside of all loops.
    pub(super) fn times_are_ordered(&self) -> bool {
        self.depth == 0
    }

    /// Renders an operator that takes one time after the other. Updates of one key must be routed
    /// to one worker.
    pub(super) fn in_order<L: InOrder>(
        &mut self,
        input: Collection<'s, Row, LOOPS>,
        name: &str,
        route: impl Fn(&Row) -> u64 + 'static,
        mut logic: L,
    ) -> Collection<'s, L::Output, LOOPS> {
        assert!(self.times_are_ordered(), "inside a loop times are not totally ordered");
        let as_of = Stamp::of(self.as_of);
        let bytes = Rc::new(Cell::new(0));
        self.meter.add_gauge(Rc::clone(&bytes));
        let pact = Exchange::new(move |(row, _, _): &(Row, Stamp<LOOPS>, Mult)| route(row));
        let stream = input.inner.unary_frontier::<CapacityContainerBuilder<Vec<_>>, _, _, _>(
            pact,
            name,
            move |first, _| {
                let mut first = Some(first);
                let mut waiting = Waiting { updates: Vec::new(), capability: None, complete_to: 0 };
                move |(input, frontier), output| {
                    if let Some(mut capability) = first.take() {
                        capability.downgrade(&as_of);
                        let mut session = output.session(&capability);
                        logic.finish(|data, diff| session.give((data, as_of, diff)));
                    }
                    input.for_each(|capability, data| waiting.extend(&capability, data.drain(..)));
                    let upper = frontier.frontier().iter().map(|stamp| stamp.time).min();
                    let upper = upper.unwrap_or(CLOSED);
                    if upper > waiting.complete_to {
                        let ready = waiting.take_before(upper);
                        if let Some(capability) = &waiting.capability {
                            let mut session = output.session(capability);
                            play(ready, &mut logic, |update| session.give(update));
                        }
                        waiting.downgrade();
                        bytes.set(logic.bytes());
                    }
                }
            },
        );
        stream.as_collection()
    }
}
