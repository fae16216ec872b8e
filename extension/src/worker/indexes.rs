//! Indexes: arrangements of base tables that several views read, each kept and fed once.
//!
//! The first view that looks something up in a table has the index made, and reads the table into it while it is attached
//! itself; those that come later find it. A view starts at a time that comes when decoding has reached the end of the WAL as of
//! its snapshot ([`Capture::reserve_time`](super::capture::Capture::reserve_time)): what was decoded until then counts as of that
//! time, in the view's own inputs as in the indexes, which so are of one point of commit order. An index goes with its last
//! reader. What joins put out that several views compute ([`super::joins`]) is kept in the same way.

use super::capture::Input;
use super::chosen::{is_selective, Chosen, New, Spec};
use super::joins::{self, joins_of, sides, Joins, KeptJoin, NewJoin};
use super::main_loop::Worker;
use super::sources::Sources;
use super::view::Phase;
use crate::compile::SourceTable;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::index_cells::{MAX_KEY, MAX_READS};
use crate::pg::process;
use crate::pg::xact::SnapshotCopy;
use crate::settings::EngineSettings;
use crate::shared_indexes::{self, Number};
use engine::{DataflowId, Form, Lookup, Read, Time};
use plan::types::Type;
use plan::SourceId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// What an index holds.
#[derive(Debug)]
enum Holds {
    Table(Box<Spec>),
    /// It is fed by the indexes of the tables, and counts as read from the start.
    Join(Box<KeptJoin>),
}

/// An index.
#[derive(Debug)]
struct Kept {
    holds: Holds,
    readers: BTreeSet<ViewId>,
    /// Whether all rows of the table have been read into it.
    is_read: bool,
    /// Where other processes see it.
    cell: Option<Number>,
    /// Nothing was fed since it was fed everything before this time; it has arranged everything before that one.
    fed: Time,
    reached: Time,
}

impl Kept {
    fn new(holds: Holds, as_of: Time) -> Kept {
        let database = process::database();
        let cell = match &holds {
            Holds::Table(spec) => spec.cell(database),
            Holds::Join(join) => join.cell(database),
        };
        Kept {
            is_read: matches!(holds, Holds::Join(_)),
            holds,
            readers: BTreeSet::new(),
            cell: cell.and_then(shared_indexes::take),
            fed: as_of,
            reached: as_of,
        }
    }

    fn is_at_work(&self) -> bool {
        self.reached < self.fed
    }
}

/// The indexes of a database.
#[derive(Debug)]
pub(super) struct Indexes {
    by_dataflow: BTreeMap<DataflowId, Kept>,
    /// Those that a view reads.
    by_view: BTreeMap<ViewId, Vec<DataflowId>>,
    /// Whether views that are attached from now on read any.
    are_shared: bool,
    /// How many compute each view.
    workers: usize,
    /// Which joins the views compute.
    pub(super) joins: Joins,
}

/// An index that a view would read is being made.
pub(super) struct InTheMaking;

impl Indexes {
    /// None; views are going to read some if they are shared.
    pub(super) fn new(settings: &EngineSettings) -> Indexes {
        Indexes {
            by_dataflow: BTreeMap::new(),
            by_view: BTreeMap::new(),
            are_shared: settings.shares_indexes,
            workers: settings.workers,
            joins: Joins::new(if settings.shares_indexes { settings.shares_joins_from } else { 0 }),
        }
    }

    /// What a view is to read; new indexes are named by `name`, but not made yet.
    pub(super) fn choose(
        &self,
        sources: &Sources,
        mut name: impl FnMut() -> DataflowId,
    ) -> Result<Chosen, InTheMaking> {
        let plan = engine::as_computed(&sources.compiled.query.plan, self.workers, true);
        let mut chosen = Chosen::none(plan.into_owned());
        if !self.are_shared {
            return Ok(chosen);
        }
        self.choose_joins(sources, &mut chosen, &mut name)?;
        let tables = &sources.compiled.query.sources;
        let mut answered: BTreeSet<Lookup> =
            chosen.reads.iter().map(|read| (read.source, read.key.clone())).collect();
        for (lookup, filter) in engine::lookups(&chosen.plan, chosen.form) {
            // What joins put out is no table.
            let is_table = tables.get(lookup.0 .0).is_some_and(|table| !table.is_clock());
            if !is_table || lookup.1.len() > MAX_KEY || chosen.all().len() >= MAX_READS {
                continue;
            }
            let there = self.table_index(sources, (chosen.form, &lookup), &chosen.new)?;
            let index = match there {
                Some((dataflow, _)) => dataflow,
                None if is_selective(&filter) => continue,
                None => self.add_new(sources, &lookup, &mut chosen, &mut name).0,
            };
            let (source, key) = lookup.clone();
            chosen.reads.push(Read { source, key, index });
            answered.insert(lookup);
        }
        chosen.own = engine::sources_beside(&chosen.plan, &answered);
        Ok(chosen)
    }

