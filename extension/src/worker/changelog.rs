//! What the table of a view's changes gets: one group of rows for each source transaction, in commit order.
//!
//! The dataflow of such a view tells the times of what it puts out. A view that is compared with its heap, because it is attached
//! anew, gets one group for all by which the heap differed: what has happened meanwhile nobody has seen.

use super::capture::{History, Moment};
use super::output::add_up_equal;
use crate::pg::changes_table::COLUMNS;
use engine::{Time, Updates};
use plan::row::Row;
use plan::Diff;

/// What a view has put out and is not in the table of its changes yet.
#[derive(Debug, Default)]
pub struct Changelog {
    updates: Updates<Row>,
    /// Whether it may not be in the order of times, or have a row several times for one.
    is_mixed: bool,
}

/// A row of the table: what has happened to a row of the view, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub moment: Moment,
    pub diff: Diff,
    pub row: Row,
}

/// What is to be written into the table of a view's changes together with the view.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Entries {
    /// There is none.
    #[default]
    None,
    /// These rows.
    Rows(Vec<Entry>),
    /// Whatever is going to be written into the view, as of then.
    All(Moment),
}

impl Changelog {
    /// Takes what the dataflow has put out: each row once for each time.
    pub fn push(&mut self, updates: &Updates<Row>) {
        let last = self.updates.last().map(|(_, time, _)| *time);
        let is_later = updates.first().is_none_or(|(_, time, _)| last < Some(*time));
        self.is_mixed |= !is_later || !updates.is_sorted_by_key(|(_, time, _)| *time);
        self.updates.extend_from_slice(updates);
    }

    /// Takes back what was taken out of it, before whatever came since.
    pub fn put_back(&mut self, mut updates: Updates<Row>) {
        updates.append(&mut self.updates);
        self.updates = updates;
        self.is_mixed = true;
    }

    /// Lets it be written by somebody else.
    pub fn take(&mut self) -> Updates<Row> {
        self.is_mixed = false;
        std::mem::take(&mut self.updates)
    }

    pub fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// Forgets what has been written.
    pub fn clear(&mut self) {
        drop(self.take());
    }

    /// The first time that is not written.
    pub fn first_time(&self) -> Option<Time> {
        self.updates.iter().map(|(_, time, _)| *time).min()
    }

    /// What it says once it is settled, with the moments of its times, as far as they are known; that of others is the present.
    pub fn entries(&self, history: &History, present: Moment) -> Vec<Entry> {
        debug_assert!(!self.is_mixed);
        let mut entries = Vec::with_capacity(self.updates.len());
        for group in self.updates.chunk_by(|(_, at, _), (_, then, _)| at == then) {
            let moment = history.at(group[0].1).unwrap_or(present);
            let entry = |(row, _, diff): &(Row, Time, Diff)| Entry {
                moment,
                diff: *diff,
                row: row.clone(),
            };
            entries.extend(group.iter().map(entry));
        }
        entries
    }

    /// Puts it in order, and adds up what it says of a row at one time.
    pub fn settle(&mut self) {
        if !std::mem::take(&mut self.is_mixed) {
            return;
        }
        add_up_equal(&mut self.updates, |(a, at, _), (b, then, _)| (at, a).cmp(&(then, b)));
    }
}

/// The values of the table's own columns, of eight bytes each.
pub fn own_values(Moment { lsn, xid, at }: Moment, diff: Diff) -> [Option<u64>; COLUMNS.len()] {
    [Some(lsn), xid, Some(at as u64), Some(diff as u64)]
}
