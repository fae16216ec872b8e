//! Paths through several arrangements: what a change of one of them meets in the others, one look-up after the other.
//!
//! From each input of a join leads a path to all others. A change follows that of its input, and of the other inputs it
//! sees what was there up to its time: of those in front of its own without the changes of this very time, of those behind
//! with them. So changes that happen together meet once, and all that is there at the start is met on the first path.
//! Nothing is kept but the arrangements. Times are ordered here: there are no loops around.

use super::keep::Keep;
use super::share::{InMemory, Trace};
use super::watched::ValBatch;
use crate::checkpoint;
use crate::core::collection::Collection;
use crate::core::diff::Mult;
use crate::core::monitor::look;
use crate::core::stamp::Stamp;
use crate::core::updates::{Time, CLOSED};
use differential_dataflow::consolidation::{consolidate, ConsolidatingContainerBuilder};
use differential_dataflow::difference::{IsZero, Multiply, Semigroup};
use differential_dataflow::trace::cursor::{cursor_list, CursorList};
use differential_dataflow::trace::{BatchReader, Cursor, Navigable, TraceReader};
use differential_dataflow::{AsCollection, Data};
use smallvec::SmallVec;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::Scope;
use timely::progress::frontier::{AntichainRef, MutableAntichain};

/// Steps on paths before others may work.
const BURST: usize = 1 << 14;

/// The way from an input to all others.
pub(super) struct Path<K, V> {
    /// The arrangement from which changes come.
    pub(super) start: usize,
    pub(super) hops: Vec<Hop<K, V>>,
}

/// The key that a row has elsewhere, if it has one.
pub(super) type KeyOf<K, V> = Box<dyn Fn(&K, &V) -> Option<K>>;

/// A look-up in an arrangement.
pub(super) struct Hop<K, V> {
    pub(super) arrangement: usize,
    /// The place on the path of the row that has the key.
    pub(super) from: usize,
    /// The key that such a row has.
    pub(super) key: KeyOf<K, V>,
    /// Whether changes of the same time are left out.
    pub(super) is_before: bool,
}

/// What a path has met: keys and values, in the order of the path.
pub(super) type Met<'a, K, V> = SmallVec<[(&'a K, &'a V); 8]>;

/// What `make` makes, given the number of a path, of all that is met there. Nothing happens before `as_of`.
pub(super) fn follow<'s, K: Keep, V: Keep, D: Data, const LOOPS: usize>(
    scope: Scope<'s, Stamp<LOOPS>>,
    arrangements: Vec<InMemory<'s, K, V, LOOPS>>,
    paths: Vec<Path<K, V>>,
    as_of: Time,
    mut make: impl FnMut(usize, &Met<'_, K, V>) -> Option<D> + 'static,
) -> Collection<'s, D, LOOPS> {
    type Builder<D, const LOOPS: usize> =
        ConsolidatingContainerBuilder<Vec<(D, Stamp<LOOPS>, Mult)>>;
    let mut builder = OperatorBuilder::new("Delta join".to_owned(), scope);
    let (output, stream) = builder.new_output();
    let mut output = OutputBuilder::<_, Builder<D, LOOPS>>::from(output);
    let again = scope.activator_for(builder.operator_info().address);
    let (mut inputs, mut traces) = (Vec::new(), Vec::new());
    for InMemory { stream, trace } in arrangements {
        inputs.push(builder.new_input(stream, Pipeline));
        traces.push(trace);
    }
    let waiting = paths.iter().map(|_| Vec::new()).collect();
    // Where it goes on from somewhere, that has been met before.
    let start = (!checkpoint::has_origin()).then_some(as_of);
    let mut follower = Follower { traces, paths, waiting, start, done: as_of, round: None };
    builder.build(move |capabilities| {
        let mut capability = capabilities.into_iter().next();
        capability.iter_mut().for_each(|it| it.downgrade(&Stamp::of(as_of)));
        move |frontiers| {
            for (number, input) in inputs.iter_mut().enumerate() {
                input.for_each(|_, batches: &mut Vec<_>| follower.take(number, batches));
            }
            let Some(held) = &mut capability else { return };
            let complete_to = complete_to(frontiers);
            let mut output = output.activate();
            let mut session = output.session_with_builder(held);
            let mut left = BURST;
            while left > 0 && follower.begin(complete_to) {
                follower.go(&mut left, |path, met, time, diff| {
                    let made = make(path, met);
                    made.into_iter().for_each(|made| session.give((made, Stamp::of(time), diff)));
                });
            }
            drop(session);
            if follower.round.is_some() {
                again.activate();
            } else if follower.done == CLOSED {
                capability = None;
            } else {
                held.downgrade(&Stamp::of(follower.done));
            }
        }
    });
    stream.as_collection()
}

