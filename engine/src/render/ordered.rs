//! Operators for collections outside of all loops, where times are totally ordered.
//!
//! There a time is complete before the next one is looked at, whatever the size of the batch, so an
//! operator needs the present state of each key and no history: one lookup per update instead of
//! traces that merge, compact, and replay a key's past for every time at which it changes. Inside a
//! loop times are only partially ordered; operators there work on differential's arrangements.

use super::contents::Holder;
use super::renderer::{Context, Renderer};
use super::storage::Storage;
use crate::checkpoint::{self, frozen, Frozen, Part};
use crate::core::collection::Collection;
use crate::core::column::Column;
use crate::core::diff::Mult;
use crate::core::monitor::{look, make_room};
use crate::core::stamp::Stamp;
use crate::core::updates::{Time, CLOSED};
use crate::layout::Layout;
use differential_dataflow::consolidation::consolidate_updates;
use differential_dataflow::{AsCollection, ExchangeData};
use plan::Plan;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};
use std::rc::Rc;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::{Capability, InputCapability};

/// What an operator does with updates that come one time after the other.
pub(super) trait InOrder: 'static {
    /// What it takes.
    type Input: ExchangeData;
    /// What it puts out.
    type Output: Clone + 'static;
    /// What it takes, with what it changes looked up.
    type Work;

    /// Looks up what an update changes: of many updates one after the other, before their times come, or each
    /// would wait for memory.
    fn look_up(&mut self, data: Self::Input) -> Self::Work;

    /// Takes an update of the time at hand; those of one time come in any order.
    fn update(&mut self, work: Self::Work, diff: Mult);

    /// The time at hand is complete: puts out what has changed with it. Called once before any update,
    /// for what is there without any.
    fn finish(&mut self, emit: impl FnMut(Self::Output, Mult));

    /// All that was looked up has been taken: what is not there any more can be forgotten.
    fn sweep(&mut self);

    /// Undoes all updates of times before the one at hand.
    fn clear(&mut self);

    /// What is known of what it keeps, piece by piece, when it is saved.
    type Key: Column;
    type Known: Column;

    /// All that it keeps, between two times; `None` if that cannot be saved.
    fn pieces(&self) -> Option<Pieces<'_, Self::Key, Self::Known>>;

    /// Keeps that again, before any update; answers whether it can.
    fn restore(&mut self, key: Self::Key, known: Self::Known) -> bool;
}

/// What an operator keeps, piece by piece.
pub(super) type Pieces<'a, K, S> = Box<dyn Iterator<Item = (K, S)> + 'a>;

/// An operator, as what is saved of it.
struct Saved<O>(Rc<RefCell<O>>);

impl<O: InOrder> Part for Saved<O> {
    fn advance(&mut self, _time: Time) {}

    /// What it has not taken it holds a capability for.
    fn is_complete_to(&self, _time: Time) -> bool {
        true
    }

    fn freeze(&self) -> Box<dyn Frozen> {
        let logic = self.0.borrow();
        let pieces = logic.pieces().into_iter().flatten();
        frozen::<O::Key, O::Known, (), ()>(pieces.map(|piece| (piece, (), ())).collect())
    }
}

/// In a dataflow that can be saved the operator is so, and starts with what was.
fn kept<O: InOrder>(name: &'static str, mut logic: O) -> Rc<RefCell<O>> {
    if !checkpoint::is_kept() {
        return Rc::new(RefCell::new(logic));
    }
    if logic.pieces().is_none() {
        checkpoint::refuse(name);
    }
    let blocks = checkpoint::take::<O::Key, O::Known, (), ()>(name).unwrap_or_default();
    let mut pieces = blocks.into_iter().flatten();
    if !pieces.all(|((key, known), (), ())| logic.restore(key, known)) {
        checkpoint::refuse(name);
    }
    let logic = Rc::new(RefCell::new(logic));
    checkpoint::add(name, Saved(Rc::clone(&logic)));
    logic
}

/// Updates that are looked up together.
const AHEAD: usize = 32;

/// Times at which an operator is to undo all earlier updates.
pub(super) type Clears = Rc<RefCell<VecDeque<Time>>>;

/// An operator that undoes what it got from an input, as the input's holder.
struct Clearing(Clears);

impl<R> Holder<R> for Clearing {
    fn leaves_out(&self, _row: &R) -> bool {
        false
    }

    fn retract(&mut self, time: Time) -> Option<Vec<(R, Mult)>> {
        self.0.borrow_mut().push_back(time);
        Some(Vec::new())
    }

    fn advance(&mut self, _time: Time) {}
}

/// Updates whose time is not complete yet.
struct Waiting<D, const LOOPS: usize> {
    updates: Vec<(D, Time, Mult)>,
    /// For putting out at the times of `updates`; present if there are any.
    capability: Option<Capability<Stamp<LOOPS>>>,
    /// Times, not yet complete, at which to clear; then there is always a capability.
    clears: Option<Clears>,
    /// Everything before this time has been taken.
    complete_to: Time,
    /// Length of `updates` at which to see whether many of them add up.
    add_up_at: usize,
}

