//! Joins of arrangements in memory, some results at a time.
//!
//! Differential lets a join put out a million results before others work, but its own way to make them makes all those of
//! a key at once: without a key, that is the product of two tables. Here the updates of a key with many matches are
//! paired block by block.

use super::keep::Keep;
use super::share::InMemory;
use super::watched::ValBatch;
use crate::core::collection::Collection;
use crate::core::diff::Mult;
use crate::core::stamp::Stamp;
use differential_dataflow::consolidation::{consolidate_from, ConsolidatingContainerBuilder};
use differential_dataflow::difference::Multiply;
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::common::{bilinear_wave, ValueHistory};
use differential_dataflow::operators::join::{join_with_tactic, Fresh, JoinTactic};
use differential_dataflow::trace::cursor::{cursor_list, CursorList};
use differential_dataflow::trace::{Cursor, Navigable};
use differential_dataflow::{AsCollection, Data};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;
use std::rc::Rc;
use timely::container::{ContainerBuilder, PushInto};

/// Pairs of updates that are looked at before results leave.
const AT_ONCE: usize = 1 << 16;

/// Updates of either side below which all pairs are made, however their times are.
const FEW: usize = 10;

type Matched<D, const LOOPS: usize> = Vec<(D, Stamp<LOOPS>, Mult)>;

pub(super) fn join<'s, K, V1, V2, D, I, const LOOPS: usize>(
    left: InMemory<'s, K, V1, LOOPS>,
    right: InMemory<'s, K, V2, LOOPS>,
    logic: impl FnMut(&K, &V1, &V2) -> I + 'static,
) -> Collection<'s, D, LOOPS>
where
    K: Keep,
    V1: Keep,
    V2: Keep,
    D: Data,
    I: IntoIterator<Item = D>,
{
    let tactic = Tactic { logic: Rc::new(RefCell::new(logic)), results: PhantomData };
    join_with_tactic(left, right, tactic).as_collection()
}

struct Tactic<L, D> {
    logic: Rc<RefCell<L>>,
    results: PhantomData<D>,
}

impl<K, V1, V2, D, I, L, const LOOPS: usize>
    JoinTactic<ValBatch<K, V1, LOOPS>, ValBatch<K, V2, LOOPS>, Matched<D, LOOPS>> for Tactic<L, D>
where
    K: Keep,
    V1: Keep,
    V2: Keep,
    D: Data,
    I: IntoIterator<Item = D>,
    L: FnMut(&K, &V1, &V2) -> I + 'static,
{
    fn prep(
        &mut self,
        left: Vec<ValBatch<K, V1, LOOPS>>,
        right: Vec<ValBatch<K, V2, LOOPS>>,
        fresh: Fresh,
        meet: Stamp<LOOPS>,
    ) -> Box<dyn Iterator<Item = Matched<D, LOOPS>>> {
        // Times of the side that is not fresh may be advanced, so that there are fewer of them.
        let is_left_fresh = matches!(fresh, Fresh::Input0);
        Box::new(Matches {
            left: Side::new(left, (!is_left_fresh).then_some(meet)),
            right: Side::new(right, is_left_fresh.then_some(meet)),
            block: None,
            has_keys: true,
            logic: Rc::clone(&self.logic),
            builder: ConsolidatingContainerBuilder::default(),
            ready: VecDeque::new(),
        })
    }
}

/// One side of a join.
struct Side<K: Keep, V: Keep, const LOOPS: usize> {
    cursor: CursorList<<ValBatch<K, V, LOOPS> as Navigable>::Cursor>,
    batches: Vec<ValBatch<K, V, LOOPS>>,
    /// Times are advanced to this one.
    advance_to: Option<Stamp<LOOPS>>,
}

impl<K: Keep, V: Keep, const LOOPS: usize> Side<K, V, LOOPS> {
    fn new(batches: Vec<ValBatch<K, V, LOOPS>>, advance_to: Option<Stamp<LOOPS>>) -> Self {
        let (cursor, batches) = cursor_list(batches);
        Side { cursor, batches, advance_to }
    }
}

/// Updates of one key: values in order, and when they changed, with their numbers.
struct Edits<V, const LOOPS: usize> {
    values: Vec<V>,
    edits: Vec<(usize, Stamp<LOOPS>, Mult)>,
}

impl<V, const LOOPS: usize> Default for Edits<V, LOOPS> {
    fn default() -> Self {
        Edits { values: Vec::new(), edits: Vec::new() }
    }
}

