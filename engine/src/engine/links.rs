//! Which dataflows read the output of which others.
//!
//! What a thread of the one beneath has put out goes straight to the thread of the same number of the one above. Only what was
//! reported before that thread has learned of the reader is passed on by the engine.

use crate::core::updates::{DataflowId, Time, Updates};
use plan::row::Row;
use plan::SourceId;
use std::collections::BTreeSet;

/// A dataflow that reads the output of another one.
struct Link {
    beneath: DataflowId,
    above: DataflowId,
    input: Input,
    /// Threads of the one beneath that do not know it yet.
    awaited: BTreeSet<usize>,
}

/// Where output goes.
#[derive(Clone)]
pub(crate) struct Input {
    pub(crate) source: SourceId,
    /// The columns of the output that the source has.
    pub(crate) columns: Vec<usize>,
    /// The start of the dataflow that reads: what comes with an earlier time counts as of it.
    pub(crate) as_of: Time,
}

impl Input {
    /// Output as the source takes it.
    pub(crate) fn take(&self, output: &[(Row, Time, i64)]) -> Updates<Row> {
        let mut values = Vec::new();
        let take = |(row, time, diff): &(Row, Time, i64)| {
            values.clear();
            row.unpack_into(&mut values);
            let row = Row::pack(self.columns.iter().map(|column| &values[*column]));
            (row, self.as_of.max(*time), *diff)
        };
        output.iter().map(take).collect()
    }
}

#[derive(Default)]
pub(super) struct Links(Vec<Link>);

impl Links {
    /// The threads of the dataflow beneath, of which there are so many, are about to learn of the one above.
    pub(super) fn add(
        &mut self,
        beneath: DataflowId,
        above: DataflowId,
        input: Input,
        workers: usize,
    ) {
        self.0.push(Link { beneath, above, input, awaited: (0..workers).collect() });
    }

    /// A thread of the dataflow beneath has learned of the one above.
    pub(super) fn note_known(
        &mut self,
        beneath: DataflowId,
        (above, source): (DataflowId, SourceId),
        worker: usize,
    ) {
        let is_meant = |link: &&mut Link| {
            link.beneath == beneath && link.above == above && link.input.source == source
        };
        for link in self.0.iter_mut().filter(is_meant) {
            link.awaited.remove(&worker);
        }
    }

    /// What was reported by a thread, for those of which it did not know then.
    pub(super) fn pass_on(
        &self,
        beneath: DataflowId,
        worker: usize,
        output: &Updates<Row>,
    ) -> Vec<(DataflowId, SourceId, Updates<Row>)> {
        let is_meant = |link: &&Link| link.beneath == beneath && link.awaited.contains(&worker);
        let meant = self.0.iter().filter(is_meant).filter(|_| !output.is_empty());
        meant.map(|link| (link.above, link.input.source, link.input.take(output))).collect()
    }

    pub(super) fn above(&self, id: DataflowId) -> impl Iterator<Item = DataflowId> + '_ {
        self.0.iter().filter(move |link| link.beneath == id).map(|link| link.above)
    }

    pub(super) fn beneath(&self, id: DataflowId) -> impl Iterator<Item = DataflowId> + '_ {
        self.0.iter().filter(move |link| link.above == id).map(|link| link.beneath)
    }

    /// A dataflow goes.
    pub(super) fn remove(&mut self, id: DataflowId) {
        self.0.retain(|link| link.beneath != id && link.above != id);
    }
}
