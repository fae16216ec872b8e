//! Grouping in a spilling dataflow.
//!
//! Groups are read one by one, in the order of their keys; the updates of one group, of its results, and
//! times at which it is to be looked at later are in memory.

use super::arrange::{Arrangement, Spine};
use super::block::Update;
use super::chunk::{Batch, Chunk, Difference, Stored, StoredTime, TARGET};
use super::pager::Pager;
use super::reader::{Edits, Reader};
use differential_dataflow::consolidation::{consolidate, consolidate_updates};
use differential_dataflow::difference::Abelian;
use differential_dataflow::operators::common::{
    discover_times, tile_descriptions, DiscoverScratch, KeyView, ValueHistory,
};
use differential_dataflow::operators::reduce::{reduce_with_tactic, ReduceTactic};
use differential_dataflow::trace::chunk::ChunkBuilder;
use differential_dataflow::trace::{Builder, Description};
use std::collections::BTreeMap;
use std::rc::Rc;
use timely::progress::Antichain;

/// Per key the results of `logic`, which is given all values and adds the results it wants to see.
pub(crate) fn reduce<'s, K, V, T, R, V2, R2, L>(
    arranged: Arrangement<'s, K, V, T, R>,
    name: &str,
    logic: L,
) -> Arrangement<'s, K, V2, T, R2>
where
    K: Stored,
    V: Stored,
    T: StoredTime,
    R: Difference,
    V2: Stored,
    R2: Difference + Abelian,
    L: FnMut(&K, &[(&V, R)], &mut Vec<(V2, R2)>) + 'static,
{
    let tactic = Tactic::<K, V, T, R, V2, R2, L> {
        logic,
        pending: BTreeMap::new(),
        pager: Pager::current(),
        group: Group::new(),
    };
    reduce_with_tactic::<_, Spine<K, V2, T, R2>, _>(arranged, name, tactic)
}

struct Tactic<K: Stored, V: Stored, T: StoredTime, R: Difference, V2: Stored, R2: Difference, L> {
    logic: L,
    /// Times still to come at which groups are to be looked at although nothing may come then.
    pending: BTreeMap<K, Vec<T>>,
    pager: Rc<Pager>,
    group: Group<V, T, R, V2, R2>,
}

/// What comes out for one capability.
struct Tile<K: Stored, V: Stored, T: StoredTime, R: Difference> {
    held: T,
    description: Description<T>,
    builder: ChunkBuilder<Chunk<K, V, T, R>>,
    rows: Vec<Update<K, V, T, R>>,
}

impl<K: Stored, V: Stored, T: StoredTime, R: Difference> Tile<K, V, T, R> {
    fn new(held: T, description: Description<T>) -> Self {
        Tile { held, description, builder: Builder::new(), rows: Vec::new() }
    }

    /// Adds the updates of a key, which comes after those before.
    fn push(&mut self, key: &K, edits: &mut Edits<V, T, R>, pager: &Rc<Pager>) {
        consolidate_updates(edits);
        let edits = edits.drain(..).map(|(value, time, diff)| ((key.clone(), value), time, diff));
        self.rows.extend(edits);
        if self.rows.len() >= TARGET {
            self.flush(pager);
        }
    }

    fn flush(&mut self, pager: &Rc<Pager>) {
        let rows = std::mem::take(&mut self.rows);
        self.builder.push(&mut Chunk::new(rows, Some(Rc::clone(pager))));
    }

    fn done(mut self, pager: &Rc<Pager>) -> (T, Batch<K, V, T, R>) {
        self.flush(pager);
        (self.held, self.builder.done(self.description))
    }
}

impl<K, V, T, R, V2, R2, L> ReduceTactic<Batch<K, V, T, R>, Batch<K, V2, T, R2>>
    for Tactic<K, V, T, R, V2, R2, L>
