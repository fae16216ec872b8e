//! Indexes: arrangements of base tables that several views read, each kept and fed once.
//!
//! The first view that looks something up in a table has the index made, and reads the table into it while it is attached
//! itself; those that come later find it. A view starts at a time that comes when decoding has reached the end of the WAL as of
//! its snapshot ([`Capture::reserve_time`](super::capture::Capture::reserve_time)): what was decoded until then counts as of that
//! time, in the view's own inputs as in the indexes, which so are of one point of commit order. An index goes with its last
//! reader. What parts of plans put out that several views compute ([`super::kept_plans`]) is kept in the same way.

use super::capture::Input;
use super::chosen::{Chosen, New, Spec};
use super::kept_plans::{CommonParts, Fed, KeptPlan, NewPlan};
use super::main_loop::Worker;
use super::naming::relid_of;
use super::sources::Sources;
use super::view::{Attachment, Phase, View};
use crate::compile::SourceTable;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::index_cells::MAX_READS;
use crate::pg::process;
use crate::pg::xact::SnapshotCopy;
use crate::settings::EngineSettings;
use crate::shared_indexes::{self, Number};
use engine::{DataflowId, Time};
use plan::types::Type;
use plan::SourceId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// What an index holds.
#[derive(Debug)]
enum Holds {
    Table(Box<Spec>),
    Plan(Box<KeptPlan>),
}

/// An index.
#[derive(Debug)]
struct Kept {
    holds: Holds,
    /// Dataflows of views.
    readers: BTreeSet<DataflowId>,
    /// Whether all rows of the table have been read into it.
    is_read: bool,
    /// Where other processes see it.
    cell: Option<Number>,
    /// Nothing was fed since it was fed everything before this time; it has arranged everything before that one.
    fed: Time,
    reached: Time,
}

impl Kept {
    fn new(holds: Holds, is_read: bool, as_of: Time) -> Kept {
        let cell = match &holds {
            Holds::Table(spec) => spec.cell(process::database()),
            Holds::Plan(plan) => plan.cell(),
        };
        Kept {
            is_read,
            holds,
            readers: BTreeSet::new(),
            cell: cell.and_then(shared_indexes::take),
            fed: as_of,
            reached: as_of,
        }
    }

    /// Whether it is to arrange what it was fed. What a part of plans was fed waits for what it reads of others, and so for a view
    /// to be told of it.
    fn is_at_work(&self) -> bool {
        matches!(self.holds, Holds::Table(_)) && self.reached < self.fed
    }
}

/// The indexes of a database.
#[derive(Debug)]
pub(super) struct Indexes {
    by_dataflow: BTreeMap<DataflowId, Kept>,
    /// Those that a dataflow reads.
    by_reader: BTreeMap<DataflowId, Vec<DataflowId>>,
    /// Whether views that are attached from now on read any.
    pub(super) are_shared: bool,
    /// How many compute each view.
    pub(super) workers: usize,
    /// Which parts of their plans the views have in common.
    pub(super) parts: CommonParts,
}

impl Indexes {
    /// None; views are going to read some if they are shared.
    pub(super) fn new(settings: &EngineSettings) -> Indexes {
        Indexes {
            by_dataflow: BTreeMap::new(),
            by_reader: BTreeMap::new(),
            are_shared: settings.shares_indexes,
            workers: settings.all_workers(),
            parts: CommonParts::new(if settings.shares_indexes {
                settings.shares_plans_from
            } else {
                0
            }),
        }
    }

    /// A view is about to be begun.
    pub(super) fn note_parts(&mut self, view: ViewId, sources: &Sources) {
        if self.parts.are_wanted() {
            let plan = self.computed(sources);
            self.parts.note(view, sources, &plan);
        }
    }

    /// The error of a dataflow was raised by a part that it reads.
    pub(super) fn note_raised(&mut self, reader: DataflowId) {
        for index in self.by_reader.get(&reader).into_iter().flatten() {
            if let Some(Holds::Plan(plan)) = self.by_dataflow.get(index).map(|kept| &kept.holds) {
                self.parts.note_raised(plan.part());
            }
        }
    }

