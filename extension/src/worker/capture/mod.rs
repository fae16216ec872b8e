//! Capture: what decoding delivers becomes updates for the inputs of the dataflows, which are those of views and of indexes.
//!
//! Every source transaction that touches a captured table gets a time of its own, in commit order.
//!
//! Large transactions come in pieces while they run ([`held`]). Their rows are kept by *shape*, which is what an input
//! takes of which tables, and not by input, because views come and go meanwhile. When such a transaction T commits it gets
//! its time like any other, and each input whose snapshot does not see T gets what is kept for its shape. Why that is
//! all of T, and nothing else:
//! - A row of T comes in one piece, once. It is kept for all shapes that there are then.
//! - A shape that was there when the first change of a table by T came is there until T ends: a shape that no input has
//!   any more goes when the transactions have ended that were running then. Numbers of shapes grow, and T knows for each of
//!   its tables which number was the next one. So for the shapes below it, T has all rows of that table.
//! - An input of any other shape may lack rows, and so its view is attached again. That waits until T has ended as
//!   snapshots see it, like everything decoded, so the new snapshot sees T. As the shape stays, this happens once for
//!   each transaction that was running when the shape came, however many follow.
//! - What a subtransaction did is kept with its number. When T has committed decoding says which parts have, and what has
//!   another number is skipped. (That a part is rolled back is mostly said at once, too, but not always.)
//! - A piece may be of a part that has been rolled back already, whose catalog rows may be gone. Reading them raises an error
//!   in the middle of a row; what was kept of it is of a part that will not be among those that have committed.
//! - Rows are read with the catalogs of their moment. If that fails it is kept like a row, and becomes trouble of the
//!   views when T commits. What T does to the catalogs is looked at then, too, as its locks are in the way before.

mod feeding;
mod held;
mod history;
mod inputs;
mod trouble;

pub use feeding::Portion;
pub use held::Limits;
pub use history::{History, Moment};
pub use inputs::Input;
pub use trouble::Trouble;

use super::clock;
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::decoding::{Change, Commit, Part, Sink};
use crate::pg::ids::RelationId;
use crate::pg::relation::with_historic_relation;
use crate::pg::{inval, xact};
use engine::{DataflowId, Time};
use feeding::{Feeding, Step};
use held::{Committed, Running, Share};
use inputs::{InputId, Inputs, Rows, Shape};
use plan::row::Row;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::rc::Rc;

/// Times left free before one that is reserved: more than transactions come while the WAL is decoded to where it ends now.
const AHEAD: Time = 1 << 30;

/// Collects what decoding delivers.
pub struct Capture {
    inputs: Inputs,
    /// Transactions that came in part.
    running: Running,
    /// By dataflow: one that is at work takes its steps later.
    steps: BTreeMap<DataflowId, BTreeMap<InputId, Vec<Step>>>,
    /// By dataflow: what it is being fed.
    feedings: BTreeMap<DataflowId, Feeding>,
    /// Dataflows changed by the transaction being decoded.
    touched: BTreeSet<DataflowId>,
    next_time: Time,
    /// The last time that was reserved.
    reserved: Time,
    time_is_used: bool,
    /// How many transactions have been given a time, until taken.
    pub commits: usize,
    /// How many have been given one altogether.
    pub transactions: u64,
    /// Of which transactions times are.
    pub history: History,
    /// Dataflows in trouble, until taken.
    pub troubles: BTreeMap<DataflowId, Trouble>,
    /// Decoded transactions that may not be visible yet, and the dataflows they change.
    pub recent: BTreeMap<u32, BTreeSet<DataflowId>>,
    /// Transactions to be collected before decoding pauses, `None` for no limit.
    pub limit: Option<usize>,
    /// Row changes of captured tables so far.
    pub changes: u64,
}