/// Updates that are looked at to see whether all of them add up.
const SAMPLE: usize = 1 << 16;

/// How many of the updates are expected to differ: the estimator of A. Chao, Nonparametric estimation of the number of
/// classes in a population (1984), from a sample. Equal ones may be far apart, and at regular distances.
fn expect_distinct<D: Ord>(updates: &[(D, Time, Mult)]) -> usize {
    let is_whole = updates.len() <= SAMPLE;
    let place = |number: usize| match is_whole {
        true => number,
        false => {
            let mut hasher = DefaultHasher::new();
            hasher.write_usize(number);
            ((u128::from(hasher.finish()) * updates.len() as u128) >> 64) as usize
        }
    };
    let numbers = 0..updates.len().min(SAMPLE);
    let mut sample: Vec<_> =
        numbers.map(|number| &updates[place(number)]).map(|(data, time, _)| (data, time)).collect();
    sample.sort_unstable();
    let (mut distinct, mut once, mut twice) = (0, 0, 0);
    for equal in sample.chunk_by(|one, other| one == other) {
        distinct += 1;
        once += usize::from(equal.len() == 1);
        twice += usize::from(equal.len() == 2);
    }
    let unseen = if is_whole { 0 } else { once * once.saturating_sub(1) / (2 * (twice + 1)) };
    distinct + unseen
}

impl<D: Ord, const LOOPS: usize> Waiting<D, LOOPS> {
    fn new(clears: Option<Clears>) -> Self {
        let (updates, capability) = (Vec::new(), None);
        Waiting { updates, capability, clears, complete_to: 0, add_up_at: SAMPLE }
    }

    /// Adds up equal updates if there are many: a product that is grouped would fill the memory before its time is
    /// complete.
    fn add_up(&mut self) {
        if expect_distinct(&self.updates) <= self.updates.len() / 2 {
            consolidate_updates(&mut self.updates);
        }
        self.add_up_at = (2 * self.updates.len()).max(SAMPLE);
    }

    /// Adds updates whose times are those of `capability` or later.
    fn extend(
        &mut self,
        capability: &InputCapability<Stamp<LOOPS>>,
        updates: impl ExactSizeIterator<Item = (D, Stamp<LOOPS>, Mult)>,
    ) {
        if self.capability.as_ref().is_none_or(|held| capability.time() < held.time()) {
            self.capability = Some(capability.retain(0));
        }
        look(updates.len());
        make_room(&mut self.updates, updates.len());
        self.updates.extend(updates.map(|(row, stamp, diff)| (row, stamp.time, diff)));
        if self.updates.len() >= self.add_up_at {
            self.add_up();
        }
    }

    /// Takes the updates before `upper`, in the order of their times.
    fn take_before(&mut self, upper: Time) -> Vec<(D, Time, Mult)> {
        self.complete_to = upper;
        let mut ready = std::mem::take(&mut self.updates);
        ready.sort_by_key(|(_, time, _)| *time);
        self.add_up_at = SAMPLE;
        self.updates = ready.split_off(ready.partition_point(|(_, time, _)| *time < upper));
        ready
    }

    /// Takes the times before `upper` at which to clear.
    fn take_clears_before(&mut self, upper: Time) -> VecDeque<Time> {
        let Some(clears) = &self.clears else { return VecDeque::new() };
        let mut clears = clears.borrow_mut();
        let first_later = clears.partition_point(|time| *time < upper);
        let later = clears.split_off(first_later);
        std::mem::replace(&mut clears, later)
    }

    /// Lets go of times before those of the updates left by `take_before`.
    fn downgrade(&mut self) {
        let next = match (&self.clears, self.updates.first()) {
            (Some(_), _) => Some(self.complete_to).filter(|time| *time < CLOSED),
            (None, first) => first.map(|(_, first, _)| *first),
        };
        match (&mut self.capability, next) {
            (Some(capability), Some(next)) => capability.downgrade(&Stamp::of(next)),
            (capability, _) => *capability = None,
        }
    }
}

/// Gives `logic` the updates, time by time.
fn play<O: InOrder, const LOOPS: usize>(
    updates: Vec<(O::Input, Time, Mult)>,
    mut clears: VecDeque<Time>,
    logic: &mut O,
    mut give: impl FnMut((O::Output, Stamp<LOOPS>, Mult)),
) {
    let mut updates = updates.into_iter();
    let mut ahead = VecDeque::new();
    loop {
        refill(&mut ahead, &mut updates, logic);
        let next = ahead.front().map(|(_, time, _)| *time);
        let Some(now) = next.into_iter().chain(clears.front().copied()).min() else { return };
        while clears.front() == Some(&now) {
            clears.pop_front();
            logic.clear();
        }
        while ahead.front().is_some_and(|(_, time, _)| *time == now) {
            if let Some((work, _, diff)) = ahead.pop_front() {
                logic.update(work, diff);
            }
            refill(&mut ahead, &mut updates, logic);
        }
        logic.finish(|data, diff| {
            look(1);
            give((data, Stamp::of(now), diff));
        });
    }
}