    /// Lets a view read what is kept of its joins, and what is going to be because enough views compute it.
    fn choose_joins(
        &self,
        sources: &Sources,
        chosen: &mut Chosen,
        name: &mut impl FnMut() -> DataflowId,
    ) -> Result<(), InTheMaking> {
        for join in joins_of(sources) {
            let sides = sides(sources, &join);
            let (plan, source) = join.read_by(&chosen.plan);
            let wanted = &plan.sources[source.0];
            let (is_first, form) = (chosen.reads.is_empty(), chosen.form);
            let may_have = |other: Form| if is_first { other.fits(&plan) } else { other == form };
            let mut kept = self.by_dataflow.iter().filter_map(|(id, index)| match &index.holds {
                Holds::Join(join) => Some((*id, &**join)),
                Holds::Table(_) => None,
            });
            let there =
                kept.find(|(_, kept)| may_have(kept.form()) && kept.answers(&sides, wanted));
            let (index, form, beneath) = match there {
                Some((id, kept)) => (id, kept.form(), kept.beneath),
                None => {
                    let form = joins::form(&join, &chosen.plan);
                    if !self.joins.are_enough(&sides, form) || !may_have(form) {
                        continue;
                    }
                    // Of new tables nothing is left if the join does not come about.
                    let mut with_tables = Chosen { form, ..chosen.clone() };
                    let mut table = |lookup: &Lookup| {
                        let there = self.table_index(sources, (form, lookup), &with_tables.new)?;
                        let new = || self.add_new(sources, lookup, &mut with_tables, name);
                        Ok(there.unwrap_or_else(new))
                    };
                    let tables = [table(&join.left)?, table(&join.right)?];
                    let Some(join) = KeptJoin::new(sides, tables) else { continue };
                    let (dataflow, beneath) = (name(), join.beneath);
                    *chosen = with_tables;
                    chosen.joins.push(NewJoin { dataflow, join });
                    (dataflow, form, beneath)
                }
            };
            let is_made = |id: &DataflowId| self.by_dataflow.get(id).is_none_or(|i| i.is_read);
            if !beneath.iter().all(is_made) {
                return Err(InTheMaking);
            }
            chosen.beneath.extend(beneath);
            chosen.reads.push(Read { source, key: Vec::new(), index });
            (chosen.plan, chosen.form) = (plan, form);
        }
        Ok(())
    }

    /// The index that answers a look-up of a dataflow of that form: one that is there, or of those that are to be made.
    fn table_index(
        &self,
        sources: &Sources,
        (form, lookup): (Form, &Lookup),
        new: &[New],
    ) -> Result<Option<(DataflowId, Spec)>, InTheMaking> {
        let there = self.tables().filter(|(_, _, spec)| spec.answers(sources, form, lookup));
        // The widest is the one that most others find, too.
        let there = there.max_by_key(|(_, is_read, spec)| (*is_read, spec.columns.len()));
        let made = new.iter().find(|new| new.spec.answers(sources, form, lookup));
        match (there, made) {
            (Some((_, false, _)), _) => Err(InTheMaking),
            (Some((id, true, spec)), _) => Ok(Some((id, spec.clone()))),
            (None, Some(new)) => Ok(Some((new.dataflow, new.spec.clone()))),
            (None, None) => Ok(None),
        }
    }

    /// One more that is to be made.
    fn add_new(
        &self,
        sources: &Sources,
        lookup: &Lookup,
        chosen: &mut Chosen,
        name: &mut impl FnMut() -> DataflowId,
    ) -> (DataflowId, Spec) {
        let spec = Spec::new(sources, chosen.form, lookup);
        let spec = self.tables().map(|(_, _, spec)| spec).fold(spec, Spec::widened);
        let new = New { dataflow: name(), source: lookup.0, spec };
        chosen.new.push(new.clone());
        (new.dataflow, new.spec)
    }