impl<V, const LOOPS: usize> Edits<V, LOOPS> {
    fn clear(&mut self) {
        self.values.clear();
        self.edits.clear();
    }

    fn push(&mut self, value: V, times: &mut Vec<(Stamp<LOOPS>, Mult)>) {
        consolidate_from(times, 0);
        if times.is_empty() {
            return;
        }
        let number = self.values.len();
        self.edits.extend(times.drain(..).map(|(time, diff)| (number, time, diff)));
        self.values.push(value);
    }
}

impl<V: Clone, const LOOPS: usize> Edits<&V, LOOPS> {
    fn take(&mut self) -> Edits<V, LOOPS> {
        let values = self.values.drain(..).cloned().collect();
        Edits { values, edits: std::mem::take(&mut self.edits) }
    }
}

type History<const LOOPS: usize> = ValueHistory<usize, Stamp<LOOPS>, Mult>;

/// What is used again from key to key.
struct Scratch<const LOOPS: usize> {
    times: Vec<(Stamp<LOOPS>, Mult)>,
    left: History<LOOPS>,
    right: History<LOOPS>,
}

impl<const LOOPS: usize> Scratch<LOOPS> {
    fn new() -> Self {
        Scratch { times: Vec::new(), left: History::new(), right: History::new() }
    }

    /// Every pair of some updates of the left with some of the right, or what pairs that cancel leave.
    fn pair<A, B>(
        &mut self,
        (left, some_left): (&Edits<A, LOOPS>, Range<usize>),
        (right, some_right): (&Edits<B, LOOPS>, Range<usize>),
        mut emit: impl FnMut(&A, &B, Stamp<LOOPS>, Mult),
    ) {
        let (lefts, rights) = (&left.edits[some_left], &right.edits[some_right]);
        if lefts.len() < FEW || rights.len() < FEW {
            for (value1, time1, diff1) in lefts {
                for (value2, time2, diff2) in rights {
                    let (time, diff) = (time1.join(time2), diff1.multiply(diff2));
                    emit(&left.values[*value1], &right.values[*value2], time, diff);
                }
            }
            return;
        }
        self.left.load_iter(lefts.iter().copied(), None);
        self.right.load_iter(rights.iter().copied(), None);
        bilinear_wave(&mut self.left, &mut self.right, |value1, value2, time, diff| {
            emit(&left.values[value1], &right.values[value2], time, diff);
        });
    }
}

/// A key with many matches, and how far they were made.
struct Block<K, V1, V2, const LOOPS: usize> {
    key: K,
    left: Edits<V1, LOOPS>,
    right: Edits<V2, LOOPS>,
    /// Updates of either side that are paired at once.
    length: (usize, usize),
    next: (usize, usize),
}

impl<K, V1, V2, const LOOPS: usize> Block<K, V1, V2, LOOPS> {
    fn new(key: K, left: Edits<V1, LOOPS>, right: Edits<V2, LOOPS>) -> Self {
        let side = |other: usize| (AT_ONCE / other.max(1)).max(1 << 8);
        let length = (side(right.edits.len()), side(left.edits.len()));
        Block { key, left, right, length, next: (0, 0) }
    }

    /// The next updates to pair, or none if all have been.
    fn advance(&mut self) -> Option<(Range<usize>, Range<usize>)> {
        let (lefts, rights) = (self.left.edits.len(), self.right.edits.len());
        if self.next.0 >= lefts {
            return None;
        }
        let some = |from: usize, length: usize, of: usize| from..(from + length).min(of);
        let left = some(self.next.0, self.length.0, lefts);
        let right = some(self.next.1, self.length.1, rights);
        self.next = if right.end == rights { (left.end, 0) } else { (left.start, right.end) };
        Some((left, right))
    }
}

/// The matches of two lists of batches.
struct Matches<K: Keep, V1: Keep, V2: Keep, D: Data, L, const LOOPS: usize> {
    left: Side<K, V1, LOOPS>,
    right: Side<K, V2, LOOPS>,
    block: Option<Block<K, V1, V2, LOOPS>>,
    /// Whether there may be further keys that both sides have.
    has_keys: bool,
    logic: Rc<RefCell<L>>,
    builder: ConsolidatingContainerBuilder<Matched<D, LOOPS>>,
    ready: VecDeque<Matched<D, LOOPS>>,
}