    /// The indexes of tables, with whether all rows have been read into them.
    pub(super) fn tables(&self) -> impl Iterator<Item = (DataflowId, bool, &Spec)> {
        self.by_dataflow.iter().filter_map(|(id, index)| match &index.holds {
            Holds::Table(spec) => Some((*id, index.is_read, &**spec)),
            Holds::Plan(_) => None,
        })
    }

    /// The parts of plans that are kept, with whether all that they are fed has been read.
    pub(super) fn plans(&self) -> impl Iterator<Item = (DataflowId, bool, &KeptPlan)> {
        self.by_dataflow.iter().filter_map(|(id, index)| match &index.holds {
            Holds::Plan(plan) => Some((*id, index.is_read, &**plan)),
            Holds::Table(_) => None,
        })
    }

    /// Whether an index lacks rows that are being read into it.
    pub(super) fn is_in_the_making(&self, index: DataflowId) -> bool {
        self.by_dataflow.get(&index).is_some_and(|index| !index.is_read)
    }

    /// A dataflow reads these from now on; the tables of the new ones are about to be read.
    pub(super) fn note_begun(&mut self, reader: DataflowId, chosen: &Chosen, as_of: Time) {
        for New { dataflow, spec, .. } in &chosen.new {
            let holds = Holds::Table(Box::new(spec.clone()));
            self.by_dataflow.insert(*dataflow, Kept::new(holds, false, as_of));
        }
        for NewPlan { dataflow, plan, fed } in &chosen.plans {
            let holds = Holds::Plan(Box::new(plan.clone()));
            // What comes from indexes is there from the start.
            self.by_dataflow.insert(*dataflow, Kept::new(holds, fed.is_empty(), as_of));
        }
        let read = chosen.all();
        for index in &read {
            self.by_dataflow.get_mut(index).into_iter().for_each(|index| {
                index.readers.insert(reader);
            });
        }
        if !read.is_empty() {
            self.by_reader.insert(reader, read.into_iter().collect());
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

    /// Whether a dataflow is told of a time as soon as it was fed what came before: one that reads others would have them told, too.
    pub(super) fn is_told_at_once(&self, dataflow: DataflowId) -> bool {
        let holds = self.by_dataflow.get(&dataflow).map(|index| &index.holds);
        !matches!(holds, Some(Holds::Plan(_)))
    }

    /// The views that read an index; none if it is no index.
    pub(super) fn readers(&self, dataflow: DataflowId) -> BTreeSet<ViewId> {
        let index = self.by_dataflow.get(&dataflow);
        index.into_iter().flat_map(|index| &index.readers).copied().map(relid_of).collect()
    }

    fn of(&self, reader: DataflowId) -> impl Iterator<Item = (DataflowId, &Kept)> {
        let read = self.by_reader.get(&reader).map(Vec::as_slice).unwrap_or_default();
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
        for Fed { input, source, columns } in chosen.fed() {
            let SourceTable { table, is_view, .. } = sources.compiled.query.sources[source.0];
            if is_view {
                self.connect(table, input, &columns);
                continue;
            }
            let members = &sources.members[source.0];
            self.capture.add(input_of(input, table, &columns, members, Some(snapshot)));
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

    /// A dataflow reads no index any more.
    pub(super) fn release_indexes(&mut self, reader: DataflowId) {
        for dataflow in self.indexes.by_reader.remove(&reader).unwrap_or_default() {
            let Some(index) = self.indexes.by_dataflow.get_mut(&dataflow) else { continue };
            index.readers.remove(&reader);
            if index.readers.is_empty() {
                self.forget_index(dataflow);
            } else {
                self.charge_index(dataflow);
            }
        }
    }

    /// The view that answers for an index: the first of its readers.
    pub(super) fn answers_for(&self, dataflow: DataflowId) -> Option<ViewId> {
        self.indexes.by_dataflow.get(&dataflow)?.readers.first().copied().map(relid_of)
    }

    /// Lets the memory of an index count as that of the owner of the view that answers for it.
    fn charge_index(&mut self, dataflow: DataflowId) {
        let owner = self.answers_for(dataflow).and_then(|view| self.owner_of(view));
        if let Some((engine, owner)) = self.engine.get_mut().zip(owner) {
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
            self.engine.get_mut().into_iter().for_each(|engine| engine.drop_dataflow(dataflow));
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

    /// Whether an index of a view's dataflow lacks something that was collected for it. The view is not told to go on before.
    pub(super) fn is_index_unfed(&self, reader: DataflowId) -> bool {
        self.indexes.of(reader).any(|(dataflow, index)| {
            !index.is_read || self.capture.has_steps(dataflow) || self.capture.is_feeding(dataflow)
        })
    }

    /// Whether a view is not told to go on until an index that was fed has arranged it.
    pub(super) fn waits_for_index(&self, attachment: &Attachment) -> bool {
        let is_at_work = |(dataflow, index): (DataflowId, &Kept)| {
            index.is_at_work() && !self.capture.is_feeding(dataflow)
        };
        self.indexes.of(attachment.dataflow).any(is_at_work) && self.has_unfed(attachment)
    }

    /// Whether some index was fed something that it has not arranged.
    pub(super) fn is_any_index_at_work(&self) -> bool {
        self.indexes.by_dataflow.values().any(Kept::is_at_work)
    }

    /// Whether there is something for a view that it was not told to take, or may be once views that it reads are no longer
    /// behind.
    pub(super) fn is_unfed(&self, attachment: &Attachment) -> bool {
        self.stack.waits(relid_of(attachment.dataflow)) || self.has_unfed(attachment)
    }

    /// Whether there is something for a view that it was not told to take: in its own inputs, or in indexes.
    pub(super) fn has_unfed(&self, attachment: &Attachment) -> bool {
        let Attachment { dataflow, fed, start, .. } = *attachment;
        fed <= start
            || self.capture.has_steps(dataflow)
            || self.is_view_ahead(relid_of(dataflow), fed)
            || self.is_index_unfed(dataflow)
            || self.indexes.of(dataflow).any(|(_, index)| index.fed > fed)
    }

    /// Tells other processes of the indexes.
    pub(super) fn publish_indexes(&self) {
        let Some(engine) = self.engine.get() else { return };
        for (dataflow, index) in &self.indexes.by_dataflow {
            let stats = engine.stats(*dataflow);
            let figures = (engine.rows_of_index(*dataflow) as u64, stats.state_bytes as u64);
            if let Some(number) = index.cell {
                shared_indexes::update(number, |cell| (cell.rows, cell.bytes) = figures);
            }
        }
    }

    /// The cells of the indexes that a view reads.
    pub(super) fn cells_of_indexes(&self, view: &View) -> [u32; MAX_READS] {
        let reader = view.served().map(|attachment| attachment.dataflow);
        let read = reader.into_iter().flat_map(|reader| self.indexes.of(reader));
        shared_indexes::as_reads(read.filter_map(|(_, index)| index.cell))
    }

    /// A dataflow's share of the bytes of the indexes that it reads.
    pub(super) fn bytes_of_indexes(&self, reader: DataflowId) -> usize {
        let Some(engine) = self.engine.get() else { return 0 };
        let share = |(dataflow, index): (DataflowId, &Kept)| {
            engine.stats(dataflow).state_bytes / index.readers.len().max(1)
        };
        self.indexes.of(reader).map(share).sum()
    }
}

/// The input of a dataflow that takes these columns of a table.
pub(super) fn input_of(
    (dataflow, source): (DataflowId, SourceId),
    table: RelationId,
    columns: &[(i16, Type)],
    members: &BTreeSet<RelationId>,
    snapshot: Option<&SnapshotCopy>,
) -> Input {
    Input {
        dataflow,
        source,
        table,
        columns: columns.to_vec(),
        members: members.clone(),
        already_read: snapshot.cloned(),
    }
}