/// All that comes from the arrangements is complete before this time.
fn complete_to<const LOOPS: usize>(frontiers: &[MutableAntichain<Stamp<LOOPS>>]) -> Time {
    let of_input = |frontier: &MutableAntichain<Stamp<LOOPS>>| {
        frontier.frontier().first().map_or(CLOSED, |stamp| stamp.time)
    };
    frontiers.iter().map(of_input).min().unwrap_or(CLOSED)
}

struct Follower<K: Keep, V: Keep, const LOOPS: usize> {
    traces: Vec<Trace<K, V, LOOPS>>,
    /// By the input that they start at.
    paths: Vec<Path<K, V>>,
    /// By path, what has come of its start and is not all done.
    waiting: Vec<Vec<ValBatch<K, V, LOOPS>>>,
    /// The time at which all comes that is there at the start.
    start: Option<Time>,
    /// All before this time is done.
    done: Time,
    round: Option<Round<K, V, LOOPS>>,
}

/// The changes before a time that are followed now.
struct Round<K: Keep, V: Keep, const LOOPS: usize> {
    before: Time,
    /// What is left of them, by path.
    walks: Vec<(usize, Walk<K, V, LOOPS>)>,
}

impl<K: Keep, V: Keep, const LOOPS: usize> Follower<K, V, LOOPS> {
    /// What has come of an arrangement.
    fn take(&mut self, arrangement: usize, batches: &[ValBatch<K, V, LOOPS>]) {
        for (path, waiting) in self.paths.iter().zip(&mut self.waiting) {
            if path.start == arrangement {
                waiting.extend(batches.iter().filter(|batch| !batch.is_empty()).cloned());
            }
        }
    }

    /// Begins to follow what is complete, unless that is under way; answers whether there is anything.
    fn begin(&mut self, complete_to: Time) -> bool {
        if self.round.is_some() {
            return true;
        }
        if complete_to <= self.done {
            return false;
        }
        let (from, before) = (self.done, complete_to);
        let mut walks = Vec::new();
        for number in 0..self.paths.len() {
            if self.waiting[number].is_empty() {
                continue;
            }
            // What is there at the start is met on the first path.
            let from = match self.start {
                Some(start) if number > 0 => from.max(start + 1),
                _ => from,
            };
            let path = &self.paths[number];
            let levels = path.hops.iter().map(|hop| Level::of(&mut self.traces[hop.arrangement]));
            let start = Level::of_batches(self.waiting[number].clone());
            let walk = Walk::new(start, levels.collect(), from..before);
            walks.push((number, walk));
            let is_done = |batch: &ValBatch<K, V, LOOPS>| {
                batch.upper().iter().all(|upper| upper.time <= before)
            };
            self.waiting[number].retain(|batch| !is_done(batch));
        }
        self.round = Some(Round { before, walks });
        true
    }

    /// Follows changes for so many steps.
    fn go(&mut self, left: &mut usize, mut meet: impl FnMut(usize, &Met<'_, K, V>, Time, Mult)) {
        let Some(Round { before, walks }) = &mut self.round else { return };
        while let Some((number, walk)) = walks.last_mut() {
            let steps = *left;
            let has_ended = walk.go(&self.paths[*number].hops, left, |met, time, diff| {
                meet(*number, met, time, diff);
            });
            look(steps - *left);
            if !has_ended {
                return;
            }
            walks.pop();
        }
        self.done = *before;
        self.round = None;
        self.let_compact();
    }

    /// What was there before the times to come needs to be told apart from what is to come only.
    fn let_compact(&mut self) {
        if self.done == CLOSED {
            self.traces.clear();
        }
        let (logical, physical) =
            ([Stamp::of(self.done.saturating_sub(1))], [Stamp::of(self.done)]);
        for trace in &mut self.traces {
            trace.set_logical_compaction(AntichainRef::new(&logical));
            trace.set_physical_compaction(AntichainRef::new(&physical));
        }
    }
}

/// Batches and a place in them.
struct Level<K: Keep, V: Keep, const LOOPS: usize> {
    cursor: CursorList<<ValBatch<K, V, LOOPS> as Navigable>::Cursor>,
    batches: Vec<ValBatch<K, V, LOOPS>>,
}

impl<K: Keep, V: Keep, const LOOPS: usize> Level<K, V, LOOPS> {
    fn of(trace: &mut Trace<K, V, LOOPS>) -> Self {
        let (cursor, batches) = trace.cursor();
        Level { cursor, batches }
    }

    fn of_batches(batches: Vec<ValBatch<K, V, LOOPS>>) -> Self {
        let (cursor, batches) = cursor_list(batches);
        Level { cursor, batches }
    }

