//! Indexes: arrangements of base tables that several views read, each kept and fed once.
//!
//! The first view that looks something up in a table has the index made, and reads the table into it while it is attached
//! itself; those that come later find it. A view starts at a time that comes when decoding has reached the end of the WAL as of
//! its snapshot ([`Capture::reserve_time`](super::capture::Capture::reserve_time)): what was decoded until then counts as of that
//! time, in the view's own inputs as in the indexes, which so are of one point of commit order. An index goes with its last
//! reader.

use super::capture::Input;
use super::chosen::{is_selective, Chosen, New, Spec};
use super::main_loop::Worker;
use super::sources::Sources;
use super::view::Phase;
use crate::compile::SourceTable;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::index_cells::{MAX_KEY, MAX_READS};
use crate::pg::process;
use crate::pg::xact::SnapshotCopy;
use crate::shared_indexes::{self, Number};
use engine::{DataflowId, Read, Time};
use plan::types::Type;
use plan::SourceId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// An index.
#[derive(Debug)]
struct TableIndex {
    spec: Spec,
    readers: BTreeSet<ViewId>,
    /// Whether all rows of the table have been read into it.
    is_read: bool,
    /// Where other processes see it.
    cell: Option<Number>,
    /// Nothing was fed since it was fed everything before this time; it has arranged everything before that one.
    fed: Time,
    reached: Time,
}

impl TableIndex {
    fn is_at_work(&self) -> bool {
        self.reached < self.fed
    }
}

/// The indexes of a database.
#[derive(Debug)]
pub(super) struct Indexes {
    by_dataflow: BTreeMap<DataflowId, TableIndex>,
    /// Those that a view reads.
    by_view: BTreeMap<ViewId, Vec<DataflowId>>,
    /// Whether views that are attached from now on read any.
    are_shared: bool,
}

/// An index that a view would read is being made.
pub(super) struct InTheMaking;

impl Indexes {
    /// None; views are going to read some if they `are_shared`.
    pub(super) fn new(are_shared: bool) -> Indexes {
        Indexes { by_dataflow: BTreeMap::new(), by_view: BTreeMap::new(), are_shared }
    }

    /// What a view is to read; new indexes are named by `name`, but not made yet.
    pub(super) fn choose(
        &self,
        sources: &Sources,
        mut name: impl FnMut() -> DataflowId,
    ) -> Result<Chosen, InTheMaking> {
        if !self.are_shared {
            return Ok(Chosen::none(sources));
        }
        let plan = &sources.compiled.query.plan;
        let mut chosen = Chosen::default();
        let mut answered = BTreeSet::new();
        for (lookup, filter) in engine::lookups(plan) {
            let is_clock = sources.compiled.query.sources[lookup.0 .0].is_clock();
            if is_clock || lookup.1.len() > MAX_KEY || chosen.reads.len() == MAX_READS {
                continue;
            }
            let there = self.by_dataflow.iter().filter(|(_, i)| i.spec.answers(sources, &lookup));
            // The widest is the one that most others find, too.
            let there = there.max_by_key(|(_, index)| (index.is_read, index.spec.columns.len()));
            let made = chosen.new.iter().find(|new| new.spec.answers(sources, &lookup));
            let index = match (there, made) {
                (Some((_, index)), _) if !index.is_read => return Err(InTheMaking),
                (Some((id, _)), _) => *id,
                (None, Some(new)) => new.dataflow,
                (None, None) if is_selective(&filter) => continue,
                (None, None) => {
                    let (dataflow, source) = (name(), lookup.0);
                    let others = self.by_dataflow.values().map(|index| &index.spec);
                    let spec = others.fold(Spec::new(sources, &lookup), Spec::widened);
                    chosen.new.push(New { dataflow, source, spec });
                    dataflow
                }
            };
            let (source, key) = lookup.clone();
            chosen.reads.push(Read { source, key, index });
            answered.insert(lookup);
        }
        chosen.own = engine::sources_beside(plan, &answered);
        Ok(chosen)
    }

    /// A view reads these from now on; the tables of the new ones are about to be read.
    pub(super) fn note_begun(&mut self, view: ViewId, chosen: &Chosen, as_of: Time) {
        for New { dataflow, spec, .. } in &chosen.new {
            let index = TableIndex {
                spec: spec.clone(),
                readers: BTreeSet::new(),
                cell: spec.cell(process::database()).and_then(shared_indexes::take),
                is_read: false,
                fed: as_of,
                reached: as_of,
            };
            self.by_dataflow.insert(*dataflow, index);
        }
        for read in &chosen.reads {
            self.by_dataflow.get_mut(&read.index).into_iter().for_each(|index| {
                index.readers.insert(view);
            });
        }
        let read: BTreeSet<DataflowId> = chosen.reads.iter().map(|read| read.index).collect();
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

    fn of(&self, view: ViewId) -> impl Iterator<Item = (DataflowId, &TableIndex)> {
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
        let is_at_work = |(dataflow, index): (DataflowId, &TableIndex)| {
            index.is_at_work() && !self.capture.is_feeding(dataflow)
        };
        self.indexes.of(relid).any(is_at_work) && self.has_unfed(relid)
    }

    /// Whether some index was fed something that it has not arranged.
    pub(super) fn is_any_index_at_work(&self) -> bool {
        self.indexes.by_dataflow.values().any(TableIndex::is_at_work)
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
        let share = |(dataflow, index): (DataflowId, &TableIndex)| {
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