/// Looks up some more updates if all that were have been taken.
fn refill<O: InOrder>(
    ahead: &mut VecDeque<(O::Work, Time, Mult)>,
    updates: &mut impl Iterator<Item = (O::Input, Time, Mult)>,
    logic: &mut O,
) {
    if ahead.is_empty() {
        logic.sweep();
        look(AHEAD);
        let some = updates.take(AHEAD);
        ahead.extend(some.map(|(data, time, diff)| (logic.look_up(data), time, diff)));
    }
}

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    /// For an operator that works in order on a plan alone: makes it the holder of the source whose
    /// rows it gets, or what cannot fail made of them, if that source has no other use.
    pub(super) fn clears_of(&self, plan: &Plan) -> Option<Clears> {
        let source = match plan {
            Plan::Mfp { input, mfp } if !mfp.may_fail() => input,
            plan => plan,
        };
        let Plan::Source(id) = source else { return None };
        // Nothing is fed to a source that is read from an index.
        let is_fed = self.imports.iter().all(|import| import.source != *id);
        if self.uses[id.0] != 1 || !is_fed || !self.context.times_are_ordered() {
            return None;
        }
        let clears = Clears::default();
        *self.held[id.0].borrow_mut() = Some(Box::new(Clearing(Rc::clone(&clears))));
        Some(clears)
    }
}

impl<'s, S: Storage, const LOOPS: usize> Context<'s, S, LOOPS> {
    /// Renders an operator that takes one time after the other. Updates of one key must be routed
    /// to one worker. At the times `clears` it undoes all updates before.
    pub(super) fn in_order<O: InOrder>(
        &mut self,
        input: Collection<'s, O::Input, LOOPS>,
        name: &'static str,
        route: impl Fn(&O::Input) -> u64 + 'static,
        logic: O,
        clears: Option<Clears>,
    ) -> Collection<'s, O::Output, LOOPS> {
        assert_eq!(self.depth, 0, "inside a loop times are not totally ordered");
        let as_of = Stamp::of(self.as_of);
        let logic = kept(name, logic);
        let pact = Exchange::new(move |(row, _, _): &(O::Input, Stamp<LOOPS>, Mult)| route(row));
        let stream = input.inner.unary_frontier::<CapacityContainerBuilder<Vec<_>>, _, _, _>(
            pact,
            name,
            move |first, _| {
                let mut first = Some(first);
                let mut waiting = Waiting::new(clears);
                move |(input, frontier), output| {
                    let logic = &mut *logic.borrow_mut();
                    if let Some(mut capability) = first.take() {
                        capability.downgrade(&as_of);
                        let mut session = output.session(&capability);
                        logic.finish(|data, diff| session.give((data, as_of, diff)));
                        drop(session);
                        waiting.capability = waiting.clears.as_ref().map(|_| capability);
                    }
                    input.for_each(|capability, data| waiting.extend(&capability, data.drain(..)));
                    let upper = frontier.frontier().iter().map(|stamp| stamp.time).min();
                    let upper = upper.unwrap_or(CLOSED);
                    if upper > waiting.complete_to {
                        let ready = waiting.take_before(upper);
                        let clears = waiting.take_clears_before(upper);
                        if let Some(capability) = &waiting.capability {
                            let mut session = output.session(capability);
                            play(ready, clears, logic, |update| session.give(update));
                        }
                        waiting.downgrade();
                    }
                }
            },
        );
        stream.as_collection()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_updates_are_estimated_wherever_equal_ones_are() {
        let estimate = |length: u64, value: fn(u64) -> u64| {
            let updates: Vec<_> = (0..length).map(|i| (value(i), 0, Mult(1))).collect();
            expect_distinct(&updates)
        };
        let is_about = |found: usize, expected: usize| found.abs_diff(expected) < expected / 10;
        assert_eq!(estimate(0, |i| i), 0);
        assert_eq!(estimate(60_000, |i| i / 3), 20_000);
        assert!(is_about(estimate(4_000_000, |i| i % 100_001), 100_001));
        assert!(is_about(estimate(4_000_000, |i| i / 40), 100_000));
        assert!(estimate(4_000_000, |i| i % 10) == 10);
        assert!(is_about(estimate(4_000_000, |i| i), 4_000_000));
        // One that is frequent among others that are not.
        assert!(estimate(4_000_000, |i| if i % 50 == 0 { 0 } else { i }) > 3_000_000);
    }
}