impl Capture {
    /// Collects nothing yet.
    pub fn new(limits: Limits) -> Capture {
        Capture {
            inputs: Inputs::new(),
            running: Running::new(limits),
            steps: BTreeMap::new(),
            feedings: BTreeMap::new(),
            touched: BTreeSet::new(),
            next_time: 1,
            reserved: 0,
            time_is_used: false,
            commits: 0,
            transactions: 0,
            history: History::default(),
            troubles: BTreeMap::new(),
            recent: BTreeMap::new(),
            limit: None,
            changes: 0,
        }
    }

    /// How much may be held of transactions that run, from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.running.set_limits(limits);
    }

    /// A time that comes after all given out until [`Capture::come_to`] it, with room for many before it.
    pub fn reserve_time(&mut self) -> Time {
        self.reserved = self.reserved.max(self.next_time) + AHEAD;
        self.reserved
    }

    /// Times from now on are later than a reserved one.
    pub fn come_to(&mut self, reserved: Time) {
        self.next_time = self.next_time.max(reserved + 1);
    }

    /// A time after all given out so far.
    pub fn take_time(&mut self) -> Time {
        let time = self.next_time;
        self.next_time += 1;
        time
    }

    /// All times given out are before this one.
    pub fn upper(&self) -> Time {
        self.next_time
    }

    /// From now on changes of the input's tables are collected.
    pub fn add(&mut self, input: Input) {
        self.inputs.add(input);
    }

    /// Forgets the inputs of a dataflow and what was collected for them.
    pub fn remove(&mut self, dataflow: DataflowId) {
        self.inputs.remove(dataflow, self.running.next_number());
        self.inputs.prune(self.running.oldest());
        self.steps.remove(&dataflow);
        self.feedings.remove(&dataflow);
        self.troubles.remove(&dataflow);
    }

    /// Whether anything has been collected for a dataflow.
    pub fn has_steps(&self, dataflow: DataflowId) -> bool {
        self.steps.contains_key(&dataflow)
    }

    /// Begins to feed what has been collected for a dataflow.
    pub fn begin_feeding(&mut self, dataflow: DataflowId) {
        let steps = self.steps.remove(&dataflow).unwrap_or_default();
        let of_source = |(id, steps)| Some((self.inputs.get(id)?.source, steps));
        let steps = steps.into_iter().filter_map(of_source).collect();
        self.feedings.insert(dataflow, Feeding::new(steps, self.next_time));
    }

    /// The dataflows that are being fed.
    pub fn being_fed(&self) -> Vec<DataflowId> {
        self.feedings.keys().copied().collect()
    }

    /// Whether a dataflow is being fed.
    pub fn is_feeding(&self, dataflow: DataflowId) -> bool {
        self.feedings.contains_key(&dataflow)
    }

    /// Whether any dataflow is being fed.
    pub fn is_feeding_any(&self) -> bool {
        !self.feedings.is_empty()
    }

    /// Whether what comes next for a dataflow is part of something large.
    pub fn is_next_large(&self, dataflow: DataflowId) -> bool {
        self.feedings.get(&dataflow).is_some_and(Feeding::is_large)
    }

    /// The next portion for a dataflow; `None` if all has been fed. An error if rows cannot be read back.
    pub fn next_portion(&mut self, dataflow: DataflowId) -> io::Result<Option<Portion>> {
        self.feedings.get_mut(&dataflow).map_or(Ok(None), Feeding::next)
    }

    /// All has been fed that is before a time, which is returned.
    pub fn end_feeding(&mut self, dataflow: DataflowId) -> Time {
        self.feedings.remove(&dataflow).map_or(self.next_time, |feeding| feeding.upper)
    }

    /// Whether a view reads the present time.
    pub fn reads_clock(&self) -> bool {
        self.inputs.iter().any(|(_, input)| input.is_clock())
    }

    /// Replaces the present time for all views that read it, when decoding is at that position.
    pub fn tell_clocks(&mut self, (before, now): (i64, i64), time: Time, position: u64) {
        self.history.note(time, || Moment { lsn: position, xid: None, at: now });
        for (id, input) in self.inputs.iter().filter(|(_, input)| input.is_clock()) {
            let steps = self.steps.entry(input.dataflow).or_default().entry(id).or_default();
            let updates = vec![(clock::row(before), time, -1), (clock::row(now), time, 1)];
            steps.push(Step::Update(updates));
        }
    }

    /// Forgets decoded transactions that all snapshots see by now.
    pub fn prune_recent(&mut self) {
        self.recent.retain(|xid, _| xact::is_in_progress(*xid));
    }

    fn push(&mut self, id: InputId, row: Row, diff: i64) {
        let time = self.next_time;
        let Some(steps) = self.steps_of(id) else { return };
        match steps.last_mut() {
            Some(Step::Update(updates)) => updates.push((row, time, diff)),
            _ => steps.push(Step::Update(vec![(row, time, diff)])),
        }
    }

    /// What is collected for an input, to which the transaction being decoded adds.
    fn steps_of(&mut self, id: InputId) -> Option<&mut Vec<Step>> {
        let dataflow = self.inputs.get(id)?.dataflow;
        self.time_is_used = true;
        self.touched.insert(dataflow);
        Some(self.steps.entry(dataflow).or_default().entry(id).or_default())
    }

    /// The dataflow of an input, if it wants to know what a transaction did.
    fn interested(&self, id: InputId, xid: u32) -> Option<DataflowId> {
        let input = self.inputs.get(id)?;
        let is_in_trouble = self.troubles.contains_key(&input.dataflow);
        (!is_in_trouble && !input.has_read(xid)).then_some(input.dataflow)
    }

    /// Collects for an input what a change of the transaction being decoded means for its shape.
    fn take(&mut self, id: InputId, xid: u32, rows: Result<Rows, Trouble>) {
        let Some(dataflow) = self.interested(id, xid) else { return };
        match rows {
            Ok(Rows { old, new }) => {
                old.into_iter().for_each(|row| self.push(id, row, -1));
                new.into_iter().for_each(|row| self.push(id, row, 1));
            }
            Err(trouble) => drop(self.troubles.insert(dataflow, trouble)),
        }
    }

    /// A table that a transaction has made unlogged loses changes, whatever it is when somebody looks at it: views are
    /// attached anew, but for those that were attached after that transaction.
    fn attach_again(&mut self, xid: u32, tables: impl IntoIterator<Item = RelationId>) {
        for id in tables.into_iter().flat_map(|table| self.inputs.readers_of_table(table)) {
            if let Some(dataflow) = self.interested(id, xid) {
                self.troubles.insert(dataflow, Trouble::Changed);
            }
        }
    }

    /// Of the tables that the transaction being decoded has changed, those that are not logged.
    fn unlogged_tables(&self) -> BTreeSet<RelationId> {
        let is_read = |table: &RelationId| self.inputs.shapes_of(*table).is_some();
        let is_unlogged = |table: &RelationId| {
            with_historic_relation(*table, |table| table.is_logged()) == Some(false)
        };
        inval::take_passed().into_iter().filter(is_read).filter(is_unlogged).collect()
    }

    /// Gives to each input what is held for its shape of a transaction that it does not see.
    fn share_out(&mut self, committed: &Committed, xid: u32) {
        let time = self.next_time;
        let share_of = |(id, shape): (_, &Shape)| {
            (Rc::clone(&shape.readers), committed.share_of(id, &shape.members, time))
        };
        let shares: Vec<_> = self.inputs.shapes().map(share_of).collect();
        for (readers, share) in shares {
            for id in readers.iter().copied() {
                let Some(dataflow) = self.interested(id, xid) else { continue };
                match &share {
                    Share::Nothing => {}
                    Share::Trouble(trouble) => {
                        drop(self.troubles.insert(dataflow, trouble.clone()));
                    }
                    Share::Rows(rows) => {
                        if let Some(steps) = self.steps_of(id) {
                            steps.push(Step::Held(rows.clone()));
                        }
                    }
                }
            }
        }
    }

    /// The transaction has been decoded: what it changed has its time.
    fn end(&mut self, commit: Commit) {
        self.recent.insert(commit.xid, std::mem::take(&mut self.touched));
        if std::mem::take(&mut self.time_is_used) {
            self.history.note(self.next_time, || Moment::of(commit));
            self.commits += 1;
            self.transactions += 1;
            self.next_time += 1;
        }
        crash_point::reach(CrashPoint::Decode);
    }

    /// A transaction that came while it ran has ended.
    fn prune_shapes(&mut self) {
        self.inputs.prune(self.running.oldest());
    }
}

