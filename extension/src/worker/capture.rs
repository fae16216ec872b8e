//! Capture: what decoding delivers becomes updates for the inputs of the attached views.
//!
//! Every source transaction that touches a captured table gets a time of its own, in commit order.

use super::clock;
use super::view::Problem;
use crate::errors::Error;
use crate::pg::decoding::{Change, ChangeKind, Commit, Sink};
use crate::pg::heap::{Deformer, Projection};
use crate::pg::relation::{with_historic_relation, Attribute, RelationRef};
use crate::pg::value::type_oid;
use crate::pg::xact::SnapshotCopy;
use crate::pg::{inval, xact};
use engine::{Time, Updates};
use hashbrown::HashMap;
use planner::error::DataError;
use planner::plan::SourceId;
use planner::row::Row;
use planner::types::Type;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// One source of one view's dataflow.
pub struct Input {
    /// The view.
    pub view: u32,
    /// Which source of its dataflow.
    pub source: SourceId,
    /// The base table.
    pub table: u32,
    /// Columns needed, by the base table's attribute numbers.
    pub columns: Vec<(i16, Type)>,
    /// The base table and everything that inherits from it.
    pub members: BTreeSet<u32>,
    /// Transactions whose effects were read when the view was attached.
    pub already_read: SnapshotCopy,
}

impl Input {
    /// Whether it is no table but the present time.
    fn is_clock(&self) -> bool {
        self.members.is_empty()
    }
}

/// Work for the engine, in order.
pub enum Step {
    /// Updates of the input.
    Update(Updates<Row>),
    /// All rows before that time are gone.
    Truncate(Time),
}

/// Why a view must be attached again or fails, found while decoding.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// The tables are not what they were: attach again.
    Changed,
    /// The view cannot be maintained.
    Problem(Problem),
}

/// Number of an input.
type InputId = usize;

/// How the rows of one table are read for one input.
struct Reading {
    projection: Projection,
    /// Whether old rows carry all columns needed; else the name of the table, for the message.
    identity: Result<(), String>,
}

/// Collects what decoding delivers.
pub struct Capture {
    inputs: BTreeMap<InputId, Input>,
    /// By view: a view whose dataflow is at work takes its steps later.
    steps: BTreeMap<u32, BTreeMap<InputId, Vec<Step>>>,
    /// Views changed by the transaction being decoded.
    touched: BTreeSet<u32>,
    next_input: InputId,
    routes: HashMap<u32, Rc<[InputId]>>,
    readings: HashMap<(u32, InputId), Option<Rc<Reading>>>,
    generation: u64,
    deformer: Deformer,
    next_time: Time,
    time_is_used: bool,
    /// Transactions that have a time, until taken.
    pub commits: BTreeMap<Time, Commit>,
    /// Views in trouble, until taken.
    pub troubles: BTreeMap<u32, Trouble>,
    /// Decoded transactions that may not be visible yet, and the views they change.
    pub recent: BTreeMap<u32, BTreeSet<u32>>,
    /// Transactions to be collected before decoding pauses, `None` for no limit.
    pub limit: Option<usize>,
    /// Row changes of captured tables so far.
    pub changes: u64,
}

impl Capture {
    /// No inputs.
    pub fn new() -> Capture {
        Capture {
            inputs: BTreeMap::new(),
            steps: BTreeMap::new(),
            touched: BTreeSet::new(),
            next_input: 0,
            routes: HashMap::new(),
            readings: HashMap::new(),
            generation: 0,
            deformer: Deformer::default(),
            next_time: 1,
            time_is_used: false,
            commits: BTreeMap::new(),
            troubles: BTreeMap::new(),
            recent: BTreeMap::new(),
            limit: None,
            changes: 0,
        }
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
        self.inputs.insert(self.next_input, input);
        self.next_input += 1;
        self.route();
    }

    /// Forgets the inputs of a view and what was collected for them.
    pub fn remove_view(&mut self, view: u32) {
        self.inputs.retain(|_, input| input.view != view);
        self.steps.remove(&view);
        self.troubles.remove(&view);
        self.route();
    }

