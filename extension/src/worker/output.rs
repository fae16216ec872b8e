//! What a dataflow has put out and nobody has written yet.
//!
//! Mostly it is one piece, in which the engine has each row once: that is written as it is.
//! Further pieces have to be added up. Of a million rows that takes a good part of a second: large ones are left to a thread that
//! writes them.

use super::stored::Delta;
use crate::pg::heap::Tid;
use engine::{Time, Updates};
use plan::row::Row;
use plan::Diff;
use std::cmp::Ordering;

/// Rows that take a moment only to be added up, compared and written.
pub const LARGE: usize = 20_000;

/// Bytes of large rows likewise: PostgreSQL compresses their values at some megabytes a second.
const LARGE_BYTES: usize = 1 << 20;

/// Bytes from which on a row counts as large for that.
const LARGE_ROW: usize = 1 << 16;

/// Rows from which on they are added up in any case, so that those that come and go do not pile up.
const ADD_UP_AT: usize = 1 << 20;

type Update = (Row, Time, Diff);

/// Output of a dataflow.
#[derive(Debug)]
pub struct Output {
    updates: Updates<Row>,
    /// Whether a row may be there several times.
    is_mixed: bool,
    add_up_at: usize,
}

impl Default for Output {
    fn default() -> Output {
        Output { updates: Vec::new(), is_mixed: false, add_up_at: ADD_UP_AT }
    }
}

impl Output {
    /// Takes what the dataflow has put out: each row once.
    pub fn push(&mut self, mut updates: Updates<Row>) {
        if self.updates.is_empty() {
            self.updates = updates;
            return;
        }
        self.is_mixed |= !updates.is_empty();
        self.updates.append(&mut updates);
        if self.updates.len() >= self.add_up_at {
            self.add_up();
            self.add_up_at = ADD_UP_AT.max(2 * self.updates.len());
        }
    }

    /// Takes what the dataflow has put out: each row once for each time.
    pub fn push_by_time(&mut self, updates: Updates<Row>) {
        let mut times = updates.iter().map(|(_, time, _)| *time);
        let first = times.next();
        let has_times = times.any(|time| Some(time) != first);
        self.push(updates);
        self.is_mixed |= has_times;
    }

    /// Takes back what was taken out of it, before whatever came since.
    pub fn put_back(&mut self, delta: Delta) {
        let since = std::mem::replace(&mut self.updates, delta);
        self.push(since);
    }

    /// Whether there is nothing; after [`Output::settle`] also if it was added up to nothing.
    pub fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// Whether it takes more than a moment to write it.
    pub fn is_large(&self) -> bool {
        let rows = || {
            let diffs = self.updates.iter().map(|(_, _, diff)| diff.unsigned_abs());
            diffs.fold(0, u64::saturating_add)
        };
        let bytes = || {
            let rows = self.updates.iter().map(|(row, ..)| row.as_bytes().len());
            rows.filter(|bytes| *bytes > LARGE_ROW).fold(0, usize::saturating_add)
        };
        self.updates.len() > LARGE || rows() > LARGE as u64 || bytes() > LARGE_BYTES
    }

    /// Adds it up, unless it is large.
    pub fn settle(&mut self) {
        if self.updates.len() <= LARGE {
            self.add_up();
        }
    }

    pub fn add_up(&mut self) {
        if !std::mem::take(&mut self.is_mixed) {
            return;
        }
        add_up_equal(&mut self.updates, |(a, ..), (b, ..)| a.cmp(b));
    }

    /// All of it as it came.
    pub fn updates(&self) -> &Updates<Row> {
        &self.updates
    }

    /// All of it as one delta.
    pub fn into_delta(mut self) -> Delta {
        self.add_up();
        self.updates
    }

    /// All of it, which has been added up.
    pub fn delta(&self) -> &Delta {
        debug_assert!(!self.is_mixed);
        &self.updates
    }

    /// Bytes as of [`bytes_of_copies`], but for what has to be added up by who writes it.
    pub fn bytes_of_copies(&self) -> usize {
        match self.is_mixed {
            true => 0,
            false => bytes_of_copies(&self.updates),
        }
    }
}

/// Puts updates in an order, and adds up those that are equal in it.
pub fn add_up_equal(updates: &mut Updates<Row>, order: impl Fn(&Update, &Update) -> Ordering) {
    // Stable, because it is fast where most is in order already.
    updates.sort_by(&order);
    updates.dedup_by(|update, kept| {
        let is_same = order(update, kept).is_eq();
        if is_same {
            kept.2 += update.2;
        }
        is_same
    });
    updates.retain(|(_, _, diff)| *diff != 0);
}

/// Bytes it takes to write each of the equal rows that a delta holds once.
pub fn bytes_of_copies(delta: &Delta) -> usize {
    let bytes_of = |(row, _, diff): &Update| {
        let copies = usize::try_from(diff.saturating_sub(1)).unwrap_or(0);
        if copies == 0 {
            return 0;
        }
        let one = size_of::<Row>() + row.as_bytes().len() + size_of::<Tid>();
        copies.saturating_mul(one)
    };
    delta.iter().map(bytes_of).fold(0, usize::saturating_add)
}