    /// The indexes of tables, with whether all rows have been read into them.
    fn tables(&self) -> impl Iterator<Item = (DataflowId, bool, &Spec)> {
        self.by_dataflow.iter().filter_map(|(id, index)| match &index.holds {
            Holds::Table(spec) => Some((*id, index.is_read, &**spec)),
            Holds::Join(_) => None,
        })
    }

    /// A view reads these from now on; the tables of the new ones are about to be read.
    pub(super) fn note_begun(&mut self, view: ViewId, chosen: &Chosen, as_of: Time) {
        for New { dataflow, spec, .. } in &chosen.new {
            self.by_dataflow
                .insert(*dataflow, Kept::new(Holds::Table(Box::new(spec.clone())), as_of));
        }
        for NewJoin { dataflow, join } in &chosen.joins {
            self.by_dataflow
                .insert(*dataflow, Kept::new(Holds::Join(Box::new(join.clone())), as_of));
        }
        let read = chosen.all();
        for index in &read {
            self.by_dataflow.get_mut(index).into_iter().for_each(|index| {
                index.readers.insert(view);
            });
        }
        if !read.is_empty() {
            self.by_view.insert(view, read.into_iter().collect());
        }
    }

    /// The dataflow of an index has put out everything before a time.
    /// Answers whether it is one that a view may wait for.
    pub(super) fn reach(&mut self, dataflow: DataflowId, time: Time) -> bool {
        let index = self.by_dataflow.get_mut(&dataflow);
        index.is_some_and(|index| {
            index.reached = time;
            true
        })
    }

    /// The views that read an index; none if it is no index.
    pub(super) fn readers(&self, dataflow: DataflowId) -> BTreeSet<ViewId> {
        self.by_dataflow.get(&dataflow).map(|index| index.readers.clone()).unwrap_or_default()
    }

    fn of(&self, view: ViewId) -> impl Iterator<Item = (DataflowId, &Kept)> {
        let read = self.by_view.get(&view).map(Vec::as_slice).unwrap_or_default();
        read.iter().filter_map(|id| Some((*id, self.by_dataflow.get(id)?)))
    }
}

impl Worker {
    /// From now on changes of the tables of new indexes are collected; views hand theirs over.
    pub(super) fn collect_for_indexes(
        &mut self,
        sources: &Sources,
        chosen: &Chosen,
        snapshot: &SnapshotCopy,
    ) {
        for New { dataflow, source, spec } in &chosen.new {
            let SourceTable { table, is_view, .. } = sources.compiled.query.sources[source.0];
            let of_index = (*dataflow, SourceId(0));
            if is_view {
                self.connect(table, of_index, &spec.columns);
                continue;
            }
            self.capture.add(input_of(of_index, table, &spec.columns, &spec.members, snapshot));
        }
    }

    /// All rows of the tables of these have been fed.
    pub(super) fn note_indexes_read(&mut self, read: &[DataflowId]) {
        for dataflow in read {
            if let Some(index) = self.indexes.by_dataflow.get_mut(dataflow) {
                index.is_read = true;
            }
        }
        // Who waits for them has no longer to.
        for view in self.views.values_mut().filter(|_| !read.is_empty()) {
            if let Phase::Waiting { not_before, attempts: 1.. } = &mut view.phase {
                *not_before = Instant::now();
            }
        }
    }

    /// A view reads no index any more.
    pub(super) fn release_indexes(&mut self, relid: ViewId) {
        self.indexes.joins.forget(relid);
        for dataflow in self.indexes.by_view.remove(&relid).unwrap_or_default() {
            let Some(index) = self.indexes.by_dataflow.get_mut(&dataflow) else { continue };
            index.readers.remove(&relid);
            if index.readers.is_empty() {
                self.forget_index(dataflow);
            } else {
                self.charge_index(dataflow);
            }
        }
    }

    /// The view that answers for an index: the first of its readers.
    pub(super) fn answers_for(&self, dataflow: DataflowId) -> Option<ViewId> {
        self.indexes.by_dataflow.get(&dataflow)?.readers.first().copied()
    }

    /// Lets the memory of an index count as that of the owner of the view that answers for it.
    fn charge_index(&self, dataflow: DataflowId) {
        let owner = self.answers_for(dataflow).and_then(|view| self.owner_of(view));
        if let Some((engine, owner)) = self.engine.as_ref().zip(owner) {
            engine.set_owner(dataflow, owner);
        }
    }

    fn owner_of(&self, relid: ViewId) -> Option<u32> {
        match &self.views.get(&relid)?.phase {
            Phase::Reading(reading) => Some(reading.sources.compiled.owner.to_u32()),
            Phase::Attached(attachment) => Some(attachment.compiled.owner.to_u32()),
            Phase::Waiting { .. } | Phase::Failed { .. } => None,
        }
    }