    fn route(&mut self) {
        let mut routes: HashMap<u32, Vec<InputId>> = HashMap::new();
        for (id, input) in &self.inputs {
            for member in &input.members {
                routes.entry(*member).or_default().push(*id);
            }
        }
        self.routes = routes.into_iter().map(|(relid, ids)| (relid, ids.into())).collect();
        self.readings.clear();
    }

    /// Whether anything has been collected for a view.
    pub fn has_steps(&self, view: u32) -> bool {
        self.steps.contains_key(&view)
    }

    /// What has been collected for a view, source by source.
    pub fn take_steps(&mut self, view: u32) -> Vec<(SourceId, Vec<Step>)> {
        let steps = self.steps.remove(&view).unwrap_or_default();
        let of_source = |(id, steps)| Some((self.inputs.get(&id)?.source, steps));
        steps.into_iter().filter_map(of_source).collect()
    }

    /// Whether a view reads the present time.
    pub fn reads_clock(&self) -> bool {
        self.inputs.values().any(Input::is_clock)
    }

    /// Replaces the present time for all views that read it.
    pub fn tell_clocks(&mut self, before: i64, now: i64, time: Time) {
        for (id, input) in self.inputs.iter().filter(|(_, input)| input.is_clock()) {
            let steps = self.steps.entry(input.view).or_default().entry(*id).or_default();
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
        let steps = self.steps_of(id);
        match steps.last_mut() {
            Some(Step::Update(updates)) => updates.push((row, time, diff)),
            _ => steps.push(Step::Update(vec![(row, time, diff)])),
        }
    }

    /// What is collected for an input, to which the transaction being decoded adds.
    fn steps_of(&mut self, id: InputId) -> &mut Vec<Step> {
        self.time_is_used = true;
        let view = self.inputs[&id].view;
        self.touched.insert(view);
        self.steps.entry(view).or_default().entry(id).or_default()
    }

    /// How the relation's rows are read for an input; `None` if it is not what it was.
    fn reading(&mut self, relation: &RelationRef<'_>, id: InputId) -> Option<Rc<Reading>> {
        if self.generation != inval::generation() {
            self.generation = inval::generation();
            self.readings.clear();
        }
        let input = &self.inputs[&id];
        let make = || read_as(relation, input).map(Rc::new);
        self.readings.entry((relation.oid(), id)).or_insert_with(make).clone()
    }

    /// A table that a transaction has made unlogged loses changes, whatever it is when somebody looks at it: views are
    /// attached anew, but for those that were attached after that transaction.
    fn look_at_changed_tables(&mut self, xid: u32) {
        for table in inval::take_passed() {
            let Some(ids) = self.routes.get(&table) else { continue };
            if with_historic_relation(table, |table| table.is_logged()) != Some(false) {
                continue;
            }
            for input in ids.iter().map(|id| &self.inputs[id]) {
                if !input.already_read.sees(xid) {
                    self.troubles.entry(input.view).or_insert(Trouble::Changed);
                }
            }
        }
    }

    fn change_of_input(&mut self, id: InputId, change: &Change<'_>) -> Result<(), Trouble> {
        let reading = self.reading(&change.relation, id).ok_or(Trouble::Changed)?;
        if change.kind != ChangeKind::Insert {
            reading.identity.as_ref().map_err(|table| Trouble::Problem(no_identity(table)))?;
        }
        let has_old = change.old.is_some();
        match (change.kind, change.new) {
            (ChangeKind::Update, Some(_)) => {
                // Without an old row the identity has not changed, and with it no column needed.
                if has_old {
                    let old = self.deformer.old_row(&reading.projection)?;
                    let new = self.deformer.new_row(&reading.projection, true)?;
                    if old != new {
                        self.push(id, old, -1);
                        self.push(id, new, 1);
                    }
                }
            }
            (ChangeKind::Insert, Some(_)) => {
                let new = self.deformer.new_row(&reading.projection, false)?;
                self.push(id, new, 1);
            }
            (ChangeKind::Delete, _) if has_old => {
                let old = self.deformer.old_row(&reading.projection)?;
                self.push(id, old, -1);
            }
            _ => return Err(Trouble::Changed),
        }
        Ok(())
    }
}

impl From<DataError> for Trouble {
    fn from(error: DataError) -> Trouble {
        Trouble::Problem(error.into())
    }
}

fn no_identity(table: &str) -> Problem {
    Error::state(format!("replica identity of table \"{table}\" does not cover the columns needed"))
        .hint(format!("Run ALTER TABLE {table} REPLICA IDENTITY FULL, then REFRESH the view."))
        .into()
}

/// Finds the input's columns in a table: by number in the base table itself, by name in others.
fn read_as(relation: &RelationRef<'_>, input: &Input) -> Option<Reading> {
    let attributes = relation.attributes();
    let numbers: Vec<i16> = if relation.oid() == input.table {
        input.columns.iter().map(|(number, _)| *number).collect()
    } else {
        let parent = with_historic_relation(input.table, |parent| parent.attributes())?;
        numbers_by_name(&input.columns, &parent, &attributes)?
    };
    let columns: Vec<(i16, Type)> =
        numbers.iter().zip(&input.columns).map(|(number, (_, ty))| (*number, *ty)).collect();
    let fits = columns.iter().all(|(number, ty)| {
        let mut found = attributes.iter().filter(|attribute| attribute.number == *number);
        found.any(|attribute| attribute.base_type == type_oid(*ty))
    });
    if !fits {
        return None;
    }
    let identity = match relation.identity_covers(&numbers) {
        true => Ok(()),
        false => Err(relation.qualified_name()),
    };
    Some(Reading { projection: Projection { columns }, identity })
}

/// Attribute numbers in a child of the parent's columns.
pub fn numbers_by_name(
    columns: &[(i16, Type)],
    parent: &[Attribute],
    child: &[Attribute],
) -> Option<Vec<i16>> {
    let number_of = |(number, _): &(i16, Type)| {
        let name = &parent.iter().find(|attribute| attribute.number == *number)?.name;
        Some(child.iter().find(|attribute| attribute.name == *name)?.number)
    };
    columns.iter().map(number_of).collect()
}

impl Sink for Capture {
    fn change(&mut self, xid: u32, change: Change<'_>) {
        let Some(ids) = self.routes.get(&change.relation.oid()).cloned() else { return };
        self.changes += 1;
        self.deformer.load(&change.relation, change.old, change.new);
        for id in ids.iter() {
            let input = &self.inputs[id];
            let view = input.view;
            if input.already_read.sees(xid) || self.troubles.contains_key(&view) {
                continue;
            }
            if let Err(trouble) = self.change_of_input(*id, &change) {
                self.troubles.insert(view, trouble);
            }
        }
    }

    fn truncate(&mut self, xid: u32, relids: &[u32]) {
        let mut concerned: BTreeSet<InputId> = BTreeSet::new();
        for ids in relids.iter().filter_map(|relid| self.routes.get(relid)) {
            concerned.extend(ids.iter());
        }
        for id in concerned {
            let input = &self.inputs[&id];
            if input.already_read.sees(xid) {
                continue;
            }
            if input.members.iter().all(|member| relids.contains(member)) {
                let time = self.next_time;
                self.steps_of(id).push(Step::Truncate(time));
            } else {
                // Some partitions only: which rows these were is not known to the dataflow.
                self.troubles.insert(input.view, Trouble::Changed);
            }
        }
    }

    fn commit(&mut self, commit: Commit) {
        self.look_at_changed_tables(commit.xid);
        self.recent.insert(commit.xid, std::mem::take(&mut self.touched));
        if std::mem::take(&mut self.time_is_used) {
            self.commits.insert(self.next_time, commit);
            self.next_time += 1;
        }
    }

    fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.commits.len() >= limit)
    }
}