impl Sink for Capture {
    fn change(&mut self, xid: u32, change: Change<'_>) {
        let Some(shapes) = self.inputs.shapes_of(change.relation.id()) else { return };
        self.changes += 1;
        self.inputs.load(&change);
        for shape in shapes.iter().copied() {
            let readers = self.inputs.readers(shape);
            if !readers.iter().any(|id| self.interested(*id, xid).is_some()) {
                continue;
            }
            let rows = self.inputs.read(shape, &change);
            for id in readers.iter().skip(1) {
                self.take(*id, xid, rows.clone());
            }
            // Mostly there is but one.
            self.take(readers[0], xid, rows);
        }
    }

    fn truncate(&mut self, xid: u32, relids: &[RelationId]) {
        for (shape, is_whole) in self.inputs.truncated(relids) {
            for id in self.inputs.readers(shape).iter().copied() {
                let Some(dataflow) = self.interested(id, xid) else { continue };
                let time = self.next_time;
                if !is_whole {
                    // Some partitions only: which rows these were is not known to the dataflow.
                    self.troubles.insert(dataflow, Trouble::Changed);
                } else if let Some(steps) = self.steps_of(id) {
                    steps.push(Step::Truncate(time));
                }
            }
        }
    }

    fn commit(&mut self, commit: Commit) {
        let unlogged = self.unlogged_tables();
        self.attach_again(commit.xid, unlogged);
        self.end(commit);
    }

    fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.commits >= limit)
    }

    fn change_while_running(&mut self, part: Part, change: Change<'_>) {
        let table = change.relation.id();
        self.running.note_table(part, table, self.inputs.next_shape());
        let Some(shapes) = self.inputs.shapes_of(table) else { return };
        self.changes += 1;
        self.inputs.load(&change);
        for shape in shapes.iter().copied() {
            match self.inputs.read(shape, &change) {
                Ok(rows) => {
                    rows.old.iter().for_each(|row| self.running.push(part, shape, row, false));
                    rows.new.iter().for_each(|row| self.running.push(part, shape, row, true));
                }
                Err(trouble) => self.running.note_trouble(part, shape, trouble),
            }
        }
    }

    fn truncate_while_running(&mut self, part: Part, relids: &[RelationId]) {
        for relid in relids {
            self.running.note_table(part, *relid, self.inputs.next_shape());
        }
        for (shape, is_whole) in self.inputs.truncated(relids) {
            match is_whole {
                true => self.running.truncate(part, shape),
                false => self.running.note_trouble(part, shape, Trouble::Changed),
            }
        }
    }

    fn pause_running(&mut self, xid: u32, can_read_catalogs: bool) {
        let unlogged = match can_read_catalogs {
            true => self.unlogged_tables(),
            // What has become of them cannot be told.
            false => inval::take_passed(),
        };
        self.running.note_unlogged(xid, unlogged);
        self.running.note_invalidated(xid, inval::take_disregarded());
    }

    fn abort_running(&mut self, part: Part) {
        self.running.abort(part);
        self.prune_shapes();
    }

    fn commit_running(&mut self, commit: Commit, parts: HashSet<u32>) {
        let xid = commit.xid;
        if let Some(committed) = self.running.take(xid, parts) {
            self.share_out(&committed, xid);
            self.attach_again(xid, committed.unlogged);
            inval::note_changed(committed.invalidated);
            self.prune_shapes();
        }
        self.end(commit);
    }
}