    /// Goes to the first value of a key; answers whether there is one.
    fn seek(&mut self, key: &K) -> bool {
        match self.cursor.get_key(&self.batches) {
            // Cursors go forward only.
            Some(at) if at == key => self.cursor.rewind_vals(&self.batches),
            Some(at) if at < key => self.cursor.seek_key(&self.batches, key),
            _ => {
                self.cursor.rewind_keys(&self.batches);
                self.cursor.seek_key(&self.batches, key);
            }
        }
        self.cursor.get_key(&self.batches) == Some(key)
    }

    /// Goes on to a value that is there, with how many copies, before a time or, too, at it.
    fn find(&mut self, time: Time, is_before: bool) -> Option<Mult> {
        while self.cursor.val_valid(&self.batches) {
            let mut copies = Mult(0);
            self.cursor.map_times(&self.batches, |at, diff| {
                if at.time < time || (at.time == time && !is_before) {
                    copies.plus_equals(diff);
                }
            });
            if !copies.is_zero() {
                return Some(copies);
            }
            self.cursor.step_val(&self.batches);
        }
        None
    }

    fn row(&self) -> (&K, &V) {
        (self.cursor.key(&self.batches), self.cursor.val(&self.batches))
    }
}

/// Changes on their way along a path.
struct Walk<K: Keep, V: Keep, const LOOPS: usize> {
    /// The changes, then what they look up.
    levels: Vec<Level<K, V, LOOPS>>,
    times: std::ops::Range<Time>,
    /// When the row that the first level is at changes, if it is known, from the last time to the first.
    changes: Vec<(Time, Mult)>,
    /// The level that goes on next; those before it are at rows that belong together.
    level: usize,
    /// By level, the copies of all rows up to it.
    copies: Vec<Mult>,
}

impl<K: Keep, V: Keep, const LOOPS: usize> Walk<K, V, LOOPS> {
    fn new(
        start: Level<K, V, LOOPS>,
        others: Vec<Level<K, V, LOOPS>>,
        times: std::ops::Range<Time>,
    ) -> Self {
        let mut levels = vec![start];
        levels.extend(others);
        let copies = vec![Mult(0); levels.len()];
        Walk { levels, times, changes: Vec::new(), level: 0, copies }
    }

    /// Goes on for so many steps; answers whether it has come to the end.
    fn go(
        &mut self,
        hops: &[Hop<K, V>],
        left: &mut usize,
        mut meet: impl FnMut(&Met<'_, K, V>, Time, Mult),
    ) -> bool {
        while *left > 0 {
            *left -= 1;
            let is_found = match self.level {
                0 => self.find_change(),
                level => self.find(level, hops[level - 1].is_before),
            };
            match (is_found, hops.get(self.level)) {
                (false, _) if self.level == 0 => return true,
                (false, _) => self.level -= 1,
                (true, Some(hop)) if self.enter(hop) => continue,
                (true, Some(_)) => {}
                (true, None) => {
                    let met: Met<'_, K, V> = self.levels.iter().map(Level::row).collect();
                    meet(&met, self.time(), self.copies[self.level]);
                }
            }
            self.advance();
        }
        false
    }

    /// When the change happens that is followed.
    fn time(&self) -> Time {
        self.changes.last().map_or(CLOSED, |(time, _)| *time)
    }

    /// Goes on to a change.
    fn find_change(&mut self) -> bool {
        let Level { cursor, batches } = &mut self.levels[0];
        while self.changes.is_empty() && cursor.key_valid(batches) {
            if !cursor.val_valid(batches) {
                cursor.step_key(batches);
                continue;
            }
            let (times, changes) = (&self.times, &mut self.changes);
            cursor.map_times(batches, |at, diff| {
                if times.contains(&at.time) {
                    changes.push((at.time, *diff));
                }
            });
            consolidate(&mut self.changes);
            self.changes.reverse();
            if self.changes.is_empty() {
                cursor.step_val(batches);
            }
        }
        let change = self.changes.last();
        change.iter().for_each(|(_, diff)| self.copies[0] = *diff);
        change.is_some()
    }

    /// Goes on to a row that the change meets.
    fn find(&mut self, level: usize, is_before: bool) -> bool {
        let time = self.time();
        let found = self.levels[level].find(time, is_before);
        let before = self.copies[level - 1];
        found.iter().for_each(|copies| self.copies[level] = before.multiply(copies));
        found.is_some()
    }

    /// Enters the next level; answers whether it may have rows.
    fn enter(&mut self, hop: &Hop<K, V>) -> bool {
        let (key, val) = self.levels[hop.from].row();
        let Some(key) = (hop.key)(key, val) else { return false };
        let is_there = self.levels[self.level + 1].seek(&key);
        self.level += usize::from(is_there);
        is_there
    }

    /// Leaves the row that the level is at.
    fn advance(&mut self) {
        if self.level == 0 {
            self.changes.pop();
            if !self.changes.is_empty() {
                return;
            }
        }
        let Level { cursor, batches } = &mut self.levels[self.level];
        cursor.step_val(batches);
    }
}
