//! Which of the dataflows are indexes, and who reads them.

use crate::core::updates::{DataflowId, Time};
use crate::render::{new_exports, new_traces, rows_of, Exports, Form, Import, Index};
use plan::{SourceId, ViewPlan};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// An index that a dataflow is to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// The plan's source whose rows it holds.
    pub source: SourceId,
    /// The columns of the source by which joins look into it. None: all of its rows are read, wherever the plan has it.
    pub key: Vec<usize>,
    /// The index.
    pub index: DataflowId,
}

struct Entry {
    index: Index,
    exports: Exports,
    /// Whether it is to stay when nobody reads it.
    is_wanted: bool,
    readers: BTreeSet<DataflowId>,
}

#[derive(Default)]
pub(super) struct Indexes(BTreeMap<DataflowId, Entry>);

impl Indexes {
    pub(super) fn add(&mut self, id: DataflowId, index: &Index, workers: usize) -> Exports {
        let exports = new_exports(index.form, workers);
        let entry = Entry {
            index: index.clone(),
            exports: exports.clone(),
            is_wanted: true,
            readers: BTreeSet::new(),
        };
        self.0.insert(id, entry);
        exports
    }

    /// A dataflow of a form that starts at `as_of` is going to read these; `None` if one is not there any more.
    ///
    /// # Panics
    /// Where one is not what the plan would read.
    pub(super) fn read(
        &mut self,
        reader: DataflowId,
        (plan, form): (&ViewPlan, Form),
        reads: &[Read],
        as_of: Time,
    ) -> Option<Vec<Import>> {
        if reads.iter().any(|read| !self.0.contains_key(&read.index)) {
            return None;
        }
        let import = |Read { source, key, index }: &Read| {
            let entry = self.0.get_mut(index)?;
            let columns = entry.index.answers(form, &plan.sources[source.0], key);
            let columns = columns.expect("an index is read by plans that it answers");
            entry.readers.insert(reader);
            let index = entry.index.clone();
            let traces = new_traces(index.form, &entry.exports, as_of);
            Some(Import { source: *source, key: key.clone(), index, columns, traces })
        };
        reads.iter().map(import).collect()
    }

    /// Updates that an index holds.
    pub(super) fn rows(&self, index: DataflowId) -> usize {
        self.0.get(&index).map_or(0, |entry| rows_of(entry.index.form, &entry.exports))
    }

    /// The dataflows that read an index.
    pub(super) fn readers(&self, index: DataflowId) -> BTreeSet<DataflowId> {
        self.0.get(&index).map(|entry| entry.readers.clone()).unwrap_or_default()
    }

    /// The same, and those that read what they make.
    pub(super) fn all_readers(&self, index: DataflowId) -> BTreeSet<DataflowId> {
        let mut all = self.readers(index);
        for reader in all.clone() {
            all.extend(self.all_readers(reader));
        }
        all
    }

    /// The indexes that a dataflow reads.
    pub(super) fn read_by(&self, reader: DataflowId) -> Vec<DataflowId> {
        let is_read = |(_, entry): &(&DataflowId, &Entry)| entry.readers.contains(&reader);
        self.0.iter().filter(is_read).map(|(id, _)| *id).collect()
    }

    pub(super) fn is_read(&self, index: DataflowId) -> bool {
        self.0.get(&index).is_some_and(|entry| !entry.readers.is_empty())
    }

    /// A dataflow goes, or an index is not wanted any more; answers the indexes for which that was the last reason to be.
    pub(super) fn release(&mut self, dataflow: DataflowId) -> Vec<DataflowId> {
        let mut gone = Vec::new();
        if let Some(entry) = self.0.get_mut(&dataflow) {
            entry.is_wanted = false;
            if !entry.readers.is_empty() {
                return gone;
            }
        }
        let mut ended = vec![dataflow];
        while let Some(reader) = ended.pop() {
            for (id, entry) in &mut self.0 {
                entry.readers.remove(&reader);
                if !entry.is_wanted && entry.readers.is_empty() && !gone.contains(id) {
                    gone.push(*id);
                    ended.push(*id);
                }
            }
        }
        gone.iter().for_each(|id| drop(self.0.remove(id)));
        gone
    }
}
