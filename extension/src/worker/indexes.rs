//! Indexes: arrangements of base tables that several views read, each kept and fed once.
//!
//! The first view that looks something up in a table has the index made, and reads the table into it while it is attached
//! itself; those that come later find it. A view starts at a time that comes when decoding has reached the end of the WAL as of
//! its snapshot ([`Capture::reserve_time`](super::capture::Capture::reserve_time)): what was decoded until then counts as of that
//! time, in the view's own inputs as in the indexes, which so are of one point of commit order. An index goes with its last
//! reader.

use super::capture::Input;
use super::chosen::{Chosen, New, Spec};
use super::main_loop::Worker;
use super::sources::Sources;
use super::view::Phase;
use crate::compile::SourceTable;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::xact::SnapshotCopy;
use engine::{DataflowId, Lookup, Read, Time};
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
    /// Nothing was fed since it was fed everything before this time; it has arranged everything before that one.
    fed: Time,
    reached: Time,
}

/// The indexes of a database.
#[derive(Debug)]
pub(super) struct Indexes {
    by_dataflow: BTreeMap<DataflowId, TableIndex>,
    /// Whether views that are attached from now on read any.
    are_shared: bool,
}

/// An index that a view would read is being made.
pub(super) struct InTheMaking;

impl Indexes {
    /// None; views are going to read some if they `are_shared`.
    pub(super) fn new(are_shared: bool) -> Indexes {
        Indexes { by_dataflow: BTreeMap::new(), are_shared }
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
        let is_table = |lookup: &Lookup| !sources.compiled.query.sources[lookup.0 .0].is_clock();
        let wanted: BTreeSet<Lookup> = engine::lookups(plan).into_iter().filter(is_table).collect();
        let own = engine::sources_beside(plan, &wanted);
        let mut chosen = Chosen { own, ..Chosen::default() };
        for lookup in wanted {
            let spec = Spec::new(sources, &lookup);
            let there = self.by_dataflow.iter().find(|(_, index)| index.spec == spec);
            let (source, key) = lookup;
            let index = match there {
                Some((_, index)) if !index.is_read => return Err(InTheMaking),
                Some((id, _)) => *id,
                None => {
                    let dataflow = name();
                    chosen.new.push(New { dataflow, source, spec });
                    dataflow
                }
            };
            chosen.reads.push(Read { source, key, index });
        }
        Ok(chosen)
    }

    /// A view reads these from now on; the tables of the new ones are about to be read.
    fn note_begun(&mut self, view: ViewId, chosen: &Chosen, as_of: Time) {
        for New { dataflow, spec, .. } in &chosen.new {
            let index = TableIndex {
                spec: spec.clone(),
                readers: BTreeSet::new(),
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
    }

    /// The dataflow of an index has put out everything before a time.
    pub(super) fn reach(&mut self, dataflow: DataflowId, time: Time) {
        self.by_dataflow.get_mut(&dataflow).into_iter().for_each(|index| index.reached = time);
    }

    /// The views that read an index; none if it is no index.
    pub(super) fn readers(&self, dataflow: DataflowId) -> BTreeSet<ViewId> {
        self.by_dataflow.get(&dataflow).map(|index| index.readers.clone()).unwrap_or_default()
    }

    fn of(&self, view: ViewId) -> impl Iterator<Item = (DataflowId, &TableIndex)> {
        let reads = move |(_, index): &(&DataflowId, &TableIndex)| index.readers.contains(&view);
        self.by_dataflow.iter().filter(reads).map(|(id, index)| (*id, index))
    }
}

impl Worker {
    /// From now on changes of the tables of new indexes are collected.
    pub(super) fn note_indexes_begun(
        &mut self,
        relid: ViewId,
        (sources, chosen): (&Sources, &Chosen),
        snapshot: &SnapshotCopy,
        as_of: Time,
    ) {
        self.indexes.note_begun(relid, chosen, as_of);
        for New { dataflow, source, .. } in &chosen.new {
            let table = &sources.compiled.query.sources[source.0];
            let members = &sources.members[source.0];
            self.capture.add(input_of(*dataflow, SourceId(0), table, members, snapshot));
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
        for index in self.indexes.by_dataflow.values_mut() {
            index.readers.remove(&relid);
        }
        let unread = self.indexes.by_dataflow.iter().filter(|(_, index)| index.readers.is_empty());
        for dataflow in unread.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.forget_index(dataflow);
        }
    }

    /// An index is gone, or to go.
    pub(super) fn forget_index(&mut self, dataflow: DataflowId) {
        if self.indexes.by_dataflow.remove(&dataflow).is_some() {
            self.capture.remove(dataflow);
            self.engine.iter_mut().for_each(|engine| engine.drop_dataflow(dataflow));
        }
    }

    /// Begins to feed the indexes that have nothing to do what was collected for them.
    pub(super) fn begin_index_batches(&mut self) {
        let upper = self.capture.upper();
        for (dataflow, index) in &mut self.indexes.by_dataflow {
            let is_idle = index.is_read && index.reached >= index.fed && index.fed < upper;
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

    /// Whether there is something for a view that it was not told to take: in its own inputs, or in indexes.
    pub(super) fn is_unfed(&self, relid: ViewId) -> bool {
        let Some(Phase::Attached(attachment)) = self.views.get(&relid).map(|view| &view.phase)
        else {
            return false;
        };
        attachment.fed <= attachment.start
            || self.capture.has_steps(attachment.dataflow)
            || self.is_index_unfed(relid)
            || self.indexes.of(relid).any(|(_, index)| index.fed > attachment.fed)
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

/// The input of a dataflow that takes a table.
pub(super) fn input_of(
    dataflow: DataflowId,
    source: SourceId,
    table: &SourceTable,
    members: &BTreeSet<RelationId>,
    snapshot: &SnapshotCopy,
) -> Input {
    Input {
        dataflow,
        source,
        table: table.table,
        columns: table.columns(),
        members: members.clone(),
        already_read: snapshot.clone(),
    }
}
