//! What the table of a view's changes gets: one group of rows for each source transaction, in commit order.
//!
//! The dataflow of such a view tells the times of what it puts out. A view that is compared with its heap, because it is attached
//! anew, gets one group for all by which the heap differed: what has happened meanwhile nobody has seen.

use super::capture::{History, Moment};
use crate::pg::changes_table::COLUMNS;
use engine::{Time, Updates};
use plan::row::Row;
use plan::types::{Scalar, Type};
use plan::value::Datum;
use plan::Diff;

/// What a view has put out and is not in the table of its changes yet.
#[derive(Debug, Default)]
pub struct Changelog {
    updates: Updates<Row>,
}

/// What is to be written into the table of a view's changes together with the view.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Entries {
    /// There is none.
    #[default]
    None,
    /// These rows.
    Rows(Vec<Row>),
    /// Whatever is going to be written into the view, as of then.
    All(Moment),
}

impl Changelog {
    /// Takes what the dataflow has put out.
    pub fn push(&mut self, updates: &Updates<Row>) {
        self.updates.extend_from_slice(updates);
    }

    /// Takes back what was taken out of it, before whatever came since.
    pub fn put_back(&mut self, mut updates: Updates<Row>) {
        updates.append(&mut self.updates);
        self.updates = updates;
    }

    /// Lets it be written by somebody else.
    pub fn take(&mut self) -> Updates<Row> {
        std::mem::take(&mut self.updates)
    }

    pub fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// Forgets what has been written.
    pub fn clear(&mut self) {
        self.updates.clear();
    }

    /// The first time that is not written.
    pub fn first_time(&self) -> Option<Time> {
        self.updates.iter().map(|(_, time, _)| *time).min()
    }

    /// What it says, with the moments of its times, as far as they are known; that of others is the present.
    pub fn entries(&self, history: &History, present: Moment) -> Vec<Row> {
        let mut updates: Vec<&(Row, Time, Diff)> = self.updates.iter().collect();
        updates.sort_by(|(a, at, _), (b, then, _)| (at, a).cmp(&(then, b)));
        let mut entries = Vec::with_capacity(updates.len());
        for equal in updates.chunk_by(|(a, at, _), (b, then, _)| (at, a) == (then, b)) {
            let (row, time, _) = equal[0];
            let diff: Diff = equal.iter().map(|(_, _, diff)| diff).sum();
            if diff != 0 {
                entries.push(entry(history.at(*time).unwrap_or(present), row, diff));
            }
        }
        entries
    }
}

/// A row of the table.
pub fn entry(Moment { lsn, xid, at }: Moment, row: &Row, diff: Diff) -> Row {
    let number = |number: u64| Datum::Int8(number as i64);
    let xid = xid.map_or(Datum::Null, number);
    let own = Row::pack(&[number(lsn), xid, Datum::Int8(at), Datum::Int8(diff)]);
    Row::from_bytes(&[own.as_bytes(), row.as_bytes()].concat())
}

/// The types of its columns, of a view with these. The values of its own are eight bytes each, and written as what they are.
pub fn types(of_view: &[Type]) -> Vec<Type> {
    let own = [Type::Scalar(Scalar::Int8); COLUMNS.len()];
    own.into_iter().chain(of_view.iter().copied()).collect()
}