impl<K, V1, V2, D, I, L, const LOOPS: usize> Iterator for Matches<K, V1, V2, D, L, LOOPS>
where
    K: Keep,
    V1: Keep,
    V2: Keep,
    D: Data,
    I: IntoIterator<Item = D>,
    L: FnMut(&K, &V1, &V2) -> I + 'static,
{
    type Item = Matched<D, LOOPS>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut scratch = None;
        while self.ready.is_empty() {
            if self.block.is_some() {
                self.play_block(scratch.get_or_insert_with(Scratch::new));
            } else if self.has_keys {
                self.play_keys(scratch.get_or_insert_with(Scratch::new));
            } else {
                while let Some(results) = self.builder.finish() {
                    self.ready.push_back(std::mem::take(results));
                }
                break;
            }
        }
        self.ready.pop_front()
    }
}

impl<K, V1, V2, D, I, L, const LOOPS: usize> Matches<K, V1, V2, D, L, LOOPS>
where
    K: Keep,
    V1: Keep,
    V2: Keep,
    D: Data,
    I: IntoIterator<Item = D>,
    L: FnMut(&K, &V1, &V2) -> I + 'static,
{
    /// Makes the matches of key after key, until some are ready or a key has many.
    fn play_keys(&mut self, scratch: &mut Scratch<LOOPS>) {
        let Matches { left, right, block, has_keys, logic, builder, ready } = self;
        let logic = &mut *logic.borrow_mut();
        let (mut lefts, mut rights) = (Edits::default(), Edits::default());
        while ready.is_empty() {
            let keys = (left.cursor.get_key(&left.batches), right.cursor.get_key(&right.batches));
            let (Some(key), Some(other)) = keys else {
                *has_keys = false;
                return;
            };
            match key.cmp(other) {
                Ordering::Less => left.cursor.seek_key(&left.batches, other),
                Ordering::Greater => right.cursor.seek_key(&right.batches, key),
                Ordering::Equal => {
                    load(&mut left.cursor, &left.batches, &left.advance_to, &mut lefts, scratch);
                    load(
                        &mut right.cursor,
                        &right.batches,
                        &right.advance_to,
                        &mut rights,
                        scratch,
                    );
                    let pairs = lefts.edits.len().saturating_mul(rights.edits.len());
                    if pairs > AT_ONCE {
                        *block = Some(Block::new(key.clone(), lefts.take(), rights.take()));
                    } else {
                        let all = (0..lefts.edits.len(), 0..rights.edits.len());
                        scratch.pair((&lefts, all.0), (&rights, all.1), |v1, v2, time, diff| {
                            for data in logic(key, v1, v2) {
                                builder.push_into((data, time, diff));
                            }
                        });
                    }
                    left.cursor.step_key(&left.batches);
                    right.cursor.step_key(&right.batches);
                    if block.is_some() {
                        return;
                    }
                    take_ready(builder, ready);
                }
            }
        }
    }

    /// Makes some matches of the key that has many.
    fn play_block(&mut self, scratch: &mut Scratch<LOOPS>) {
        let Some(block) = &mut self.block else { return };
        let Some((lefts, rights)) = block.advance() else {
            self.block = None;
            return;
        };
        let (logic, builder) = (&mut *self.logic.borrow_mut(), &mut self.builder);
        let key = &block.key;
        scratch.pair((&block.left, lefts), (&block.right, rights), |v1, v2, time, diff| {
            for data in logic(key, v1, v2) {
                builder.push_into((data, time, diff));
            }
        });
        take_ready(builder, &mut self.ready);
    }
}

/// Moves what is complete aside.
fn take_ready<D: Data, const LOOPS: usize>(
    builder: &mut ConsolidatingContainerBuilder<Matched<D, LOOPS>>,
    ready: &mut VecDeque<Matched<D, LOOPS>>,
) {
    while let Some(results) = builder.extract() {
        ready.push_back(std::mem::take(results));
    }
}

/// The updates of the key that a cursor is at.
fn load<'a, K: Keep, V: Keep, const LOOPS: usize>(
    cursor: &mut CursorList<<ValBatch<K, V, LOOPS> as Navigable>::Cursor>,
    batches: &'a Vec<ValBatch<K, V, LOOPS>>,
    advance_to: &Option<Stamp<LOOPS>>,
    edits: &mut Edits<&'a V, LOOPS>,
    scratch: &mut Scratch<LOOPS>,
) {
    edits.clear();
    while let Some(value) = cursor.get_val(batches) {
        cursor.map_times(batches, |time, diff| {
            let time = advance_to.as_ref().map_or(*time, |to| time.join(to));
            scratch.times.push((time, *diff));
        });
        edits.push(value, &mut scratch.times);
        cursor.step_val(batches);
    }
}