    /// An index is gone, or to go.
    pub(super) fn forget_index(&mut self, dataflow: DataflowId) {
        if let Some(index) = self.indexes.by_dataflow.remove(&dataflow) {
            index.cell.into_iter().for_each(shared_indexes::free);
            self.capture.remove(dataflow);
            self.engine.iter_mut().for_each(|engine| engine.drop_dataflow(dataflow));
        }
    }

    /// Begins to feed the indexes that have nothing to do what was collected for them.
    pub(super) fn begin_index_batches(&mut self) {
        let upper = self.capture.upper();
        for (dataflow, index) in &mut self.indexes.by_dataflow {
            let is_idle = index.is_read && !index.is_at_work() && index.fed < upper;
            if is_idle && self.capture.has_steps(*dataflow) {
                self.capture.begin_feeding(*dataflow);
                index.fed = upper;
            }
        }
    }

    /// Whether an index of a view lacks something that was collected for it. The view is not told to go on before.
    pub(super) fn is_index_unfed(&self, relid: ViewId) -> bool {
        self.indexes.of(relid).any(|(dataflow, index)| {
            !index.is_read || self.capture.has_steps(dataflow) || self.capture.is_feeding(dataflow)
        })
    }

    /// Whether a view is not told to go on until an index that was fed has arranged it.
    pub(super) fn waits_for_index(&self, relid: ViewId) -> bool {
        let is_at_work = |(dataflow, index): (DataflowId, &Kept)| {
            index.is_at_work() && !self.capture.is_feeding(dataflow)
        };
        self.indexes.of(relid).any(is_at_work) && self.has_unfed(relid)
    }

    /// Whether some index was fed something that it has not arranged.
    pub(super) fn is_any_index_at_work(&self) -> bool {
        self.indexes.by_dataflow.values().any(Kept::is_at_work)
    }

    /// Whether there is something for a view that it was not told to take, or may be once views that it reads are no longer
    /// behind.
    pub(super) fn is_unfed(&self, relid: ViewId) -> bool {
        self.stack.waits(relid) || self.has_unfed(relid)
    }

    /// Whether there is something for a view that it was not told to take: in its own inputs, or in indexes.
    pub(super) fn has_unfed(&self, relid: ViewId) -> bool {
        let Some(Phase::Attached(attachment)) = self.views.get(&relid).map(|view| &view.phase)
        else {
            return false;
        };
        attachment.fed <= attachment.start
            || self.capture.has_steps(attachment.dataflow)
            || self.is_view_ahead(relid, attachment.fed)
            || self.is_index_unfed(relid)
            || self.indexes.of(relid).any(|(_, index)| index.fed > attachment.fed)
    }

    /// Tells other processes of the indexes.
    pub(super) fn publish_indexes(&self) {
        let Some(engine) = &self.engine else { return };
        for (dataflow, index) in &self.indexes.by_dataflow {
            let stats = engine.stats(*dataflow);
            let figures = (engine.rows_of_index(*dataflow) as u64, stats.state_bytes as u64);
            if let Some(number) = index.cell {
                shared_indexes::update(number, |cell| (cell.rows, cell.bytes) = figures);
            }
        }
    }

    /// The cells of the indexes that a view reads.
    pub(super) fn cells_of_indexes(&self, relid: ViewId) -> [u32; MAX_READS] {
        shared_indexes::as_reads(self.indexes.of(relid).filter_map(|(_, index)| index.cell))
    }

    /// A view's share of the bytes of the indexes that it reads.
    pub(super) fn bytes_of_indexes(&self, relid: ViewId) -> usize {
        let Some(engine) = &self.engine else { return 0 };
        let share = |(dataflow, index): (DataflowId, &Kept)| {
            engine.stats(dataflow).state_bytes / index.readers.len().max(1)
        };
        self.indexes.of(relid).map(share).sum()
    }
}

/// The input of a dataflow that takes these columns of a table.
pub(super) fn input_of(
    (dataflow, source): (DataflowId, SourceId),
    table: RelationId,
    columns: &[(i16, Type)],
    members: &BTreeSet<RelationId>,
    snapshot: &SnapshotCopy,
) -> Input {
    Input {
        dataflow,
        source,
        table,
        columns: columns.to_vec(),
        members: members.clone(),
        already_read: snapshot.clone(),
    }
}