where
    K: Stored,
    V: Stored,
    T: StoredTime,
    R: Difference,
    V2: Stored,
    R2: Difference + Abelian,
    L: FnMut(&K, &[(&V, R)], &mut Vec<(V2, R2)>),
{
    fn retire(
        &mut self,
        source: Vec<Batch<K, V, T, R>>,
        results: Vec<Batch<K, V2, T, R2>>,
        fresh: Vec<Batch<K, V, T, R>>,
        lower: &Antichain<T>,
        upper: &Antichain<T>,
        held: &Antichain<T>,
    ) -> (Vec<(T, Batch<K, V2, T, R2>)>, Antichain<T>) {
        if held.elements().iter().all(|time| upper.less_equal(time)) {
            return (Vec::new(), held.clone());
        }
        let (descriptions, times, tile_of) = tile_descriptions(lower, upper, held.elements());
        let mut tiles: Vec<_> =
            times.into_iter().zip(descriptions).map(|(held, d)| Tile::new(held, d)).collect();
        let (mut source, mut results) = (Reader::new(source), Reader::new(results));
        let mut fresh = Reader::new(fresh);
        let mut pending = std::mem::take(&mut self.pending);
        while let Some(key) = fresh.key().into_iter().chain(pending.keys().next()).min().cloned() {
            let times = pending.remove(&key).unwrap_or_default();
            // Not to read from disk what is to be looked at later.
            if fresh.key() != Some(&key) && times.iter().all(|time| upper.less_equal(time)) {
                self.pending.insert(key, times);
                continue;
            }
            self.group.load(&key, times, &mut source, &mut results, &mut fresh);
            self.group.play(upper, |values, results| (self.logic)(&key, values, results));
            for (time, value, diff) in self.group.produced.drain(..) {
                let index = held.elements().iter().rposition(|held| held.less_equal(&time));
                let tile = index.and_then(|index| tile_of[index]);
                let tile = tile.expect("results have times that a capability is held for");
                self.group.tiled.resize_with(tiles.len(), Vec::new);
                self.group.tiled[tile].push((value, time, diff));
            }
            for (tile, edits) in tiles.iter_mut().zip(&mut self.group.tiled) {
                tile.push(&key, edits, &self.pager);
            }
            if !self.group.pended.is_empty() {
                self.pending.insert(key, std::mem::take(&mut self.group.pended));
            }
        }
        let produced = tiles.into_iter().map(|tile| tile.done(&self.pager)).collect();
        let mut frontier = Antichain::new();
        self.pending.values().flatten().for_each(|time| {
            frontier.insert_ref(time);
        });
        (produced, frontier)
    }
}

/// The updates of one group. Kept from group to group for its memory.
struct Group<V: Stored, T: StoredTime, R: Difference, V2: Stored, R2: Difference> {
    /// Times at which it is to be looked at.
    pending: Vec<T>,
    /// What came just now.
    fresh_times: Vec<T>,
    /// All updates, with what came just now.
    input: Edits<V, T, R>,
    output: Edits<V2, T, R2>,
    scratch: DiscoverScratch<T, R>,
    /// Times at which results may change, and later ones.
    moments: Vec<T>,
    pended: Vec<T>,
    /// Changes of results.
    produced: Vec<(T, V2, R2)>,
    tiled: Vec<Edits<V2, T, R2>>,
}

impl<V: Stored, T: StoredTime, R: Difference, V2: Stored, R2: Difference + Abelian>
    Group<V, T, R, V2, R2>
{
    fn new() -> Self {
        Group {
            pending: Vec::new(),
            fresh_times: Vec::new(),
            input: Vec::new(),
            output: Vec::new(),
            scratch: DiscoverScratch::new(),
            moments: Vec::new(),
            pended: Vec::new(),
            produced: Vec::new(),
            tiled: Vec::new(),
        }
    }

    fn load<K: Stored>(
        &mut self,
        key: &K,
        pending: Vec<T>,
        source: &mut Reader<K, V, T, R>,
        results: &mut Reader<K, V2, T, R2>,
        fresh: &mut Reader<K, V, T, R>,
    ) {
        self.pending = pending;
        self.input.clear();
        self.output.clear();
        fresh.take_key(key, &mut self.input);
        self.fresh_times.clear();
        self.fresh_times.extend(self.input.iter().map(|(_, time, _)| time.clone()));
        source.seek(key);
        source.take_key(key, &mut self.input);
        results.seek(key);
        results.take_key(key, &mut self.output);
        consolidate_updates(&mut self.input);
        consolidate_updates(&mut self.output);
    }

    /// Finds what changes before `upper`, and when to look again.
    fn play(
        &mut self,
        upper: &Antichain<T>,
        mut logic: impl FnMut(&[(&V, R)], &mut Vec<(V2, R2)>),
    ) {
        self.moments.clear();
        self.pended.clear();
        self.produced.clear();
        let (values, input) = numbered(&self.input);
        let view = KeyView { p_in: &input, i0: 0, i1: input.len(), pending: &self.pending };
        discover_times(
            view,
            self.fresh_times.iter().cloned(),
            self.output.iter().map(|(_, time, _)| time.clone()),
            upper,
            &mut self.scratch,
            &mut self.moments,
            &mut self.pended,
        );
        let (old_results, output) = numbered(&self.output);
        let meets = meets(&self.moments);
        let (mut input_history, mut output_history) = (ValueHistory::new(), ValueHistory::new());
        input_history.load_iter(edits_of(input), meets.first());
        output_history.load_iter(edits_of(output), meets.first());
        let mut new_results: Edits<V2, T, R2> = Vec::new();
        for (moment, meet) in self.moments.iter().zip(&meets) {
            input_history.step_through(moment);
            input_history.advance_buffer_by(meet);
            output_history.step_through(moment);
            output_history.advance_buffer_by(meet);
            new_results.iter_mut().for_each(|(_, time, _)| time.join_assign(meet));
            consolidate_updates(&mut new_results);

            let present = present(input_history.buffer(), moment);
            let present: Vec<(&V, R)> =
                present.into_iter().map(|(number, diff)| (values[number as usize], diff)).collect();
            let mut changes = Vec::new();
            if !present.is_empty() {
                logic(&present, &mut changes);
            }
            let old = output_history.buffer().iter();
            let old = old.map(|((number, time), diff)| (old_results[*number as usize], time, diff));
            let new = new_results.iter().map(|(value, time, diff)| (value, time, diff));
            let results = old.chain(new).filter(|(_, time, _)| time.less_equal(moment));
            changes.extend(results.map(|(value, _, diff)| (value.clone(), negated(diff))));
            consolidate(&mut changes);
            for (value, diff) in changes {
                new_results.push((value.clone(), moment.clone(), diff.clone()));
                self.produced.push((moment.clone(), value, diff));
            }
        }
    }
}

/// The least time that is still to be looked at, at each of some moments in order.
fn meets<T: StoredTime>(moments: &[T]) -> Vec<T> {
    let mut meets = moments.to_vec();
    for index in (1..meets.len()).rev() {
        meets[index - 1] = meets[index - 1].meet(&meets[index]);
    }
    meets
}

/// Updates as functions of differential want them: of key 0, values by number.
type Numbered<T, R> = Vec<((u64, u64), T, R)>;

/// Numbers the values of sorted updates.
fn numbered<V: Stored, T: StoredTime, R: Difference>(
    edits: &Edits<V, T, R>,
) -> (Vec<&V>, Numbered<T, R>) {
    let mut values: Vec<&V> = Vec::new();
    let mut updates = Vec::with_capacity(edits.len());
    for (value, time, diff) in edits {
        if values.last() != Some(&value) {
            values.push(value);
        }
        updates.push(((0, values.len() as u64 - 1), time.clone(), diff.clone()));
    }
    (values, updates)
}

fn edits_of<T, R>(updates: Numbered<T, R>) -> impl Iterator<Item = (u64, T, R)> {
    updates.into_iter().map(|((_, number), time, diff)| (number, time, diff))
}

/// What has added up at a moment.
fn present<T: StoredTime, R: Difference>(updates: &[((u64, T), R)], moment: &T) -> Vec<(u64, R)> {
    let updates = updates.iter().filter(|((_, time), _)| time.less_equal(moment));
    let mut present = updates.map(|((number, _), diff)| (*number, diff.clone())).collect();
    consolidate(&mut present);
    present
}

fn negated<R: Abelian>(diff: &R) -> R {
    let mut diff = diff.clone();
    diff.negate();
    diff
}
